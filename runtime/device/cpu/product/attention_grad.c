/* attention_grad.c: see attention.h.  The backward pass.
 *
 * A walk goes over blocks of up to 512 keys, in each over groups of 128 queries, in each over 64 keys at a time, and
 * makes the scores of tiles of 32 queries and their gradients there; from them come d k and d v of the block, which
 * wait in scratch, and d q.  Where there are heads enough, a task is all queries and keys of one head of keys: one
 * walk, five products.  Else d k and d v are made by walks over a block of keys each, and d q by walks over a few tiles
 * of queries each: seven products, in more tasks.  Both add up the same numbers in the same order. */
#include "runtime/device/cpu/product/attention_parts.h"

#include <string.h>

#include "runtime/device/cpu/product/pack.h"

enum {
    BLOCK = 512, /* keys whose gradients wait in scratch, at most, and in how many bytes */
    BLOCK_BYTES = 256 << 10,
    KEYS = 64, /* whose scores are made at a time, */
    GROUP = 4, /* for this many tiles of queries; of a task that makes d q alone, too */
    QUERIES = GROUP * TILE,
    ROWS_AHEAD = 8,        /* of a result, which are asked for while one is stored */
    MOST_WAITING = 4 << 20 /* bytes of d q that wait in scratch */
};

/* ---- how it is divided ------------------------------------------------------------------------------------------- */

static int64_t key_heads(const amp_attention *a) { return attention_heads(a) / a->share; }

/* Keys of a block. */
static int64_t block_of(const amp_attention *a) {
    int64_t block = BLOCK;
    while (block > KEYS && block / 2 >= a->keys) block /= 2;
    while (block > KEYS && block * (tiles_of(a->width) + tiles_of(a->v_width)) * TILE * 4 > BLOCK_BYTES) block /= 2;
    return block;
}

static int64_t blocks_of(const amp_attention *a) { return (a->keys + block_of(a) - 1) / block_of(a); }

static int64_t groups_of(const amp_attention *a) { return (tiles_of(a->queries) + GROUP - 1) / GROUP; }

static int64_t waiting_tiles(const amp_attention *a, bool whole) {
    return whole ? a->share * tiles_of(a->queries) : least(GROUP, tiles_of(a->queries));
}

static bool may_be_whole(const amp_attention *a) {
    return waiting_tiles(a, true) * tiles_of(a->width) * TILE_FLOATS * 4 <= MOST_WAITING;
}

static bool is_whole(const amp_attention *a) { return key_heads(a) >= ENOUGH_TASKS && may_be_whole(a); }

static bool wants_keys(const amp_attention *a) { return a->result[1].data || a->result[2].data; }

int64_t attention_grad_tasks(const amp_attention *a) {
    if (is_whole(a)) return key_heads(a);
    return wants_keys(a) ? key_heads(a) * blocks_of(a) : 0;
}

int64_t attention_grad_second_tasks(const amp_attention *a) {
    return is_whole(a) || !a->result[0].data ? 0 : attention_heads(a) * groups_of(a);
}

/* ---- scratch of a task ------------------------------------------------------------------------------------------- */

typedef struct parts { /* bytes from the beginning of the scratch */
    size_t q_columns, dy_columns, q_steps, dy_steps, k_rows, k_steps, v_rows, dy, y, sums, mean, scores, slopes,
        weights, slope_rows, slope_pairs, mask, dq, dk, dv, end;
} parts;

