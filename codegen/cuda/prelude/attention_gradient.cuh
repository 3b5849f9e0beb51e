/* attention_gradient.cuh: the gradients of attention.  With weights w = exp(score - sums) and slopes = w (dy v^T -
 * sum(dy * y)), d q = slopes k, d k = slopes^T q, d v = w^T dy.
 *
 * A block has rows of one side, and walks over the rows of the other: rows of keys give d k and d v, rows of queries
 * give d q.  So each gradient is one chain in ascending order, and nothing is added to memory.  Of either side the
 * first matrix is the one that scores are made of (q, k), the second the one that weights are for (dy, v).
 *
 * What both walks need of each query is two numbers: its sum's logarithm as a base, and sum(dy * y).  The blocks of
 * queries compute them and store them for the blocks of keys, which wait for it (superstep.cuh). */

/* Which part of the work a block does; numbered as blocks begin. */
struct GradientTurn {
    uint32_t lead, number; /* of a lead's blocks of keys, or of queries */
    bool by_keys;
};

/* The blocks of queries of |at_once| leads come first, then their blocks of keys, which read the same rows out of the
 * L2.  With enough leads a block of keys hardly ever waits. */
INLINE GradientTurn gradient_turn(uint32_t turn, uint32_t blocks, uint32_t at_once, uint32_t key_blocks,
                                  uint32_t query_blocks) {
    const uint32_t all = key_blocks + query_blocks, first = turn / (all * at_once) * at_once;
    const uint32_t leads = min(blocks / all - first, at_once), query = turn - first * all;
    const bool by_keys = query >= leads * query_blocks;
    const uint32_t key = query - leads * query_blocks;
    return {first + (by_keys ? key / key_blocks : query / query_blocks),
            by_keys ? key % key_blocks : query % query_blocks, by_keys};
}
template <uint32_t LEADS, uint32_t KEY_BLOCKS, uint32_t QUERY_BLOCKS>
INLINE GradientTurn gradient_turn(uint32_t turn, uint32_t blocks) {
    return gradient_turn(turn, blocks, LEADS, KEY_BLOCKS, QUERY_BLOCKS);
}

/* What the walks of one kernel read. */
template <class Shape, class Y> struct GradientRows {
    typedef typename Shape::Element Element;
    HeadRows<const Element> q, k, v, dy; /* of one head; q and dy of the first of those that share the keys */
    HeadRows<const typename Y::Element> y;
    const float *sums;
    float *numbers;   /* the bases of a head's queries, then their sum(dy * y) */
    uint32_t *ticket; /* of |turns| blocks of queries that have stored their numbers, and of keys that may read them */
    uint32_t query_turns, turns;
    int64_t q_head, dy_head, mask_head; /* from one head of queries to the next */
};

/* sum(dy * y) of a query, in all of four lanes. */
template <class Shape, class Y, class Rows> INLINE float mean_of(const Rows &rows, int query) {
    enum { V = Shape::COPY == 16 ? 16 / sizeof(typename Shape::Element) : 1 };
    const typename Shape::Element *dy = rows.dy.first + query * rows.dy.pitch;
    const typename Y::Element *y = rows.y.first + query * rows.y.pitch;
    float sum = 0.0f;
    UNROLL
    for (int from = 0; from < Shape::V_WIDTH; from += 4 * V) {
        const int at = from + threadIdx.x % 4 * V;
        if (Shape::V_WIDTH % (4 * V) && at >= Shape::V_WIDTH) break;
        float a[V], b[V];
        Shape::Stored::load(a, dy + at);
        Y::load(b, y + at);
        UNROLL
        for (int i = 0; i < V; i++) sum = fma_f32(a[i], b[i], sum);
    }
    sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
    return sum + __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
}

#define OWN_OF(rule) (BY_KEYS ? KEYS_OF(rule) : QUERIES_OF(rule))
#define OTHERS_OF(rule) (BY_KEYS ? QUERIES_OF(rule) : KEYS_OF(rule))

/* BY_KEYS: the block's rows are keys.  FIRST: the gradient of the first matrix is made; SECOND: of the second.  HELD:
 * the block's rows are in registers.  STAGES: tiles of the other side in shared memory. */
template <class Shape, class Rule, class Y, bool BY_KEYS, int WARPS, int STEP, bool HELD, int STAGES, bool FIRST,
          bool SECOND>
