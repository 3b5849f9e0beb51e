/* part_launch.c: the functions of a launch.  A kernel alone, or a batch of kernels, is a function as it is written
 * (kernel_function.c); of other launches the function runs parts.
 *
 * Of one stage (passes/launch/bundle.c) the blocks of a part follow the blocks of another along the grid's first
 * dimension:
 *
 *     struct @_part0 { ..; static INLINE void run(const PlaceInGrid &place, char *shared, ..) {..} };
 *     struct @_part1 {..};
 *
 *     extern "C" __global__ void __launch_bounds__(256, ..) @(.. *b0, .. *b1, .., int64_t n, int64_t size0, ..,
 *                                                             int64_t first0, int64_t x0, int64_t y0, ..)
 *     {
 *         __shared__ __align__(128) union {
 *             char part0[@_part0::SHARED], part1[@_part1::SHARED];
 *         } shared;
 *         if (blockIdx.x < (uint32_t)first1) {
 *             @_part0::run({first0, x0, y0}, shared.part0, b0, b1, b2, n, size0);
 *             return;
 *         }
 *         @_part1::run({first1, x1, y1}, shared.part1, b3, b4, b5, n);
 *     }
 *
 * A part may be a batch of kernels, but not of products.  Then, where they are too many for parameters, and where a
 * part reads each pointer only where it needs it (CudaBody.takes_table), all operands come out of a table.  A part's
 * operands begin there at an index that is known here, and so do the elements of its members:
 *
 *     @_part0::run({first0, x0, y0}, shared.part0, operands, n, size0, member_elements);
 *     @_part1::run({first1, x1, y1}, shared.part1, (const float *)operands[24], (float *)operands[25], n);
 *
 * A chain of products (passes/launch/chain.c) has one part, which each block runs for one kernel after another:
 *
 *     for (int member = 0; member < 3; member++) {
 *         @_part0::run(PlaceOfBlock(), shared.part0, operands + member * 5, n, size0, size1, size2);
 *         __syncthreads();
 *     }
 *
 * Of a single-pass reduction (passes/launch/single_pass.c) each block is one of the first part, and the one that takes
 * the last ticket of its columns runs the further parts for them:
 *
 *     const uint32_t blocks = ((uint32_t)size1 + 31) / 32, block = blockIdx.x % blocks;
 *     await_earlier_launches();
 *     @_part0::run(PlaceInTurn{blockIdx.x, 0, 0}, shared.part0, b0, b1, n, size0, size1, size2);
 *     if (!takes_last_ticket(tickets + block, gridDim.x / blocks)) return;
 *     @_part1::run(PlaceInTurn{block, 0, 0}, shared.part1, b2, b3, n, size3, size4);
 *
 * Of several stages (passes/launch/supersteps.c) a block takes the next number, and waits until all blocks of the
 * stages before its own have ended (prelude/superstep.cuh).  Sizes are in the text:
 *
 *     extern "C" __global__ void __launch_bounds__(256, 2) @(void *const *operands, int64_t n, [int64_t t,]
 *                                                            uint32_t *tickets, int64_t first0, int64_t x0, ..)
 *     {
 *         __shared__ ..
 *         await_earlier_launches();
 *         const uint32_t turn = takes_turn(tickets, gridDim.x);
 *         if (turn < (uint32_t)first1) {
 *             const uint32_t band = turn - (uint32_t)first0;
 *             @_part0::run(PlaceInTurn{band, 0, 0}, shared.part0, (const float *)operands[0], .., n, n, 64, 64);
 *             __syncthreads();
 *             ..
 *         } else {
 *             waits_for_turns(tickets, (uint32_t)first1);
 *             @_part1::run(place_in_turn(turn - (uint32_t)first1, x1, y1), shared.part1, .., n, 64, n, 64);
 *         }
 *         ends_turn(tickets, gridDim.x);
 *     }
 */
#include "codegen/cuda/launch/cuda_writer.h"

enum { MIN_BLOCKS = 2 }; /* of launches of several stages */

typedef struct Piece { /* a kernel, or a batch of them, as it is written */
    CudaBody body;
    int members, operand, size, element; /* how many; the first of its own */
} Piece;