static parts parts_of(const amp_attention *a) {
    const bool pairs = attention_per_unit(a) == 2;
    const int64_t units = attention_units(a, a->width), v_units = attention_units(a, a->v_width),
                  panels = tiles_of(a->width), v_panels = tiles_of(a->v_width), tile = KEYS * TILE, block = block_of(a);
    const int64_t waiting = waiting_tiles(a, may_be_whole(a));
    parts s = {0};
    s.q_columns = attention_part(&s.end, GROUP * units * TILE * UNIT);
    s.dy_columns = attention_part(&s.end, GROUP * v_units * TILE * UNIT);
    s.q_steps = attention_part(&s.end, panels * attention_panel(a, QUERIES));
    s.dy_steps = attention_part(&s.end, v_panels * attention_panel(a, QUERIES));
    s.k_rows = attention_part(&s.end, panels * attention_panel(a, block));
    s.k_steps = pairs ? attention_part(&s.end, panels * attention_panel(a, block)) : s.k_rows;
    s.v_rows = attention_part(&s.end, v_panels * attention_panel(a, block));
    s.dy = attention_part(&s.end, TILE * a->v_width * attention_element(a));
    s.y = attention_part(&s.end, TILE * a->v_width * 4);
    s.sums = attention_part(&s.end, QUERIES * 4);
    s.mean = attention_part(&s.end, QUERIES * 4);
    s.scores = attention_part(&s.end, GROUP * tile * 4 + SPARE);
    s.slopes = attention_part(&s.end, GROUP * tile * 4 + SPARE);
    s.weights = pairs ? attention_part(&s.end, GROUP * tile * 2) : s.scores;
    s.slope_rows = pairs ? attention_part(&s.end, GROUP * tile * 2) : s.slopes;
    s.slope_pairs = pairs ? attention_part(&s.end, GROUP * tile * 2) : s.slopes;
    s.mask = attention_part(&s.end, a->mask.data ? tile * UNIT : 0);
    s.dq = attention_part(&s.end, (waiting > GROUP ? waiting : GROUP) * panels * TILE_FLOATS * 4);
    s.dk = attention_part(&s.end, panels * block * TILE * 4);
    s.dv = attention_part(&s.end, v_panels * block * TILE * 4);
    return s;
}

size_t attention_grad_thread_bytes(const amp_attention *a) { return parts_of(a).end; }

typedef struct walk {
    const amp_attention *a;
    char *scratch;
    parts at;
    int64_t first_head, heads;  /* of queries */
    int64_t first, last;        /* queries of each head */
    int64_t first_key, end_key; /* keys */
    bool makes_q, makes_k;      /* d q; d k and d v */
    const char *k, *v;
    attention_ahead *ahead;
} walk;

static float *floats(const walk *w, size_t at) { return (float *)(void *)(w->scratch + at); }

/* Up to 128 queries of one head. */
typedef struct group {
    int64_t head, query, queries;
    float *dq;
} group;

static int64_t queries_of(const group *g, int64_t tile) { return least(TILE, g->queries - tile * TILE); }

/* ---- queries ----------------------------------------------------------------------------------------------------- */

/* Rows of y from query |query| on, dense. */
static void copy_y(const walk *w, int64_t head, int64_t query, int64_t queries, char *to) {
    const amp_attention *a = w->a;
    const int64_t heads = a->dims[a->rank - 1], col0 = head % heads * a->v_width, size = a->y.element;
    const int64_t row0 = head / heads * a->queries + query;
    for (int64_t i = 0; i < queries; i++)
        for (int64_t c = 0, count; c < a->v_width; c += count, to += count * size) {
            const int64_t row = row0 + i, col = col0 + c;
            count = a->y.in_panels ? least(TILE - col % TILE, a->v_width - c) : a->v_width;
            const int64_t place = a->y.in_panels ? (col / TILE * tiles_of(a->y.rows) * TILE + row) * TILE + col % TILE
                                                 : row * a->y.cols + col;
            memcpy(to, a->y.data + place * size, (size_t)(count * size));
        }
}

