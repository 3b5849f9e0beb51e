/* supersteps.c: all kernels of a function of small matrices in one launch (docs/design/cuda.md, "A whole step in one
 * launch").
 *
 * The kernels are put into supersteps (Valiant, "A bridging model for parallel computation", 1990), the stages of the
 * launch: kernels of one do not depend on one another, but in what a block makes by itself, one kernel after another:
 *
 *   launch {
 *     stage { block k00, k01  rows k02, k03 }      scale, count of labels: one block; forward products: one for 64 rows
 *     stage { rows k04, k05, k06 }                 loss, gradients of data
 *     stage { part k07  part k08, k09 }            gradients of weights, and of biases: blocks as if alone
 *     stage { part k10 }                           scaler
 *     stage { part k11, k12, k13 }                 updates
 *   }
 *
 * Blocks wait for all blocks of the stages before their own.  Each kernel does what it does alone: the same bits.
 */
#include "passes/launch/share.h"

#include "ir/operands.h"
#include "ir/places.h"
#include "targets/target.h"

enum { MOST_PARTS = 32 };

typedef struct Member { /* a kernel of the function that has something to do */
    int kernel, part;
    Dim rows; /* of what it writes, where a block may make 64 of them, of its operands the same rows */
    bool has_rows, is_one_block;
} Member;

typedef struct Joining {
    const Func *f;
    const KernelFacts *facts;
    VEC(Member) members;
    Launch launch;
} Joining;

/* ---- what a block makes of a kernel ------------------------------------------------------------------------------ */

/* Blocks along an axis, if neither n nor T decides; else 0. */
static int64_t constant_blocks(const BlockGrid *g, int axis) {
    if (!g->per[axis]) return 1;
    return dim_varies(g->extent[axis]) ? 0 : (g->extent[axis].mul + g->per[axis] - 1) / g->per[axis];
}

static bool is_one_block(const BlockGrid *g) {
    return constant_blocks(g, 0) == 1 && constant_blocks(g, 1) == 1 && constant_blocks(g, 2) == 1;
}

