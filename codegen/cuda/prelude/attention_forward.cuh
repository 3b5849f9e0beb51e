/* attention_forward.cuh: attention of a block of queries: the warps walk over the keys, and keep of each query the
 * largest score so far, the sum of the weights by it, and the result. */

template <class Shape, class Rule, int WARPS, int STEP, bool HELD> struct AttentionForward {
    typedef typename Shape::Factors Factors;
    typedef typename Shape::Element Element;
    static constexpr int ROWS = WARPS * 16, THREADS = WARPS * 32;
    /* No tile is past an end. */
    static constexpr bool ALL = Shape::QUERY_UNIT % ROWS == 0 && Shape::KEY_UNIT % STEP == 0;
    typedef HeadTile<Shape, ROWS, Shape::WIDTH> Queries;
    typedef HeadTile<Shape, STEP, Shape::WIDTH> Keys;
    typedef HeadTile<Shape, STEP, Shape::V_WIDTH> Values;
    /* Queries that are in registers leave their place to the walk. */
    static constexpr int WALK = Keys::BYTES + Values::BYTES, FIRST = HELD ? 0 : Queries::BYTES;
    static constexpr int SHARED = HELD && Queries::BYTES > WALK ? Queries::BYTES : FIRST + WALK;

    Rule rule;
    RowsOfA<Queries, HELD> queries;
    AlongTile<Factors, Keys, STEP> along;
    DownTile<Factors, Values, STEP> down;
    float largest[2], sum[2]; /* of queries g and g + 8: the largest is a base; a lane's part of the sum */
    float result[Values::PADDED / 8][4];
    int first; /* query of the warp */

    INLINE void score(float (&s)[STEP / 8][4], int key0) const {
        const bool past = key0 + STEP > KEYS_OF(rule) || first + 16 > QUERIES_OF(rule);
        rule.template score<false, ALL>(s, first, key0,
                                        (!ALL && past) || (Shape::CAUSAL && key0 + STEP > first + 1));
    }
    /* The maximum of each query goes up: what was summed by the old one is scaled. */
    INLINE void raise(const float (&s)[STEP / 8][4], float (&base)[2]) {
        float change[2];
        UNROLL
        for (int half = 0; half < 2; half++) {
            float most = -INF;
            UNROLL
            for (int j = 0; j < STEP / 8; j++) most = fmaxf(most, fmaxf(s[j][2 * half], s[j][2 * half + 1]));
            most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFFu, most, 1));
            most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFFu, most, 2));
            most = fmaxf(largest[half], rule.base_of(most));
            base[half] = most == -INF ? 0.0f : most; /* no key is seen so far: all weights are exp(-INF) */
            change[half] = exp2_near((largest[half] - base[half]) * (rule.scales_late() ? 1.0f : LOG2_E));
            largest[half] = most;
            sum[half] *= change[half];
        }
        UNROLL
        for (int j = 0; j < Values::PADDED / 8; j++) {
            UNROLL
            for (int i = 0; i < 4; i++) result[j][i] *= change[i / 2];
        }
    }
    INLINE void weigh(float (&s)[STEP / 8][4], const KeptScores &kept_scores) {
        float base[2];
        raise(s, base);
        UNROLL
        for (int j = 0; j < STEP / 8; j++) {
            UNROLL
            for (int i = 0; i < 4; i++) {
                const float weight = rule.weight(s[j][i], base[i / 2]);
                sum[i / 2] += weight;
                s[j][i] = weight * rule.keep(kept_scores.keeps(j, i));
            }
        }
    }

    /* Keys are on their way while the values of the step before are multiplied, values while scores are made. */
    INLINE void walk(char *shared, HeadRows<const Element> k, HeadRows<const Element> v, int keys) {
        char *const key_tile = shared + FIRST, *const value_tile = key_tile + Keys::BYTES;
        Keys::template copy<THREADS>(key_tile, k, 0, KEYS_OF(rule));
        uint32_t word = 0; /* of dropout */
        close_copies();
        NO_UNROLL
        for (int key0 = 0; key0 < keys; key0 += STEP) {
            const bool sees = !Shape::CAUSAL || key0 <= first + 15;
            float s[STEP / 8][4];
            await_copies<0>();
            __syncthreads();
            Values::template copy<THREADS>(value_tile, v, key0, KEYS_OF(rule));
            close_copies();
            if (sees) {
                KeptScores kept_scores;
                rule.template draw<STEP / 8>(kept_scores, word, first, key0);
                clear(s);
                along.add(s, queries, 0);
                score(s, key0);
                weigh(s, kept_scores);
            }
            await_copies<0>();
            __syncthreads();
            if (key0 + STEP < keys) Keys::template copy<THREADS>(key_tile, k, key0 + STEP, KEYS_OF(rule));
            close_copies();
            if (sees) down.add(result, s, 0);
        }
    }

    /* |sums|: for the logarithm of each query's sum; may be NULL. */
    template <class Result> INLINE void finish(char *shared, const Result &y, float *sums) {
        const int lane = threadIdx.x % 32;
        float by[2];
        UNROLL
        for (int half = 0; half < 2; half++) {
            const int query = first + lane / 4 + half * 8;
            float all = sum[half];
            all += __shfl_xor_sync(0xFFFFFFFFu, all, 1);
            all += __shfl_xor_sync(0xFFFFFFFFu, all, 2);
            const float one = all == 0.0f ? 1.0f : all, base = largest[half] == -INF ? 0.0f : largest[half];
            by[half] = 1.0f / one;
            if (sums && lane % 4 == 0 && query < QUERIES_OF(rule))
                sums[query] = rule.logarithm_of_base(base) + log_f32(one);
        }
        SumsOfRows<SHARED, WARPS>::template store<Shape::V_WIDTH>(shared, y, result, first, QUERIES_OF(rule), by);
    }

    /* Queries from |block| * ROWS on. */
    template <class Result>
    INLINE void run(char *shared, int block, HeadRows<const Element> q, HeadRows<const Element> k,
                    HeadRows<const Element> v, const Result &y, float *sums) {
        const int query0 = block * ROWS, seen = query0 + ROWS;
        first = query0 + threadIdx.x / 32 * 16;
        Queries::template copy<THREADS>(shared, q, query0, QUERIES_OF(rule));
        close_copies();
        await_copies<0>();
        __syncthreads();
        queries.start(shared, threadIdx.x / 32 * 16);
        if (HELD) __syncthreads();
        along.start(shared + FIRST);
        down.start(shared + FIRST + Keys::BYTES);
        clear(result);
        UNROLL
        for (int half = 0; half < 2; half++) {
            largest[half] = -INF;
            sum[half] = 0.0f;
        }
        walk(shared, k, v, Shape::CAUSAL && seen < KEYS_OF(rule) ? seen : KEYS_OF(rule));
        finish(shared, y, sums);
    }
};