static void load_tile(const walk *w, const group *g, int64_t tile) {
    const amp_attention *a = w->a;
    char *scratch = w->scratch;
    const int64_t query = g->query + tile * TILE, queries = queries_of(g, tile);
    const char *q = attention_rows_of(a, &a->q, g->head, 1) + query * a->q.pitch,
               *dy = attention_rows_of(a, &a->dy, g->head, 1) + query * a->dy.pitch,
               *sums = attention_rows_of(a, &a->sums, g->head, 1) + query * a->sums.pitch;
    const int64_t column = TILE * UNIT, bytes = a->v_width * attention_element(a);
    amp_pack_columns(a->kernels, q, a->q.pitch, a->width, queries,
                     scratch + w->at.q_columns + tile * attention_units(a, a->width) * column);
    amp_pack_columns(a->kernels, dy, a->dy.pitch, a->v_width, queries,
                     scratch + w->at.dy_columns + tile * attention_units(a, a->v_width) * column);
    for (int64_t i = 0; i < queries; i++) {
        memcpy(floats(w, w->at.sums) + tile * TILE + i, sums + i * a->sums.pitch, 4);
        memcpy(scratch + w->at.dy + i * bytes, dy + i * a->dy.pitch, (size_t)bytes);
    }
    copy_y(w, g->head, query, queries, scratch + w->at.y);
    const amp_attention_tile mean = {
        .step = AMP_ATTENTION_MEAN,
        .queries = queries,
        .mean = floats(w, w->at.mean) + tile * TILE,
        .width = a->v_width,
        .dy = scratch + w->at.dy,
        .y = scratch + w->at.y,
    };
    a->step(a->ctx, &mean);
}

static void load_queries(const walk *w, const group *g) {
    const amp_attention *a = w->a;
    const char *q_rows = attention_rows_of(a, &a->q, g->head, 1) + g->query * a->q.pitch,
               *dy_rows = attention_rows_of(a, &a->dy, g->head, 1) + g->query * a->dy.pitch;
    amp_prefetch_rows(q_rows, a->q.pitch, g->queries, a->width * attention_element(a));
    amp_prefetch_rows(dy_rows, a->dy.pitch, g->queries, a->v_width * attention_element(a));
    for (int64_t tile = 0; tile * TILE < g->queries; tile++) load_tile(w, g, tile);
    if (!w->makes_k) return;
    const attention_pack q = {q_rows, a->q.pitch, g->queries, a->width, QUERIES},
                         dy = {dy_rows, a->dy.pitch, g->queries, a->v_width, QUERIES};
    attention_pack_steps(a, &q, w->scratch + w->at.q_steps);
    attention_pack_steps(a, &dy, w->scratch + w->at.dy_steps);
}

/* ---- scores of a group of queries and 64 keys -------------------------------------------------------------------- */

/* Keys |key| .. |key + keys|, of the block that begins with |block|. */
typedef struct span {
    int64_t block, key, keys;
} span;

/* Whole tiles of keys such that the tile of queries sees a key of each. */
static int64_t keys_seen(const walk *w, const group *g, const span *s, int64_t tile) {
    const int64_t seen = g->query + tile * TILE + queries_of(g, tile) - s->key;
    return w->a->causal ? least(s->keys, seen > 0 ? tiles_of(seen) * TILE : 0) : s->keys;
}

/* Rows of |rows|, keys, times columns: [keys][32]. */
static void make_scores(const walk *w, size_t rows, const char *columns, int64_t width, const span *s, int64_t keys,
                        int64_t diagonal, float *to) {
    const amp_attention *a = w->a;
    for (int64_t i = 0; i < keys; i += TILE) {
        const attention_product x = {
            .a = w->scratch + rows + (s->key - s->block + i) * TILE * attention_element(a),
            .b = columns,
            .c = to + i * TILE,
            .form = AMP_PRODUCT_BLOCKED,
            .a_panel = attention_panel(a, block_of(a)),
            .units = attention_units(a, width),
            .rows = least(TILE, keys - i),
            .panels = 1,
        };
        attention_ahead_step(w->ahead);
        attention_multiply_scores(a, &x, a->causal && i == diagonal);
    }
}

