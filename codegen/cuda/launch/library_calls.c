/* library_calls.c: the products of a launch as calls of a library (amp_model_cuda_product), and a launch that makes
 * what the calls leave.
 *
 * A call adds a bias and rounds.  A product is followed from op to op as far as a call goes, to the last value that has
 * the type of a result of the kernel.  The call writes that value into the result's memory.  The ops after it become a
 * kernel of elements, which reads that memory and writes over it:
 *
 *     kernel k06 product {                                      call: d.h, into the memory of d.fc2.y
 *         %88       = contract(%d.logits, %"fc3.weight/f16.rows")
 *         %d.h      = cast(%88)                                 kernel of elements {
 *         %97       = select(.., %d.h)                              %97       = select(.., %d.h)
 *         %d.fc2.y  = cast(%97)                                     %d.fc2.y  = cast(%97)
 *     }                                                         }
 *
 * All products of a launch have a call, or none has.  A product has none if a library computes other numbers: windows,
 * pixels with gaps, operands that are rounded when they are read.  A library's maximum with zero may lose a NaN, so
 * it is left to the kernel of elements. */
#include "amp/model_abi.h"
#include "codegen/cuda/launch/cuda_writer.h"
#include "codegen/cuda/product/product_plan.h"

enum { LINE_BYTES = 16 /* lines of a matrix begin at multiples of it */ };

/* ---- how far a call goes ----------------------------------------------------------------------------------------- */

typedef struct Follow {
    const Walk *w;
    Val at;
    int op; /* of the kernel, that makes |at| */
    int bias;
    bool rounded;
} Follow;

static int find_op(const Walk *w, const Op *o) {
    for (int i = 0; i < w->k->count; i++)
        if (walk_op(w, i) == o) return i;
    return -1;
}

/* The one op that reads |v|, which no result is; -1: there are others. */
static int only_reader(const Walk *w, Val v) {
    int reader = -1;
    for (int i = 0; i < w->k->count; i++)
        for (int n = 0; n < walk_op(w, i)->n_in; n++) {
            if (walk_op(w, i)->in[n].id != v.id) continue;
            if (reader >= 0) return -1;
            reader = i;
        }
    for (int i = 0; i < w->sinks.len; i++)
        if (w->sinks.data[i].kind != SINK_LOOK && w->sinks.data[i].value.id == v.id) return -1;
    return reader;
}

/* The operand in which the kernel stores |v|, or else a result of the same size and type that it does not read; -1. */
static int place_of(const Walk *w, Val v) {
    int other = -1;
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        const Buffer *b = walk_operand(w, s->operand);
        if (s->kind != SINK_STORE || b->kind == BUFFER_WATCH || b->storage != ir_dtype(w->f, v)) continue;
        if (s->value.id == v.id) return s->operand;
        if (other < 0 && w->values[s->value.id].span == SPAN_FULL && !walk_is_read(w, s->operand)) other = s->operand;
    }
    return other;
}

/* The operand that holds |v|, a number for each column, in type |t|; -1: it is something else. */
static int vector_of_columns(const Walk *w, Val v, Dtype t) {
    const Val memory = ir_memory_source(w->f, v);
    if (w->values[v.id].span != SPAN_COLUMN || ir_dtype(w->f, memory) != t) return -1;
    return walk_find_operand(w, memory, LAYOUT_ROWS, t);
}

static Val other_input(const Op *o, Val v) { return o->in[o->in[0].id == v.id]; }

/* Whether a call whose result has type |result| can make |o| too. */
static bool pass_op(Follow *f, const Op *o, Dtype result) {
    const Dtype from = ir_dtype(f->w->f, f->at);
    switch (o->code) {
    case OP_cast:
        if (ir_dtype(f->w->f, o->out[0]) == result && from == AMP_DT_F32 && result != from)
            return !f->rounded && (f->rounded = true);
        return from == result && ir_dtype(f->w->f, o->out[0]) == AMP_DT_F32;
    case OP_add:
        f->bias = f->rounded || f->bias >= 0 ? -1 : vector_of_columns(f->w, other_input(o, f->at), result);
        return f->bias >= 0;
    case OP_reshape: return shape_same_matrix(ir_shape(f->w->f, o->in[0]), ir_shape(f->w->f, o->out[0]));
    default: return false;
    }
}