typedef struct Writing {
    CudaWriter *x;
    const Func *f;
    const Launch *launch;
    CudaKernelEntry *entry;
    VEC(Piece) pieces;
    int *first_piece; /* by part */
    int threads;      /* of a block of parts, where it has no choices */
    int choices;      /* of the piece that has most */
    bool stages, chain, any_batch, table;
    bool whole; /* the function is a kernel's own, or a batch's */
} Writing;

static const LaunchPart *part_at(const Writing *g, int number) { return &g->launch->parts.data[number]; }
static const Kernel *kernel_at(const Writing *g, const LaunchPart *part, int i) {
    return g->f->kernels.data[part->kernels.data[i]];
}
static bool is_batch(const LaunchPart *part) { return part->form == PART_BATCH && part->kernels.len > 1; }
/* A batch is one, and so is a chain. */
static int pieces_of(const LaunchPart *part) { return part->form <= PART_CHAIN ? 1 : part->kernels.len; }

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

static CudaRole role_of(const Writing *g, const LaunchPart *part) {
    if (g->stages) return part->form == PART_ROWS ? CUDA_IN_BAND : CUDA_IN_TURN;
    return g->launch->by_columns ? CUDA_BY_COLUMNS : g->chain ? CUDA_IN_CHAIN : g->whole ? CUDA_ALONE : CUDA_BESIDE;
}

static int64_t round_up(int64_t count, int64_t to) { return (count + to - 1) / to * to; }

/* Makes the launch of one member the launch of all. */
static void set_batch_extent(const Writing *g, Piece *p) {
    const Dim *elements = g->entry->batch_elements.data + p->element;
    CudaLaunch *launch = &p->body.launch;
    int64_t total = 0;
    const int axis = cuda_batch_axis(p->body.facts.batch);
    if (p->body.facts.batch != BATCH_IN_TURN) {
        launch->extent[axis] = dim_const(p->members);
        launch->per[axis] = 1;
        return;
    }
    for (int i = 0; i < p->members; i++) total += round_up(elements[i].mul, launch->per[axis]);
    launch->extent[axis] = dim_const(total);
}

static amp_status write_piece(Writing *g, const LaunchPart *part, int i, CudaForm form) {
    const Piece *before = g->pieces.len ? &g->pieces.data[g->pieces.len - 1] : NULL;
    Piece p = {.members = is_batch(part) ? part->kernels.len : 1};
    if (before) {
        p.operand = before->operand + before->body.pointers.len * before->members;
        p.size = before->size + before->body.sizes.len;
        p.element = before->element + (i ? 0 : before->members);
    }
    form.role = role_of(g, part);
    form.part = g->pieces.len;
    form.members = p.members > 1 || g->chain ? part->kernels.len : 0;
    AMP_TRY(cuda_write_kernel(g->x, kernel_at(g, part, i), form, &p.body));
    if (p.members > 1) set_batch_extent(g, &p);
    g->table |= p.members > 1 || p.body.takes_table || p.operand + p.body.pointers.len > LAUNCH_OPERANDS;
    if (p.body.facts.choices > g->choices) g->choices = p.body.facts.choices;
    vec_push(g->x->m->arena, &g->pieces, p);
    return AMP_OK;
}

/* A kernel with functions for many blocks uses them in the launch too, which has more blocks than the kernel. */
static int threads_of(const Writing *g, int choice) {
    int threads = g->whole || g->chain ? 0 : g->threads;
    for (int i = 0; i < g->pieces.len && choice && threads; i++)
        if (g->pieces.data[i].body.facts.threads[choice] > threads)
            threads = g->pieces.data[i].body.facts.threads[choice];
    return threads;
}

/* Writes all pieces for one function: the launch's own, or a choice. */
static amp_status write_pieces(Writing *g, int choice) {
    const CudaForm form = {.choice = choice, .threads = threads_of(g, choice)};
    g->pieces.len = 0;
    g->table = g->stages;
    for (int i = 0; i < g->launch->parts.len; i++) {
        g->first_piece[i] = g->pieces.len;
        for (int k = 0; k < pieces_of(part_at(g, i)); k++) AMP_TRY(write_piece(g, part_at(g, i), k, form));
    }
    return AMP_OK;
}

