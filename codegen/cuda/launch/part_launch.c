/* part_launch.c: the function of a launch of several parts.
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
 * part reads each pointer only where it needs it (CudaBody.takes_table), all operands come out of a table.  Those of
 * a part begin there at a place that is known here, and so do the elements of its members:
 *
 *     @_part0::run({first0, x0, y0}, shared.part0, operands, n, size0, member_elements);
 *     @_part1::run({first1, x1, y1}, shared.part1, (const float *)operands[24], (float *)operands[25], n);
 *
 * Of several stages (passes/launch/supersteps.c) a block takes the next number, and waits until all blocks of the
 * stages before its own have ended (prelude/superstep.cuh).  Sizes are in the text:
 *
 *     extern "C" __global__ void __launch_bounds__(256, 2) @(void *const *operands, int64_t n, uint32_t *tickets,
 *                                                            int64_t first0, int64_t x0, int64_t y0, ..)
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
    bool stages, table;
} Writing;

static const LaunchPart *part_at(const Writing *g, int number) { return &g->launch->parts.data[number]; }
static const Kernel *kernel_at(const Writing *g, const LaunchPart *part, int i) {
    return g->f->kernels.data[part->kernels.data[i]];
}
static bool is_batch(const LaunchPart *part) { return part->form == PART_BATCH && part->kernels.len > 1; }
/* A batch is one. */
static int pieces_of(const LaunchPart *part) { return is_batch(part) ? 1 : part->kernels.len; }

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

static amp_status write_piece(Writing *g, const LaunchPart *part, int i, CudaForm form) {
    const Piece *before = g->pieces.len ? &g->pieces.data[g->pieces.len - 1] : NULL;
    Piece p = {.members = is_batch(part) ? part->kernels.len : 1};
    if (before) {
        p.operand = before->operand + before->body.pointers.len * before->members;
        p.size = before->size + before->body.sizes.len;
        p.element = before->element + (i ? 0 : before->members);
    }
    form.part = g->pieces.len;
    form.members = is_batch(part) ? p.members : 0;
    form.band = part->form == PART_ROWS;
    AMP_TRY(cuda_write_kernel(g->x, kernel_at(g, part, i), form, &p.body));
    if (form.members)
        cuda_set_batch_extent(g->entry->batch_elements.data + p.element, p.members, p.body.batch, &p.body.launch);
    g->table |= p.members > 1 || p.body.takes_table || p.operand + p.body.pointers.len > LAUNCH_OPERANDS;
    vec_push(g->x->m->arena, &g->pieces, p);
    return AMP_OK;
}