struct AttentionWalk {
    typedef typename Shape::Factors Factors;
    typedef typename Shape::Element Element;
    static constexpr int ROWS = WARPS * 16, THREADS = WARPS * 32,
                         OWN_UNIT = BY_KEYS ? Shape::KEY_UNIT : Shape::QUERY_UNIT,
                         OTHERS_UNIT = BY_KEYS ? Shape::QUERY_UNIT : Shape::KEY_UNIT;
    static constexpr bool ALL = OWN_UNIT % ROWS == 0 && OTHERS_UNIT % STEP == 0; /* no tile is past an end */
    typedef HeadTile<Shape, ROWS, Shape::WIDTH> Own1;
    typedef HeadTile<Shape, ROWS, Shape::V_WIDTH> Own2;
    typedef HeadTile<Shape, STEP, Shape::WIDTH> Other1;
    typedef HeadTile<Shape, STEP, Shape::V_WIDTH> Other2;
    /* After the tiles of the other side: what is known of each of its queries. */
    static constexpr int OWN_BYTES = Own1::BYTES + (FIRST ? Own2::BYTES : 0), NUMBERS = BY_KEYS ? STEP * 8 : 0;
    /* And of dropout the words of the block's keys. */
    static constexpr int WORDS = ROWS < 64 ? 2 : ROWS / 32, BITS = BY_KEYS && Rule::HAS_BITS ? WORDS * STEP * 4 : 0;
    static constexpr int STAGE = Other1::BYTES + Other2::BYTES + NUMBERS + BITS, AHEAD = HELD ? 0 : OWN_BYTES;
    static constexpr int SHARED = HELD && OWN_BYTES > STAGES *STAGE ? OWN_BYTES : AHEAD + STAGES *STAGE;

    Rule rule;
    GradientRows<Shape, Y> rows;
    RowsOfA<Own1, HELD> own1;
    RowsOfA<Own2, HELD> own2;
    AlongTile<Factors, Other1, STEP> along1;
    AlongTile<Factors, Other2, STEP> along2;
    DownTile<Factors, Other1, STEP> down1;
    DownTile<Factors, Other2, STEP> down2;
    float base[2], mean[2]; /* of queries g and g + 8, where rows are queries */
    float first_sums[FIRST ? Own1::PADDED / 8 : 1][4], second_sums[SECOND ? Own2::PADDED / 8 : 1][4];
    int first; /* row of the warp */

