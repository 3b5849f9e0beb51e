/* attention.c: see attention.h.  The forward pass: a task is up to 512 queries of one head.  For every 128 keys it
 * packs rows of k and v once, and goes over its tiles of 32 queries. */
#include "runtime/device/cpu/product/attention_parts.h"

#include "runtime/device/cpu/product/pack.h"

enum {
    GROUP = 16, /* tiles of queries of a task, at most */
    KEYS = 128  /* of one step of the softmax */
};

/* ---- how it is divided ------------------------------------------------------------------------------------------- */

static int64_t group_tiles(const amp_attention *a) {
    const int64_t tiles = tiles_of(a->queries), heads = attention_heads(a);
    int64_t group = least(GROUP, tiles);
    while (group > 1 && heads * ((tiles + group - 1) / group) < ENOUGH_TASKS) group = (group + 1) / 2;
    return group;
}

static int64_t groups_of_head(const amp_attention *a) {
    const int64_t group = group_tiles(a);
    return (tiles_of(a->queries) + group - 1) / group;
}

/* ---- scratch of a task ------------------------------------------------------------------------------------------- */

typedef struct parts { /* bytes from the beginning of the scratch */
    size_t q, acc, largest, sum, k, v, scores, weights, mask, end;
} parts;

static parts parts_of(const amp_attention *a) {
    const int64_t q_units = attention_units(a, a->width), group = least(GROUP, tiles_of(a->queries));
    parts s = {0};
    s.q = attention_part(&s.end, group * q_units * TILE * UNIT);
    s.acc = attention_part(&s.end, group * tiles_of(a->v_width) * TILE_FLOATS * 4);
    s.largest = attention_part(&s.end, group * TILE * 4);
    s.sum = attention_part(&s.end, group * TILE * 4);
    s.k = attention_part(&s.end, tiles_of(a->width) * attention_panel(a, KEYS));
    s.v = attention_part(&s.end, tiles_of(a->v_width) * attention_panel(a, KEYS));
    s.scores = attention_part(&s.end, KEYS * TILE * 4 + SPARE);
    s.weights = attention_part(&s.end, attention_per_unit(a) == 1 ? 0 : KEYS / 2 * TILE * UNIT);
    s.mask = attention_part(&s.end, a->mask.data ? KEYS * TILE * UNIT : 0);
    return s;
}

typedef struct task_state {
    const amp_attention *a;
    int64_t head, first, last; /* queries */
    const char *k, *v;
    float *scores;
    char *q, *packed_k, *packed_v, *weights, *mask;
    float *acc, *largest, *sum; /* by tile */
    attention_ahead *ahead;
} task_state;

/* ---- a tile of queries and a block of keys ----------------------------------------------------------------------- */

/* Keys that the last of |queries| queries from |query| on sees. */
static int64_t seen(const amp_attention *a, int64_t query, int64_t queries) {
    return a->causal ? least(a->keys, query + queries) : a->keys;
}

static amp_attention_tile tile_at(const task_state *s, int64_t query) {
    const int64_t at = (query - s->first) / TILE, panels = tiles_of(s->a->v_width);
    return (amp_attention_tile){
        .row = s->head * s->a->queries + query,
        .query = query,
        .queries = least(TILE, s->last - query),
        .largest = s->largest + at * TILE,
        .sum = s->sum + at * TILE,
        .acc = s->acc + at * panels * TILE_FLOATS,
        .acc_stride = TILE_FLOATS,
        .width = s->a->v_width,
    };
}

static void run_tile(const task_state *s, int64_t query, int64_t key, int64_t keys) {
    const amp_attention *a = s->a;
    const int64_t q_bytes = attention_units(a, a->width) * TILE * UNIT;
    amp_attention_tile t = tile_at(s, query);
    float *const acc = t.acc;
    keys = least(keys, seen(a, query, t.queries) - key);
    if (keys <= 0) return;
    for (int64_t i = 0; i < keys; i += TILE) {
        const attention_product scores = {
            .a = s->packed_k + i * TILE * attention_element(a),
            .b = s->q + (query - s->first) / TILE * q_bytes,
            .c = s->scores + i * TILE,
            .form = AMP_PRODUCT_BLOCKED,
            .a_panel = attention_panel(a, KEYS),
            .units = attention_units(a, a->width),
            .rows = least(TILE, keys - i),
            .panels = 1,
        };
        attention_ahead_step(s->ahead);
        attention_multiply_scores(a, &scores, a->causal && key + i == query);
    }
    t.step = AMP_ATTENTION_SCORES;
    t.key = key;
    t.keys = keys;
    t.scores = s->scores;
    t.mask = attention_mask(a, s->head, query, t.queries, key, keys, s->mask);
    t.weights = attention_per_unit(a) == 1 ? (void *)s->scores : s->weights;
    if (!key) t.acc = NULL; /* nothing is summed so far */
    a->step(a->ctx, &t);
    const attention_product sum = {
        .a = t.weights,
        .b = s->packed_v,
        .c = acc,
        .form = AMP_PRODUCT_TRANSPOSED,
        .accumulate = key > 0,
        .b_panel = attention_panel(a, KEYS),
        .c_panel = TILE_FLOATS,
        .rows = t.queries,
        .panels = tiles_of(a->v_width),
    };
    attention_ahead_step(s->ahead);
    attention_multiply_queries(a, sum, keys, query - key);
}

