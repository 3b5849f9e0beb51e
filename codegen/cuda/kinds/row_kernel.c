/* row_kernel.c: reductions along rows.  A warp goes along a row of up to 1024 columns, a block of 256 threads along a
 * wider one.  Thread t of T makes the vectors t, t + T, t + 2 T, .. of V neighbours; a sum is made of its columns in
 * ascending order, then over threads (prelude/reduce.cuh).  V and T depend on the number of columns alone, so that
 * fusion changes no bit.
 *
 * What several phases need stays in registers where there are enough of them, else it is read and computed again. */
#include "codegen/cuda/cuda_kernel.h"
#include "targets/target.h"

enum {
    WARP = 32,
    THREADS = 256,
    WARP_COLUMNS = 1024,
    MAX_VECTOR = 4,
    REGISTERS = 96,
    BUNDLE_REGISTERS = 32,
    MAX_SLOTS = 32
};

/* As wide as leaves every thread of a warp a vector.  The last one of a long row may be cut short. */
static int row_vector(int64_t cols) {
    int vector = MAX_VECTOR;
    if (cols >= LONG_ROW) return vector;
    while (vector > 1 && (cols % vector || cols < (int64_t)WARP * vector)) vector /= 2;
    return vector;
}

/* Values that would stay: inputs that several phases read, and what the walk keeps.  Returns how many; fills
 * first_phase. */
static int find_resident(CudaKernel *ck) {
    Walk *w = ck->w;
    int count = 0;
    for (int p = 0; p < w->phases; p++) {
        walk_phase(w, p);
        for (int i = 0; i < w->k->count; i++) {
            const Op *o = walk_op(w, i);
            for (int n = 0; n < o->n_in; n++) {
                const ValueWalk *x = &w->values[o->in[n].id];
                int *first = &ck->first_phase[o->in[n].id];
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
        if (ck->first_phase[i] < 0) ck->first_phase[i] = 0;
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        if (o->n_out && w->values[o->out[0].id].kept) count++;
    }
    return count;
}

static void forget_resident(CudaKernel *ck) {
    Walk *w = ck->w;
    for (int i = 0; i < w->f->values.len; i++) ck->first_phase[i] = 0;
    for (int i = 0; i < w->k->count; i++)
        if (walk_op(w, i)->n_out) w->values[walk_op(w, i)->out[0].id].kept = false;
    cuda_delay_stores(ck);
}

static void declare_resident(CudaKernel *ck) {
    Walk *w = ck->w;
    for (int i = 1; i < w->f->values.len; i++) {
        Val v = {(uint32_t)i};
        if (ck->first_phase[i])
            emit_line(&ck->e, "%s x%d[%d][%d];", emit_type(ir_dtype(w->f, v), false), walk_number(w, v), ck->slots,
                      ck->vector);
    }
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        if (o->n_out && w->values[o->out[0].id].kept)
            emit_line(&ck->e, "%s kept%d[%d][%d];", emit_type(ir_dtype(w->f, o->out[0]), false),
                      walk_number(w, o->out[0]), ck->slots, ck->vector);
    }
}

/* The vectors of a thread, one after the other.  |stays|: known to the compiler one by one. */
static int open_vectors(CudaKernel *ck, int threads, bool stays) {
    int64_t step = (int64_t)threads * ck->vector;
    const char *times = ck->vector > 1 ? arena_printf(ck->w->arena, " * %d", ck->vector) : "";
    const char *column = ck->vector > 1 ? "c0" : "c";
    if (!stays) {
        emit_open(&ck->e, "for (int32_t %s = lane%s; %s < %s; %s += %lld)", column, times, column, cuda_row_end(ck),
                  column, (long long)step);
        cuda_put_left(ck);
        return 1;
    }
    int opened = 1;
    const bool ends_early = cuda_row_length(ck) % step;
    const char *unused = ends_early ? "" : "MAYBE_UNUSED ";
    if (ck->slots > 1) {
        emit_line(&ck->e, "UNROLL");
        emit_open(&ck->e, "for (int q = 0; q < %d; q++)", ck->slots);
        emit_line(&ck->e, "%sconst int32_t %s = (q * %d + lane)%s;", unused, column, threads, times);
    } else {
        emit_block(&ck->e);
        emit_line(&ck->e, "%sconst int32_t %s = lane%s;", unused, column, times);
    }
    if (ends_early) {
        emit_open(&ck->e, "if (%s < %s)", column, cuda_row_end(ck));
        opened++;
    }
    cuda_put_left(ck);
    return opened;
}

static void close_vectors(CudaKernel *ck, int opened) {
    while (opened--) emit_close(&ck->e);
}

static void put_row_place(CudaKernel *ck, bool block) {
    emit_line(&ck->e, "enum { COLS = %lld };", (long long)ck->w->cols.mul);
    emit_line(&ck->e, "const int64_t rows = %s;", emit_dim(ck->w->arena, ck->w->rows));
    if (block) emit_line(&ck->e, "const int32_t lane = threadIdx.x;");
    else emit_line(&ck->e, "const int32_t lane = threadIdx.x %% 32;");
    emit_line(&ck->e, block ? "const int64_t r = %s.x;" : "const int64_t r = (int64_t)%s.x * 8 + threadIdx.x / 32;",
              ck->block);
    emit_line(&ck->e, "if (r >= rows) return;");
}

/* Short rows are gone along as dense ones are, for the same sums; what is past their columns is less than a vector of
 * the warp. */
static void fill_short_rows(CudaKernel *ck) {
    Walk *w = ck->w;
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        const int64_t pitch = s->kind == SINK_STORE ? cuda_padded_pitch(w, s->operand) : 0;
        if (!pitch) continue;
        cuda_declare_operand(ck, s->operand);
        emit_line(&ck->e, "if (COLS + lane < %lld) put_%s(b%d + r * %lld + COLS + lane, 0.0f);", (long long)pitch,
                  emit_storage(w, s->operand)->name, s->operand, (long long)pitch);
    }
}

