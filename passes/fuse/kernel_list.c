/* kernel_list.c: see kernel_list.h. */
#include "passes/fuse/kernel_list.h"

KernelList kernel_list_open(Func *f) {
    Arena *a = f->module->arena;
    KernelList l = {.f = f};
    for (int i = 0; i < f->kernels.len; i++) {
        KernelOps k = {.kernel = f->kernels.data[i]};
        for (int j = 0; j < k.kernel->count; j++) vec_push(a, &k.ops, f->body.data[k.kernel->first + j]);
        vec_push(a, &l.at, k);
    }
    return l;
}

KernelOps *kernel_list_insert(KernelList *l, int index, KernelKind kind, const char *title, Pos pos) {
    Arena *a = l->f->module->arena;
    Kernel *k = arena_new(a, Kernel);
    k->kind = kind;
    k->title = title;
    k->pos = pos;
    vec_push(a, &l->at, ((KernelOps){.kernel = k}));
    for (int i = l->at.len - 1; i > index; i--) l->at.data[i] = l->at.data[i - 1];
    l->at.data[index] = (KernelOps){.kernel = k};
    return &l->at.data[index];
}

/* ir_op_new appends to the body; here the op belongs to a kernel instead. */
static Op *place(KernelList *l, KernelOps *k, int position, Opcode code, const Val *in, int n_in) {
    Op *o = ir_op_new(l->f, code, in, n_in);
    OpId id = l->f->body.data[--l->f->body.len];
    vec_push(l->f->module->arena, &k->ops, id);
    for (int i = k->ops.len - 1; i > position; i--) k->ops.data[i] = k->ops.data[i - 1];
    k->ops.data[position] = id;
    return o;
}

Op *kernel_list_unary(KernelList *l, KernelOps *k, int position, Opcode code, Val in, Dtype t, const char *hint) {
    Op *o = place(l, k, position, code, &in, 1);
    ir_result(l->f, o, hint, t, *ir_shape(l->f, in));
    return o;
}

Op *kernel_list_assign(KernelList *l, KernelOps *k, int position, Val state, Val value, Val pred) {
    Val in[2] = {state, value};
    Op *o = place(l, k, position, OP_assign, in, 2);
    o->pred = pred;
    return o;
}

int *kernel_list_makers(const KernelList *l) {
    const Func *f = l->f;
    int *maker = arena_array(f->module->arena, int, f->values.len + 1);
    for (int i = 0; i < f->values.len; i++) maker[i] = -1;
    for (int i = 0; i < l->at.len; i++)
        for (int j = 0; j < l->at.data[i].ops.len; j++) {
            const Op *o = ir_op(f, l->at.data[i].ops.data[j]);
            for (int r = 0; r < o->n_out; r++) maker[o->out[r].id] = i;
        }
    return maker;
}

void kernel_list_close(KernelList *l) {
    Func *f = l->f;
    Arena *a = f->module->arena;
    f->body.len = 0;
    f->kernels.len = 0;
    for (int i = 0; i < l->at.len; i++) {
        KernelOps *k = &l->at.data[i];
        k->kernel->name = arena_printf(a, "k%02d", i);
        k->kernel->first = f->body.len;
        k->kernel->count = k->ops.len;
        for (int j = 0; j < k->ops.len; j++) vec_push(a, &f->body, k->ops.data[j]);
        vec_push(a, &f->kernels, k->kernel);
    }
}
