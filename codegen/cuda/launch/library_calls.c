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
 * it is left to the kernel of elements.
 *
 * In a chain, whose kernels add to the result of the one before, the calls need none of the others: they leave the
 * products, and what follows is a chain of kernels of elements.
 *
 * A call makes products of a batch that follow one another at one stride, which each operand has for itself.  If the
 * dimensions of a batch have several, as heads that are columns of q have, each of a few heads has a call for
 * all samples. */
#include "amp/model_abi.h"
#include "codegen/cuda/launch/cuda_writer.h"
#include "codegen/cuda/product/product_plan.h"
#include "ir/places.h"

enum { LINE_BYTES = 16 /* lines of a matrix, and matrices of a batch, begin at multiples of it */ };

/* ---- how far a call goes ----------------------------------------------------------------------------------------- */

typedef struct Follow {
    const Walk *w;
    Val at;
    int op; /* of the kernel, that makes |at| */
    int bias;
    bool rounded;
    bool merged; /* a column is one of a product's columns, for one of the batch */
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
        f->bias = f->rounded || f->merged || f->bias >= 0 ? -1 : vector_of_columns(f->w, other_input(o, f->at), result);
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
static Follow follow(const Walk *w, const ProductPlan *p, Dtype result) {
    Follow f = {.w = w, .at = p->op->out[0], .op = find_op(w, p->op), .bias = -1, .merged = p->batch.merged};
    Follow best = {.bias = -1};
    for (;;) {
        const bool fits = ir_dtype(w->f, f.at) == result && place_of(w, f.at) >= 0;
        if (fits && (adds_to(&f, &best) || !has_rest(&f))) best = f;
        const int reader = only_reader(w, f.at);
        if (reader < 0 || !pass_op(&f, walk_op(w, reader), result)) return best;
        f.at = walk_op(w, reader)->out[0];
        f.op = reader;
    }
}

/* ---- products of a batch ----------------------------------------------------------------------------------------- */

typedef struct BatchDim {
    Dim count, stride[3]; /* of A, B and the result, in elements */
} BatchDim;

typedef struct Strides {
    BatchDim dims[MAX_RANK]; /* from the inside out; those that follow one another in all three are one */
    int rank, by_call;       /* the number of the one that a call goes along */
    Dim first[3], pitch[3];
} Strides;

static bool goes_on(const BatchDim *inner, const BatchDim *outer) {
    for (int i = 0; i < 3; i++) {
        Dim next;
        const bool stays = !inner->stride[i].mul && !outer->stride[i].mul;
        if (!stays && (!dim_mul(inner->stride[i], inner->count, &next) || !dim_equal(next, outer->stride[i])))
            return false;
    }
    return true;
}

static bool add_dim(Strides *s, const BatchDim *dim) {
    BatchDim *last = s->rank ? &s->dims[s->rank - 1] : NULL;
    if (dim_is_one(dim->count)) return true;
    if (last && goes_on(last, dim)) return dim_mul(last->count, dim->count, &last->count);
    s->dims[s->rank++] = *dim;
    return true;
}

/* How far the result of one of the last two dims of a batch is from the next; further out each follows the other. */
static bool place_result(const Walk *w, const ProductPlan *p, Dim stride[MAX_RANK]) {
    Dim next;
    if (!dim_mul(p->rows, w->cols, &next)) return false;
    for (int i = p->batch.rank - 1; i >= 0; i--) {
        const bool beside = p->batch.merged && i == p->batch.rank - 1;
        stride[i] = beside ? p->cols : next;
        if (!beside && !dim_mul(next, p->batch.dims[i], &next)) return false;
    }
    return true;
}

static int longest_dim(const Strides *s) {
    int longest = 0;
    for (int i = 1; i < s->rank; i++) {
        const Dim a = s->dims[i].count, b = s->dims[longest].count;
        if (a.n || (!b.n && a.mul > b.mul)) longest = i;
    }
    return longest;
}

/* false: there are no strides, or they are of a padded matrix. */
static bool find_strides(const Walk *w, const ProductPlan *p, int to, Strides *out) {
    Strided at[2];
    Dim result[MAX_RANK];
    *out = (Strides){.first = {dim_const(0), dim_const(0), dim_const(0)}};
    if (walk_operand(w, to)->pitch || !place_result(w, p, result)) return false;
    out->pitch[2] = w->cols;
    for (int n = 0; n < 2; n++) {
        bool turned;
        if (walk_operand(w, n ? p->b.operand : p->a.operand)->pitch || !walk_strided(w, p->op->in[n], &at[n]) ||
            !ir_strided_matrix(&at[n], &turned, &out->pitch[n]) || !out->pitch[n].mul)
            return false;
        out->first[n] = dim_const(at[n].offset);
    }
    for (int i = p->batch.rank - 1; i >= 0; i--)
        if (!add_dim(out, &(BatchDim){p->batch.dims[i], {at[0].stride[i], at[1].stride[i], result[i]}})) return false;
    out->by_call = longest_dim(out);
    return true;
}

static bool add_dims(Dim a, Dim b, Dim *out) {
    *out = a.mul ? a : b;
    if (!a.mul || !b.mul) return true;
    out->mul = a.mul + b.mul;
    return a.n == b.n && (!a.n || a.div == b.div);
}

/* Where the products of call |number| begin. */
static bool first_of_call(const Strides *s, int64_t number, Dim first[3]) {
    for (int m = 0; m < 3; m++) first[m] = s->first[m];
    for (int i = 0; i < s->rank; i++) {
        if (i == s->by_call) continue;
        for (int m = 0; m < 3; m++) {
            Dim step;
            if (!dim_mul(s->dims[i].stride[m], dim_const(number % s->dims[i].count.mul), &step) ||
                !add_dims(first[m], step, &first[m]))
                return false;
        }
        number /= s->dims[i].count.mul;
    }
    return true;
}

/* 0: too many, or their number depends on n. */
static int64_t count_calls(const Strides *s) {
    int64_t count = 1;
    for (int i = 0; i < s->rank; i++) {
        const Dim dim = s->dims[i].count;
        if (i == s->by_call) continue;
        if (dim.n || dim.mul > AMP_PRODUCTS_MOST / count) return 0;
        count *= dim.mul;
    }
    return count;
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

static bool is_dense(const Walk *w, const ProductPlan *p) {
    return !p->has_windows && !p->gaps.per && p->phases.count == 1 && !w->k->pred.id && !p->op->pred.id;
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

static bool is_aligned(Dim elements, int element_bytes) {
    return (!elements.n || elements.div == 1) && elements.mul * element_bytes % LINE_BYTES == 0;
}

/* The value that a call leaves; |op| of its last op. */
static Follow find_value(const Walk *w, const ProductPlan *p) {
    Follow best = {.at = NO_VAL};
    const Dtype results[] = {AMP_DT_F32, ir_dtype(w->f, p->op->in[0])};
    for (int i = 0; i < 2; i++) {
        const Follow f = follow(w, p, results[i]);
        if (f.at.id && f.op >= best.op) best = f;
    }
    return best;
}

/* One product, or the parts of one. */
static bool place_one(const Walk *w, const ProductPlan *p, CudaProduct *c) {
    c->batch = dim_const(1);
    c->pitch[0] = pitch_of(w, c->a, c->a_turned ? p->rows : p->k);
    c->pitch[1] = pitch_of(w, c->b, c->b_turned ? p->k : p->cols);
    c->pitch[2] = pitch_of(w, c->to, p->cols);
    c->filled = walk_operand(w, c->to)->pitch && !walk_operand(w, c->to)->is_part;
    return c->parts == 1 || (!dim_varies(p->rows) && c->bias < 0 && !c->filled);
}

static bool place_batch(const Strides *s, int64_t number, CudaProduct *c) {
    const BatchDim *by_call = &s->dims[s->by_call];
    c->batch = s->rank ? by_call->count : dim_const(1);
    for (int m = 0; m < 3; m++) {
        c->pitch[m] = s->pitch[m];
        c->stride[m] = s->rank ? by_call->stride[m] : dim_const(0);
    }
    return first_of_call(s, number, c->first);
}

static bool is_all_aligned(const Walk *w, const ProductPlan *p, const CudaProduct *c) {
    for (int m = 0; m < 3; m++) {
        const int bytes = m == 2 ? emit_storage(w, c->to)->bytes : p->element_bytes;
        if (!is_aligned(c->pitch[m], bytes) || !is_aligned(c->stride[m], bytes) || !is_aligned(c->first[m], bytes))
            return false;
    }
    return true;
}

/* Why a library does not make the product as it is planned; NULL: it may. */
static const char *why_other_numbers(const Walk *w, const ProductPlan *p) {
    if (!is_dense(w, p)) return "a convolution of windows, or a product that some steps leave out";
    for (int n = 0; n < 2; n++)
        if (!is_as_stored(w, p, n)) return "an operand is rounded as it is read";
    return NULL;
}

/* Adds the calls |c| of each part of a batch, or the one call. */
static const char *place_calls(const Walk *w, const ProductPlan *p, CudaProduct c, CudaProducts *out) {
    Strides strides;
    if (p->batch.rank && (p->parts > 1 || !find_strides(w, p, c.to, &strides)))
        return "a matrix of its batch repeats a row, or has no strides";
    const int64_t calls = p->batch.rank ? count_calls(&strides) : 1;
    for (int64_t i = 0; i < calls; i++) {
        if (p->batch.rank ? !place_batch(&strides, i, &c) : !place_one(w, p, &c))
            return "parts of its sums are not one after the other";
        if (!is_all_aligned(w, p, &c)) return "lines or matrices do not begin at multiples of 16 bytes";
        vec_push(w->arena, out, c);
    }
    return calls > 0 ? NULL : "its batch takes too many calls";
}

/* Adds the calls of the kernel that |w| has analysed, or says why a library cannot make it. */
static const char *describe_calls(const Walk *w, CudaProducts *out) {
    ProductPlan p;
    if (product_plan(w, (CudaForm){.members = 1, .plan = true}, &p, NULL)) return "no plan";
    if (w->f->module->length.most) return "the model has a length that is known at run time";
    const char *why = why_other_numbers(w, &p);
    if (why) return why;
    const Follow made = find_value(w, &p);
    if (!made.at.id) return "its sums, rounded once, are in no memory";
    return place_calls(w, &p,
                       (CudaProduct){.a = p.a.operand,
                                     .b = p.b.operand,
                                     .to = place_of(w, made.at),
                                     .bias = made.bias,
                                     .a_turned = !p.a.k_inner,
                                     .b_turned = p.b.k_inner,
                                     .rows = p.rows,
                                     .k = p.k,
                                     .parts = (int)p.parts,
                                     .cols = p.cols.mul,
                                     .last = made.op,
                                     .made = made.at,
                                     .instruction = cuda_instruction_of(w, p.op)},
                       out);
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

static const char *add_calls(CudaWriter *x, const Kernel *k, int operands, CudaProducts *calls, LaunchPart *rest) {
    const Walk *w = &x->w;
    CudaProducts own = {0};
    if (k->kind != KERNEL_PRODUCT || walk_kernel(&x->w, k, NULL)) return "beside its products it has other kernels";
    const char *why = describe_calls(w, &own);
    if (why) return why;
    const CudaProduct *any = own.data;
    if (loses_result(w, any)) return "it has results besides, of what a call rounds";
    if (calls->len + own.len > AMP_PRODUCTS_MOST) return "it takes too many calls";
    if (has_rest(&(Follow){.w = w, .at = any->made})) vec_push(x->m->arena, &rest->kernels, add_rest(x, any));
    for (int i = 0; i < own.len; i++) {
        CudaProduct c = own.data[i];
        c.a += operands;
        c.b += operands;
        c.to += operands;
        if (c.bias >= 0) c.bias += operands;
        vec_push(x->m->arena, calls, c);
    }
    return NULL;
}

/* Whether the call of a kernel would write over what those before it in a chain, which follow the calls, still read. */
static bool overwrites_earlier(const CudaWriter *x, const LaunchPart *part) {
    for (int j = 1; j < part->kernels.len; j++)
        for (int i = 0; i < j; i++)
            if (ir_touches(x->own, x->own->kernels.data[part->kernels.data[j]],
                           x->own->kernels.data[part->kernels.data[i]], false))
                return true;
    return false;
}

static bool has_products(const CudaWriter *x, const Launch *l) {
    for (int i = 0; i < l->count; i++)
        if (x->own->kernels.data[l->first + i]->kind == KERNEL_PRODUCT) return true;
    return false;
}

const char *cuda_find_calls(CudaWriter *x, const Launch *l, CudaProducts *calls, Launch *rest) {
    int operands = 0;
    *rest = (Launch){.first = l->first};
    if (!has_products(x, l)) return "";
    if (launch_has_stages(l) || l->by_columns) return "it is one launch of several stages";
    for (int i = 0; i < l->parts.len; i++) {
        const LaunchPart *part = &l->parts.data[i];
        LaunchPart then = {.form = part->form};
        if (part->form == PART_CHAIN && overwrites_earlier(x, part)) return "a call writes over what the chain reads";
        for (int j = 0; j < part->kernels.len; j++) {
            const char *why = add_calls(x, x->own->kernels.data[part->kernels.data[j]], operands, calls, &then);
            if (why) return why;
            operands += x->w.operands.len;
        }
        if (then.kernels.len) vec_push(x->m->arena, &rest->parts, then);
    }
    return NULL;
}