static bool adds_to(const Follow *f, const Follow *best) {
    return !best->at.id || f->rounded != best->rounded || f->bias != best->bias;
}

/* Whether the kernel has results besides |f->at|. */
static bool has_rest(const Follow *f) {
    for (int i = 0; i < f->w->sinks.len; i++)
        if (f->w->sinks.data[i].kind != SINK_LOOK && f->w->sinks.data[i].value.id != f->at.id) return true;
    return false;
}

/* The value that a call leaves in memory of type |result|: the kernel's only result, if a call can make it; else the
 * first value with the same bias and rounding, because the ops after it are the rest.  |at| NO_VAL: there is none. */
static Follow follow(const Walk *w, const Op *product, Dtype result) {
    Follow f = {.w = w, .at = product->out[0], .op = find_op(w, product), .bias = -1}, best = {.bias = -1};
    for (;;) {
        const bool fits = ir_dtype(w->f, f.at) == result && place_of(w, f.at) >= 0;
        if (fits && (adds_to(&f, &best) || !has_rest(&f))) best = f;
        const int reader = only_reader(w, f.at);
        if (reader < 0 || !pass_op(&f, walk_op(w, reader), result)) return best;
        f.at = walk_op(w, reader)->out[0];
        f.op = reader;
    }
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

static bool is_dense(const Walk *w, const ProductPlan *p) {
    return !p->has_windows && !p->gaps.per && p->phases.count == 1 && !p->batch.rank && !w->k->pred.id &&
           !p->op->pred.id;
}

/* Tensor cores round f32 numbers to TF32 as they read them. */
static bool is_as_stored(const Walk *w, const ProductPlan *p, int n) {
    const Buffer *b = walk_operand(w, n ? p->b.operand : p->a.operand);
    const Dtype t = ir_dtype(w->f, p->op->in[n]);
    return b->layout == LAYOUT_ROWS && b->storage == (t == AMP_DT_TF32 ? AMP_DT_F32 : t);
}

static Dim pitch_of(const Walk *w, int operand, Dim line) {
    const int64_t pitch = walk_operand(w, operand)->pitch;
    return pitch ? dim_const(pitch) : line;
}

static bool is_aligned(Dim pitch, int element_bytes) {
    return (!dim_varies(pitch) || pitch.div == 1) && pitch.mul * element_bytes % LINE_BYTES == 0;
}

/* Fills |c| for the kernel that |w| has analysed; false: a library cannot make it. */
static bool describe_call(const Walk *w, CudaProduct *c) {
    ProductPlan p;
    if (product_plan(w, (CudaForm){.members = 1, .plan = true}, &p, NULL) || !is_dense(w, &p) ||
        w->f->module->length.most)
        return false;
    for (int n = 0; n < 2; n++)
        if (!is_as_stored(w, &p, n)) return false;
    Follow best = {.at = NO_VAL};
    const Dtype results[] = {AMP_DT_F32, ir_dtype(w->f, p.op->in[0])};
    for (int i = 0; i < 2; i++) {
        const Follow f = follow(w, p.op, results[i]);
        if (f.at.id && f.op >= best.op) best = f;
    }
    if (!best.at.id) return false;
    *c = (CudaProduct){.a = p.a.operand,
                       .b = p.b.operand,
                       .to = place_of(w, best.at),
                       .bias = best.bias,
                       .a_turned = !p.a.k_inner,
                       .b_turned = p.b.k_inner,
                       .rows = p.rows,
                       .k = p.k,
                       .parts = (int)p.parts,
                       .cols = p.cols.mul,
                       .last = best.op,
                       .made = best.at};
    c->instruction = cuda_instruction_of(w, p.op);
    c->pitch[0] = pitch_of(w, c->a, c->a_turned ? p.rows : p.k);
    c->pitch[1] = pitch_of(w, c->b, c->b_turned ? p.k : p.cols);
    c->pitch[2] = pitch_of(w, c->to, p.cols);
    c->filled = walk_operand(w, c->to)->pitch && !walk_operand(w, c->to)->is_part;
    const int bytes = p.element_bytes, result_bytes = emit_storage(w, c->to)->bytes;
    return is_aligned(c->pitch[0], bytes) && is_aligned(c->pitch[1], bytes) && is_aligned(c->pitch[2], result_bytes) &&
           (c->parts == 1 || (!dim_varies(p.rows) && c->bias < 0 && !c->filled));
}

/* ---- the rest of a kernel ---------------------------------------------------------------------------------------- */

static int op_that_makes(const Walk *w, Val v) { return find_op(w, ir_def(w->f, v)); }

/* Whether ops up to the call's last one make a result besides its own. */
static bool loses_result(const Walk *w, const CudaProduct *c) {
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        const bool is_made = s->value.id == c->made.id && s->operand == c->to;
        if (s->kind != SINK_LOOK && !is_made && op_that_makes(w, s->value) <= c->last) return true;
    }
    return false;
}

