/* kernel_work.c: how much a kernel computes, for models of its time (amp_model_cuda_work): the operations of each of
 * its ops, over the elements that the op makes, or reduces. */
#include "amp/model_abi.h"
#include "codegen/cuda/kinds/attention_plan.h"
#include "codegen/cuda/cuda.h"
#include "codegen/cuda/cuda_kernel.h"

/* Instructions for an element where they are not one: of exp those in NVRTC's machine code, of the others a count of
 * what codegen/prelude/functions.h does, and 10 for IEEE division and root.  Round numbers: they stand beside the time
 * that reading and writing an element takes. */
static const struct Cost {
    Opcode op;
    int operations;
} costs[] = {{OP_div, 10}, {OP_sqrt, 10},  {OP_floor, 6},   {OP_exp, 27},     {OP_expm1, 32},
             {OP_log, 32}, {OP_log1p, 50}, {OP_tanh, 55},   {OP_erf, 60},     {OP_sin, 60},
             {OP_cos, 60}, {OP_pow, 150},  {OP_random, 40}, {OP_resample, 8}, {OP_remainder, 40}};
/* Of prelude/near.cuh. */
static const struct Cost near_costs[] = {{OP_exp, 9}, {OP_tanh, 18}, {OP_erf, 26}};
/* These only name or move elements. */
static const Opcode moves[] = {OP_const,   OP_iota,    OP_extent, OP_assign, OP_barrier, OP_expand, OP_broadcast,
                               OP_reshape, OP_permute, OP_slice,  OP_pad,    OP_concat,  OP_gather};

static int cost_in(const struct Cost *list, size_t count, Opcode code) {
    for (size_t i = 0; i < count; i++)
        if (list[i].op == code) return list[i].operations;
    return 1;
}

static int operations_of(const Walk *w, const Op *o) {
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++)
        if (moves[i] == o->code) return 0;
    if (cuda_is_near(w, o)) return cost_in(near_costs, sizeof near_costs / sizeof near_costs[0], o->code);
    return cost_in(costs, sizeof costs / sizeof costs[0], o->code);
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

static bool is_sum_of_products(const Op *o) {
    return o->code == OP_contract || o->code == OP_batch_contract || ir_is_convolution(o);
}

