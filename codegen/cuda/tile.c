/* tile.c: elementwise kernels: each thread makes a few neighbours of one row.  Where an element is its number alone the
 * rows do not count: only the end of the array may cut a vector. */
#include "codegen/cuda/cuda_kernel.h"

enum { THREADS = 256 };

/* Elements of a vector stand in one row: so many that they do. */
static int fit_columns(int64_t cols, int vector) {
    while (cols % vector) vector /= 2;
    return vector;
}

static bool is_multiple(Dim d, int of) { return (!d.n || d.div == 1) && d.mul % of == 0; }

/* Full operands need the row's place only where something else does. */
static void put_place(CudaKernel *k) {
    k->at = "at";
    if (k->vector > 1) {
        k->index = "i";
        k->e.element = "at + i";
    } else k->e.element = "at";
    if (k->flat) return;
    k->column = k->vector > 1 ? "c0" : "c";
    emit_line(&k->e, "MAYBE_UNUSED const int64_t r = quotient(at, COLS);");
    emit_line(&k->e, "MAYBE_UNUSED const int32_t %s = (int32_t)(at - r * COLS);", k->column);
}

static const char *block_place(const CudaKernel *k, int members) {
    const char *block = members ? "block" : "(int64_t)blockIdx.x";
    const char *at = arena_printf(k->w->arena, "%s * %d + threadIdx.x", block, THREADS);
    return k->vector > 1 ? arena_printf(k->w->arena, "(%s) * %d", at, k->vector) : at;
}

amp_status cuda_emit_tile(CudaKernel *k, int members) {
    Walk *w = k->w;
    Dim elements;
    if (!dim_mul(w->rows, dim_const(w->cols), &elements))
        return amp_fail(k->e.err, AMP_UNSUPPORTED, "%s: too many elements", walk_name(w));
    k->flat = !cuda_needs_coordinates(k);
    k->vector = cuda_vector_width(w);
    if (!k->flat) k->vector = fit_columns(w->cols, k->vector);
    k->part = k->vector > 1 && (members || !is_multiple(elements, k->vector));
    k->first_thread = "at == 0";
    k->body->may_batch = k->flat;
    k->body->elements = elements;
    k->body->launch.extent[0] = elements;
    k->body->launch.per[0] = THREADS * k->vector;
    AMP_TRY(cuda_open_function(k, THREADS, members));
    if (!k->flat) emit_line(&k->e, "enum { COLS = %lld };", (long long)w->cols);
    emit_line(&k->e, "const int64_t elements = %s;",
              members ? "member_elements[member]" : emit_dim(w->arena, elements));
    emit_line(&k->e, "const int64_t at = %s;", block_place(k, members));
    emit_line(&k->e, "if (at >= elements) return;");
    if (k->part) emit_line(&k->e, "MAYBE_UNUSED const int64_t left = elements - at;");
    put_place(k);
    AMP_TRY(cuda_emit_once(k));
    AMP_TRY(cuda_emit_elements(k, 0));
    AMP_TRY(cuda_finish_once(k));
    cuda_close_function(k);
    return AMP_OK;
}
