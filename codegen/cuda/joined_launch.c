/* joined_launch.c: all kernels of a function of small matrices in one launch (docs/design/cuda.md, "A whole step in one
 * launch").
 *
 * The kernels are put into supersteps (Valiant, "A bridging model for parallel computation", 1990): those of one do not
 * depend on one another, but in what a block makes by itself, one kernel after another:
 *
 *     superstep 1    scale, count of labels    one block      forward products    a block for 64 rows
 *     superstep 2    loss, gradients of data   a block for 64 rows
 *     superstep 3    gradients of weights and of biases       blocks as if alone
 *     superstep 4    scaler
 *     superstep 5    updates
 *
 * Blocks follow one another as in a bundle (kernel_bundle.c), but by the order in which they begin: a block takes the
 * next number, and waits until all blocks of the supersteps before its own have ended (prelude/superstep.cuh).  Each
 * kernel does what it does alone, in tiles that are its own: the same bits.
 *
 *     extern "C" __global__ void __launch_bounds__(256, 2) @(void *const *operands, int64_t n, uint32_t *tickets,
 *                                                            int64_t first0, int64_t x0, int64_t y0, ..)
 *     {
 *         __shared__ __align__(128) union { char part0[@_part0::SHARED], part1[@_part1::SHARED]; } shared;
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
#include "codegen/cuda/cuda_writer.h"
#include "ir/places.h"

enum { THREADS = 256, BAND = 64, MIN_BLOCKS = 2 };

typedef struct Member { /* a kernel of the function that has something to do */
    const Kernel *k;
    CudaBody body;  /* as a part by itself */
    CudaBody batch; /* as one of a batch; without source: it is in none */
    Dim rows;       /* of what it writes, where a block may make 64 of them, of its operands the same rows */
    bool has_rows, is_one_block;
    int group;
} Member;

typedef struct Group { /* a part of the launch */
    int step;
    VEC(int) members; /* by number */
    bool is_batch;    /* of one text */
    bool chain;       /* several, which a block makes one after another */
    int first_piece;
} Group;

typedef struct Piece { /* a member, or a batch of them, as it is written */
    CudaBody body;
    int members, operand, element; /* how many; the first of its own */
} Piece;

typedef struct Joining {
    CudaWriter *x;
    const Func *f;
    VEC(Member) members;
    VEC(Group) groups;
    int *order; /* of groups */
    VEC(Piece) pieces;
    int operands; /* of them all */
} Joining;

/* ---- what a block makes of a kernel ------------------------------------------------------------------------------ */

/* Blocks along an axis, where n does not decide; else 0. */
static int64_t constant_blocks(const CudaLaunch *l, int axis) {
    if (!l->per[axis]) return 1;
    return l->extent[axis].n ? 0 : (l->extent[axis].mul + l->per[axis] - 1) / l->per[axis];
}

static bool is_one_block(const CudaLaunch *l) {
    return constant_blocks(l, 0) == 1 && constant_blocks(l, 1) == 1 && constant_blocks(l, 2) == 1;
}

/* Blocks along the first axis that make a band of |rows|; 0: the rows of some block are in two bands. */
static int64_t blocks_of_band(const CudaLaunch *l, Dim rows) {
    const Dim e = l->extent[0];
    if (!rows.n || !e.n || e.div != rows.div || e.mul % rows.mul || constant_blocks(l, 2) != 1) return 0;
    const int64_t elements = e.mul / rows.mul * BAND;
    return elements % l->per[0] ? 0 : elements / l->per[0];
}