static void make_slopes(const walk *w, const group *g, const span *s, int64_t tile) {
    const amp_attention *a = w->a;
    char *scratch = w->scratch;
    const int64_t keys = keys_seen(w, g, s, tile), query = g->query + tile * TILE, first = tile * KEYS * TILE,
                  column = TILE * UNIT, size = attention_element(a);
    float *scores = floats(w, w->at.scores) + first, *slopes = floats(w, w->at.slopes) + first;
    if (keys <= 0) return;
    make_scores(w, w->at.k_rows, scratch + w->at.q_columns + tile * attention_units(a, a->width) * column, a->width, s,
                keys, query - s->key, scores);
    make_scores(w, w->at.v_rows, scratch + w->at.dy_columns + tile * attention_units(a, a->v_width) * column,
                a->v_width, s, keys, query - s->key, slopes);
    const amp_attention_tile t = {
        .step = AMP_ATTENTION_SLOPES,
        .row = g->head * a->queries + query,
        .query = query,
        .queries = queries_of(g, tile),
        .key = s->key,
        .keys = keys,
        .scores = scores,
        .slopes = slopes,
        .mask = attention_mask(a, g->head, query, queries_of(g, tile), s->key, keys, scratch + w->at.mask),
        .weights = scratch + w->at.weights + first * size,
        .slope_rows = scratch + w->at.slope_rows + first * size,
        .slope_pairs = scratch + w->at.slope_pairs + first * size,
        .sums = floats(w, w->at.sums) + tile * TILE,
        .mean = floats(w, w->at.mean) + tile * TILE,
    };
    a->step(a->ctx, &t);
}

/* d k or d v: rows of scores, along the queries of the tiles that see them, times q or dy. */
static void add_to_keys(const walk *w, const group *g, const span *s, size_t scores, size_t steps, int64_t width,
                        float *sums) {
    const amp_attention *a = w->a;
    const int64_t size = attention_element(a);
    for (int64_t i = 0; i < s->keys; i += TILE) {
        int64_t tile = 0;
        while (tile * TILE < g->queries && keys_seen(w, g, s, tile) <= i) tile++;
        if (tile * TILE >= g->queries) continue;
        const attention_product x = {
            .a = w->scratch + scores + (tile * KEYS + i) * TILE * size,
            .b = w->scratch + steps + attention_units(a, tile * TILE) * TILE * UNIT,
            .c = sums + (s->key - s->block + i) * TILE,
            .form = AMP_PRODUCT_BLOCKED,
            .accumulate = 1,
            .a_panel = KEYS * TILE * size,
            .b_panel = attention_panel(a, QUERIES),
            .c_panel = block_of(a) * TILE,
            .rows = least(TILE, s->keys - i),
            .panels = tiles_of(width),
        };
        attention_ahead_step(w->ahead);
        attention_multiply_keys(a, x, g->queries - tile * TILE, a->causal && g->query + tile * TILE == s->key + i);
    }
}

static void add_to_queries(const walk *w, const group *g, const span *s, int64_t tile) {
    const amp_attention *a = w->a;
    const int64_t keys = keys_seen(w, g, s, tile);
    const attention_product x = {
        .a = w->scratch + w->at.slope_pairs + tile * KEYS * TILE * attention_element(a),
        .b = w->scratch + w->at.k_steps + attention_units(a, s->key - s->block) * TILE * UNIT,
        .c = g->dq + tile * tiles_of(a->width) * TILE_FLOATS,
        .form = AMP_PRODUCT_TRANSPOSED,
        .accumulate = s->key > 0,
        .b_panel = attention_panel(a, block_of(a)),
        .c_panel = TILE_FLOATS,
        .rows = queries_of(g, tile),
        .panels = tiles_of(a->width),
    };
    attention_ahead_step(w->ahead);
    if (keys > 0) attention_multiply_queries(a, x, keys, g->query + tile * TILE - s->key);
}

