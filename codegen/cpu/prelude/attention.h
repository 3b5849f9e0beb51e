/* attention.h: what attention does to a tile of scores between its products (amp_attention_tile in amp/model_abi.h).
 * Queries are columns, so all that runs along the keys of a query goes lane by lane.  Everything about the op is a
 * constant where this is inlined. */

typedef enum MaskKind { MASK_NONE, MASK_ADDED, MASK_CHOOSES } MaskKind;
typedef enum RowKind { ROW_F32, ROW_F16, ROW_BF16 } RowKind;

typedef struct AttentionOp {
    float scale, p, kept; /* kept: 1 / (1 - p) */
    int causal, pairs;    /* pairs: products read bf16 */
    MaskKind mask;
    RowKind dy, y;
    int64_t all_keys; /* as many as numbers of a query's keys are counted */
    uint32_t key_hash;
    int64_t seed, iteration, micro, first; /* first: of a query's number, what is more than its row */
} AttentionOp;

/* ---- scores ---- */

/* The rows that at least one of the lanes from |c| on sees, in whole sixteens: in a tile on the diagonal the runtime
 * computes no other rows, and reads none of their weights. */
INLINE int64_t attention_rows(const amp_attention_tile *t, const AttentionOp *op, int c) {
    const int64_t seen = (t->query + c + W - t->key + 15) / 16 * 16;
    return op->causal && seen < t->keys ? seen : t->keys;
}

/* e^x for x <= 0 or little above it, as exp_vf without its subnormal results: they are 0. */
INLINE vf attention_exp(vf x) {
    const vf t = exp_whole_vf(x), p = exp_rest_vf(x, t - 0x1.8p23f) + 1.0f;
    const vf y = p * float_bits((int_bits(t) - (0x4B400000 - 127)) << 23);
    return keep_vf(y, ~(x < -87.0f));
}

/* Scores stay as products give them until |scale| goes into the multiply-add before the exponential; else they are
 * scaled where they are masked. */
INLINE int attention_scales_late(const AttentionOp *op) { return op->mask == MASK_NONE && op->scale > 0.0f; }

INLINE vf attention_minus(const AttentionOp *op, vf score, vf x) {
    return attention_scales_late(op) ? fma_vf(score, splat_f(op->scale), -x) : score - x;
}

/* Of row |i|, lanes from |c| on: scaled (or not yet) and masked; -INF where a key is not seen. */
INLINE vf attention_score(const amp_attention_tile *t, const AttentionOp *op, int64_t i, int c) {
    vf s = load_f32(t->scores + i * 32 + c);
    if (!attention_scales_late(op)) s = s * op->scale;
    if (op->mask == MASK_ADDED) s = s + load_f32((const float *)t->mask + i * 32 + c);
    if (op->mask == MASK_CHOOSES) s = select_vf(load_bool((const int32_t *)t->mask + i * 32 + c), s, splat_f(-INF));
    if (op->causal) {
        const int64_t first = t->key + i - t->query - c; /* the first lane that sees the key */
        if (first > 0) s = select_vf(lane_index() < splat_i(first > W ? W : (int32_t)first), splat_f(-INF), s);
    }
    return s;
}

/* What dropout multiplies the weights of rows i .. i + 3 by. */
INLINE void attention_kept(const amp_attention_tile *t, const AttentionOp *op, int64_t i, int c, vf *kept) {
    const uint64_t row = (uint64_t)(op->first + t->row + c);
    vu word[4];
    if (op->all_keys % 4 == 0) { /* the four words of a draw are the four keys */
        const uint64_t keys = (uint64_t)op->all_keys / 4, quarter = row * keys + (uint64_t)(t->key + i) / 4;
        philox(op->seed, op->iteration, op->micro, op->key_hash, quarter, (vu)lane_index() * (uint32_t)keys, word);
    } else {
        for (int j = 0; j < 4; j++) {
            const uint64_t keys = (uint64_t)op->all_keys, first = row * keys + (uint64_t)(t->key + i + j);
            vu quarter = {0}, drawn[4];
            vi which = {0};
            for (int l = 0; l < W; l++) {
                const uint64_t element = (first & 3) + (uint64_t)l * keys;
                quarter[l] = (uint32_t)(element >> 2);
                which[l] = (int32_t)(element & 3);
            }
            philox(op->seed, op->iteration, op->micro, op->key_hash, first >> 2, quarter, drawn);
            word[j] = word_of_four(drawn, (vu)which);
        }
    }
    for (int j = 0; j < 4; j++)
        kept[j] = select_vf(splat_f(op->p) <= uniform_vf(word[j]), splat_f(op->kept), splat_f(0.0f));
}