/* Products that kernels of another kind make are loops. */
uint32_t cuda_instruction_of(const Walk *w, const Op *o) {
    if (!(ir_kernel_info[w->k->kind].traits & LOADS)) return AMP_INSTRUCTION_FMA;
    switch (ir_dtype(w->f, o->in[0])) {
    case AMP_DT_F16: return AMP_INSTRUCTION_MMA_F16;
    case AMP_DT_BF16: return AMP_INSTRUCTION_MMA_BF16;
    case AMP_DT_TF32: return AMP_INSTRUCTION_MMA_TF32;
    default: return AMP_INSTRUCTION_FMA;
    }
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

/* Of each score besides products: scale, maximum, exponential, sum and rounding; of a gradient the exponential and the
 * slope, by keys and by queries.  Dropout: a draw; of a gradient a bit that is known. */
enum {
    WEIGHT_OPERATIONS = 7,
    GRADIENT_OPERATIONS = 14,
    MASK_OPERATIONS = 2,
    DROPOUT_OPERATIONS = 14,
    BIT_OPERATIONS = 2
};

/* Pairs of a query and a key that it sees, of one head; about, if a length is an argument. */
static bool count_pairs(const AttentionPlan *p, Dim *out) {
    const int64_t queries = p->queries.mul, keys = p->keys.mul;
    const int64_t below = queries < keys ? queries : keys; /* queries that do not see all keys, or just */
    if (!dim_varies(p->queries) && !dim_varies(p->keys)) {
        *out = dim_const(p->causal ? below * (below + 1) / 2 + (queries - below) * keys : queries * keys);
        return true;
    }
    if (!dim_mul(p->queries, p->keys, out)) return false;
    if (p->causal) out->div *= 2;
    return true;
}

static int score_operations(const AttentionPlan *p) {
    const int rule = (p->at.mask >= 0 ? MASK_OPERATIONS : 0) + (!p->drops     ? 0
                                                                : p->gradient ? BIT_OPERATIONS
                                                                              : DROPOUT_OPERATIONS);
    return p->gradient ? GRADIENT_OPERATIONS + 2 * rule : WEIGHT_OPERATIONS + rule;
}

/* A score is a sum along a head, and multiplied with a row of v.  Of gradients: blocks of keys make scores and
 * d weights, then d k and d v, for which blocks apart make scores twice; blocks of queries make both again, then d q.
 */
static int64_t terms_of_score(const AttentionPlan *p) {
    if (!p->gradient) return p->width + p->v_width;
    return (p->tiling.apart ? 5 : 4) * p->width + 3 * p->v_width;
}

static void add_attention(const Walk *w, CudaWorks *out) {
    AttentionPlan p;
    Dim pairs;
    if (attention_plan(w, &p, NULL) || !count_pairs(&p, &pairs) || !dim_mul(pairs, dim_const(p.heads), &pairs) ||
        !dim_mul(p.leads, pairs, &pairs))
        return;
    vec_push(w->arena, out, ((CudaWork){cuda_instruction_of(w, p.op), 2, pairs, dim_const(terms_of_score(&p))}));
    vec_push(w->arena, out, ((CudaWork){AMP_INSTRUCTION_PLAIN, score_operations(&p), pairs, dim_const(1)}));
}

/* ---- all ops ----------------------------------------------------------------------------------------------------- */

static bool is_pooling(const Op *o) {
    return o->code == OP_window_max || o->code == OP_window_sum || o->code == OP_window_max_grad ||
           o->code == OP_window_sum_grad;
}

/* Of a data gradient: an element for each pixel, channel and tap that meets the pixel. */
static void count_meeting_taps(const Walk *w, const Op *o, CudaWork *work) {
    const Windows g = ir_windows(w->f, o);
    const int64_t pixels = g.h * g.w, taps = g.kh * g.kw;
    work->terms.mul /= taps;
    work->elements.mul = work->elements.mul / pixels * ir_meeting_taps(&g, 0) * ir_meeting_taps(&g, 1);
}

/* |elements|: of the result; of what is reduced or scattered, the operand's. */
static bool count_elements(const Walk *w, const Op *o, Dim *elements) {
    bool by_operand = ir_op_info[o->code].flags & REDUCE || o->code == OP_scatter;
    if (!by_operand && !o->n_out) return false;
    const Shape *s = ir_shape(w->f, by_operand ? o->in[0] : o->out[0]);
    *elements = dim_const(1);
    for (int i = 0; i < s->rank; i++)
        if (!dim_times(*elements, s->d[i], elements)) return false;
    return true;
}

static CudaWork work_of(const Walk *w, const Op *o) {
    CudaWork work = {AMP_INSTRUCTION_PLAIN, operations_of(w, o), dim_const(1), dim_const(1)};
    if (!work.operations || !walk_is_live(w, o) || !count_elements(w, o, &work.elements)) return (CudaWork){0};
    const Windows g = is_pooling(o) ? ir_windows(w->f, o) : (Windows){.kh = 1, .kw = 1};
    work.terms = o->code == OP_sum_parts ? ir_shape(w->f, o->in[0])->d[0] : dim_const(g.kh * g.kw);
    if (!is_sum_of_products(o)) return work;
    work.instruction = cuda_instruction_of(w, o);
    work.operations = 2;
    work.terms = ir_product_terms(w->f, o);
    work.elements.mul /= ir_parts(o); /* each part is over its own terms */
    if (w->k->kind == KERNEL_PRODUCT && o->code == OP_conv_data) count_meeting_taps(w, o, &work);
    return work;
}

static bool same_but_elements(const CudaWork *a, const CudaWork *b) {
    return a->instruction == b->instruction && dim_equal(a->terms, b->terms);
}

/* Ops of one space are one part. */
static void add_op(Arena *arena, CudaWorks *works, CudaWork work) {
    for (int i = 0; i < works->len; i++) {
        CudaWork *has = &works->data[i];
        if (!same_but_elements(has, &work) || !dim_equal(has->elements, work.elements)) continue;
        has->operations += work.operations;
        return;
    }
    vec_push(arena, works, work);
}

/* Members of a batch have the same operations, over elements that add up. */
static void add_member(Arena *arena, CudaWorks *works, CudaWork work) {
    for (int i = 0; i < works->len; i++) {
        CudaWork *has = &works->data[i];
        if (!same_but_elements(has, &work) || has->operations != work.operations) continue;
        if (has->elements.n || work.elements.n) continue;
        has->elements.mul += work.elements.mul;
        return;
    }
    vec_push(arena, works, work);
}

void cuda_add_work(const Walk *w, CudaWorks *out) {
    CudaWorks own = {0};
    if (w->k->kind == KERNEL_ATTENTION) {
        add_attention(w, out);
        return;
    }
    for (int i = 0; i < w->k->count; i++) {
        const CudaWork work = work_of(w, walk_op(w, i));
        if (work.operations) add_op(w->arena, &own, work);
    }
    for (int i = 0; i < own.len; i++) add_member(w->arena, out, own.data[i]);
}