/* Whether all that it writes has as many rows, which follow one another from block to block. */
static bool find_rows(const Func *f, const Kernel *k, Dim *rows) {
    Dim own, cols;
    bool found = false;
    if (k->kind != KERNEL_PRODUCT && k->kind != KERNEL_ROW && k->kind != KERNEL_TILE) return false;
    for (int i = 0; i < k->writes.len; i++) {
        const Buffer *b = f->buffers.data[k->writes.data[i] - 1];
        if (b->kind == BUFFER_FLAG || b->kind == BUFFER_LOOK) continue;
        if (!shape_matrix(ir_shape(f, b->value), &own, &cols) || (found && !dim_equal(own, *rows))) return false;
        *rows = own;
        found = true;
    }
    return found && rows->n;
}

static bool is_operand_a(const Op *o, int n) { return o->code == OP_contract && n == 0 && !ir_attr(o, "ta")->b; }

/* Whether |k| reads of |b| the rows that it makes. */
static bool reads_own_rows(const Func *f, const Kernel *k, Dim own, const Buffer *b) {
    Dim rows, cols;
    if (b->kind == BUFFER_FLAG || !shape_matrix(ir_shape(f, b->value), &rows, &cols) || !dim_equal(rows, own))
        return false;
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(f, k->first + i);
        for (int n = 0; n < o->n_in; n++)
            if (ir_reads_memory(f, o, n) && ir_memory_source(f, o->in[n]).id == b->value.id && !is_operand_a(o, n))
                return false;
    }
    return true;
}

static bool writes(const Func *f, const Kernel *k, uint32_t buffer) {
    for (int i = 0; i < k->writes.len; i++)
        if (ir_place_of(f, k->writes.data[i]) == ir_place_of(f, buffer)) return true;
    return false;
}

/* Whether a block may make its rows of |m| after those of |before|. */
static bool follows_by_rows(const Func *f, const Member *before, const Member *m) {
    if (!before->has_rows || !m->has_rows || !dim_equal(before->rows, m->rows)) return false;
    if (cuda_touches_written(f, m->k, before->k)) return false;
    for (int i = 0; i < before->k->writes.len; i++) {
        const Buffer *b = f->buffers.data[before->k->writes.data[i] - 1];
        if (m->k->pred.id && m->k->pred.id == b->value.id) return false;
    }
    for (int i = 0; i < m->k->reads.len; i++) {
        const uint32_t id = m->k->reads.data[i];
        if (writes(f, before->k, id) && !reads_own_rows(f, m->k, m->rows, f->buffers.data[id - 1])) return false;
    }
    return true;
}

/* ---- supersteps -------------------------------------------------------------------------------------------------- */

static bool depends(const Func *f, const Member *m, const Member *on) {
    return cuda_touches_written(f, on->k, m->k) || cuda_touches_written(f, m->k, on->k);
}

/* Whether |m|, which depends on some of |group|, may be its next member. */
static bool may_follow(const Joining *j, const Group *group, const Member *m) {
    for (int i = 0; i < group->members.len; i++) {
        const Member *before = &j->members.data[group->members.data[i]];
        if (before->is_one_block && m->is_one_block) continue;
        if (!before->has_rows || !m->has_rows || !dim_equal(before->rows, m->rows)) return false;
        if (depends(j->f, m, before) && !follows_by_rows(j->f, before, m)) return false;
    }
    return true;
}

/* The last superstep with something that member |number| depends on, -1: none; all of that superstep that it depends
 * on is in |group|, else that is -1. */
static int last_needed(const Joining *j, int number, int *group) {
    int step = -1;
    *group = -1;
    for (int i = 0; i < number; i++) {
        const Member *m = &j->members.data[i];
        if (!depends(j->f, &j->members.data[number], m)) continue;
        const int of = j->groups.data[m->group].step;
        if (of < step) continue;
        *group = of > step || *group == m->group ? m->group : -1;
        step = of;
    }
    return step;
}

static bool are_a_batch(const Joining *j, const Group *g, const Member *m) {
    const Member *first = &j->members.data[g->members.data[0]];
    if (!first->batch.source || !m->batch.source || (g->members.len > 1 && !g->is_batch)) return false;
    return cuda_is_same_batch(&first->batch, &m->batch);
}

