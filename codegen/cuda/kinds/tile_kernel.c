/* tile_kernel.c: elementwise kernels: each thread makes a few neighbours of one row.  Where an element is its number
 * alone the rows do not count: only the end of the array may cut a vector.  A sum of parts is one element a thread and
 * small blocks: it reads many elements for each of few that it makes. */
#include "codegen/cuda/cuda_kernel.h"
#include "targets/target.h"

enum { THREADS = 256, PART_THREADS = 64 };

/* The most numbers of a thread that leave room for everything else in 64 registers, which ptxas uses for 256 threads
 * unless it knows of fewer blocks; it spills what does not fit. */
enum { HELD = 48 };

/* The same for 128 registers. */
enum { MOST_HELD = 80 };

/* The widest vector, up to |vector|, whose elements are all in one row. */
static int fit_columns(int64_t cols, int vector) {
    while (cols % vector) vector /= 2;
    return vector;
}

/* Columns from a multiple of |vector| on, which the compiler does not see if their number is an argument: it draws
 * four random numbers at once if it knows. */
static const char *rounded_column(const CudaKernel *ck) {
    const Walk *w = ck->w;
    bool draws = false;
    for (int i = 0; i < w->k->count; i++) draws = draws || walk_draws_by_row(w, walk_op(w, i));
    return draws && ck->vector > 1 && dim_varies(w->cols) ? arena_printf(w->arena, " & -%d", ck->vector) : "";
}

/* Full operands need the row's place only where something else does, or |at| counts what is past the columns too. */
static void put_tile_place(CudaKernel *ck) {
    ck->at = "at";
    if (ck->vector > 1) {
        ck->index = "i";
        ck->e.element = "at + i";
    } else ck->e.element = "at";
    if (ck->flat) return;
    const char *end = cuda_row_end(ck);
    ck->column = ck->vector > 1 ? "c0" : "c";
    emit_line(&ck->e, "MAYBE_UNUSED const int64_t r = quotient(at, %s);", end);
    emit_line(&ck->e, "MAYBE_UNUSED const int32_t %s = (int32_t)(at - r * %s)%s;", ck->column, end, rounded_column(ck));
    cuda_put_left(ck);
    if (!ck->by_rows) return;
    ck->at = arena_printf(ck->w->arena, "r * COLS + %s", ck->column);
    ck->e.element = "r * COLS + c";
}

/* Zeros past the columns, by the threads of single elements that stand there. */
static void fill_elements(CudaKernel *ck) {
    const Walk *w = ck->w;
    emit_open(&ck->e, "if (c >= COLS)");
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        const int64_t pitch = s->kind == SINK_STORE ? cuda_padded_pitch(w, s->operand) : 0;
        if (!pitch) continue;
        emit_line(&ck->e, "put_%s(b%d + r * %lld + c, 0.0f);", emit_storage(w, s->operand)->name, s->operand,
                  (long long)pitch);
    }
    emit_line(&ck->e, "return;");
    emit_close(&ck->e);
}

static bool adds_parts(const Walk *w) {
    for (int i = 0; i < w->k->count; i++)
        if (walk_op(w, i)->code == OP_sum_parts) return true;
    return false;
}

/* Numbers of an element that a thread holds at once: what it reads and what it stores.  Of a concat's inputs it reads
 * one. */
static int count_held(const Walk *w) {
    int held = 0;
    bool *counted = arena_array(w->arena, bool, w->operands.len + 1);
    for (int i = 0; i < w->sinks.len; i++) held += w->sinks.data[i].kind != SINK_LOOK;
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        const bool indirect = walk_is_indirect(w, o);
        held += indirect;
        for (int n = 0; n < o->n_in && !indirect; n++) {
            const ValueWalk *x = &w->values[o->in[n].id];
            if (!walk_reads(w, o, n) || x->made || !x->needed || counted[x->operand]) continue;
            counted[x->operand] = true;
            held++;
        }
    }
    return held;
}

/* By operand, whether its pointer is taken only where it is read: concat reads one of its inputs.  NULL: none. */
static bool *find_late(const Walk *w) {
    bool *late = NULL;
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        if (o->code != OP_concat) continue;
        if (!late) late = arena_array(w->arena, bool, w->operands.len + 1);
        for (int n = 0; n < o->n_in; n++) late[walk_memory_operand(w, o, n)] = true;
    }
    for (int i = 0; i < w->sinks.len && late; i++) late[w->sinks.data[i].operand] = false;
    return late;
}

static const char *block_place(const CudaKernel *ck, int threads, bool in_turn) {
    Arena *a = ck->w->arena;
    const char *block = in_turn ? "own_block" : arena_printf(a, "(int64_t)%s.x", ck->block);
    const char *at = arena_printf(a, "%s * %d + threadIdx.x", block, threads);
    if (ck->vector > 1) at = arena_printf(a, "(%s) * %d", at, ck->vector);
    return ck->body->shares ? arena_printf(a, "first + %s", at) : at;
}

