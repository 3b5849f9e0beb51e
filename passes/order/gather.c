/* gather.c: kernels that may share a launch run one after the other.
 *
 *   k40 { update of fc1.weight }                    k40 { update of fc1.weight }
 *   k41 { update of fc1.bias }                 =>   k41 { update of fc2.weight }
 *   k42 { update of fc2.weight }                    k42 { update of fc1.bias }
 *
 * On a target that launches equal kernels as one, kernels that do the same with other values move side by side, and
 * scalar kernels with one predicate too (merge_scalars.c).  First each moves up to the last one before it (updates of
 * parameters), then down to the first one after it (sums for gradients, which nothing needs before the updates).
 * Nothing between needs them, nor they it, and what is kept in memory meanwhile is little, or where it is no more than
 * at the peak: such a group of products grows until its blocks fill waves (FILLED).  Whether they are equal in all, the
 * pass batch asks; here it only matters that most are.
 */
#include "passes/order/kernel_order.h"
#include "ir/print.h"

typedef struct Group { /* kernels that share a signature and stand side by side */
    int end;           /* the next one goes beside this kernel */
    int64_t kept;      /* bytes that live longer because it has grown */
    int64_t blocks;    /* of products */
} Group;

/* The order is part of a model, which serves every device, so waves are counted for one: H100 and H200, as parts of
 * sums are (Target.sum_blocks). */
enum { MULTIPROCESSORS = 132, TILE = 128, FILLED = 90 /* percent */ };

/* ---- what a kernel does, but for which values -------------------------------------------------------------------- */

static void put_type(Text *t, const Func *f, Val v, bool shape) {
    text_printf(t, " %d", ir_dtype(f, v));
    if (shape) type_print(t, ir_dtype(f, v), ir_shape(f, v));
}

/* Elements of no row and no column: kernels over different numbers of them have one text. */
static bool is_flat(const Func *f, const Kernel *k) {
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(f, k->first + i);
        if (o->n_in && ir_reads_memory(f, o, 0) && o->code != OP_sum_parts) return false;
        for (int r = 0; r < o->n_out; r++)
            for (int d = 0; d < ir_shape(f, o->out[r])->rank; d++)
                if (dim_varies(ir_shape(f, o->out[r])->d[d])) return false;
    }
    return k->kind == KERNEL_TILE;
}

/* Ops with their attributes, types and shapes, which are part of their code where rows or columns count. */
static const char *kernel_signature(const Func *f, const Kernel *k) {
    const bool flat = is_flat(f, k);
    Text t;
    text_init(&t, f->module->arena);
    if (k->kind == KERNEL_SCALAR) return arena_printf(f->module->arena, "scalar %u", k->pred.id);
    if (ir_kernel_info[k->kind].traits & RUNTIME) return NULL;
    text_printf(&t, "%d %d %d", k->kind, k->reads.len, k->writes.len);
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(f, k->first + i);
        const OpInfo *info = &ir_op_info[o->code];
        text_printf(&t, " %d", o->code);
        if (o->code == OP_sum_parts) text_printf(&t, " %lld", (long long)ir_shape(f, o->in[0])->d[0].mul);
        for (int n = 0; n < MAX_ATTRS && info->attrs[n].type != ATTR_END; n++)
            print_attr(&t, info->attrs[n].type, &o->attr[n]);
        for (int n = 0; n < o->n_in; n++) put_type(&t, f, o->in[n], !flat);
        for (int r = 0; r < o->n_out; r++) put_type(&t, f, o->out[r], !flat);
    }
    for (int i = 0; i < k->reads.len; i++) text_printf(&t, " %d", f->buffers.data[k->reads.data[i] - 1]->storage);
    for (int i = 0; i < k->writes.len; i++) text_printf(&t, " %d", f->buffers.data[k->writes.data[i] - 1]->storage);
    return text_str(&t);
}