/* The rows of what |k| writes, which it makes block by block. */
static Dim rows_of(const Func *f, const Kernel *k) {
    Dim rows = dim_const(1), cols;
    for (int i = 0; i < k->writes.len; i++) {
        const Buffer *b = f->buffers.data[k->writes.data[i] - 1];
        if (b->kind != BUFFER_FLAG && b->kind != BUFFER_LOOK) shape_matrix(ir_shape(f, b->value), &rows, &cols);
    }
    return rows;
}

/* As part |number| would be launched alone: of rows, a block for 64 of them; else the blocks of its first kernel. */
static CudaLaunch launch_of(const Writing *g, int number) {
    CudaLaunch l = g->pieces.data[g->first_piece[number]].body.launch;
    if (part_at(g, number)->form != PART_ROWS) return l;
    l.extent[0] = rows_of(g->f, kernel_at(g, part_at(g, number), 0));
    l.per[0] = LAUNCH_ROWS;
    l.per[1] = l.per[2] = 0;
    return l;
}

/* ---- what calls a piece ------------------------------------------------------------------------------------------ */

static void put_shared(const Writing *g, Text *t) {
    text_puts(t, "    __shared__ __align__(128) union {\n        char ");
    for (int i = 0; i < g->pieces.len; i++) text_printf(t, "%spart%d[@_part%d::SHARED]", i ? ", " : "", i, i);
    text_puts(t, ";\n    } shared;\n");
}

static void put_operands(const Writing *g, Text *t, const Piece *p) {
    if (g->chain) text_printf(t, "operands + member * %d, ", p->body.pointers.len);
    else if (p->members > 1 || p->body.takes_table) text_printf(t, "operands + %d, ", p->operand);
    if (g->chain || p->members > 1 || p->body.takes_table) return;
    for (int i = 0; i < p->body.pointers.len; i++) {
        if (g->table) text_printf(t, "(%s)operands[%d], ", p->body.pointers.data[i], p->operand + i);
        else text_printf(t, "b%d, ", p->operand + i);
    }
}

/* `@_part3::run(PlaceInTurn{band, 0, 0}, shared.part3, (const float *)operands[7], .., n, n, 64);` */
static void put_call(const Writing *g, Text *t, int number, const char *place, const char *indent) {
    const Piece *p = &g->pieces.data[number];
    text_printf(t, "%s@_part%d::run(%s, shared.part%d, ", indent, number, place, number);
    put_operands(g, t, p);
    text_putc(t, 'n');
    for (int i = 0; i < p->body.sizes.len; i++) {
        if (g->stages) text_printf(t, ", %s", emit_dim(g->x->m->arena, p->body.sizes.data[i]));
        else text_printf(t, ", size%d", p->size + i);
    }
    if (p->members > 1) text_printf(t, ", member_elements + %d", p->element);
    if (p->body.partials) text_puts(t, ", tickets, partials");
    text_puts(t, ");\n");
}

/* ---- one stage --------------------------------------------------------------------------------------------------- */

static void put_beside(const Writing *g, Text *t) {
    Arena *a = g->x->m->arena;
    for (int i = 0; i < g->pieces.len; i++) {
        const bool last = i == g->pieces.len - 1;
        if (!last) text_printf(t, "    if (blockIdx.x < (uint32_t)first%d) {\n", i + 1);
        put_call(g, t, i, arena_printf(a, "{first%d, x%d, y%d}", i, i, i), last ? "    " : "        ");
        if (!last) text_puts(t, "        return;\n    }\n");
    }
}

static void put_chain(const Writing *g, Text *t) {
    text_printf(t, "    for (int member = 0; member < %d; member++) {\n", part_at(g, 0)->kernels.len);
    put_call(g, t, 0, "PlaceOfBlock()", "        ");
    text_puts(t, "        __syncthreads();\n    }\n");
}

/* Columns are the second size of all column kernels. */
static void put_by_columns(const Writing *g, Text *t) {
    const int width = g->pieces.data[0].body.columns;
    text_printf(t, "    const uint32_t blocks = ((uint32_t)size1 + %d) / %d, block = blockIdx.x %% blocks;\n",
                width - 1, width);
    text_puts(t, "    await_earlier_launches();\n");
    put_call(g, t, 0, "PlaceInTurn{blockIdx.x, 0, 0}", "    ");
    text_puts(t, "    if (!takes_last_ticket(tickets + block, gridDim.x / blocks)) return;\n");
    for (int i = 1; i < g->pieces.len; i++) put_call(g, t, i, "PlaceInTurn{block, 0, 0}", "    ");
}