    /* Tiles of the other side, and the numbers of its queries. */
    INLINE void fetch(char *stage, int head, int from) {
        HeadRows<const Element> one = BY_KEYS ? rows.q : rows.k, two = BY_KEYS ? rows.dy : rows.v;
        if (BY_KEYS) one.first += head * rows.q_head, two.first += head * rows.dy_head;
        Other1::template copy<THREADS>(stage, one, from, OTHERS_OF(rule));
        Other2::template copy<THREADS>(stage + Other1::BYTES, two, from, OTHERS_OF(rule));
        if (BY_KEYS) fetch_numbers((float *)(stage + Other1::BYTES + Other2::BYTES), head, from);
        if (BITS) fetch_bits((uint32_t *)(stage + Other1::BYTES + Other2::BYTES + NUMBERS), head, from);
        close_copies();
    }
    INLINE void fetch_numbers(float *to, int head, int from) {
        constexpr int V = Shape::QUERY_UNIT % 4 ? 1 : 4;
        const float *const numbers = rows.numbers + head * (int64_t)(2 * QUERIES_OF(rule));
        UNROLL
        for (int turn = 0; turn < (2 * STEP / V + THREADS - 1) / THREADS; turn++) {
            const int i = (turn * THREADS + threadIdx.x) * V, query = from + i % STEP;
            if (2 * STEP / V % THREADS && i >= 2 * STEP) break;
            const bool inside = query < QUERIES_OF(rule);
            const float *const of_query = numbers + (inside ? i / STEP * QUERIES_OF(rule) + query : 0);
            copy_part<V * 4>((char *)(to + i), of_query, inside);
        }
    }
    /* There is no word if all its keys come after the queries. */
    INLINE void fetch_bits(uint32_t *to, int head, int from) {
        constexpr int V = Shape::QUERY_UNIT % 4 ? 1 : 4;
        const int begin = (first - threadIdx.x / 32 * 16) / 64;
        const uint32_t *const bits = rule.bits + head * rule.bits_of_head();
        UNROLL
        for (int turn = 0; turn < (WORDS * STEP / V + THREADS - 1) / THREADS; turn++) {
            const int i = (turn * THREADS + threadIdx.x) * V, word = begin * 2 + i / STEP, query = from + i % STEP;
            if (WORDS * STEP / V % THREADS && i >= WORDS * STEP) break;
            const bool inside = query < QUERIES_OF(rule) && word < rule.words() &&
                                (!Shape::CAUSAL || word / 2 * 64 < from + STEP);
            copy_part<V * 4>((char *)(to + i), bits + (inside ? word * (int64_t)QUERIES_OF(rule) + query : 0), inside);
        }
    }
    /* Of the queries of block |block|: bit 4 i says whether the key of row g + 8 i stays. */
    INLINE uint2 bits_of(const char *stage, int block) const {
        const int lane = threadIdx.x % 32, own = first - (first - threadIdx.x / 32 * 16) / 64 * 64;
        const uint32_t *const words = (const uint32_t *)(stage + Other1::BYTES + Other2::BYTES + NUMBERS);
        const uint2 two = *(const uint2 *)(words + (own / 64 * 2 + lane / 16) * STEP + block * 8 + lane % 4 * 2);
        const int shift = own % 64 / 2 + lane / 4 % 4;
        return make_uint2(two.x >> shift, two.y >> shift);
    }
    INLINE void find_numbers() {
        UNROLL
        for (int half = 0; half < 2; half++) {
            const int query = first + threadIdx.x % 32 / 4 + half * 8;
            const int known = query < QUERIES_OF(rule) ? query : QUERIES_OF(rule) - 1;
            mean[half] = mean_of<Shape, Y>(rows, known);
            base[half] = rule.base_of_logarithm(rows.sums[known]);
            if (threadIdx.x % 4 || query >= QUERIES_OF(rule)) continue;
            rows.numbers[query] = base[half];
            rows.numbers[QUERIES_OF(rule) + query] = mean[half];
        }
    }
    /* The last of all |turns| sets the ticket back to zero. */
    INLINE void exchange_numbers() {
        if (BY_KEYS) waits_for_turns(rows.ticket, rows.query_turns);
        else find_numbers();
        ends_turn(rows.ticket, rows.turns);
    }

    /* Products with the tile at |stage|, whose rows begin at |from|. */
    INLINE void add(const char *shared, int stage, const Rule &by, int from) {
        const float *const bases = (const float *)(shared + AHEAD + stage + Other1::BYTES + Other2::BYTES);
        const int q = threadIdx.x % 4;
        const int end = from + STEP, query0 = BY_KEYS ? from : first, key_end = BY_KEYS ? first + 16 : end;
        const bool past = end > OTHERS_OF(rule) || first + 16 > OWN_OF(rule);
        float weights[STEP / 8][4], slopes[STEP / 8][4];
        KeptScores kept_scores;
        uint32_t drawn = 0; /* where rows are keys */
        if constexpr (!BY_KEYS) by.template recall<STEP / 8>(kept_scores, first, from);
        else if constexpr (Rule::DRAWS_AGAIN) drawn = by.template draw_by_keys<STEP / 8>(first, from);
        clear(weights);
        clear(slopes);
        along1.add(weights, own1, stage);
        by.template score<BY_KEYS, ALL>(weights, first, from,
                                        (!ALL && past) || (Shape::CAUSAL && key_end > query0 + 1));
        if constexpr (FIRST) along2.add(slopes, own2, stage);
        UNROLL
        for (int j = 0; j < STEP / 8; j++) {
            const uint2 bits = BITS ? bits_of(shared + AHEAD + stage, j) : uint2();
            UNROLL
            for (int i = 0; i < 4; i++) {
                const int column = j * 8 + q * 2 + i % 2;
                const float w = by.weight(weights[j][i], BY_KEYS ? bases[column] : base[i / 2]);
                const bool keeps = !BY_KEYS             ? kept_scores.keeps(j, i)
                                   : Rule::DRAWS_AGAIN ? drawn >> (j * 4 + i) & 1
                                                       : (i % 2 ? bits.y : bits.x) >> i / 2 * 4 & 1;
                const float kept = by.keep(keeps);
                if (FIRST) {
                    const float m = BY_KEYS ? bases[STEP + column] : mean[i / 2];
                    slopes[j][i] = w * fma_f32(slopes[j][i], kept, -m) * by.scale;
                }
                weights[j][i] = w * kept;
            }
        }
        if constexpr (SECOND) down2.add(second_sums, weights, stage);
        if constexpr (FIRST) down1.add(first_sums, slopes, stage);
    }