bool *kernels_alone(const Func *f) {
    bool *alone = arena_array(f->module->arena, bool, f->kernels.len + 1);
    const char *before = NULL;
    for (int i = 0; i < f->kernels.len; i++) {
        const char *signature = kernel_signature(f, f->kernels.data[i]);
        const bool same = before && signature && !strcmp(before, signature);
        alone[i] = !same;
        if (same) alone[i - 1] = false;
        before = signature;
    }
    return alone;
}

/* ---- what moves -------------------------------------------------------------------------------------------------- */

static const char **sign_kernels(const Func *f) {
    const char **signature = arena_array(f->module->arena, const char *, f->kernels.len + 1);
    for (int i = 0; i < f->kernels.len; i++) signature[i] = kernel_signature(f, f->kernels.data[i]);
    return signature;
}

/* Of a product in large tiles whose size does not depend on n; else 0. */
static int64_t count_blocks(const KernelOrder *o, int kernel) {
    const Kernel *k = kernel_order_at(o, kernel);
    const KernelOps *ops = &o->list.at.data[kernel];
    Dim rows, cols;
    for (int i = 0; i < ops->ops.len && k->kind == KERNEL_PRODUCT; i++) {
        const Op *op = ir_op(o->list.f, ops->ops.data[i]);
        if (!ir_is_product(op) || !shape_matrix(ir_shape(o->list.f, op->out[0]), &rows, &cols)) continue;
        return dim_varies(rows) ? 0 : (rows.mul + TILE - 1) / TILE * ((cols.mul + TILE - 1) / TILE);
    }
    return 0;
}

/* Whether the last wave of as many blocks leaves much idle. */
static bool wants_blocks(int64_t blocks) {
    const int64_t waves = (blocks + MULTIPROCESSORS - 1) / MULTIPROCESSORS;
    return blocks * 100 < waves * MULTIPROCESSORS * FILLED;
}

static bool has_memory(const KernelOrder *o, const Group *group, int kernel, bool up) {
    const int64_t more = kernel_order_keeps(o, kernel, group->end, up);
    if (group->kept + more <= o->most_kept) return true;
    return wants_blocks(group->blocks) && more <= kernel_order_room(o, kernel, group->end, up);
}

static bool may_join(const KernelOrder *o, const Group *group, int kernel, bool up) {
    const Func *f = o->list.f;
    const Kernel *k = kernel_order_at(o, kernel), *end = kernel_order_at(o, group->end);
    if (!has_memory(o, group, kernel, up)) return false;
    if (ir_touches(f, k, end, true) || ir_touches(f, end, k, true)) return false;
    return kernel_order_may_move(o, kernel, group->end, up);
}

/* Each kernel to the group that it meets first; where it may not join that, it begins a group of its own. */
static void gather(KernelOrder *o, const char *const *signature, bool up) {
    Arena *a = o->list.f->module->arena;
    Table groups = {0};
    for (int i = up ? o->first : o->last, then; i >= 0; i = then) {
        then = kernel_order_toward(o, i, !up);
        if (!signature[i]) continue;
        Group *group = table_get(&groups, signature[i]);
        if (group && may_join(o, group, i, up)) {
            group->kept += kernel_order_keeps(o, i, group->end, up);
            kernel_order_move(o, i, group->end, up);
        } else {
            group = arena_new(a, Group);
            table_set(a, &groups, signature[i], group);
        }
        group->end = i;
        group->blocks += count_blocks(o, i);
    }
}

static bool gather_kernels(Func *f) {
    KernelOrder order = kernel_order_open(f);
    const char **signature = sign_kernels(f);
    gather(&order, signature, true);
    gather(&order, signature, false);
    return kernel_order_close(&order);
}

bool pass_gather(PassContext *c) { return order_kernels(c, gather_kernels); }

/* ---- products that add to one another ---------------------------------------------------------------------------- */