/* ---- several stages ---------------------------------------------------------------------------------------------- */

/* The rows of band `band` that |k| makes, which is piece |number|. */
static void put_band(const Writing *g, Text *t, const Kernel *k, int number, const char *indent) {
    Arena *a = g->x->m->arena;
    const CudaLaunch *l = &g->pieces.data[number].body.launch;
    const long long blocks = l->extent[0].mul / rows_of(g->f, k).mul * LAUNCH_ROWS / l->per[0];
    const long long columns = l->per[1] ? (l->extent[1].mul + l->per[1] - 1) / l->per[1] : 1;
    const char *x = blocks > 1 ? arena_printf(a, "band * %lld + i", blocks) : "band", *y = columns > 1 ? "y" : "0";
    const char *inner = blocks > 1 || columns > 1 ? arena_printf(a, "%s    ", indent) : indent;
    const char *at = blocks > 1 ? "i" : "y";
    if (inner != indent)
        text_printf(t, "%sNO_UNROLL\n%sfor (uint32_t %s = 0; %s < %lld; %s++) {\n", indent, indent, at, at,
                    blocks > 1 ? blocks : columns, at);
    put_call(g, t, number, arena_printf(a, "PlaceInTurn{%s, %s, 0}", x, y), inner);
    text_printf(t, "%s__syncthreads();\n", inner);
    if (inner != indent) text_printf(t, "%s}\n", indent);
}

/* What the blocks of part |number| do; its first block is `first<number>`. */
static void put_part(const Writing *g, Text *t, int number, const char *indent) {
    const LaunchPart *part = part_at(g, number);
    const int first = g->first_piece[number];
    if (part->form == PART_ROWS) text_printf(t, "%sconst uint32_t band = turn - (uint32_t)first%d;\n", indent, number);
    if (part->form == PART_BATCH)
        put_call(
            g, t, first,
            arena_printf(g->x->m->arena, "place_in_turn(turn - (uint32_t)first%d, x%d, y%d)", number, number, number),
            indent);
    for (int i = 0; i < part->kernels.len && part->form == PART_ROWS; i++)
        put_band(g, t, kernel_at(g, part, i), first + i, indent);
    for (int i = 0; i < part->kernels.len && part->form == PART_BLOCK; i++) {
        put_call(g, t, first + i, "PlaceInTurn{0, 0, 0}", indent);
        text_printf(t, "%s__syncthreads();\n", indent);
    }
}

static void put_stages(const Writing *g, Text *t) {
    const int count = g->launch->parts.len;
    text_puts(t, "    await_earlier_launches();\n");
    text_puts(t, "    const uint32_t turn = takes_turn(tickets, gridDim.x);\n");
    for (int i = 0, begin = 0; i < count; i++) {
        if (part_at(g, i)->stage != part_at(g, begin)->stage) begin = i;
        text_puts(t, i ? " else " : "    ");
        if (i < count - 1) text_printf(t, "if (turn < (uint32_t)first%d) ", i + 1);
        text_printf(t, "{\n        /* superstep %d */\n", part_at(g, i)->stage + 1);
        if (begin) text_printf(t, "        waits_for_turns(tickets, (uint32_t)first%d);\n", begin);
        put_part(g, t, i, "        ");
        text_puts(t, "    }");
    }
    text_puts(t, "\n    ends_turn(tickets, gridDim.x);\n");
}

/* Of each superstep the part whose block makes most kernels. */
static void count_steps(const Writing *g) {
    int most = 0;
    for (int i = 0; i < g->launch->parts.len; i++) {
        if (part_at(g, i)->stage == g->entry->supersteps) {
            g->entry->supersteps++;
            g->entry->depth += most;
            most = 0;
        }
        if (pieces_of(part_at(g, i)) > most) most = pieces_of(part_at(g, i));
    }
    g->entry->depth += most;
}

/* ---- the launch -------------------------------------------------------------------------------------------------- */

