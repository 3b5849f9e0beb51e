/* kernel_function.c: the function around a kernel (cuda_kernel.h): its own, or a part of one (CudaRole). */
#include "base/hash.h"
#include "codegen/cuda/cuda_kernel.h"

/* Whether the form is one of a batch of kernels. */
static bool is_batch(const CudaKernel *ck) { return ck->form.members && ck->form.role != CUDA_IN_CHAIN; }

static const char *pointer_type(const Walk *w, int operand) {
    if (walk_operand(w, operand)->kind == BUFFER_LOOK) return "Look *";
    return arena_printf(w->arena, "%s%s *", walk_is_written(w, operand) ? "" : "const ",
                        emit_storage(w, operand)->element);
}

/* Where the table has the pointers of the kernel, or of the member. */
static void declare_table(CudaKernel *ck, bool batch) {
    const Walk *w = ck->w;
    const int count = w->operands.len + (w->k->pred.id != 0);
    ck->operands = batch ? "operand" : "operands";
    ck->declared = arena_array(w->arena, bool, w->operands.len + 1);
    if (batch) emit_line(&ck->e, "void *const *const operand = operands + member * %d;", count);
    if (w->k->pred.id)
        emit_line(&ck->e, "const int32_t *const predicate = (const int32_t *)%s[%d];", ck->operands, count - 1);
}

void cuda_declare_operand(CudaKernel *ck, int i) {
    const char *type = pointer_type(ck->w, i);
    if (!ck->operands || ck->declared[i]) return;
    ck->declared[i] = true;
    emit_line(&ck->e, "MAYBE_UNUSED %sconst b%d = (%s)%s[%d];", type, i, type, ck->operands, i);
}

const char *cuda_operand(const CudaKernel *ck, int i) {
    Arena *a = ck->w->arena;
    if (!ck->operands || ck->declared[i]) return arena_printf(a, "b%d", i);
    return arena_printf(a, "((%s)%s[%d])", pointer_type(ck->w, i), ck->operands, i);
}

void cuda_declare_operands(CudaKernel *ck) {
    for (int i = 0; i < ck->w->operands.len; i++) cuda_declare_operand(ck, i);
}

static void declare_member(CudaKernel *ck, int members, int threads) {
    if (ck->body->facts.batch == BATCH_IN_TURN) {
        emit_line(&ck->e, "int64_t own_block = %s.x;", ck->block);
        emit_line(&ck->e, "const int member = find_member(member_elements, %d, %d, &own_block);", members,
                  threads * ck->vector);
    } else emit_line(&ck->e, "const int member = %s.%c;", ck->block, "xyz"[cuda_batch_axis(ck->body->facts.batch)]);
}

void cuda_add_size(CudaKernel *ck, const char *name, Dim size) {
    vec_push(ck->w->arena, &ck->body->size_names, name);
    vec_push(ck->w->arena, &ck->body->sizes, size);
}

/* The length, and the keys of random numbers: layers that differ in these alone share a function. */
static void add_numbers(CudaKernel *ck) {
    int count = 0;
    if (ck->w->f->module->length.most) cuda_add_size(ck, "t", dim_t(1, 1));
    for (int i = 0; i < ck->w->k->count && count < EMIT_MOST_KEYS; i++) {
        const Op *o = walk_op(ck->w, i);
        if (o->code != OP_random) continue;
        cuda_add_size(ck, arena_printf(ck->w->arena, "key%d", count++), dim_const(amp_hash32(ir_attr(o, "key")->s)));
    }
}

void cuda_declare_columns(CudaKernel *ck) { emit_line(&ck->e, "const int32_t COLS = (int32_t)cols;"); }