/* A kernel of the same signature that makes something which |kernel| reads; -1: none. */
static int equal_maker(const KernelOrder *o, const char *const *signature, int kernel) {
    const Func *f = o->list.f;
    const Kernel *k = kernel_order_at(o, kernel);
    for (int i = 0; i < k->reads.len && signature[kernel]; i++) {
        const int maker = o->maker[f->buffers.data[k->reads.data[i] - 1]->value.id];
        if (maker >= 0 && maker != kernel && signature[maker] && !strcmp(signature[maker], signature[kernel]))
            return maker;
    }
    return -1;
}

static bool gather_chains(Func *f) {
    KernelOrder order = kernel_order_open(f);
    const char **signature = sign_kernels(f);
    for (int i = order.first, then; i >= 0; i = then) {
        then = order.next[i];
        if (kernel_order_at(&order, i)->kind != KERNEL_PRODUCT) continue;
        const int maker = equal_maker(&order, signature, i);
        if (maker < 0 || kernel_order_keeps(&order, i, maker, true) > order.most_kept) continue;
        if (kernel_order_may_move(&order, i, maker, true)) kernel_order_move(&order, i, maker, true);
    }
    return kernel_order_close(&order);
}

bool pass_gather_chains(PassContext *c) { return order_kernels(c, gather_chains); }

/* ---- kernels of any text ----------------------------------------------------------------------------------------- */

static bool is_column(const Func *f, int i, bool segments) {
    if (i < 0 || i >= f->kernels.len || f->kernels.data[i]->kind != KERNEL_COLUMN) return false;
    return (f->kernels.data[i]->segment.mul != 0) == segments;
}

/* Whether kernel |i|, sums over rows, follows sums of segments that it reads: they share a launch already
 * (passes/launch/single_pass.c). */
static bool is_second_pass(const Func *f, int i) {
    if (!is_column(f, i, false)) return false;
    for (int first = i - 1; first >= 0; first--) {
        if (is_column(f, first, true)) return ir_touches(f, f->kernels.data[first], f->kernels.data[i], true);
        if (!is_column(f, first, false)) return false;
    }
    return false;
}

static bool adds_parts(const Func *f, const Kernel *k) {
    for (int i = 0; i < k->count; i++)
        if (ir_op_at(f, k->first + i)->code == OP_sum_parts) return true;
    return false;
}

/* Sums of columns may share a launch, and so may sums of parts, whatever else they do: nothing needs them soon, and
 * each has few blocks (passes/launch/bundle.c). */
static const char **sign_sums(const Func *f) {
    const char **signature = arena_array(f->module->arena, const char *, f->kernels.len + 1);
    for (int i = 0; i < f->kernels.len; i++) {
        const Kernel *k = f->kernels.data[i];
        const char *what = k->kind == KERNEL_COLUMN                     ? "column"
                           : k->kind == KERNEL_TILE && adds_parts(f, k) ? "parts"
                                                                        : NULL;
        if (!what || is_second_pass(f, i) || (is_column(f, i, true) && is_second_pass(f, i + 1))) continue;
        signature[i] = arena_printf(f->module->arena, "%s %u", what, k->pred.id);
    }
    return signature;
}

/* So may sums by id.  What follows the gradient of a table may come after it: they move up. */
static const char **sign_scatters(const Func *f) {
    const char **signature = arena_array(f->module->arena, const char *, f->kernels.len + 1);
    for (int i = 0; i < f->kernels.len; i++)
        if (f->kernels.data[i]->kind == KERNEL_SCATTER)
            signature[i] = arena_printf(f->module->arena, "scatter %u", f->kernels.data[i]->pred.id);
    return signature;
}

static bool gather_sums(Func *f) {
    KernelOrder order = kernel_order_open(f);
    gather(&order, sign_sums(f), false);
    gather(&order, sign_scatters(f), true);
    return kernel_order_close(&order);
}

bool pass_gather_sums(PassContext *c) { return order_kernels(c, gather_sums); }
