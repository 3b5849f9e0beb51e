/* attention_ops.c: attention and its gradients, of the graph and of core IR, one query at a time, by their definitions.
 */
#include "ir/interp/ops.h"
#include "ir/operands.h"

typedef struct Attention {
    Running *r;
    const InterpTensor *q, *k, *v, *mask, *bits; /* mask, bits of dropout: NULL where there are none */
    bool chooses;                                /* the mask is bool */
    bool together;                               /* results have the heads together, [B..., T, H * E] */
    InterpTensor scores;                         /* the shape [B..., H, T, S]; no data */
    int64_t heads, share, queries, keys, width, width_of_v;
    double scale;
    Dropout dropout;
    double *weight, *kept; /* of one query, by key: softmax of its scores; what dropout multiplies it by */
} Attention;

/* Core ops read the counters that a number is drawn by, from operand |at| on; the graph's know them. */
static void find_counters(Attention *a, int at, Dim keys) {
    const Running *r = a->r;
    if (a->together && at + 1 == r->op->n_in) a->bits = r->in[at];
    if (!a->together || at + 1 >= r->op->n_in) return;
    a->dropout.seed = (uint64_t)(int64_t)r->in[at]->data[0];
    a->dropout.iteration = (uint32_t)(int64_t)r->in[at + 1]->data[0];
    a->dropout.first = at + 3 < r->op->n_in ? (int64_t)r->in[at + 3]->data[0] * ir_draw_keys(keys) : 0;
    a->dropout.micro = at + 2 < r->op->n_in ? (uint32_t)(int64_t)r->in[at + 2]->data[0] : 0;
}

static Attention attention_of(Running *r, int first, int mask) {
    Attention a = {.r = r, .q = r->in[first], .k = r->in[first + 1], .v = r->in[first + 2]};
    int rank = a.q->rank;
    a.together = ir_is_attention(r->op);
    if (a.together ? ir_attention_operands(r->f, r->op).mask == mask : r->op->n_in > mask) {
        a.mask = r->in[mask];
        a.chooses = ir_dtype(r->f, r->op->in[mask]) == AMP_DT_BOOL;
    }
    a.heads = a.q->dims[rank - 3];
    a.share = a.heads / a.k->dims[rank - 3];
    a.queries = a.q->dims[rank - 2];
    a.keys = a.k->dims[rank - 2];
    a.width = a.q->dims[rank - 1];
    a.width_of_v = a.v->dims[rank - 1];
    a.scores = *a.q;
    a.scores.dims[rank - 1] = a.keys;
    a.scores.count = a.q->count / a.width * a.keys;
    a.scale = interp_float(r, "scale");
    if (a.scale == 0.0) a.scale = 1.0 / sqrt((double)a.width);
    Shape scores = *ir_shape(r->f, r->op->in[first]);
    const Dim keys = ir_shape(r->f, r->op->in[first + 1])->d[rank - 2];
    scores.d[rank - 1] = keys;
    a.dropout = interp_dropout(r, &scores);
    find_counters(&a, mask + (a.mask != NULL), keys);
    a.weight = interp_scratch(r, a.keys);
    a.kept = interp_scratch(r, a.keys);
    return a;
}

/* Row |row| counts queries over all heads and samples: the first element of the keys (or values, by |width|) that it
 * attends to. */
static int64_t keys_of(const Attention *a, int64_t row, int64_t width) {
    return row / a->queries / a->share * a->keys * width;
}

/* Where row |row| of all heads begins in a result of |heads| heads of |length| rows of |width|. */
static int64_t place_of(const Attention *a, int64_t row, int64_t heads, int64_t length, int64_t width) {
    if (!a->together) return row * width;
    const int64_t sample = row / length / heads, head = row / length % heads;
    return ((sample * length + row % length) * heads + head) * width;
}

static int64_t place_of_query(const Attention *a, int64_t row, int64_t width) {
    return place_of(a, row, a->heads, a->queries, width);
}

/* Of key |j| of those that |row| attends to. */
static int64_t place_of_key(const Attention *a, int64_t row, int64_t j, int64_t width) {
    return place_of(a, row / a->queries / a->share * a->keys + j, a->heads / a->share, a->keys, width);
}

static double score(const Attention *a, int64_t row, int64_t j) {
    const double *q = a->q->data + row * a->width, *k = a->k->data + keys_of(a, row, a->width) + j * a->width;
    double sum = 0.0;
    for (int64_t d = 0; d < a->width; d++) sum += q[d] * k[d];
    sum *= a->scale;
    if (interp_bool(a->r, "causal") && j > row % a->queries) return -INFINITY;
    if (!a->mask) return sum;
    double mask = interp_at(a->mask, &a->scores, row * a->keys + j);
    if (a->chooses) return mask != 0.0 ? sum : -INFINITY;
    return sum + mask;
}

/* Of key |j|: its word among the bits of dropout, and its bit there. */
static int64_t word_of(const Attention *a, int64_t row, int64_t j) {
    return (row / a->queries * ir_dropout_words(a->keys) + j / 64 * 2 + j / 4 % 2) * a->queries + row % a->queries;
}

static uint32_t bit_of(int64_t j) { return 1u << (j % 64 / 8 * 4 + j % 4); }

