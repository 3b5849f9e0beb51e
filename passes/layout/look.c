/* look.c: where a session that looks at a run finds what is rounded to f16, before that.
 *
 *   %36 = mul(%35, %35) : f32     #8         =>   buffer b24 look %37 f32 rows live 3 to 3
 *   %37 = cast(%36)     : f16     #8
 *
 * In f16 alone one could not tell an infinity that the op was given from one that it made, nor a zero from what was
 * lost; and where the ops that read the result are of the same kernel, neither is in memory.  Of ops of the forward
 * pass whose dtype was decided: what they make, and what they round as they read it.  On the CPU kernels write such a
 * buffer if its pointer is not NULL, like the buffers of gradients that are kept; on CUDA it has counts alone. */
#include "ir/operands.h"
#include "passes/layout/layout.h"

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

static bool may_look(const Kernel *k) { return !(ir_kernel_info[k->kind].traits & APART) && !k->pred.id; }

/* Marks what |k| computes elsewhere: in the place of pooling that reads it, or as a product loads its operands. */
static void mark_elsewhere(const Func *f, const Kernel *k, bool *elsewhere) {
    bool product = false; /* |o| is it, or comes before it */
    for (int i = k->count - 1; i >= 0; i--) {
        const Op *o = ir_op_at(f, k->first + i);
        const bool inlined = o->n_out && elsewhere[o->out[0].id];
        product |= ir_is_product(o);
        if (ir_takes_inlined(f, o)) elsewhere[o->in[0].id] = true;
        for (int n = 0; n < o->n_in && (inlined || product); n++) elsewhere[o->in[n].id] = true;
    }
}

/* Whether what the cast |o| rounds may be far from 1: what an op of its own region makes, or others and the caller. */
static bool may_be_out_of_range(Func *f, const Op *o) {
    const Op *def = ir_def(f, o->in[0]);
    if (!def) return ir_value(f, o->in[0])->kind == VAL_INPUT;
    if (o->region && def->region == o->region) return leaves_range(def) && !is_bounded(ir_region(f, o->region)->op);
    return !def->region || !is_bounded(ir_region(f, def->region)->op);
}

static bool is_looked_at(Func *f, const Op *o, const Table *decided) {
    if (o->code != OP_cast || ir_dtype(f, o->in[0]) != AMP_DT_F32 || ir_dtype(f, o->out[0]) != AMP_DT_F16) return false;
    const char *path = ir_cast_path(f, o);
    return path && table_get(decided, path) && may_be_out_of_range(f, o);
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
    bool *elsewhere = arena_array(f->module->arena, bool, f->values.len + 1);
    for (int i = 0; i < f->kernels.len && is_forward(f); i++) {
        Kernel *k = f->kernels.data[i];
        if (!may_look(k)) continue;
        mark_elsewhere(f, k, elsewhere);
        for (int j = 0; j < k->count; j++) {
            const Op *o = ir_op_at(f, k->first + j);
            if (is_looked_at(f, o, &decided) && !elsewhere[o->out[0].id]) add_look(f, k, o->out[0]);
        }
    }
}