/* What ptxas and the runtime are told: of the part that takes more. */
static void take_bounds(const Writing *g, CudaBody *out) {
    *out = (CudaBody){.kind = kernel_at(g, part_at(g, 0), 0)->kind, .operand_table = g->table};
    out->launch = g->pieces.data[0].body.launch;
    for (int i = 0; i < g->pieces.len; i++) {
        const CudaBody *part = &g->pieces.data[i].body;
        if (part->min_arch > out->min_arch) out->min_arch = part->min_arch;
        if (!out->min_blocks || part->min_blocks < out->min_blocks) out->min_blocks = part->min_blocks;
        out->halves_blocks |= part->halves_blocks;
        out->tensor_cores |= part->tensor_cores;
        out->partials |= part->partials;
        for (int s = 0; s < part->sizes.len && !g->stages; s++)
            vec_push(g->x->m->arena, &out->sizes, part->sizes.data[s]);
    }
    if (!g->stages) return;
    if (g->x->m->length.most) vec_push(g->x->m->arena, &out->sizes, dim_t(1, 1));
    out->kind = KERNEL_PRODUCT; /* its bounds are the same before sm_80 and where NVRTC is lean */
    out->min_blocks = MIN_BLOCKS;
    out->halves_blocks = false;
    out->launch.block[0] = CUDA_STAGE_THREADS;
}

static void put_parameters(const Writing *g, const CudaBody *body, Text *t) {
    if (g->table) text_puts(t, "void *const *operands, ");
    for (int i = 0; i < g->pieces.len && !g->table; i++)
        for (int o = 0; o < g->pieces.data[i].body.pointers.len; o++)
            text_printf(t, "%sb%d, ", g->pieces.data[i].body.pointers.data[o], g->pieces.data[i].operand + o);
    text_puts(t, "int64_t n");
    for (int i = 0; i < body->sizes.len; i++)
        text_puts(t, g->stages ? ", int64_t t" : arena_printf(g->x->m->arena, ", int64_t size%d", i));
    if (g->any_batch) text_puts(t, ", const int64_t *member_elements");
    if (g->stages || g->launch->by_columns || body->partials) text_puts(t, ", uint32_t *tickets");
    if (body->partials) text_puts(t, ", double *partials");
    for (int i = 0; i < g->launch->parts.len && !g->launch->by_columns && !g->chain; i++)
        text_printf(t, ", int64_t first%d, int64_t x%d, int64_t y%d", i, i, i);
}

static void put_function(const Writing *g, CudaBody *out) {
    Text t;
    *out = g->pieces.data[0].body;
    if (g->whole) return;
    text_init(&t, g->x->m->arena);
    take_bounds(g, out);
    for (int i = 0; i < g->pieces.len; i++) text_printf(&t, "%s\n", g->pieces.data[i].body.source);
    text_puts(&t, "extern \"C\" __global__ void ");
    cuda_put_bounds(&t, out->launch.block[0], out);
    text_puts(&t, " @(");
    put_parameters(g, out, &t);
    text_puts(&t, ")\n{\n");
    put_shared(g, &t);
    if (g->stages) put_stages(g, &t);
    else if (g->launch->by_columns) put_by_columns(g, &t);
    else if (g->chain) put_chain(g, &t);
    else put_beside(g, &t);
    text_puts(&t, "}\n");
    out->source = text_str(&t);
}

static void describe_part(const Writing *g, int number, Text *out) {
    const LaunchPart *part = part_at(g, number);
    if (g->whole) return;
    text_printf(out, " * part %d", number);
    if (g->launch->by_columns && number) text_puts(out, ": the last block of a column makes what follows");
    if (g->chain) text_printf(out, ": a block makes its tile of %d kernels", part->kernels.len);
    if (g->stages) text_printf(out, ", superstep %d", part->stage + 1);
    if (part->form == PART_ROWS) text_puts(out, ": a block makes 64 rows of all that follows");
    if (part->form == PART_BLOCK) text_puts(out, ": a block makes all that follows");
    text_putc(out, '\n');
}

/* Its pieces in their order. */
static amp_status describe(const Writing *g, Text *out) {
    for (int i = 0; i < g->launch->parts.len; i++) {
        describe_part(g, i, out);
        for (int k = 0; k < pieces_of(part_at(g, i)); k++) {
            AMP_TRY(walk_kernel(&g->x->w, kernel_at(g, part_at(g, i), k), g->x->err));
            cuda_comment_body(out, &g->x->w);
            text_printf(out, " *   %s\n", g->pieces.data[g->first_piece[i] + k].body.how);
        }
    }
    return AMP_OK;
}