static void run_group(const walk *w, const group *g, int64_t block, int64_t end) {
    const amp_attention *a = w->a;
    const int64_t tiles = tiles_of(g->queries);
    load_queries(w, g);
    for (int64_t key = block; key < end; key += KEYS) {
        const span s = {block, key, least(KEYS, end - key)};
        for (int64_t tile = 0; tile < tiles; tile++) make_slopes(w, g, &s, tile);
        if (w->makes_k) {
            add_to_keys(w, g, &s, w->at.weights, w->at.dy_steps, a->v_width, floats(w, w->at.dv));
            add_to_keys(w, g, &s, w->at.slope_rows, w->at.q_steps, a->width, floats(w, w->at.dk));
        }
        for (int64_t tile = 0; w->makes_q && tile < tiles; tile++) add_to_queries(w, g, &s, tile);
    }
}

/* ---- a block of keys --------------------------------------------------------------------------------------------- */

/* |count| rows of |width| from panels |stride| floats apart. */
static void store_rows(char *to, int64_t pitch, const float *from, int64_t stride, int64_t count, int64_t width) {
    for (int64_t c = 0; c < width; c += TILE, to += TILE * 4, from += stride) {
        char *row = to;
        const size_t part = (size_t)least(TILE, width - c) * 4;
        for (int64_t i = 0; i < count; i++, row += pitch) {
            for (int64_t at = 0; at < TILE * 4; at += 64) __builtin_prefetch(row + ROWS_AHEAD * pitch + at, 1, 3);
            if (part == TILE * 4) memcpy(row, from + i * TILE, TILE * 4);
            else memcpy(row, from + i * TILE, part);
        }
    }
}

static void store_keys(const walk *w, int64_t block, int64_t end) {
    const amp_attention *a = w->a;
    const int64_t head = w->first_head;
    const amp_attention_rows *dk = &a->result[1], *dv = &a->result[2];
    if (dk->data)
        store_rows(attention_rows_of(a, dk, head, a->share) + block * dk->pitch, dk->pitch, floats(w, w->at.dk),
                   block_of(a) * TILE, end - block, a->width);
    if (dv->data)
        store_rows(attention_rows_of(a, dv, head, a->share) + block * dv->pitch, dv->pitch, floats(w, w->at.dv),
                   block_of(a) * TILE, end - block, a->v_width);
}

static float *waiting(const walk *w, int64_t head, int64_t query) {
    const int64_t tile = (head - w->first_head) * tiles_of(w->last - w->first) + (query - w->first) / TILE;
    return floats(w, w->at.dq) + tile * tiles_of(w->a->width) * TILE_FLOATS;
}

static void expect_queries(const walk *w, int64_t head, int64_t first, int64_t count) {
    const amp_attention *a = w->a;
    attention_ahead_add(w->ahead, a, &a->q, head, 1, first, count, a->width * attention_element(a));
    attention_ahead_add(w->ahead, a, &a->dy, head, 1, first, count, a->v_width * attention_element(a));
}

/* What comes after |g|: rows of results that will be stored, then the operands of the next group, or of the walk that
 * is next where this one takes whole heads. */
static void expect(const walk *w, const group *g, int64_t block, int64_t end) {
    const amp_attention *a = w->a;
    const bool last_query = g->query + QUERIES >= w->last, last = last_query && g->head + 1 == w->first_head + w->heads;
    *w->ahead = (attention_ahead){0};
    if (w->makes_q && end == w->end_key)
        attention_ahead_add(w->ahead, a, &a->result[0], g->head, 1, g->query, g->queries, a->width * 4);
    if (last && w->makes_k) {
        attention_ahead_add(w->ahead, a, &a->result[1], w->first_head, a->share, block, end - block, a->width * 4);
        attention_ahead_add(w->ahead, a, &a->result[2], w->first_head, a->share, block, end - block, a->v_width * 4);
    }
    if (!last) {
        const int64_t query = last_query ? w->first : g->query + QUERIES;
        expect_queries(w, g->head + last_query, query, least(QUERIES, w->last - query));
    } else if (end < w->end_key) {
        attention_ahead_add_keys(w->ahead, a, w->first_head, end, least(block_of(a), w->end_key - end));
    } else if (is_whole(a) && g->head + 1 < attention_heads(a)) {
        attention_ahead_add_keys(w->ahead, a, g->head + 1, w->first_key, least(block_of(a), w->end_key - w->first_key));
        expect_queries(w, g->head + 1, w->first, least(QUERIES, w->last - w->first));
    }
}