void cuda_declare_places(CudaKernel *ck, const Dim *dims, int rank, const char *number) {
    Arena *a = ck->w->arena;
    Dim inner = dim_const(1);
    for (int i = rank - 1; i >= 0; i--) {
        const char *at = dim_is_one(inner) ? number : arena_printf(a, "%s / %s", number, emit_dim_factor(a, inner));
        if (i) at = arena_printf(a, "%s %% %s", at, emit_dim_factor(a, dims[i]));
        emit_line(&ck->e, "MAYBE_UNUSED const int64_t batch%d = %s;", i, at);
        dim_mul(inner, dims[i], &inner);
    }
}

enum { REGISTERS = 65536, MOST_REGISTERS = 255, REGISTER_UNIT = 8 }; /* of a multiprocessor; of a thread */

static const char *describe(const CudaKernel *ck, int threads) {
    Arena *a = ck->w->arena;
    const int min_blocks = ck->body->min_blocks;
    const char *how = arena_printf(a, "%s%s%d thread%s a block", ck->how ? ck->how : "", ck->how ? ", " : "", threads,
                                   threads == 1 ? "" : "s");
    if (!min_blocks) return how;
    int registers = REGISTERS / (threads * min_blocks) / REGISTER_UNIT * REGISTER_UNIT;
    if (registers > MOST_REGISTERS) registers = MOST_REGISTERS;
    return arena_printf(a, "%s, at most %d registers: %d block%s a multiprocessor", how, registers, min_blocks,
                        min_blocks == 1 ? "" : "s");
}

void cuda_put_bounds(Text *t, int threads, const CudaBody *body) {
    const int min_blocks = body->min_blocks;
    text_printf(t, "__launch_bounds__(%d", threads);
    if (min_blocks && body->halves_blocks)
        text_printf(t, ", HAS_ASYNC_COPIES ? %d : %d", min_blocks, (min_blocks + 1) / 2);
    else if (min_blocks && (body->kind == KERNEL_COLUMN || body->kind == KERNEL_ATTENTION))
        text_printf(t, ", LEAN ? 1 : %d", min_blocks); /* what spills with so few registers has more */
    else if (min_blocks) text_printf(t, ", %d", min_blocks);
    else text_puts(t, ", LEAN");
    text_putc(t, ')');
}

amp_status cuda_plan_function(CudaKernel *ck, int threads) {
    add_numbers(ck);
    ck->body->facts.vector = ck->vector;
    ck->body->launch.block[0] = threads;
    return AMP_OK;
}

/* What the body says of its function. */
static amp_status describe_function(CudaKernel *ck, int threads) {
    Walk *w = ck->w;
    add_numbers(ck);
    for (int i = 0; i < w->operands.len; i++)
        if (walk_operand(w, i)->layout != LAYOUT_ROWS)
            return amp_fail(ck->e.err, AMP_UNSUPPORTED, "%s: buffer %s is not in rows", walk_name(w),
                            walk_operand(w, i)->name);
    ck->body->how = describe(ck, threads);
    ck->body->launch.block[0] = threads;
    ck->body->launch.block[1] = ck->body->launch.block[2] = 1;
    for (int i = 0; i < w->operands.len; i++) vec_push(w->arena, &ck->body->pointers, pointer_type(w, i));
    if (w->k->pred.id) vec_push(w->arena, &ck->body->pointers, "const int32_t *");
    return AMP_OK;
}

/* |table|: the operands come out of one. */
static void put_parameters(CudaKernel *ck, bool table) {
    const CudaBody *body = ck->body;
    Text *t = ck->e.out;
    if (table) text_puts(t, "void *const *operands, ");
    for (int i = 0; i < body->pointers.len && !table; i++) {
        const bool is_operand = i < ck->w->operands.len;
        text_printf(t, is_operand ? "%sb%d, " : "%spredicate, ", body->pointers.data[i], i);
    }
    text_puts(t, "int64_t n");
    for (int i = 0; i < body->sizes.len; i++) text_printf(t, ", int64_t %s", body->size_names.data[i]);
    if (is_batch(ck)) text_puts(t, ", const int64_t *member_elements");
    if (body->partials) text_puts(t, ", uint32_t *tickets, double *partials");
}