    /* Whether the warp's rows and the tile have a pair of a query and a key that it sees. */
    INLINE bool meets(int from) const {
        if (!Shape::CAUSAL) return true;
        return BY_KEYS ? first <= from + STEP - 1 : from <= first + 15;
    }
    /* Tiles |begin| to |end| of each of |heads|. */
    INLINE void walk(char *shared, int begin, int end, int heads) {
        const int steps = (end - begin) * heads;
        int head = 0, tile = begin, next_head = 0, next_tile = begin; /* next: that is fetched */
        Rule by = rule;
        if (steps > 0) bring(shared + AHEAD, next_head, next_tile, begin, end);
        NO_UNROLL
        for (int step = 0; step < steps; step++) {
            const int stage = STAGES == 1 ? 0 : step % STAGES * STAGE;
            const bool more = step + 1 < steps;
            await_copies<0>();
            __syncthreads();
            if (STAGES > 1 && more) bring(shared + AHEAD + (STAGE - stage), next_head, next_tile, begin, end);
            if (meets(tile * STEP)) add(shared, stage, by, tile * STEP);
            if (STAGES == 1) __syncthreads();
            if (STAGES == 1 && more) bring(shared + AHEAD, next_head, next_tile, begin, end);
            if (++tile < end) continue;
            tile = begin;
            head++;
            by.row = rule.row + head * Rule::HEAD_NUMBERS;
            by.added = rule.added + head * rows.mask_head;
            by.chooses = rule.chooses + head * rows.mask_head;
        }
    }
    /* The next tile. */
    INLINE void bring(char *stage, int &head, int &tile, int begin, int end) {
        fetch(stage, head, tile * STEP);
        if (++tile < end) return;
        tile = begin;
        head++;
    }

    INLINE void start(char *shared, int row0) {
        const int own = threadIdx.x / 32 * 16;
        first = row0 + own;
        Own1::template copy<THREADS>(shared, BY_KEYS ? rows.k : rows.q, row0, OWN_OF(rule));
        if (FIRST) Own2::template copy<THREADS>(shared + Own1::BYTES, BY_KEYS ? rows.v : rows.dy, row0, OWN_OF(rule));
        close_copies();
        exchange_numbers();
        await_copies<0>();
        __syncthreads();
        own1.start(shared, own);
        if (FIRST) own2.start(shared + Own1::BYTES, own);
        if (HELD) __syncthreads();
        along1.start(shared + AHEAD);
        along2.start(shared + AHEAD + Other1::BYTES);
        down1.start(shared + AHEAD);
        down2.start(shared + AHEAD + Other1::BYTES);
        clear(first_sums);
        clear(second_sums);
    }
    /* Rows from |block| * ROWS on, which |heads| heads of the other side meet. */
    template <class One, class Two>
    INLINE void run(char *shared, int block, int heads, const One &one, const Two &two) {
        typedef SumsOfRows<SHARED, WARPS> Sums;
        const int row0 = block * ROWS, seen = row0 + ROWS;
        const float by[2] = {1.0f, 1.0f};
        int begin = 0, end = (OTHERS_OF(rule) + STEP - 1) / STEP;
        if (Shape::CAUSAL && BY_KEYS) begin = row0 / STEP < end ? row0 / STEP : end;
        if (Shape::CAUSAL && !BY_KEYS && seen < OTHERS_OF(rule)) end = (seen + STEP - 1) / STEP;
        start(shared, row0);
        walk(shared, begin, end, heads);
        if constexpr (FIRST) Sums::template store<Shape::WIDTH>(shared, one, first_sums, first, OWN_OF(rule), by);
        if constexpr (SECOND) Sums::template store<Shape::V_WIDTH>(shared, two, second_sums, first, OWN_OF(rule), by);
    }
};
