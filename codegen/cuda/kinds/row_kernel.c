/* row_kernel.c: reductions along rows.  A warp goes along a row of up to 1024 columns, a block of 256 threads along a
 * wider one.  Thread t of T makes the vectors t, t + T, t + 2 T, .. of V neighbours; a sum is made of its columns in
 * ascending order, then over threads (prelude/reduce.cuh).  V and T depend on the number of columns alone, so that
 * fusion changes no bit; rows whose number of columns is known at run time, or was given to T, have a warp and the
 * widest vector, whatever the number is.
 *
 * What several phases need stays in registers if there are enough of them.  Else it is computed again, from operands
 * that a block copies into shared memory once (prelude/held_row.cuh), as far as they fit: the launch says how much it
 * gives the function, which reads the rest of the row from memory in each phase.  Without any it has the same bits. */
#include "amp/model_abi.h"
#include "codegen/cuda/cuda_kernel.h"
#include "targets/target.h"

enum {
    WARP = 32,
    THREADS = 256,
    WARP_COLUMNS = 1024,
    MAX_VECTOR = 4,
    REGISTERS = 96,
    BUNDLE_REGISTERS = 32,
    MAX_SLOTS = 32,
    COPY_BYTES = 16, /* of one asynchronous copy */
    HELD_UNIT = 16   /* columns; then each operand begins at a multiple of a copy */
};

/* Shared memory that a block may have on sm_90; on sm_80; on all others from sm_86 on; everywhere. */
static const int shared_limits[] = {227 << 10, 163 << 10, 99 << 10, 64 << 10};

/* As wide as leaves every thread of a warp a vector.  The last one of a long row may be cut short. */
static int row_vector(int64_t cols) {
    int vector = MAX_VECTOR;
    if (cols >= LONG_ROW) return vector;
    while (vector > 1 && (cols % vector || cols < (int64_t)WARP * vector)) vector /= 2;
    return vector;
}