/* Whether an op after the call reads |v|. */
static bool is_read_later(const Walk *w, const CudaProduct *c, Val v) {
    for (int i = c->last + 1; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        for (int n = 0; n < o->n_in; n++)
            if (o->in[n].id == v.id || ir_memory_source(w->f, o->in[n]).id == v.id) return true;
    }
    return false;
}

static bool is_made_later(const Walk *w, const CudaProduct *c, const Buffer *b) {
    return op_that_makes(w, b->value) > c->last;
}

/* The buffer, from 1, in which the call leaves its value: the result's own, or one that is named for the rest alone. */
static uint32_t buffer_of_call(CudaWriter *x, const CudaProduct *c) {
    const uint32_t id = x->w.operands.data[c->to];
    const Buffer *to = x->own->buffers.data[id - 1];
    if (to->value.id == c->made.id) return id;
    Buffer *own = arena_new(x->m->arena, Buffer);
    *own = *to;
    own->value = c->made;
    vec_push(x->m->arena, &x->own->buffers, own);
    vec_push(x->m->arena, &x->aliases, id);
    return (uint32_t)x->own->buffers.len;
}

/* Adds the ops after the call as a kernel of elements; its number in the function. */
static int add_rest(CudaWriter *x, const CudaProduct *c) {
    const Walk *w = &x->w;
    const Kernel *k = w->k;
    Arena *a = x->m->arena;
    Kernel *rest = arena_new(a, Kernel);
    *rest = (Kernel){.name = arena_printf(a, "%s_then", k->name),
                     .title = k->title,
                     .kind = KERNEL_TILE,
                     .first = k->first + c->last + 1,
                     .count = k->count - c->last - 1,
                     .pos = k->pos};
    vec_push(a, &rest->reads, buffer_of_call(x, c));
    for (int i = 0; i < k->reads.len; i++)
        if (is_read_later(w, c, x->own->buffers.data[k->reads.data[i] - 1]->value))
            vec_push(a, &rest->reads, k->reads.data[i]);
    for (int i = 0; i < k->writes.len; i++)
        if (is_made_later(w, c, x->own->buffers.data[k->writes.data[i] - 1]))
            vec_push(a, &rest->writes, k->writes.data[i]);
    vec_push(a, &x->own->kernels, rest);
    return x->own->kernels.len - 1;
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static bool add_call(CudaWriter *x, const Kernel *k, int operands, CudaProducts *calls, LaunchPart *rest) {
    const Walk *w = &x->w;
    CudaProduct c;
    if (k->kind != KERNEL_PRODUCT || walk_kernel(&x->w, k, NULL) || !describe_call(w, &c)) return false;
    if (loses_result(w, &c)) return false;
    if (has_rest(&(Follow){.w = w, .at = c.made})) vec_push(x->m->arena, &rest->kernels, add_rest(x, &c));
    c.a += operands;
    c.b += operands;
    c.to += operands;
    if (c.bias >= 0) c.bias += operands;
    vec_push(x->m->arena, calls, c);
    return true;
}

bool cuda_find_calls(CudaWriter *x, const Launch *l, CudaProducts *calls, Launch *rest) {
    int operands = 0;
    *rest = (Launch){.first = l->first};
    if (launch_has_stages(l) || l->by_columns) return false;
    for (int i = 0; i < l->parts.len; i++) {
        const LaunchPart *part = &l->parts.data[i];
        LaunchPart then = {0};
        if (part->form != PART_BATCH) return false; /* kernels of a chain read what those before them have made */
        for (int j = 0; j < part->kernels.len; j++) {
            if (!add_call(x, x->own->kernels.data[part->kernels.data[j]], operands, calls, &then)) return false;
            operands += x->w.operands.len;
        }
        if (then.kernels.len) vec_push(x->m->arena, &rest->parts, then);
    }
    return true;
}
