/* kernel_facts.c: what the passes that let kernels share a launch ask of a kernel (ir/kernel_facts.h). */
#include "codegen/cuda/cuda_kernel.h"
#include "ir/places.h"
#include "ir/print.h"

/* ---- all that a function follows from ---------------------------------------------------------------------------- */

/* |flat|: elements are numbers alone, and how many there are is a parameter. */
static void put_value(Text *t, const Walk *w, Val v, bool flat) {
    const ValueWalk *x = &w->values[v.id];
    const Op *constant = walk_constant(w, v);
    text_printf(t, " %d %d ", x->number, x->span);
    if (flat) text_printf(t, "%d", ir_dtype(w->f, v));
    else type_print(t, ir_dtype(w->f, v), ir_shape(w->f, v));
    if (constant) print_attr(t, ir_op_info[OP_const].attrs[0].type, &constant->attr[0]);
}

static void put_op(Text *t, const Walk *w, const Op *o, bool flat) {
    const OpInfo *info = &ir_op_info[o->code];
    text_printf(t, "\n%d%s%s", o->code, o->pred.id ? " if" : "", cuda_is_near(w, o) ? " near" : "");
    for (int i = 0; i < MAX_ATTRS && info->attrs[i].type != ATTR_END; i++) {
        text_putc(t, ' ');
        print_attr(t, info->attrs[i].type, &o->attr[i]);
    }
    if (o->code == OP_sum_parts) text_printf(t, " %lld", (long long)ir_shape(w->f, o->in[0])->d[0].mul);
    for (int n = 0; n < o->n_in; n++) put_value(t, w, o->in[n], flat);
    for (int r = 0; r < o->n_out; r++) put_value(t, w, o->out[r], flat);
}

static void put_operand(Text *t, const Walk *w, int i) {
    const Buffer *b = walk_operand(w, i);
    const BufferKind kind = b->kind == BUFFER_FLAG || buffer_is_optional(b->kind) ? b->kind : BUFFER_TEMP;
    text_printf(t, "\n%d %d %d %lld %d %lld %d %d", kind, b->layout, b->storage, (long long)b->pitch, b->is_part,
                (long long)b->column, w->values[b->value.id].number, walk_is_written(w, i));
}

static const char *code_of(const Walk *w, const CudaBody *body) {
    const bool flat = body->facts.batch == BATCH_IN_TURN;
    Text t;
    text_init(&t, w->arena);
    text_printf(&t, "%d %lld %d %d %d %d", w->k->kind, (long long)w->segment.mul, w->segment.n, w->segment.t,
                w->k->pred.id != 0, body->shares);
    for (int i = 0; i < w->operands.len; i++) put_operand(&t, w, i);
    for (int i = 0; i < w->k->count; i++) put_op(&t, w, walk_op(w, i), flat);
    return text_str(&t);
}

/* ---- facts ------------------------------------------------------------------------------------------------------- */

static void take_body(const Walk *w, const CudaBody *body, KernelFacts *out) {
    *out = body->facts;
    out->code = code_of(w, body);
    out->rows = w->segment.mul ? walk_segments(w) : w->rows;
    out->cols = w->cols;
    out->operands = w->operands.len + (w->k->pred.id != 0);
    out->sizes = body->sizes.len;
    out->threads[0] = body->launch.block[0];
}

static amp_status describe(Walk *w, const Kernel *k, KernelFacts *out, amp_error *err) {
    CudaBody body;
    AMP_TRY(walk_kernel(w, k, err));
    AMP_TRY(cuda_emit_kernel(w, (CudaForm){.plan = true}, &body, err));
    take_body(w, &body, out);
    if (!w->f->joined) return AMP_OK;
    AMP_TRY(walk_kernel(w, k, err)); /* planning delays stores */
    AMP_TRY(cuda_emit_kernel(w, (CudaForm){CUDA_IN_TURN, .threads = CUDA_STAGE_THREADS, .plan = true}, &body, err));
    out->joins = body.facts.bundles;
    memcpy(out->grid.extent, body.launch.extent, sizeof out->grid.extent);
    memcpy(out->grid.per, body.launch.per, sizeof out->grid.per);
    return AMP_OK;
}

amp_status codegen_cuda_describe(const Func *f, KernelFacts *out, amp_error *err) {
    Walk w;
    walk_init(&w, f, f->module->arena);
    cuda_find_exactness(&w);
    for (int i = 0; i < f->kernels.len; i++) {
        const Kernel *k = f->kernels.data[i];
        if (k->kind == KERNEL_ATTENTION || k->kind == KERNEL_COLLECTIVE || ir_is_still(f, k)) continue;
        AMP_TRY(describe(&w, k, &out[i], err));
    }
    return AMP_OK;
}
