/* row.c: reductions along rows.  A warp goes along a row of up to 1024 columns, a block of 256 threads along a wider
 * one.  Thread t of T makes the vectors t, t + T, t + 2 T, .. of V neighbours; a sum is made of its columns in
 * ascending order, then over threads (prelude/reduce.cuh).  V and T depend on the number of columns alone, so that
 * fusion changes no bit.
 *
 * What several phases need stays in registers where there are enough of them, else it is read and computed again. */
#include "codegen/cuda/cuda_kernel.h"

enum { WARP = 32, THREADS = 256, WARP_COLUMNS = 1024, MAX_VECTOR = 4, REGISTERS = 96, MAX_SLOTS = 32 };

/* As wide as leaves every thread of a warp a vector. */
static int row_vector(int64_t cols) {
    int vector = MAX_VECTOR;
    while (vector > 1 && (cols % vector || cols < (int64_t)WARP * vector)) vector /= 2;
    return vector;
}

/* Values that would stay: inputs that several phases read, and what the walk keeps.  Returns how many; fills
 * first_phase. */
static int find_resident(CudaKernel *k) {
    Walk *w = k->w;
    int count = 0;
    for (int p = 0; p < w->phases; p++) {
        walk_phase(w, p);
        for (int i = 0; i < w->k->count; i++) {
            const Op *o = walk_op(w, i);
            for (int n = 0; n < o->n_in; n++) {
                const ValueWalk *x = &w->values[o->in[n].id];
                int *first = &k->first_phase[o->in[n].id];
                if (!walk_reads(w, o, n) || x->made || !x->needed || !x->touched || !walk_is_inner(w, x->span))
                    continue;
                if (!*first) *first = -(p + 1); /* so far in one phase */
                else if (*first < 0 && *first != -(p + 1)) {
                    *first = -*first;
                    count++;
                }
            }
        }
    }
    for (int i = 1; i <= w->f->values.len - 1; i++)
        if (k->first_phase[i] < 0) k->first_phase[i] = 0;
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        if (o->n_out && w->values[o->out[0].id].kept) count++;
    }
    return count;
}

static void forget_resident(CudaKernel *k) {
    Walk *w = k->w;
    for (int i = 0; i < w->f->values.len; i++) k->first_phase[i] = 0;
    for (int i = 0; i < w->k->count; i++)
        if (walk_op(w, i)->n_out) w->values[walk_op(w, i)->out[0].id].kept = false;
    cuda_delay_stores(k);
}

static void declare_resident(CudaKernel *k) {
    Walk *w = k->w;
    for (int i = 1; i < w->f->values.len; i++) {
        Val v = {(uint32_t)i};
        if (k->first_phase[i])
            emit_line(&k->e, "%s x%d[%d][%d];", emit_type(ir_dtype(w->f, v), false), walk_number(w, v), k->slots,
                      k->vector);
    }
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        if (o->n_out && w->values[o->out[0].id].kept)
            emit_line(&k->e, "%s kept%d[%d][%d];", emit_type(ir_dtype(w->f, o->out[0]), false),
                      walk_number(w, o->out[0]), k->slots, k->vector);
    }
}

/* The vectors of a thread, one after the other.  |stays|: known to the compiler one by one. */
static int open_vectors(CudaKernel *k, int threads, bool stays) {
    int64_t step = (int64_t)threads * k->vector;
    const char *times = k->vector > 1 ? arena_printf(k->w->arena, " * %d", k->vector) : "";
    const char *column = k->vector > 1 ? "c0" : "c";
    if (!stays) {
        emit_open(&k->e, "for (int32_t %s = lane%s; %s < COLS; %s += %lld)", column, times, column, column,
                  (long long)step);
        return 1;
    }
    int opened = 1;
    const char *unused = k->w->cols % step ? "" : "MAYBE_UNUSED ";
    if (k->slots > 1) {
        emit_line(&k->e, "UNROLL");
        emit_open(&k->e, "for (int q = 0; q < %d; q++)", k->slots);
        emit_line(&k->e, "%sconst int32_t %s = (q * %d + lane)%s;", unused, column, threads, times);
    } else {
        emit_block(&k->e);
        emit_line(&k->e, "%sconst int32_t %s = lane%s;", unused, column, times);
    }
    if (k->w->cols % step) {
        emit_open(&k->e, "if (%s < COLS)", column);
        opened++;
    }
    return opened;
}

static void close_vectors(CudaKernel *k, int opened) {
    while (opened--) emit_close(&k->e);
}

static void put_place(CudaKernel *k, bool block) {
    emit_line(&k->e, "enum { COLS = %lld };", (long long)k->w->cols);
    emit_line(&k->e, "const int64_t rows = %s;", emit_dim(k->w->arena, k->w->rows));
    if (block) emit_line(&k->e, "const int32_t lane = threadIdx.x;");
    else emit_line(&k->e, "const int32_t lane = threadIdx.x %% 32;");
    emit_line(&k->e, block ? "const int64_t r = blockIdx.x;"
                           : "const int64_t r = (int64_t)blockIdx.x * 8 + threadIdx.x / 32;");
    emit_line(&k->e, "if (r >= rows) return;");
}

amp_status cuda_emit_row(CudaKernel *k) {
    Walk *w = k->w;
    bool block = w->cols > WARP_COLUMNS;
    int threads = block ? THREADS : WARP;
    k->vector = row_vector(w->cols);
    int64_t slots = (w->cols + (int64_t)threads * k->vector - 1) / ((int64_t)threads * k->vector);
    k->slots = slots < 1 << 20 ? (int)slots : 1 << 20;
    cuda_delay_stores(k);
    bool stays =
        w->phases > 1 && (int64_t)find_resident(k) * k->slots * k->vector <= REGISTERS && k->slots <= MAX_SLOTS;
    if (!stays) forget_resident(k);
    k->column = k->vector > 1 ? "c0" : "c";
    k->index = k->vector > 1 ? "i" : "0";
    k->at = arena_printf(w->arena, "r * COLS + %s", k->column);
    k->e.element = "r * COLS + c";
    k->slot = k->slots > 1 ? "[q]" : "[0]";
    k->line_store = "lane == 0";
    k->first_thread = "r == 0 && lane == 0";
    if (block) k->reduce_shape = ", 256";
    k->body->launch.extent[0] = w->rows;
    k->body->launch.per[0] = block ? 1 : THREADS / WARP;
    AMP_TRY(cuda_open_function(k, THREADS, 0));
    put_place(k, block);
    AMP_TRY(cuda_emit_once(k));
    if (stays) declare_resident(k);
    AMP_TRY(cuda_load_line(k));
    for (int p = 0; p < w->phases; p++) {
        AMP_TRY(cuda_emit_line_ops(k, p));
        if (!loop_has_phase(w, p)) continue;
        walk_phase(w, p);
        AMP_TRY(cuda_open_reductions(k, p));
        int opened = open_vectors(k, threads, stays || k->slots == 1);
        AMP_TRY(cuda_emit_elements(k, p));
        close_vectors(k, opened);
        cuda_close_reductions(k, p, block ? "block_reduce" : "warp_reduce");
    }
    AMP_TRY(cuda_emit_line_ops(k, w->phases));
    AMP_TRY(cuda_store_line(k));
    AMP_TRY(cuda_finish_once(k));
    cuda_close_function(k);
    return AMP_OK;
}