/* All pieces as those of a function in |form|. */
static amp_status write_pieces(Writing *g, CudaForm form) {
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
    if (p->members > 1 || p->body.takes_table) {
        text_printf(t, "operands + %d, ", p->operand);
        return;
    }
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

static bool any_partials(const Writing *g) {
    for (int i = 0; i < g->pieces.len; i++)
        if (g->pieces.data[i].body.partials) return true;
    return false;
}

static void put_places(const Writing *g, Text *t) {
    for (int i = 0; i < g->launch->parts.len; i++)
        text_printf(t, ", int64_t first%d, int64_t x%d, int64_t y%d", i, i, i);
}

static void put_parameters(const Writing *g, Text *t) {
    if (g->table) text_puts(t, "void *const *operands, ");
    for (int i = 0; i < g->pieces.len && !g->table; i++)
        for (int o = 0; o < g->pieces.data[i].body.pointers.len; o++)
            text_printf(t, "%sb%d, ", g->pieces.data[i].body.pointers.data[o], g->pieces.data[i].operand + o);
    text_puts(t, "int64_t n");
    for (int i = 0; i < g->pieces.len; i++)
        for (int s = 0; s < g->pieces.data[i].body.sizes.len; s++)
            text_printf(t, ", int64_t size%d", g->pieces.data[i].size + s);
    if (g->table) text_puts(t, ", const int64_t *member_elements");
    if (any_partials(g)) text_puts(t, ", uint32_t *tickets, double *partials");
    put_places(g, t);
}

static void put_parts(const Writing *g, Text *t) {
    Arena *a = g->x->m->arena;
    for (int i = 0; i < g->pieces.len; i++) {
        const bool last = i == g->pieces.len - 1;
        if (!last) text_printf(t, "    if (blockIdx.x < (uint32_t)first%d) {\n", i + 1);
        put_call(g, t, i, arena_printf(a, "{first%d, x%d, y%d}", i, i, i), last ? "    " : "        ");
        if (!last) text_puts(t, "        return;\n    }\n");
    }
}

/* What ptxas and the runtime are told: of the part that takes more. */
static void take_bounds(Writing *g, CudaBody *out) {
    *out = (CudaBody){.kind = kernel_at(g, part_at(g, 0), 0)->kind, .operand_table = g->table};
    out->launch.block[0] = g->stages ? CUDA_STAGE_THREADS : g->pieces.data[0].body.launch.block[0];
    out->launch.block[1] = out->launch.block[2] = 1;
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
}

/* ---- several stages ---------------------------------------------------------------------------------------------- */

static bool any_batch(const Writing *g) {
    for (int i = 0; i < g->launch->parts.len; i++)
        if (is_batch(part_at(g, i))) return true;
    return false;
}

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

/* What the blocks of part |number| do, the first of which is `first<number>`. */
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
    for (int i = 0, begin = 0; i < count; i++) {
        if (part_at(g, i)->stage != part_at(g, begin)->stage) begin = i;
        text_puts(t, i ? " else " : "    ");
        if (i < count - 1) text_printf(t, "if (turn < (uint32_t)first%d) ", i + 1);
        text_printf(t, "{\n        /* superstep %d */\n", part_at(g, i)->stage + 1);
        if (begin) text_printf(t, "        waits_for_turns(tickets, (uint32_t)first%d);\n", begin);
        put_part(g, t, i, "        ");
        text_puts(t, "    }");
    }
    text_puts(t, "\n");
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

static void put_function(Writing *g, CudaBody *out) {
    Text t;
    text_init(&t, g->x->m->arena);
    take_bounds(g, out);
    if (g->stages) out->min_blocks = MIN_BLOCKS;
    for (int i = 0; i < g->pieces.len; i++) text_printf(&t, "%s\n", g->pieces.data[i].body.source);
    text_puts(&t, "extern \"C\" __global__ void ");
    if (!g->stages) {
        cuda_put_bounds(&t, out->launch.block[0], out);
        text_puts(&t, " @(");
        put_parameters(g, &t);
    } else {
        text_printf(&t, "__launch_bounds__(%d, %d) @(void *const *operands, int64_t n, ", CUDA_STAGE_THREADS,
                    MIN_BLOCKS);
        text_puts(&t, any_batch(g) ? "const int64_t *member_elements, uint32_t *tickets" : "uint32_t *tickets");
        put_places(g, &t);
    }
    text_puts(&t, ")\n{\n");
    put_shared(g, &t);
    if (g->stages) {
        text_puts(&t, "    await_earlier_launches();\n");
        text_puts(&t, "    const uint32_t turn = takes_turn(tickets, gridDim.x);\n");
        put_stages(g, &t);
        text_puts(&t, "    ends_turn(tickets, gridDim.x);\n}\n");
    } else {
        put_parts(g, &t);
        text_puts(&t, "}\n");
    }
    out->source = text_str(&t);
}

/* Its pieces in their order. */
static amp_status describe(Writing *g, Text *out) {
    for (int i = 0; i < g->launch->parts.len; i++) {
        const LaunchPart *part = part_at(g, i);
        text_printf(out, " * part %d", i);
        if (g->stages)
            text_printf(out, ", superstep %d%s", part->stage + 1,
                        part->form == PART_ROWS    ? ": a block makes 64 rows of all that follows"
                        : part->form == PART_BLOCK ? ": a block makes all that follows"
                                                   : "");
        text_putc(out, '\n');
        for (int k = 0; k < pieces_of(part); k++) {
            AMP_TRY(walk_kernel(&g->x->w, kernel_at(g, part, k), g->x->err));
            cuda_comment_body(out, &g->x->w);
            text_printf(out, " *   %s\n", g->pieces.data[g->first_piece[i] + k].body.how);
        }
    }
    return AMP_OK;
}

/* The function and launch of |form|: the launch's own, or a choice. */
static amp_status add_form(Writing *g, CudaForm form, CudaBody *body, int *function) {
    Text comment;
    text_init(&comment, g->x->m->arena);
    AMP_TRY(write_pieces(g, form));
    put_function(g, body);
    for (int i = 0; i < g->launch->parts.len; i++)
        vec_push(g->x->m->arena, &g->entry->parts.data[i].launches, launch_of(g, i));
    *function = cuda_find_function(g->x, body);
    if (*function >= 0) return AMP_OK;
    AMP_TRY(describe(g, &comment));
    *function = cuda_add_function(g->x, g->entry->members.data[0], body, form.choice, text_str(&comment));
    return AMP_OK;
}

/* A kernel of which some functions are for many blocks has those in the launch too, whose blocks are more.  By form the
 * threads of a block, 0 after the last one. */
static amp_status find_threads(Writing *g, int threads[KERNEL_FORMS + 1]) {
    CudaBody *alone = arena_array(g->x->m->arena, CudaBody, g->launch->parts.len);
    int forms = 1;
    for (int i = 0; i < g->launch->parts.len; i++) {
        AMP_TRY(cuda_write_kernel(g->x, kernel_at(g, part_at(g, i), 0), (CudaForm){.plan = true}, &alone[i]));
        if (alone[i].launch.block[0] > threads[0]) threads[0] = alone[i].launch.block[0];
        if (alone[i].choices + 1 > forms) forms = alone[i].choices + 1;
    }
    for (int f = 1; f < forms; f++) {
        threads[f] = threads[0];
        for (int i = 0; i < g->launch->parts.len; i++)
            if (alone[i].threads[f] > threads[f]) threads[f] = alone[i].threads[f];
    }
    return AMP_OK;
}

/* The kernels, and where there are stages the elements of a batch of one for each part that is no batch. */
static amp_status add_parts(Writing *g) {
    CudaKernelEntry *entry = g->entry;
    for (int i = 0; i < g->launch->parts.len; i++) {
        const LaunchPart *part = part_at(g, i);
        const int elements = entry->batch_elements.len;
        AMP_TRY(cuda_add_members(g->x, part, entry));
        if (g->stages && !is_batch(part)) {
            entry->batch_elements.len = elements + 1;
            entry->batch_elements.data[elements] = dim_const(1);
        }
        const CudaPart to = {.kind = kernel_at(g, part, 0)->kind,
                             .members = part->kernels.len,
                             .step = g->stages ? part->stage + 1 : 0,
                             .chain = part->form != PART_BATCH};
        vec_push(g->x->m->arena, &entry->parts, to);
    }
    return AMP_OK;
}

amp_status cuda_write_parts(CudaWriter *x, const Launch *launch, CudaKernelEntry *entry) {
    Writing g = {.x = x, .f = x->w.f, .launch = launch, .entry = entry};
    CudaBody body;
    int threads[KERNEL_FORMS + 1] = {0}, function;
    g.stages = launch_has_stages(launch);
    g.first_piece = arena_array(x->m->arena, int, launch->parts.len);
    if (g.stages) threads[0] = CUDA_STAGE_THREADS;
    else AMP_TRY(find_threads(&g, threads));
    AMP_TRY(add_parts(&g));
    for (int f = 0; threads[f]; f++) {
        AMP_TRY(add_form(&g, (CudaForm){.choice = f, .threads = threads[f], .turn = g.stages}, &body, &function));
        if (f) {
            vec_push(x->m->arena, &entry->choices, ((CudaChoice){function, body.launch}));
            continue;
        }
        cuda_set_launch(entry, &body);
        entry->function = function;
    }
    if (g.stages) {
        entry->tickets = 2;
        count_steps(&g);
    }
    if (g.stages ? !any_batch(&g) : !entry->operand_table) entry->batch_elements.len = 0;
    return AMP_OK;
}