/* Whether blocks along the first axis make a band of |rows|, and none has rows of two bands. */
static bool has_bands(const BlockGrid *g, Dim rows) {
    const Dim e = g->extent[0];
    if (!dim_varies(rows) || e.n != rows.n || e.t != rows.t || e.div != rows.div || e.mul % rows.mul) return false;
    if (!constant_blocks(g, 1) || constant_blocks(g, 2) != 1) return false;
    return e.mul / rows.mul * LAUNCH_ROWS % g->per[0] == 0;
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
    return found && dim_varies(*rows);
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

static const Kernel *kernel_of(const Joining *j, const Member *m) { return j->f->kernels.data[m->kernel]; }

/* Whether a block may make its rows of |m| after its rows of |before|. */
static bool follows_by_rows(const Joining *j, const Member *before, const Member *m) {
    const Func *f = j->f;
    const Kernel *first = kernel_of(j, before), *k = kernel_of(j, m);
    if (!before->has_rows || !m->has_rows || !dim_equal(before->rows, m->rows)) return false;
    if (ir_touches(f, k, first, false)) return false;
    for (int i = 0; i < first->writes.len; i++)
        if (k->pred.id && k->pred.id == f->buffers.data[first->writes.data[i] - 1]->value.id) return false;
    for (int i = 0; i < k->reads.len; i++) {
        const uint32_t id = k->reads.data[i];
        if (ir_is_among(f, first->writes.data, first->writes.len, id) &&
            !reads_own_rows(f, k, m->rows, f->buffers.data[id - 1]))
            return false;
    }
    return true;
}

/* ---- supersteps -------------------------------------------------------------------------------------------------- */

static bool depends(const Joining *j, const Member *m, const Member *on) {
    const Kernel *a = kernel_of(j, on), *b = kernel_of(j, m);
    return ir_touches(j->f, a, b, false) || ir_touches(j->f, b, a, false);
}

/* Member number |i| of a part. */
static const Member *member_of(const Joining *j, const LaunchPart *part, int i) {
    const Member *m = j->members.data;
    while (m->kernel != part->kernels.data[i]) m++;
    return m;
}

/* Whether |m|, which depends on some of |part|, may be its next member. */
static bool may_follow(const Joining *j, const LaunchPart *part, const Member *m) {
    for (int i = 0; i < part->kernels.len; i++) {
        const Member *before = member_of(j, part, i);
        if (before->is_one_block && m->is_one_block) continue;
        if (!before->has_rows || !m->has_rows || !dim_equal(before->rows, m->rows)) return false;
        if (depends(j, m, before) && !follows_by_rows(j, before, m)) return false;
    }
    return true;
}

/* The last stage with something that member |number| depends on, -1: none; all of that stage that it depends on is in
 * |part|, else that is -1. */
static int last_needed(const Joining *j, int number, int *part) {
    int stage = -1;
    *part = -1;
    for (int i = 0; i < number; i++) {
        const Member *m = &j->members.data[i];
        if (!depends(j, &j->members.data[number], m)) continue;
        const int of = j->launch.parts.data[m->part].stage;
        if (of < stage) continue;
        *part = of > stage || *part == m->part ? m->part : -1;
        stage = of;
    }
    return stage;
}

static bool is_batch(const LaunchPart *part) { return part->form == PART_BATCH && part->kernels.len > 1; }

static bool are_a_batch(const Joining *j, const LaunchPart *part, const Member *m) {
    const KernelFacts *first = &j->facts[part->kernels.data[0]], *facts = &j->facts[m->kernel];
    if (part->form != PART_BATCH || kernel_of(j, m)->kind == KERNEL_PRODUCT) return false;
    return first->batch != BATCH_NONE && facts->batch != BATCH_NONE && share_is_same(first, facts);
}

static void place(Joining *j, int number) {
    Member *m = &j->members.data[number];
    Launch *l = &j->launch;
    int part;
    const int stage = last_needed(j, number, &part);
    if (part >= 0 && !is_batch(&l->parts.data[part]) && may_follow(j, &l->parts.data[part], m)) {
        m->part = part;
        share_add(j->f, l, part, member_of(j, &l->parts.data[part], 0)->has_rows ? PART_ROWS : PART_BLOCK, 0,
                  m->kernel);
        return;
    }
    for (m->part = 0; m->part < l->parts.len; m->part++)
        if (l->parts.data[m->part].stage == stage + 1 && are_a_batch(j, &l->parts.data[m->part], m)) break;
    share_add(j->f, l, m->part, PART_BATCH, stage + 1, m->kernel);
}

/* ---- the launch -------------------------------------------------------------------------------------------------- */

/* Else they are one launch without waiting: a batch, or a bundle. */
static bool need_one_another(const Launch *l) {
    for (int i = 0; i < l->parts.len; i++)
        if (l->parts.data[i].stage > 0 || l->parts.data[i].form != PART_BATCH) return true;
    return false;
}

static bool find_members(Joining *j) {
    for (int i = 0; i < j->f->kernels.len; i++) {
        const Kernel *k = j->f->kernels.data[i];
        const KernelFacts *facts = &j->facts[i];
        Member m = {.kernel = i};
        if (ir_is_still(j->f, k)) continue;
        if (!facts->joins) return false;
        m.is_one_block = k->kind != KERNEL_TILE && is_one_block(&facts->grid); /* updates run side by side */
        m.has_rows = !facts->sums_grow && find_rows(j->f, k, &m.rows) && has_bands(&facts->grid, m.rows);
        vec_push(j->f->module->arena, &j->members, m);
    }
    return true;
}

void supersteps_grow(Sharing *s, Launch *l) {
    Joining j = {.f = s->f, .facts = s->facts, .launch = {.first = l->first}};
    if (!s->f->joined || !find_members(&j) || j.members.data[0].kernel != l->first) return;
    for (int i = 0; i < j.members.len; i++) place(&j, i);
    if (!need_one_another(&j.launch) || j.launch.parts.len > MOST_PARTS) return;
    share_order_parts(j.facts, &j.launch);
    *l = j.launch;
}

bool pass_supersteps(PassContext *c) { return share_launches(c, supersteps_grow); }