static void finish_tile(const task_state *s, int64_t query) {
    const amp_attention *a = s->a;
    amp_attention_tile t = tile_at(s, query);
    t.step = AMP_ATTENTION_RESULT;
    if (a->result[0].data)
        t.out = (float *)(void *)(attention_rows_of(a, &a->result[0], s->head, 1) + query * a->result[0].pitch);
    t.out_pitch = a->result[0].pitch / 4;
    if (a->sums.data) t.sums = (float *)(void *)(attention_rows_of(a, &a->sums, s->head, 1) + query * a->sums.pitch);
    a->step(a->ctx, &t);
}

/* ---- a task ------------------------------------------------------------------------------------------------------ */

static void pack_queries(const task_state *s) {
    const amp_attention *a = s->a;
    const char *q = attention_rows_of(a, &a->q, s->head, 1);
    const int64_t bytes = attention_units(a, a->width) * TILE * UNIT;
    for (int64_t i = s->first; i < s->last; i += TILE)
        amp_pack_columns(a->kernels, q + i * a->q.pitch, a->q.pitch, a->width, least(TILE, s->last - i),
                         s->q + (i - s->first) / TILE * bytes);
}

/* What comes after the keys before |key|: more keys; or the results, and the next task. */
static void expect(const task_state *s, int64_t key, int64_t end) {
    const amp_attention *a = s->a;
    *s->ahead = (attention_ahead){0};
    if (key < end) {
        attention_ahead_add_keys(s->ahead, a, s->head, key, least(KEYS, end - key));
        return;
    }
    const int64_t first = s->last < a->queries ? s->last : 0, head = s->head + (first == 0);
    attention_ahead_add(s->ahead, a, &a->result[0], s->head, 1, s->first, s->last - s->first, a->v_width * 4);
    if (head == attention_heads(a)) return;
    attention_ahead_add(s->ahead, a, &a->q, head, 1, first, least(group_tiles(a) * TILE, a->queries - first),
                        a->width * attention_element(a));
    attention_ahead_add_keys(s->ahead, a, head, 0, least(KEYS, seen(a, first, TILE)));
}

static void forward_task(const amp_attention *a, int64_t task, char *scratch) {
    const parts at = parts_of(a);
    const int64_t groups = groups_of_head(a), head = task / groups, first = task % groups * group_tiles(a) * TILE;
    attention_ahead ahead = {0};
    const task_state s = {
        .a = a,
        .head = head,
        .first = first,
        .last = least(a->queries, first + group_tiles(a) * TILE),
        .k = attention_rows_of(a, &a->k, head, a->share),
        .v = attention_rows_of(a, &a->v, head, a->share),
        .scores = (float *)(void *)(scratch + at.scores),
        .q = scratch + at.q,
        .packed_k = scratch + at.k,
        .packed_v = scratch + at.v,
        .weights = scratch + at.weights,
        .mask = scratch + at.mask,
        .acc = (float *)(void *)(scratch + at.acc),
        .largest = (float *)(void *)(scratch + at.largest),
        .sum = (float *)(void *)(scratch + at.sum),
        .ahead = &ahead,
    };
    const int64_t k_bytes = a->width * attention_element(a), v_bytes = a->v_width * attention_element(a);
    amp_prefetch_rows(attention_rows_of(a, &a->q, head, 1) + first * a->q.pitch, a->q.pitch,
                      least(KEYS, s.last - first), k_bytes);
    amp_prefetch_rows(s.k, a->k.pitch, least(KEYS, a->keys), k_bytes);
    pack_queries(&s);
    for (int64_t i = 0; i < group_tiles(a) * TILE; i++) {
        s.largest[i] = -__builtin_inff();
        s.sum[i] = 0.0f;
    }
    const int64_t end = seen(a, s.first, s.last - s.first);
    for (int64_t key = 0; key < end; key += KEYS) {
        const int64_t keys = least(KEYS, end - key);
        const attention_pack k = {s.k + key * a->k.pitch, a->k.pitch, keys, a->width, KEYS},
                             v = {s.v + key * a->v.pitch, a->v.pitch, keys, a->v_width, KEYS};
        amp_prefetch_rows(v.rows, v.pitch, keys, v_bytes);
        attention_pack_rows(a, &k, s.packed_k);
        attention_pack_steps(a, &v, s.packed_v);
        expect(&s, key + KEYS, end);
        for (int64_t query = s.first; query < s.last; query += TILE) run_tile(&s, query, key, keys);
    }
    for (int64_t query = s.first; query < s.last; query += TILE) finish_tile(&s, query);
}

/* ---- forward or backward ----------------------------------------------------------------------------------------- */

size_t amp_attention_thread_bytes(const amp_attention *a) {
    return a->backward ? attention_grad_thread_bytes(a) : parts_of(a).end;
}

int64_t amp_attention_tasks(const amp_attention *a) {
    return a->backward ? attention_grad_tasks(a) : attention_heads(a) * groups_of_head(a);
}

int64_t amp_attention_second_tasks(const amp_attention *a) { return a->backward ? attention_grad_second_tasks(a) : 0; }

void amp_attention_task(const amp_attention *a, int64_t task, void *scratch) {
    if (a->backward) attention_grad_task(a, task, scratch);
    else forward_task(a, task, scratch);
}

void amp_attention_second_task(const amp_attention *a, int64_t task, void *scratch) {
    attention_grad_second_task(a, task, scratch);
}