/* Whether the phase that walk_phase was asked for loads the |n|th input of |o|. */
static bool is_loaded(const Walk *w, const Op *o, int n) {
    const ValueWalk *x = &w->values[o->in[n].id];
    return walk_reads(w, o, n) && !x->made && x->needed && x->touched && walk_is_inner(w, x->span);
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
                int *first = &ck->first_phase[o->in[n].id];
                if (!is_loaded(w, o, n)) continue;
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

/* ---- rows in shared memory --------------------------------------------------------------------------------------- */

/* By operand: how many phases load it. */
static uint8_t *count_reads(const CudaKernel *ck) {
    Walk *w = ck->w;
    uint8_t *reads = arena_array(w->arena, uint8_t, w->operands.len + 1);
    for (int p = 0; p < w->phases; p++) {
        bool *counted = arena_array(w->arena, bool, w->operands.len + 1);
        walk_phase(w, p);
        for (int i = 0; i < w->k->count; i++) {
            const Op *o = walk_op(w, i);
            for (int n = 0; n < o->n_in; n++) {
                const ValueWalk *x = &w->values[o->in[n].id];
                if (!is_loaded(w, o, n) || x->span != SPAN_FULL || counted[x->operand]) continue;
                counted[x->operand] = true;
                reads[x->operand]++;
            }
        }
    }
    return reads;
}

/* Fills |held| with the operands that several phases read; returns the bytes of a column of all of them. */
static int find_held(CudaKernel *ck) {
    Walk *w = ck->w;
    uint8_t *again = count_reads(ck);
    int *held = arena_array(w->arena, int, w->operands.len + 1), bytes = 0;
    for (int i = 0; i < w->operands.len; i++) {
        const int size = emit_storage(w, i)->bytes;
        const bool holds = again[i] > 1 && size * ck->vector <= COPY_BYTES;
        again[i] = holds ? again[i] - 1 : 0;
        if (!holds) continue;
        held[i] = 1 + bytes;
        bytes += size;
    }
    if (!bytes) return 0;
    ck->held = held;
    ck->body->again = again;
    return bytes;
}

static int64_t round_down(int64_t columns) { return columns / HELD_UNIT * HELD_UNIT; }

/* Shared memory in the form that is asked for: the whole row, or as much of it as devices have that cannot hold it.  No
 * device has less than the last one. */
static void set_shared(CudaKernel *ck) {
    const int column_bytes = ck->column_bytes;
    const int64_t row = round_down(cuda_row_length(ck).mul + HELD_UNIT - 1) * column_bytes;
    int64_t forms[KERNEL_FORMS];
    int count = 0;
    for (size_t i = 0; i < sizeof shared_limits / sizeof shared_limits[0]; i++) {
        const int64_t fit = round_down((shared_limits[i] - AMP_CUDA_FIXED_SHARED) / column_bytes) * column_bytes;
        const int64_t bytes = row < fit ? row : fit;
        if (!count || forms[count - 1] != bytes) forms[count++] = bytes;
    }
    const int choice = ck->form.choice;
    ck->body->facts.choices = count - 1;
    ck->body->launch.shared_bytes = (int)forms[choice && choice < count ? choice - 1 : count - 1];
}

static const char *element_of(const CudaKernel *ck, int operand) { return emit_storage(ck->w, operand)->element; }

/* Whether vectors of the operand are whole in each row, or where it ends. */
static bool has_vectors(const CudaKernel *ck, int operand) {
    return cuda_multiple(ck->w, ck->w->cols) % ck->vector == 0 || cuda_padded_pitch(ck->w, operand);
}

/* A thread copies what it reads later itself: it waits for its own copies alone. */
static void hold_rows(CudaKernel *ck) {
    const char *end = cuda_row_end(ck);
    emit_line(&ck->e, "extern __shared__ __align__(%d) char held_row[];", COPY_BYTES);
    emit_line(&ck->e, "const int32_t held = columns_held<%d, %d>();", ck->column_bytes, HELD_UNIT);
    for (int i = 0; i < ck->w->operands.len; i++)
        if (ck->held[i])
            emit_line(&ck->e, "%s *const held%d = (%s *)(held_row + held * %d);", element_of(ck, i), i,
                      element_of(ck, i), ck->held[i] - 1);
    emit_open(&ck->e, "for (int32_t c0 = lane * %d; c0 < held && c0 < %s; c0 += %d)", ck->vector, end,
              THREADS * ck->vector);
    for (int i = 0; i < ck->w->operands.len; i++) {
        if (!ck->held[i]) continue;
        const char *left =
            cuda_padded_pitch(ck->w, i) || !ck->by_rows ? arena_printf(ck->w->arena, "%d", ck->vector) : "COLS - c0";
        emit_line(&ck->e, "hold<%d, %s>(held%d + c0, b%d + r * %s + c0, %s);", ck->vector,
                  has_vectors(ck, i) ? "true" : "false", i, i, cuda_length_of(ck, i), left);
    }
    emit_close(&ck->e);
    emit_line(&ck->e, "close_copies();");
}

/* `row0`: where the columns of operand 0 are that the loop is at. */
static void put_held_rows(CudaKernel *ck, bool begins) {
    for (int i = 0; i < ck->w->operands.len; i++) {
        if (!ck->held[i]) continue;
        if (begins) emit_line(&ck->e, "const %s *row%d = held%d;", element_of(ck, i), i, i);
        else emit_line(&ck->e, "if (c0 >= held) row%d = b%d + r * %s;", i, i, cuda_length_of(ck, i));
    }
}

/* ---- vectors of a thread ----------------------------------------------------------------------------------------- */

/* The vectors of a long row, one after the other.  Those that are whole need no test of each element; the last one of
 * a row may not be. */
static amp_status emit_long_row(CudaKernel *ck, int p) {
    const int64_t cols = ck->w->cols.mul, whole = cols / ck->vector * ck->vector;
    emit_block(&ck->e);
    emit_line(&ck->e, "int32_t c0 = lane * %d;", ck->vector);
    if (ck->held) {
        put_held_rows(ck, true);
        emit_line(&ck->e, "NO_UNROLL");
        emit_open(&ck->e, "for (int32_t end = held < %lld ? held : %lld;; end = %lld)", (long long)whole,
                  (long long)whole, (long long)whole);
    }
    emit_line(&ck->e, "UNROLL_TWICE");
    emit_open(&ck->e, "for (; c0 < %s; c0 += %d)",
              ck->held ? "end" : arena_printf(ck->w->arena, "%lld", (long long)whole), THREADS * ck->vector);
    if (ck->by_rows) emit_line(&ck->e, "MAYBE_UNUSED constexpr int32_t left = %d;", ck->vector);
    AMP_TRY(cuda_emit_elements(ck, p));
    emit_close(&ck->e);
    if (ck->held) {
        put_held_rows(ck, false);
        emit_line(&ck->e, "if (end == %lld) break;", (long long)whole);
        emit_close(&ck->e);
    }
    if (ck->by_rows) {
        emit_open(&ck->e, "if (c0 < %s)", cuda_row_end(ck));
        cuda_put_left(ck);
        AMP_TRY(cuda_emit_elements(ck, p));
        emit_close(&ck->e);
    }
    emit_close(&ck->e);
    return AMP_OK;
}

/* The same of a shorter row.  |stays|: known to the compiler one by one. */
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
    const Dim length = cuda_row_length(ck);
    const bool ends_early = dim_varies(length) || length.mul % step;
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
    if (dim_varies(ck->w->cols)) cuda_declare_columns(ck);
    else emit_line(&ck->e, "enum { COLS = %lld };", (long long)ck->w->cols.mul);
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

/* What a thread keeps of its row from phase to phase: all in registers, or operands in shared memory, or nothing. */
static bool plan_row(CudaKernel *ck, bool block) {
    Walk *w = ck->w;
    const int64_t per_slot = (int64_t)(block ? THREADS : WARP) * ck->vector;
    const int64_t slots = (cuda_most(w, cuda_row_length(ck)) - 1) / per_slot + 1;
    ck->slots = slots < 1 << 20 ? (int)slots : 1 << 20;
    cuda_delay_stores(ck);
    walk_find_kept(w); /* what only a store that was delayed needs is made later */
    const int64_t registers = w->phases > 1 ? (int64_t)find_resident(ck) * ck->slots * ck->vector : 0;
    const bool stays = w->phases > 1 && registers <= REGISTERS && ck->slots <= MAX_SLOTS;
    if (!stays) forget_resident(ck);
    ck->column_bytes = !stays && block && ck->form.role == CUDA_ALONE ? find_held(ck) : 0;
    if (ck->column_bytes) set_shared(ck);
    /* beside it, others would have few blocks */
    ck->body->facts.bundles = stays ? registers <= BUNDLE_REGISTERS : !ck->column_bytes;
    return stays;
}

static void set_names(CudaKernel *ck, bool block) {
    ck->column = ck->vector > 1 ? "c0" : "c";
    ck->index = ck->vector > 1 ? "i" : "0";
    ck->at = arena_printf(ck->w->arena, "r * COLS + %s", ck->column);
    ck->e.element = "r * COLS + c";
    ck->slot = ck->slots > 1 ? "[q]" : "[0]";
    ck->line_store = "lane == 0";
    ck->first_thread = "r == 0 && lane == 0";
    if (block) ck->reduce_shape = ", 256";
    ck->how = !block ? "a warp a row" : ck->column_bytes ? "a block a row, in shared memory" : "a block a row";
}

static amp_status emit_phase(CudaKernel *ck, int p, bool block, bool stays) {
    AMP_TRY(cuda_emit_line_ops(ck, p));
    if (!loop_has_phase(ck->w, p)) return AMP_OK;
    walk_phase(ck->w, p);
    AMP_TRY(cuda_open_reductions(ck, p));
    if (block && !stays) AMP_TRY(emit_long_row(ck, p));
    else {
        const int opened = open_vectors(ck, block ? THREADS : WARP, stays || ck->slots == 1);
        AMP_TRY(cuda_emit_elements(ck, p));
        close_vectors(ck, opened);
    }
    cuda_close_reductions(ck, p, block ? "block_reduce" : "warp_reduce");
    return AMP_OK;
}

amp_status cuda_emit_row(CudaKernel *ck) {
    Walk *w = ck->w;
    const bool sized = dim_is_sized(w->cols);
    const bool block = !sized && w->cols.mul > WARP_COLUMNS, is_short = !sized && w->cols.mul < LONG_ROW;
    if (is_short) ck->pitch = 0;
    ck->vector = sized && !dim_is_one(w->cols) ? MAX_VECTOR : row_vector(w->cols.mul);
    ck->by_rows = ck->pitch || cuda_multiple(w, w->cols) % ck->vector;
    const bool stays = plan_row(ck, block);
    set_names(ck, block);
    ck->body->launch.extent[0] = w->rows;
    ck->body->launch.per[0] = block ? 1 : THREADS / WARP;
    if (dim_times(w->rows, w->cols, &ck->body->facts.elements)) ck->body->facts.batch = BATCH_SIDE_BY_SIDE;
    if (dim_varies(w->cols)) cuda_add_size(ck, "cols", w->cols);
    if (ck->form.plan) return cuda_plan_function(ck, THREADS);
    AMP_TRY(cuda_open_function(ck, THREADS));
    put_row_place(ck, block);
    if (ck->column_bytes) hold_rows(ck);
    AMP_TRY(cuda_emit_once(ck));
    if (stays) declare_resident(ck);
    AMP_TRY(cuda_load_line(ck));
    if (ck->column_bytes) emit_line(&ck->e, "await_copies<0>();");
    for (int p = 0; p < w->phases; p++) AMP_TRY(emit_phase(ck, p, block, stays));
    if (is_short) fill_short_rows(ck);
    AMP_TRY(cuda_emit_line_ops(ck, w->phases));
    AMP_TRY(cuda_store_line(ck));
    AMP_TRY(cuda_finish_once(ck));
    cuda_close_function(ck);
    return AMP_OK;
}