static void draw(const Attention *a, int64_t row) {
    const double factor = interp_round(a->r->round, AMP_DT_F32, 1.0 / (1.0 - a->dropout.p));
    for (int64_t j = 0; j < a->keys; j++) {
        if (!a->bits) a->kept[j] = interp_kept(a->r, &a->dropout, row * a->keys + j);
        else a->kept[j] = (uint32_t)(int32_t)a->bits->data[word_of(a, row, j)] & bit_of(j) ? factor : 0.0;
    }
}

/* Writes which keys of a query stay. */
static void keep_bits(const Attention *a, int64_t row, double *bits) {
    for (int64_t j = 0; j < ir_dropout_words(a->keys) * 32; j += 4) bits[word_of(a, row, j)] = 0.0;
    for (int64_t j = 0; j < a->keys; j++) {
        double *word = &bits[word_of(a, row, j)];
        if (a->kept[j] != 0.0) *word = (int32_t)((uint32_t)(int32_t)*word | bit_of(j));
    }
}

/* exp(score - sums) of a query's scores. */
static void weigh_again(const Attention *a, int64_t row, double sums) {
    for (int64_t j = 0; j < a->keys; j++) a->weight[j] = exp(score(a, row, j) - sums);
    draw(a, row);
}

/* The softmax of a query's scores, and log(sum(exp(scores))); zeros for a query that no key is left for. */
static double weigh(const Attention *a, int64_t row) {
    double largest = -INFINITY, sum = 0.0;
    for (int64_t j = 0; j < a->keys; j++) {
        a->weight[j] = score(a, row, j);
        largest = interp_larger(largest, a->weight[j]);
    }
    if (isinf(largest) && largest < 0) largest = 0.0;
    for (int64_t j = 0; j < a->keys; j++) sum += a->weight[j] = exp(a->weight[j] - largest);
    for (int64_t j = 0; j < a->keys; j++) a->weight[j] = sum == 0.0 ? 0.0 : a->weight[j] / sum;
    draw(a, row);
    return sum == 0.0 ? 0.0 : largest + log(sum);
}

/* (q, k, v[, mask]): softmax(scale q k^T + mask) v, dropout on the softmax; and the logarithm of each query's sum */
void interp_op_attention(Running *r) {
    Attention a = attention_of(r, 0, 3);
    for (int64_t row = 0; row < r->out[1]->count; row++) {
        double *y = r->out[0]->data + place_of_query(&a, row, a.width_of_v);
        r->out[1]->data[row] = weigh(&a, row);
        if (r->op->code == OP_attend_drop) keep_bits(&a, row, r->out[2]->data);
        for (int64_t c = 0; c < a.width_of_v; c++) y[c] = 0.0;
        for (int64_t j = 0; j < a.keys; j++)
            for (int64_t c = 0; c < a.width_of_v; c++)
                y[c] += a.weight[j] * a.kept[j] * a.v->data[keys_of(&a, row, a.width_of_v) + j * a.width_of_v + c];
    }
}
INTERP_ALIKE(attend, attention)
INTERP_ALIKE(attend_drop, attention)

/* What the scores of a query get, from dy of its result; weights are left as they are, |slope| is filled. */
static void slopes(const Attention *a, int64_t row, double *slope) {
    const double *dy = a->r->in[0]->data + row * a->width_of_v;
    const double *v = a->v->data + keys_of(a, row, a->width_of_v);
    double mean = 0.0;
    for (int64_t j = 0; j < a->keys; j++) {
        slope[j] = 0.0;
        for (int64_t c = 0; c < a->width_of_v; c++) slope[j] += dy[c] * v[j * a->width_of_v + c];
        slope[j] *= a->kept[j];
        mean += a->weight[j] * slope[j];
    }
    for (int64_t j = 0; j < a->keys; j++) slope[j] = a->weight[j] * (slope[j] - mean);
}

/* (dy, q, k, v, y, lse[, mask]): d q, d k, d v */
void interp_op_attention_grad(Running *r) {
    Attention a = attention_of(r, 1, 6);
    double *slope = interp_scratch(r, a.keys);
    for (int i = 0; i < 3; i++)
        for (int64_t e = 0; e < r->out[i]->count; e++) r->out[i]->data[e] = 0.0;
    for (int64_t row = 0; row < a.q->count / a.width; row++) {
        int64_t k0 = keys_of(&a, row, a.width);
        double *dq = r->out[0]->data + place_of_query(&a, row, a.width);
        weigh_again(&a, row, r->in[5]->data[row]);
        slopes(&a, row, slope);
        for (int64_t j = 0; j < a.keys; j++) {
            double *dk = r->out[1]->data + place_of_key(&a, row, j, a.width);
            double *dv = r->out[2]->data + place_of_key(&a, row, j, a.width_of_v);
            for (int64_t d = 0; d < a.width; d++) {
                dq[d] += a.scale * slope[j] * a.k->data[k0 + j * a.width + d];
                dk[d] += a.scale * slope[j] * a.q->data[row * a.width + d];
            }
            for (int64_t c = 0; c < a.width_of_v; c++)
                dv[c] += a.weight[j] * a.kept[j] * r->in[0]->data[row * a.width_of_v + c];
        }
    }
}
INTERP_ALIKE(attend_grad, attention_grad)

/* The same operands: d scores, before they are scaled */
void interp_op_attention_mask_grad(Running *r) {
    Attention a = attention_of(r, 1, 6);
    for (int64_t row = 0; row < a.q->count / a.width; row++) {
        weigh_again(&a, row, r->in[5]->data[row]);
        slopes(&a, row, r->out[0]->data + row * a.keys);
    }
}