static void run_block(const walk *w, int64_t block) {
    const amp_attention *a = w->a;
    const int64_t end = least(w->end_key, block + block_of(a));
    const attention_pack k = {w->k + block * a->k.pitch, a->k.pitch, end - block, a->width, block_of(a)},
                         v = {w->v + block * a->v.pitch, a->v.pitch, end - block, a->v_width, block_of(a)};
    amp_prefetch_rows(k.rows, k.pitch, k.count, k.width * attention_element(a));
    amp_prefetch_rows(v.rows, v.pitch, v.count, v.width * attention_element(a));
    attention_pack_rows(a, &k, w->scratch + w->at.k_rows);
    attention_pack_rows(a, &v, w->scratch + w->at.v_rows);
    if (w->makes_q && w->at.k_steps != w->at.k_rows) attention_pack_steps(a, &k, w->scratch + w->at.k_steps);
    if (w->makes_k) { /* there may be keys that no query sees */
        memset(floats(w, w->at.dk), 0, (size_t)(tiles_of(a->width) * block_of(a) * TILE * 4));
        memset(floats(w, w->at.dv), 0, (size_t)(tiles_of(a->v_width) * block_of(a) * TILE * 4));
    }
    for (int64_t head = w->first_head; head < w->first_head + w->heads; head++)
        for (int64_t query = w->first; query < w->last; query += QUERIES) {
            const group g = {head, query, least(QUERIES, w->last - query), waiting(w, head, query)};
            const int64_t seen = a->causal ? least(end, query + g.queries) : end;
            expect(w, &g, block, end);
            if (seen > block) run_group(w, &g, block, seen);
        }
    if (w->makes_k) store_keys(w, block, end);
}

static void store_queries(const walk *w) {
    const amp_attention *a = w->a;
    const amp_attention_rows *dq = &a->result[0];
    for (int64_t head = w->first_head; head < w->first_head + w->heads; head++)
        for (int64_t query = w->first; query < w->last; query += TILE)
            store_rows(attention_rows_of(a, dq, head, 1) + query * dq->pitch, dq->pitch, waiting(w, head, query),
                       TILE_FLOATS, least(TILE, w->last - query), a->width);
}

static void run_walk(walk *w) {
    const amp_attention *a = w->a;
    attention_ahead ahead = {0};
    w->ahead = &ahead;
    w->at = parts_of(a);
    w->k = attention_rows_of(a, &a->k, w->first_head, a->share);
    w->v = attention_rows_of(a, &a->v, w->first_head, a->share);
    const int64_t end = a->causal && !w->makes_k ? least(w->end_key, w->last) : w->end_key;
    for (int64_t block = w->first_key; block < end; block += block_of(a)) run_block(w, block);
    if (w->makes_q) store_queries(w);
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

void attention_grad_task(const amp_attention *a, int64_t task, char *scratch) {
    walk w = {.a = a, .scratch = scratch, .heads = a->share, .last = a->queries, .end_key = a->keys, .makes_k = true};
    const int64_t blocks = is_whole(a) ? 1 : blocks_of(a);
    w.makes_q = is_whole(a) && a->result[0].data;
    w.first_head = task / blocks * a->share;
    if (!is_whole(a)) {
        w.first_key = task % blocks * block_of(a);
        w.end_key = least(a->keys, w.first_key + block_of(a));
    }
    run_walk(&w);
}

void attention_grad_second_task(const amp_attention *a, int64_t task, char *scratch) {
    const int64_t groups = groups_of(a), first = task % groups * GROUP * TILE;
    walk w = {
        .a = a,
        .scratch = scratch,
        .first_head = task / groups,
        .heads = 1,
        .first = first,
        .last = least(a->queries, first + GROUP * TILE),
        .end_key = a->keys,
        .makes_q = true,
    };
    run_walk(&w);
}