/* Where ranks have shares of moments a kernel that updates some runs for the elements of the share. */
static bool runs_for_share(const Walk *w) {
    const Module *m = w->f->module;
    for (int i = 0; m->distribution == DISTRIBUTE_ZERO1 && i < w->operands.len; i++) {
        const Buffer *b = walk_operand(w, i);
        if (b->kind == BUFFER_STATE && ir_state_of(w->f, b->value)->role == STATE_MOMENT) return true;
    }
    return false;
}

/* Its first element and the end of them. */
static void put_ends(CudaKernel *ck, bool in_turn, int members) {
    const bool shares = ck->body->shares;
    if (in_turn && shares) emit_line(&ck->e, "const int64_t first = member_elements[%d + member];", members);
    if (in_turn) emit_line(&ck->e, "const int64_t elements = %smember_elements[member];", shares ? "first + " : "");
}

/* 0: of no batch; a chain has all elements of each. */
static int members_of(const CudaKernel *ck) { return ck->form.role == CUDA_IN_CHAIN ? 0 : ck->form.members; }

static bool is_in_turn(const CudaKernel *ck) { return members_of(ck) && ck->body->facts.batch == BATCH_IN_TURN; }

static int threads_of(const CudaKernel *ck) {
    return ck->form.threads ? ck->form.threads : adds_parts(ck->w) ? PART_THREADS : THREADS;
}

/* Elements of a thread, and what follows from their number. */
static void set_vector(CudaKernel *ck, Dim elements) {
    const int held = count_held(ck->w);
    ck->vector = adds_parts(ck->w) ? 1 : cuda_vector_width(ck->w);
    if (!ck->flat) ck->vector = fit_columns(cuda_multiple(ck->w, cuda_row_length(ck)), ck->vector);
    while (ck->vector > 1 && ck->vector * held > MOST_HELD) ck->vector /= 2;
    if (ck->vector * held > HELD) ck->body->min_blocks = 2;
    ck->by_rows = ck->pitch;
    ck->part = !ck->by_rows && ck->vector > 1 && (is_in_turn(ck) || cuda_multiple(ck->w, elements) % ck->vector);
    ck->how = arena_printf(ck->w->arena, "%d element%s a thread", ck->vector, ck->vector > 1 ? "s" : "");
    ck->body->launch.per[0] = threads_of(ck) * ck->vector;
}

static void set_sizes(CudaKernel *ck, Dim elements) {
    const bool in_turn = is_in_turn(ck);
    if (!in_turn) cuda_add_size(ck, "elements", elements);
    if (!in_turn && ck->body->shares) cuda_add_size(ck, "first", elements); /* which the runtime replaces */
    if (!ck->flat) cuda_add_size(ck, "cols", ck->w->cols);
}

static amp_status plan_tile(CudaKernel *ck) {
    Walk *w = ck->w;
    Dim elements;
    if (!dim_times(w->rows, cuda_row_length(ck), &elements))
        return amp_fail(ck->e.err, AMP_UNSUPPORTED, "%s: too many elements", walk_name(w));
    ck->flat = !cuda_needs_coordinates(ck);
    ck->body->facts.batch = ck->flat && !dim_varies(elements) ? BATCH_IN_TURN : BATCH_SIDE_BY_SIDE;
    ck->body->facts.elements = ck->body->launch.extent[0] = elements;
    ck->body->shares = runs_for_share(w);
    ck->body->facts.bundles = !ck->body->shares;
    if (ck->body->shares && !ck->flat)
        return amp_fail(ck->e.err, AMP_UNSUPPORTED,
                        "%s has no CUDA code yet where ranks have shares of its moments (zero1); train with --target "
                        "cpu, or compile with --distribute data",
                        walk_name(w));
    set_vector(ck, elements);
    set_sizes(ck, elements);
    ck->first_thread = "at == 0";
    return AMP_OK;
}

amp_status cuda_emit_tile(CudaKernel *ck) {
    Walk *w = ck->w;
    const int members = members_of(ck), threads = threads_of(ck);
    const bool *late = find_late(w), in_chain = ck->form.role == CUDA_IN_CHAIN;
    AMP_TRY(plan_tile(ck));
    ck->late_operands = late;
    ck->body->takes_table = in_chain || (late && ck->form.role && !members && w->operands.len > CUDA_PART_OPERANDS);
    if (ck->form.plan) return cuda_plan_function(ck, threads);
    AMP_TRY(cuda_open_function(ck, threads));
    for (int i = 0; i < w->operands.len; i++)
        if (!late || !late[i]) cuda_declare_operand(ck, i);
    put_ends(ck, is_in_turn(ck), members);
    if (!ck->flat) cuda_declare_columns(ck);
    emit_line(&ck->e, "const int64_t at = %s;", block_place(ck, threads, is_in_turn(ck)));
    emit_line(&ck->e, "if (at >= elements) return;");
    if (ck->part) emit_line(&ck->e, "MAYBE_UNUSED const int64_t left = elements - at;");
    put_tile_place(ck);
    if (ck->by_rows && ck->vector == 1) fill_elements(ck);
    AMP_TRY(cuda_emit_once(ck));
    AMP_TRY(cuda_emit_elements(ck, 0));
    AMP_TRY(cuda_finish_once(ck));
    cuda_close_function(ck);
    return AMP_OK;
}
