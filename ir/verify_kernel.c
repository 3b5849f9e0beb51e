/* verify_kernel.c: kernels and buffers. */
#include "ir/access.h"
#include "ir/verify.h"
#include "ir/words.h"

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static void check_buffer_ids(Verifying *c, const Kernel *k, const uint32_t *ids, int count) {
    for (int i = 0; i < count; i++)
        if (ids[i] == 0 || ids[i] > (uint32_t)c->f->buffers.len)
            verify_fail(c, "kernel %s uses a buffer that does not exist", k->name);
}

/* Before fuse there are none; then they cover the body, in order. */
void verify_cover(Verifying *c) {
    const Func *f = c->f;
    int covered = 0;
    Table names = {0};
    if (c->m->stage < STAGE_FUSE && f->kernels.len)
        verify_fail(c, "has kernels at stage %s", ir_stage_names[c->m->stage]);
    if (c->m->stage < STAGE_LAYOUT && f->buffers.len)
        verify_fail(c, "has buffers at stage %s", ir_stage_names[c->m->stage]);
    if (c->m->stage < STAGE_FUSE) return;
    for (int i = 0; i < f->kernels.len && !verify_failed(c); i++) {
        const Kernel *k = f->kernels.data[i];
        if (k->first != covered || k->count <= 0 || k->count > f->body.len - covered)
            verify_fail(c, "kernel %s does not begin where the one before it ends, or is empty", k->name);
        covered += k->count;
        if (verify_is_second(c, &names, k->name)) verify_fail(c, "two kernels are called %s", k->name);
        check_buffer_ids(c, k, k->reads.data, k->reads.len);
        check_buffer_ids(c, k, k->writes.data, k->writes.len);
    }
    if (!verify_failed(c) && covered != f->body.len) verify_fail(c, "op %d of the body is in no kernel", covered + 1);
}

static void check_kernel_predicate(Verifying *c, const Kernel *k) {
    if (!k->pred.id) return;
    if (!verify_is_defined(c, k->pred) || !verify_is_bool_scalar(c, k->pred))
        verify_fail(c, "kernel %s: its predicate is no bool scalar that is defined before it", k->name);
}

/* In a kernel effects share their predicate; and memory that an earlier kernel has written holds no old value. */
static void check_in_kernel(Verifying *c, const Kernel *k, const Op *o) {
    for (int i = 0; i < o->n_in && !verify_failed(c); i++)
        if (c->assigned[o->in[i].id])
            verify_fail_op(c, o, "reads state %%%s in kernel %s, after a kernel that writes it",
                           ir_value(c->f, o->in[i])->name, k->name);
    if (o->code != OP_assign || verify_failed(c)) return;
    if (c->assign && c->assign->pred.id != o->pred.id)
        verify_fail_op(c, o, "kernel %s has effects with different predicates", k->name);
    c->assign = o;
}

/* ---- what each kind holds: docs/design/kernels.md ---------------------------------------------------------------- */

static int count_ops(const Verifying *c, const Kernel *k, bool (*is_one)(const Op *)) {
    int count = 0;
    for (int i = k->first; i < k->first + k->count; i++) count += is_one(ir_op_at(c->f, i));
    return count;
}

static bool is_scatter(const Op *o) { return o->code == OP_scatter; }

static void check_kind(Verifying *c, const Kernel *k) {
    int products = count_ops(c, k, ir_is_product), scatters = count_ops(c, k, is_scatter);
    if (products != (k->kind == KERNEL_PRODUCT))
        verify_fail(c, "kernel %s is of kind %s and has %d products", k->name, ir_kernel_kind_names[k->kind], products);
    if (scatters != (k->kind == KERNEL_SCATTER))
        verify_fail(c, "kernel %s is of kind %s and has %d scatters", k->name, ir_kernel_kind_names[k->kind], scatters);
    if (k->segment < 0 || (k->segment && k->kind != KERNEL_COLUMN))
        verify_fail(c, "kernel %s has a segment and is no column kernel", k->name);
}

static void check_kernel_body(Verifying *c, const Kernel *k) {
    check_kernel_predicate(c, k);
    c->assign = NULL;
    for (int i = k->first; i < k->first + k->count && !verify_failed(c); i++) {
        const Op *o = ir_op_at(c->f, i);
        verify_op(c, o, i);
        if (!verify_failed(c)) check_in_kernel(c, k, o);
    }
    if (!verify_failed(c)) check_kind(c, k);
    if (!verify_failed(c)) verify_mark_assigned(c, k->first, k->count);
}

void verify_kernels(Verifying *c) {
    for (int i = 0; i < c->f->kernels.len && !verify_failed(c); i++) check_kernel_body(c, c->f->kernels.data[i]);
}

/* Of the same size, and there before it: places do not go round in circles. */
static void check_place(Verifying *c, const Buffer *b) {
    const Func *f = c->f;
    const Buffer *in = b->place && b->place <= (uint32_t)f->buffers.len ? f->buffers.data[b->place - 1] : NULL;
    bool fits = in && in->kind == BUFFER_TEMP && b->kind == BUFFER_TEMP && !in->place && in->first < b->first &&
                in->storage == b->storage && in->layout == b->layout &&
                shape_same_matrix(ir_shape(f, b->value), ir_shape(f, in->value));
    if (b->place && !fits) verify_fail(c, "buffer %s lies in the place of one that it does not fit", b->name);
}

void verify_buffers(Verifying *c) {
    Table names = {0};
    for (int i = 0; i < c->f->buffers.len && !verify_failed(c); i++) {
        const Buffer *b = c->f->buffers.data[i];
        if (!verify_is_defined(c, b->value)) verify_fail(c, "buffer %s holds no value of the function", b->name);
        if ((b->kind == BUFFER_STATE) != (b->state != 0) || b->state > (uint32_t)c->m->states.len)
            verify_fail(c, "buffer %s: a state's buffer names a state, and no other does", b->name);
        if (b->first > b->last || b->last >= c->f->kernels.len)
            verify_fail(c, "buffer %s lives from kernel %d to %d of %d", b->name, b->first, b->last, c->f->kernels.len);
        if (verify_is_second(c, &names, b->name)) verify_fail(c, "two buffers are called %s", b->name);
        if (!verify_failed(c)) check_place(c, b);
    }
}