amp_status cuda_emit_row(CudaKernel *ck) {
    Walk *w = ck->w;
    bool block = w->cols.mul > WARP_COLUMNS;
    int threads = block ? THREADS : WARP;
    const bool is_short = w->cols.mul < LONG_ROW;
    if (is_short) ck->pitch = 0;
    ck->vector = row_vector(w->cols.mul);
    ck->by_rows = ck->pitch || w->cols.mul % ck->vector;
    int64_t slots = (cuda_row_length(ck) + (int64_t)threads * ck->vector - 1) / ((int64_t)threads * ck->vector);
    ck->slots = slots < 1 << 20 ? (int)slots : 1 << 20;
    cuda_delay_stores(ck);
    walk_find_kept(w); /* what only a store that was delayed needs is made later */
    const int64_t held = w->phases > 1 ? (int64_t)find_resident(ck) * ck->slots * ck->vector : 0;
    const bool stays = w->phases > 1 && held <= REGISTERS && ck->slots <= MAX_SLOTS;
    if (!stays) forget_resident(ck);
    ck->column = ck->vector > 1 ? "c0" : "c";
    ck->index = ck->vector > 1 ? "i" : "0";
    ck->at = arena_printf(w->arena, "r * COLS + %s", ck->column);
    ck->e.element = "r * COLS + c";
    ck->slot = ck->slots > 1 ? "[q]" : "[0]";
    ck->line_store = "lane == 0";
    ck->first_thread = "r == 0 && lane == 0";
    if (block) ck->reduce_shape = ", 256";
    ck->body->launch.extent[0] = w->rows;
    ck->body->launch.per[0] = block ? 1 : THREADS / WARP;
    if (dim_mul(w->rows, w->cols, &ck->body->facts.elements)) ck->body->facts.batch = BATCH_SIDE_BY_SIDE;
    ck->how = block ? "a block a row" : "a warp a row";
    ck->body->facts.bundles = !stays || held <= BUNDLE_REGISTERS; /* beside it, others would have few blocks */
    if (ck->form.plan) return cuda_plan_function(ck, THREADS);
    AMP_TRY(cuda_open_function(ck, THREADS));
    put_row_place(ck, block);
    AMP_TRY(cuda_emit_once(ck));
    if (stays) declare_resident(ck);
    AMP_TRY(cuda_load_line(ck));
    for (int p = 0; p < w->phases; p++) {
        AMP_TRY(cuda_emit_line_ops(ck, p));
        if (!loop_has_phase(w, p)) continue;
        walk_phase(w, p);
        AMP_TRY(cuda_open_reductions(ck, p));
        int opened = open_vectors(ck, threads, stays || ck->slots == 1);
        AMP_TRY(cuda_emit_elements(ck, p));
        close_vectors(ck, opened);
        cuda_close_reductions(ck, p, block ? "block_reduce" : "warp_reduce");
    }
    if (is_short) fill_short_rows(ck);
    AMP_TRY(cuda_emit_line_ops(ck, w->phases));
    AMP_TRY(cuda_store_line(ck));
    AMP_TRY(cuda_finish_once(ck));
    cuda_close_function(ck);
    return AMP_OK;
}