/* Rows i and i + 1 in pairs; |odd| is zero where there is none. */
INLINE void store_attention_pair(void *to, int64_t i, int c, vf even, vf odd) {
    store_i32((int32_t *)to + i / 2 * 32 + c, (vi)((vu)bits_bf16(even) | ((vu)odd & 0xFFFF0000u)));
}

/* ---- forward ---- */

/* The largest score of each query; scores are masked from now on. */
INLINE vf attention_largest(const amp_attention_tile *t, const AttentionOp *op, int64_t rows, int c) {
    vf largest = splat_f(-INF), other = largest;
    int64_t i = 0, seen = rows; /* rows that all lanes see, which stay as they are */
    if (op->causal && t->query + c - t->key + 1 < seen) seen = t->query + c - t->key + 1;
    for (; attention_scales_late(op) && i + 2 <= seen; i += 2) {
        largest = max_vf(largest, load_f32(t->scores + i * 32 + c));
        other = max_vf(other, load_f32(t->scores + (i + 1) * 32 + c));
    }
    for (; i < rows; i++) {
        const vf s = attention_score(t, op, i, c);
        store_f32(t->scores + i * 32 + c, s);
        if (i % 2) other = max_vf(other, s);
        else largest = max_vf(largest, s);
    }
    largest = max_vf(largest, other);
    return max_vf(load_f32(t->largest + c), attention_scales_late(op) ? largest * op->scale : largest);
}

/* Weights of |count| rows, up to four, from |i| on; their sum in order of keys. */
INLINE vf attention_weigh(const amp_attention_tile *t, const AttentionOp *op, int64_t i, int64_t count, int c,
                          vf largest, vf sum) {
    vf w[4] = {{0}}, kept[4];
    UNROLL
    for (int j = 0; j < 4; j++)
        if (j < count) w[j] = attention_exp(attention_minus(op, load_f32(t->scores + (i + j) * 32 + c), largest));
    UNROLL
    for (int j = 0; j < 4; j++)
        if (j < count) sum = sum + w[j];
    if (op->p > 0.0f) attention_kept(t, op, i, c, kept);
    UNROLL
    for (int j = 0; j < 4; j++)
        if (op->p > 0.0f) w[j] = w[j] * kept[j];
    UNROLL
    for (int j = 0; j < 4; j += 2) {
        if (j >= count) continue;
        if (op->pairs) store_attention_pair(t->weights, i + j, c, round_bf16_vf(w[j]), round_bf16_vf(w[j + 1]));
        else store_f32((float *)t->weights + (i + j) * 32 + c, w[j]);
        if (!op->pairs && j + 1 < count) store_f32((float *)t->weights + (i + j + 1) * 32 + c, w[j + 1]);
    }
    return sum;
}

/* What is summed so far, by queries, times |by|. */
INLINE void attention_rescale(const amp_attention_tile *t, const float *by) {
    for (int64_t c = 0; c < t->width; c += 32) {
        float *acc = t->acc + c / 32 * t->acc_stride;
        for (int64_t j = 0; j < t->queries; j++)
            for (int l = 0; l < 32; l += W) store_f32(acc + j * 32 + l, load_f32(acc + j * 32 + l) * splat_f(by[j]));
    }
}

INLINE void attention_scores(const amp_attention_tile *t, const AttentionOp *op) {
    float by[32];
    int32_t any = 0;
    for (int c = 0; c < 32; c += W) {
        const int64_t rows = attention_rows(t, op, c);
        const vf before = load_f32(t->largest + c), after = attention_largest(t, op, rows, c);
        /* where no key is seen so far, all weights are exp(-INF) */
        const vf largest = select_vf(after == -INF, splat_f(0.0f), after), change = attention_exp(before - largest);
        vf sum = load_f32(t->sum + c) * change;
        const int64_t fours = rows / 4 * 4;
        for (int64_t i = 0; i < fours; i += 4) sum = attention_weigh(t, op, i, 4, c, largest, sum);
        if (fours < rows) sum = attention_weigh(t, op, fours, rows - fours, c, largest, sum);
        store_f32(t->largest + c, after);
        store_f32(t->sum + c, sum);
        store_f32(by + c, change);
        any |= any_vi(~(change == 1.0f));
    }
    if (t->acc && any) attention_rescale(t, by);
}

INLINE void attention_result(const amp_attention_tile *t) {
    float by[32], sums[32];
    for (int c = 0; c < 32; c += W) {
        const vf largest = load_f32(t->largest + c), sum = load_f32(t->sum + c);
        const vf one = select_vf(sum == 0.0f, splat_f(1.0f), sum);
        store_f32(by + c, splat_f(1.0f) / one);
        store_f32(sums + c, select_vf(largest == -INF, splat_f(0.0f), largest) + log_vf(one));
    }
    for (int64_t j = 0; t->sums && j < t->queries; j++) t->sums[j] = sums[j];
    for (int64_t j = 0; t->out && j < t->queries; j++)
        for (int64_t c = 0; c < t->width; c += W) {
            const vf y = load_f32(t->acc + c / 32 * t->acc_stride + j * 32 + c % 32) * splat_f(by[j]);
            if (t->width - c >= W) store_f32(t->out + j * t->out_pitch + c, y);
            else store_f32_part(t->out + j * t->out_pitch + c, y, t->width - c);
        }
}