/* Up to the brace that opens its body. */
static void begin_function(CudaKernel *ck, int threads, bool table) {
    Text *t = ck->e.out;
    text_puts(t, "extern \"C\" __global__ void ");
    cuda_put_bounds(t, threads, ck->body);
    text_puts(t, " @(");
    put_parameters(ck, table);
    text_puts(t, ")\n{\n");
    if (ck->types) text_puts(t, ck->types);
}

/* Who computes its place anew says so itself (cuda_product.c). */
static void begin_part(CudaKernel *ck, bool table) {
    static const char *const places[] = {[CUDA_BESIDE] = "PlaceInGrid",
                                         [CUDA_IN_CHAIN] = "PlaceOfBlock",
                                         [CUDA_BY_COLUMNS] = "PlaceInTurn",
                                         [CUDA_IN_TURN] = "PlaceInTurn",
                                         [CUDA_IN_BAND] = "PlaceInTurn"};
    Text *t = ck->e.out;
    text_printf(t, "struct @_part%d {\n%s", ck->form.part, ck->types ? ck->types : "");
    text_printf(t, "    static constexpr int SHARED = %s;\n\n", ck->types ? "Matrices::SHARED" : "1");
    text_printf(t, "    static INLINE void run(const %s &place, char *shared, ", places[ck->form.role]);
    put_parameters(ck, table);
    text_puts(t, ")\n    {\n");
    ck->e.indent++;
    if (!ck->types) emit_line(&ck->e, "const uint3 block = place.now();");
}

/* Whether a block ends soon after it begins: the next launch, admitted at once, finds places in the last wave, not long
 * before it may go on.  Where blocks take long it would be crowded into those that are free first. */
static bool has_short_blocks(const CudaKernel *ck) {
    const KernelKind kind = ck->w->k->kind;
    const bool has_several_rows = ck->body->launch.per[0] > 1; /* else all its threads go along a long one */
    return kind == KERNEL_TILE || kind == KERNEL_SCALAR || (kind == KERNEL_ROW && has_several_rows);
}

/* Products wait when they have found their places (prelude/product.cuh), kernels that wait for one another once, in
 * their function. */
static void begin_after_earlier(CudaKernel *ck) {
    const KernelKind kind = ck->w->k->kind;
    if (ck->form.role >= CUDA_BY_COLUMNS) return;
    if (kind != KERNEL_PRODUCT || ck->w->k->pred.id) emit_line(&ck->e, "await_earlier_launches();");
    if (has_short_blocks(ck)) emit_line(&ck->e, "admit_next_launch();");
}

amp_status cuda_open_function(CudaKernel *ck, int threads) {
    const Walk *w = ck->w;
    const bool is_part = ck->form.role != CUDA_ALONE, many = w->operands.len + (w->k->pred.id != 0) > LAUNCH_OPERANDS;
    const bool table = is_batch(ck) || (is_part ? ck->body->takes_table : many);
    AMP_TRY(describe_function(ck, threads));
    ck->body->operand_table = table;
    if (is_part) begin_part(ck, table);
    else begin_function(ck, threads, table);
    if (is_batch(ck)) declare_member(ck, ck->form.members, threads);
    if (table) declare_table(ck, is_batch(ck));
    if (!ck->late_operands) cuda_declare_operands(ck);
    begin_after_earlier(ck);
    if (w->k->pred.id) emit_line(&ck->e, "if (!*predicate) return;");
    return AMP_OK;
}

void cuda_close_function(CudaKernel *ck) {
    const bool is_part = ck->form.role != CUDA_ALONE;
    ck->e.indent -= is_part;
    text_puts(ck->e.out, is_part ? "    }\n};\n" : "}\n");
    ck->body->source = text_str(ck->e.out);
}