/* The function and launch of |form|: the launch's own, or a choice. */
static amp_status add_form(Writing *g, int form) {
    CudaBody body;
    Text comment;
    text_init(&comment, g->x->m->arena);
    AMP_TRY(write_pieces(g, form));
    put_function(g, &body);
    for (int i = 0; i < g->entry->parts.len; i++)
        vec_push(g->x->m->arena, &g->entry->parts.data[i].launches, launch_of(g, i));
    int function = cuda_find_function(g->x, &body);
    if (function < 0) {
        AMP_TRY(describe(g, &comment));
        function = cuda_add_function(g->x, g->entry->members.data[0], &body, form, text_str(&comment));
    }
    vec_push(g->x->m->arena, &g->entry->forms, ((CudaChoice){function, body.launch}));
    if (!form) g->entry->body = body;
    return AMP_OK;
}

/* A batch, or a chain, has one function for all its kernels. */
static amp_status check_same(const Writing *g, const LaunchPart *part) {
    CudaBody own, body;
    for (int i = 0; i < part->kernels.len && part->kernels.len > 1; i++) {
        AMP_TRY(cuda_write_kernel(g->x, kernel_at(g, part, i), (CudaForm){.members = 1}, i ? &body : &own));
        if (i && strcmp(body.source, own.source))
            return amp_fail(g->x->err, AMP_INTERNAL,
                            "%s: its code differs from the code of %s, with which it shares a launch",
                            walk_name(&g->x->w), kernel_at(g, part, 0)->name);
    }
    return AMP_OK;
}

/* Its kernels, and the elements of each of a batch; of all others one for each part. */
static amp_status add_kernels(Writing *g, const LaunchPart *part) {
    Arena *a = g->x->m->arena;
    CudaBody body;
    for (int i = 0; i < part->kernels.len; i++) {
        AMP_TRY(cuda_write_kernel(g->x, kernel_at(g, part, i), (CudaForm){.plan = true}, &body));
        vec_push(a, &g->entry->members, kernel_at(g, part, i));
        if (is_batch(part) || !i)
            vec_push(a, &g->entry->batch_elements, is_batch(part) ? body.facts.elements : dim_const(1));
        const bool leads = !i && (!g->launch->by_columns || !part->stage);
        if (leads && !g->stages && body.launch.block[0] > g->threads) g->threads = body.launch.block[0];
    }
    g->any_batch |= is_batch(part);
    return part->form <= PART_CHAIN ? check_same(g, part) : AMP_OK;
}

static amp_status add_parts(Writing *g) {
    CudaKernelEntry *entry = g->entry;
    for (int i = 0; i < g->launch->parts.len; i++) {
        const LaunchPart *part = part_at(g, i);
        AMP_TRY(add_kernels(g, part));
        if (g->launch->by_columns && i) {
            entry->parts.data[0].members += part->kernels.len;
            continue;
        }
        const CudaPart to = {.kind = kernel_at(g, part, 0)->kind,
                             .members = part->kernels.len,
                             .step = g->stages ? part->stage + 1 : 0,
                             .in_turn = part->form != PART_BATCH || g->launch->by_columns};
        vec_push(g->x->m->arena, &entry->parts, to);
    }
    return AMP_OK;
}

amp_status cuda_write_launch(CudaWriter *x, const Launch *launch, CudaKernelEntry *entry) {
    Writing g = {.x = x, .f = x->w.f, .launch = launch, .entry = entry, .stages = launch_has_stages(launch)};
    const bool is_one = launch->parts.len == 1 && !g.stages;
    g.chain = is_one && part_at(&g, 0)->form == PART_CHAIN;
    g.whole = is_one && !g.chain;
    g.first_piece = arena_array(x->m->arena, int, launch->parts.len);
    if (g.stages) g.threads = CUDA_STAGE_THREADS;
    AMP_TRY(add_parts(&g));
    for (int f = 0; f <= g.choices; f++) AMP_TRY(add_form(&g, f));
    if (g.stages) {
        entry->tickets = 2;
        count_steps(&g);
    }
    /* a ticket for the columns of each block of the last stage */
    if (launch->by_columns) entry->tickets = (int)g.pieces.data[g.pieces.len - 1].body.launch.extent[0].mul;
    if (!g.any_batch) entry->batch_elements.len = 0;
    return AMP_OK;
}
