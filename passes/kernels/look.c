/* look.c: where a session that looks at a run finds what ops make before it is rounded to f16.
 *
 *   %36 = mul(%35, %35) : f32     #8         =>   buffer b24 look %36 f32 rows live 3 to 3
 *   %37 = cast(%36)     : f16     #8
 *
 * In f16 alone one could not tell an infinity that the op was given from one that it made, nor a zero from what was
 * lost; and where the ops that read the result are of the same kernel, neither is in memory.  Of ops of the forward
 * pass whose dtype was decided, and whose results nothing bounds.  Kernels write such a buffer where its pointer is not
 * NULL, as those of gradients that are kept. */
#include "passes/kernels/layout.h"

enum { LOOKS_MOST = 512 }; /* of a function: an unrolled loop has the same ops again and again */

/* Core ops whose result may be far larger or smaller than what they read. */
static bool leaves_range(const Op *o) {
    switch (o->code) {
    case OP_contract:
    case OP_batch_contract:
    case OP_conv:
    case OP_conv_data:
    case OP_mul:
    case OP_div:
    case OP_add:
    case OP_sub:
    case OP_exp:
    case OP_expm1:
    case OP_pow:
    case OP_reduce_sum: return true;
    default: return false;
    }
}

/* Graph ops between 0 and 1 that are made of such: that nearly all of it is zero is what they are for. */
static bool is_bounded(const char *op) {
    static const char *const ops[] = {"sigmoid", "softmax", "tanh", "dropout", "hard_sigmoid"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (!strcmp(op, ops[i])) return true;
    return false;
}

static Table list_decided(const Module *m) {
    Table t = {0};
    for (int i = 0; i < m->decisions.len; i++)
        if (m->decisions.data[i].path) table_set(m->arena, &t, m->decisions.data[i].path, &m->decisions.data[i]);
    return t;
}

/* Others compute some of their ops elsewhere: as they load an operand, or in the place of who reads it. */
static bool computes_each_op(const Func *f, const Kernel *k) {
    if (k->kind == KERNEL_SCATTER || k->kind == KERNEL_ATTENTION || k->kind == KERNEL_COLLECTIVE || k->pred.id)
        return false;
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(f, k->first + i);
        if (ir_is_product(o)) continue;
        for (int n = 0; n < o->n_in; n++)
            if (ir_reads_memory(f, o, n) || ir_takes_inlined(f, o)) return false;
    }
    return true;
}

static bool is_looked_at(Func *f, const Kernel *k, int j, const Table *decided) {
    const Op *o = ir_op_at(f, k->first + j);
    if (o->code != OP_cast || !o->region || ir_dtype(f, o->out[0]) != AMP_DT_F16 || is_read_on_load(f, k, j))
        return false;
    const Op *def = ir_def(f, o->in[0]);
    const Region *r = ir_region(f, o->region);
    return def && def->region == o->region && leaves_range(def) && r->path && table_get(decided, r->path) &&
           !is_bounded(r->op);
}

static bool is_made_by(const Func *f, const Kernel *k, Val v) {
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(f, k->first + i);
        if (o->n_out && o->out[0].id == v.id) return true;
    }
    return false;
}

static void add_look(Func *f, Kernel *k, Val v) {
    Arena *a = f->module->arena;
    Buffer *b = arena_new(a, Buffer);
    *b = (Buffer){
        .kind = BUFFER_LOOK, .value = v, .layout = LAYOUT_ROWS, .storage = AMP_DT_F32, .first = -1, .last = -1};
    vec_push(a, &f->buffers, b);
    b->name = arena_printf(a, "b%02d", f->buffers.len);
    vec_push(a, &k->writes, (uint32_t)f->buffers.len);
}

static bool is_forward(const Func *f) {
    return f->kind == PROGRAM_TRAIN_STEP || f->kind == PROGRAM_MICRO_STEP || f->kind == PROGRAM_EVAL ||
           f->kind == PROGRAM_INFER;
}

void add_look_buffers(Func *f) {
    const Table decided = list_decided(f->module);
    bool *stored = arena_array(f->module->arena, bool, f->values.len + 1);
    int looks = 0;
    if (!is_forward(f)) return;
    for (int i = 0; i < f->buffers.len; i++) stored[f->buffers.data[i]->value.id] = true;
    for (int i = 0; i < f->kernels.len; i++) {
        Kernel *k = f->kernels.data[i];
        const bool computes = computes_each_op(f, k);
        for (int j = 0; computes && j < k->count && looks < LOOKS_MOST; j++) {
            const Val v = ir_op_at(f, k->first + j)->n_in ? ir_op_at(f, k->first + j)->in[0] : NO_VAL;
            if (!is_looked_at(f, k, j, &decided) || stored[v.id] || !is_made_by(f, k, v)) continue;
            stored[v.id] = true;
            add_look(f, k, v);
            looks++;
        }
    }
}