INLINE void attention_forward(const amp_attention_tile *t, const AttentionOp *op) {
    if (op->mask && !t->mask && t->step == AMP_ATTENTION_SCORES) return; /* a damaged table */
    if (t->step == AMP_ATTENTION_SCORES) attention_scores(t, op);
    else attention_result(t);
}

/* ---- backward ---- */

/* Of |count| rows, up to four, from |i| on. */
INLINE void attention_slope(const amp_attention_tile *t, const AttentionOp *op, int64_t i, int64_t count, int c,
                            vf sums, vf mean) {
    const vi in = first_lanes(t->queries - c);
    vf w[4] = {{0}}, d[4] = {{0}}, kept[4];
    UNROLL
    for (int j = 0; j < 4; j++)
        if (j < count) w[j] = keep_vf(attention_exp(attention_minus(op, attention_score(t, op, i + j, c), sums)), in);
    if (op->p > 0.0f) attention_kept(t, op, i, c, kept);
    UNROLL
    for (int j = 0; j < 4; j++) {
        if (j >= count) continue;
        vf slope = load_f32(t->slopes + (i + j) * 32 + c);
        if (op->p > 0.0f) slope = slope * kept[j];
        d[j] = keep_vf(w[j] * (slope - mean) * op->scale, in);
        if (op->p > 0.0f) w[j] = w[j] * kept[j];
    }
    if (op->pairs) {
        UNROLL
        for (int j = 0; j < 4; j++) d[j] = round_bf16_vf(d[j]);
        UNROLL
        for (int j = 0; j < 4; j += 2)
            if (j < count) store_attention_pair(t->slope_pairs, i + j, c, d[j], d[j + 1]);
    }
    UNROLL
    for (int j = 0; j < 4; j++) {
        if (j >= count) continue;
        if (op->pairs) store_bf16((uint16_t *)t->weights + (i + j) * 32 + c, round_bf16_vf(w[j]));
        if (op->pairs) store_bf16((uint16_t *)t->slope_rows + (i + j) * 32 + c, d[j]);
        if (!op->pairs) store_f32((float *)t->weights + (i + j) * 32 + c, w[j]);
        if (!op->pairs) store_f32(t->slopes + (i + j) * 32 + c, d[j]);
    }
}

INLINE void attention_slopes(const amp_attention_tile *t, const AttentionOp *op) {
    for (int c = 0; c < 32; c += W) {
        const vf sums = load_f32(t->sums + c), mean = load_f32(t->mean + c);
        const int64_t rows = attention_rows(t, op, c), fours = rows / 4 * 4;
        for (int64_t i = 0; i < fours; i += 4) attention_slope(t, op, i, 4, c, sums, mean);
        if (fours < rows) attention_slope(t, op, fours, rows - fours, c, sums, mean);
    }
}

INLINE vf load_attention_row(RowKind kind, const void *rows, int64_t at, int64_t left) {
    if (kind == ROW_F16) return load_f16_part((const uint16_t *)rows + at, left);
    if (kind == ROW_BF16) return load_bf16_part((const uint16_t *)rows + at, left);
    return load_f32_part((const float *)rows + at, left);
}

/* Sixteen sums each, added up in the order of a row kernel. */
INLINE void attention_mean(const amp_attention_tile *t, const AttentionOp *op) {
    for (int64_t j = 0; j < t->queries; j++) {
        vf sum[16 / W];
        for (int q = 0; q < 16 / W; q++) sum[q] = splat_f(0.0f);
        for (int64_t c0 = 0; c0 < t->width; c0 += 16)
            for (int q = 0; q < 16 / W; q++) {
                const int64_t c = c0 + q * W, left = t->width - c, at = j * t->width + c;
                if (left <= 0) continue;
                sum[q] =
                    sum[q] + load_attention_row(op->dy, t->dy, at, left) * load_attention_row(op->y, t->y, at, left);
            }
        t->mean[j] = tree_plus_vf(sum);
    }
    for (int64_t j = t->queries; j < 32; j++) t->mean[j] = 0.0f;
}

INLINE void attention_backward(const amp_attention_tile *t, const AttentionOp *op) {
    if (op->mask && !t->mask && t->step == AMP_ATTENTION_SLOPES) return;
    if (t->step == AMP_ATTENTION_SLOPES) attention_slopes(t, op);
    else attention_mean(t, op);
}