static void place(Joining *j, int number) {
    Arena *a = j->f->module->arena;
    Member *m = &j->members.data[number];
    int group;
    const int step = last_needed(j, number, &group);
    if (group >= 0 && !j->groups.data[group].is_batch && may_follow(j, &j->groups.data[group], m)) {
        m->group = group;
        vec_push(a, &j->groups.data[group].members, number);
        return;
    }
    for (int i = 0; i < j->groups.len; i++) {
        Group *g = &j->groups.data[i];
        if (g->step != step + 1 || !are_a_batch(j, g, m)) continue;
        g->is_batch = true;
        m->group = i;
        vec_push(a, &g->members, number);
        return;
    }
    m->group = j->groups.len;
    vec_push(a, &j->groups, ((Group){.step = step + 1}));
    vec_push(a, &j->groups.data[m->group].members, number);
}

static bool sums_grow(const Joining *j, const Group *g) { return j->members.data[g->members.data[0]].body.sums_grow; }

/* Superstep by superstep, and in each the products whose sums grow with n begin. */
static void order_groups(Joining *j) {
    j->order = arena_array(j->f->module->arena, int, j->groups.len + 1);
    for (int i = 0; i < j->groups.len; i++) {
        const Group *g = &j->groups.data[i];
        int at = i;
        for (; at > 0; at--) {
            const Group *before = &j->groups.data[j->order[at - 1]];
            if (before->step < g->step || (before->step == g->step && (sums_grow(j, before) || !sums_grow(j, g))))
                break;
            j->order[at] = j->order[at - 1];
        }
        j->order[at] = i;
    }
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* |ok|: whether it can be in the launch. */
static amp_status add_member(Joining *j, const Kernel *k, bool *ok) {
    Member m = {.k = k};
    CudaBody alone;
    AMP_TRY(cuda_write_kernel(j->x, k, (CudaForm){.threads = THREADS, .turn = true}, &m.body));
    *ok = m.body.source && m.body.bundles;
    if (!*ok) return AMP_OK;
    m.is_one_block = k->kind != KERNEL_TILE && is_one_block(&m.body.launch); /* updates run side by side */
    m.has_rows = !m.body.sums_grow && find_rows(j->f, k, &m.rows) && blocks_of_band(&m.body.launch, m.rows);
    if (k->kind != KERNEL_PRODUCT) {
        AMP_TRY(cuda_write_kernel(j->x, k, (CudaForm){0}, &alone));
        AMP_TRY(cuda_write_batch_form(j->x, k, &alone, &m.batch));
    }
    vec_push(j->f->module->arena, &j->members, m);
    return AMP_OK;
}

/* Else they are one launch without waiting: a batch, or a bundle. */
static bool need_one_another(const Joining *j) {
    for (int i = 0; i < j->groups.len; i++) {
        const Group *g = &j->groups.data[i];
        if (g->step > 0 || (g->members.len > 1 && !g->is_batch)) return true;
    }
    return false;
}

static amp_status find_members(Joining *j, bool *ok) {
    *ok = true;
    for (int i = 0; i < j->f->kernels.len && *ok; i++) {
        if (ir_is_still(j->f, j->f->kernels.data[i])) continue;
        AMP_TRY(add_member(j, j->f->kernels.data[i], ok));
    }
    if (!*ok) return AMP_OK;
    for (int i = 0; i < j->members.len; i++) place(j, i);
    *ok = need_one_another(j) && j->groups.len <= CUDA_MOST_JOINED;
    if (*ok) order_groups(j);
    return AMP_OK;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static bool is_band(const Joining *j, const Group *g) {
    return !g->is_batch && g->members.len > 1 && j->members.data[g->members.data[0]].has_rows;
}

/* The elements of each member of a batch, and as of a batch of one of what is none. */
static void add_kernels(Joining *j, const Group *g, CudaKernelEntry *entry) {
    Arena *a = j->f->module->arena;
    for (int i = 0; i < g->members.len; i++) {
        const Member *m = &j->members.data[g->members.data[i]];
        vec_push(a, &entry->members, m->k);
        if (g->is_batch || i == 0) vec_push(a, &entry->batch_elements, g->is_batch ? m->body.elements : dim_const(1));
    }
}

/* Member |member| of |g|, or all of a batch, whose elements begin at |element|. */
static amp_status write_piece(Joining *j, const Group *g, int member, int element, CudaKernelEntry *entry) {
    const int count = g->is_batch ? g->members.len : 0;
    const CudaForm form = {
        .members = count, .threads = THREADS, .part = j->pieces.len, .turn = true, .band = is_band(j, g)};
    Piece p = {.members = count ? count : 1, .operand = j->operands, .element = element};
    AMP_TRY(cuda_write_kernel(j->x, j->members.data[g->members.data[member]].k, form, &p.body));
    if (count) cuda_set_batch_extent(entry->batch_elements.data + element, count, p.body.batch, &p.body.launch);
    j->operands += p.body.pointers.len * p.members;
    vec_push(j->f->module->arena, &j->pieces, p);
    return AMP_OK;
}

/* Of a band, a block for 64 rows; of one block's kernels, that block. */
static CudaLaunch launch_of(const Joining *j, const Group *g, const CudaBody *first) {
    CudaLaunch l = first->launch;
    if (!is_band(j, g)) return l;
    l.extent[0] = j->members.data[g->members.data[0]].rows;
    l.per[0] = BAND;
    l.per[1] = l.per[2] = 0;
    return l;
}

static amp_status write_group(Joining *j, Group *g, CudaKernelEntry *entry) {
    Arena *a = j->f->module->arena;
    const int first = entry->members.len, element = entry->batch_elements.len;
    g->first_piece = j->pieces.len;
    g->chain = !g->is_batch && g->members.len > 1;
    add_kernels(j, g, entry);
    for (int i = 0; i < (g->is_batch ? 1 : g->members.len); i++) AMP_TRY(write_piece(j, g, i, element, entry));
    CudaPart part = {
        .kind = entry->members.data[first]->kind, .members = g->members.len, .step = g->step + 1, .chain = g->chain};
    vec_push(a, &part.launches, launch_of(j, g, &j->pieces.data[g->first_piece].body));
    vec_push(a, &entry->parts, part);
    return AMP_OK;
}

/* ---- the text ---------------------------------------------------------------------------------------------------- */

static void put_parameters(const Joining *j, Text *t, bool has_batch) {
    text_puts(t, "void *const *operands, int64_t n, ");
    if (has_batch) text_puts(t, "const int64_t *member_elements, ");
    text_puts(t, "uint32_t *tickets");
    for (int i = 0; i < j->groups.len; i++) text_printf(t, ", int64_t first%d, int64_t x%d, int64_t y%d", i, i, i);
}

static void put_shared(const Joining *j, Text *t) {
    text_puts(t, "    __shared__ __align__(128) union {\n        char ");
    for (int i = 0; i < j->pieces.len; i++) text_printf(t, "%spart%d[@_part%d::SHARED]", i ? ", " : "", i, i);
    text_puts(t, ";\n    } shared;\n");
}

/* `@_part3::run(PlaceInTurn{band, 0, 0}, shared.part3, (const float *)operands[7], .., n, n, 64);` */
static void put_call(const Joining *j, Text *t, int number, const char *at, const char *indent) {
    const Piece *p = &j->pieces.data[number];
    text_printf(t, "%s@_part%d::run(%s, shared.part%d, ", indent, number, at, number);
    if (p->members > 1 || p->body.takes_table) text_printf(t, "operands + %d, ", p->operand);
    else
        for (int i = 0; i < p->body.pointers.len; i++)
            text_printf(t, "(%s)operands[%d], ", p->body.pointers.data[i], p->operand + i);
    text_putc(t, 'n');
    for (int i = 0; i < p->body.sizes.len; i++)
        text_printf(t, ", %s", emit_dim(j->f->module->arena, p->body.sizes.data[i]));
    if (p->members > 1) text_printf(t, ", member_elements + %d", p->element);
    text_puts(t, ");\n");
}

static void put_barrier(Text *t, const char *indent) { text_printf(t, "%s__syncthreads();\n", indent); }

/* The rows of band `band` that member |m| makes, which is piece |number|. */
static void put_band(const Joining *j, Text *t, const Member *m, int number, const char *indent) {
    Arena *a = j->f->module->arena;
    const CudaLaunch *l = &j->pieces.data[number].body.launch;
    const long long blocks = blocks_of_band(l, m->rows), columns = constant_blocks(l, 1);
    const char *x = blocks > 1 ? arena_printf(a, "band * %lld + i", blocks) : "band", *y = columns > 1 ? "y" : "0";
    const char *inner = indent;
    if (blocks > 1 || columns > 1) {
        text_printf(t, "%sNO_UNROLL\n%sfor (uint32_t %s = 0; %s < %lld; %s++) {\n", indent, indent,
                    blocks > 1 ? "i" : "y", blocks > 1 ? "i" : "y", blocks > 1 ? blocks : columns,
                    blocks > 1 ? "i" : "y");
        inner = arena_printf(a, "%s    ", indent);
    }
    put_call(j, t, number, arena_printf(a, "PlaceInTurn{%s, %s, 0}", x, y), inner);
    put_barrier(t, inner);
    if (inner != indent) text_printf(t, "%s}\n", indent);
}

/* What the blocks of part |number| do, the first of which is `first<number>`. */
static void put_group(const Joining *j, Text *t, int number, const char *indent) {
    Arena *a = j->f->module->arena;
    const Group *g = &j->groups.data[j->order[number]];
    const bool band = is_band(j, g);
    if (band) text_printf(t, "%sconst uint32_t band = turn - (uint32_t)first%d;\n", indent, number);
    if (!g->chain) {
        const char *at = arena_printf(a, "place_in_turn(turn - (uint32_t)first%d, x%d, y%d)", number, number, number);
        put_call(j, t, g->first_piece, at, indent);
    }
    for (int i = 0; i < g->members.len && g->chain; i++) {
        if (band) {
            put_band(j, t, &j->members.data[g->members.data[i]], g->first_piece + i, indent);
            continue;
        }
        put_call(j, t, g->first_piece + i, "PlaceInTurn{0, 0, 0}", indent);
        put_barrier(t, indent);
    }
}

/* The first part of the superstep that part |number| is of. */
static int first_of_step(const Joining *j, int number) {
    const int step = j->groups.data[j->order[number]].step;
    while (number > 0 && j->groups.data[j->order[number - 1]].step == step) number--;
    return number;
}

static void put_groups(const Joining *j, Text *t) {
    const int count = j->groups.len;
    for (int i = 0; i < count; i++) {
        const int begin = first_of_step(j, i);
        text_puts(t, i ? " else " : "    ");
        if (i < count - 1) text_printf(t, "if (turn < (uint32_t)first%d) ", i + 1);
        text_puts(t, "{\n");
        text_printf(t, "        /* superstep %d */\n", j->groups.data[j->order[i]].step + 1);
        if (begin) text_printf(t, "        waits_for_turns(tickets, (uint32_t)first%d);\n", begin);
        put_group(j, t, i, "        ");
        text_puts(t, "    }");
    }
    text_puts(t, "\n");
}

static bool has_batch(const Joining *j) {
    for (int i = 0; i < j->groups.len; i++)
        if (j->groups.data[i].is_batch) return true;
    return false;
}

static void put_function(const Joining *j, CudaBody *out) {
    Text t;
    text_init(&t, j->f->module->arena);
    *out = (CudaBody){.kind = j->members.data[0].k->kind,
                      .launch = {.block = {THREADS, 1, 1}},
                      .operand_table = true,
                      .min_arch = 75,
                      .min_blocks = MIN_BLOCKS};
    for (int i = 0; i < j->pieces.len; i++) {
        const CudaBody *piece = &j->pieces.data[i].body;
        text_printf(&t, "%s\n", piece->source);
        if (piece->min_arch > out->min_arch) out->min_arch = piece->min_arch;
        out->tensor_cores |= piece->tensor_cores;
    }
    text_printf(&t, "extern \"C\" __global__ void __launch_bounds__(%d, %d) @(", THREADS, MIN_BLOCKS);
    put_parameters(j, &t, has_batch(j));
    text_puts(&t, ")\n{\n");
    put_shared(j, &t);
    text_puts(&t, "    await_earlier_launches();\n");
    text_puts(&t, "    const uint32_t turn = takes_turn(tickets, gridDim.x);\n");
    put_groups(j, &t);
    text_puts(&t, "    ends_turn(tickets, gridDim.x);\n}\n");
    out->source = text_str(&t);
}

/* ---- the launch -------------------------------------------------------------------------------------------------- */

/* Its pieces in their order, and in which superstep each is. */
static amp_status describe(Joining *j, Text *out) {
    for (int i = 0; i < j->groups.len; i++) {
        const Group *g = &j->groups.data[j->order[i]];
        text_printf(out, " * part %d, superstep %d%s\n", i, g->step + 1,
                    is_band(j, g) ? ": a block makes 64 rows of all that follows"
                    : g->chain    ? ": a block makes all that follows"
                                  : "");
        for (int m = 0; m < (g->is_batch ? 1 : g->members.len); m++) {
            AMP_TRY(walk_kernel(&j->x->w, j->members.data[g->members.data[m]].k, j->x->err));
            cuda_comment_body(out, &j->x->w);
            text_printf(out, " *   %s\n", j->pieces.data[g->first_piece + m].body.how);
        }
    }
    return AMP_OK;
}

/* Of each superstep the part whose block makes most kernels. */
static void count_steps(const Joining *j, CudaKernelEntry *entry) {
    int most = 0;
    for (int i = 0; i < j->groups.len; i++) {
        const Group *g = &j->groups.data[j->order[i]];
        const int kernels = g->is_batch ? 1 : g->members.len;
        if (g->step == entry->supersteps) {
            entry->supersteps++;
            entry->depth += most;
            most = 0;
        }
        if (kernels > most) most = kernels;
    }
    entry->depth += most;
}

static amp_status write_launch(Joining *j, CudaKernelEntry *entry) {
    CudaBody body;
    Text comment;
    text_init(&comment, j->f->module->arena);
    for (int i = 0; i < j->groups.len; i++) AMP_TRY(write_group(j, &j->groups.data[j->order[i]], entry));
    put_function(j, &body);
    entry->tickets = 2;
    count_steps(j, entry);
    entry->operand_table = true;
    entry->tensor_cores = body.tensor_cores;
    entry->launch = body.launch;
    if (!has_batch(j)) entry->batch_elements.len = 0;
    entry->function = cuda_find_function(j->x, &body);
    if (entry->function >= 0) return AMP_OK;
    AMP_TRY(describe(j, &comment));
    entry->function = cuda_add_function(j->x, entry->members.data[0], &body, 0, text_str(&comment));
    return AMP_OK;
}

amp_status cuda_join_kernels(CudaWriter *x, const Func *f, CudaKernelEntry *out) {
    Joining j = {.x = x, .f = f};
    bool ok;
    *out = (CudaKernelEntry){0};
    AMP_TRY(find_members(&j, &ok));
    return ok ? write_launch(&j, out) : AMP_OK;
}
