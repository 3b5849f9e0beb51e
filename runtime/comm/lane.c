/* lane.c: see lane.h.  A collective goes one of these ways:
 *
 *     NOTHING         one rank, or no elements
 *     WHOLE           one message of the engine, or several over consecutive elements
 *     ADD_ALL         in pieces of whole parts; what is small, or does not divide by the ranks, is gathered whole:
 *                         exchange(data -> staging); add; gather(data); gather(remainder in staging); add
 *     ADD_SHARE       exchange(data -> staging); add into the own part
 *     PACKED_SHARE    the same in pieces of parts: pack; exchange; add
 *     PACKED_SUM      pack; sum; unpack the own part
 *     PACKED_GATHER   pack the own part; gather; unpack
 *
 * A way is a list of steps: each takes what the message before has brought and makes the next one.
 */
#include "runtime/comm/lane.h"

#include <string.h>

#include "runtime/comm/sums.h"

const amp_lane_limits amp_lane_default_limits = {
    .message = AMP_MESSAGE_MOST, .staging = (size_t)32 << 20, .small = (size_t)64 << 10};

typedef enum Way { NOTHING, WHOLE, ADD_ALL, ADD_SHARE, PACKED_SHARE, PACKED_SUM, PACKED_GATHER } Way;

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }
static size_t larger(size_t a, size_t b) { return a > b ? a : b; }
static size_t ranks_of(const amp_lane_world *w) { return (size_t)w->size; }
static size_t share_of(const amp_lane_world *w, const amp_collective *c) { return c->count / ranks_of(w); }

static Way way_of(const amp_lane_world *w, const amp_collective *c) {
    const size_t size = amp_dtype_size(c->dtype), bytes = c->count * size;
    const bool adds = w->ordered || !(w->engine->sums >> c->dtype & 1);
    if (w->size == 1 || c->count == 0) return NOTHING;
    switch (c->op) {
    case AMP_COLLECTIVE_ALL_REDUCE:
    case AMP_COLLECTIVE_ALL_REDUCE_TREE: return adds ? ADD_ALL : WHOLE;
    case AMP_COLLECTIVE_BROADCAST: return WHOLE;
    case AMP_COLLECTIVE_ALL_GATHER: return bytes > w->limits->message ? PACKED_GATHER : WHOLE;
    case AMP_COLLECTIVE_REDUCE_SCATTER:
    case AMP_COLLECTIVE_REDUCE_SCATTER_TREE: break;
    }
    if (adds) return bytes > w->limits->staging ? PACKED_SHARE : ADD_SHARE;
    return bytes > w->limits->message ? PACKED_SUM : WHOLE;
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

/* Elements of a piece; of packed ones, elements of each part. */
static size_t piece_of(const amp_lane_world *w, const amp_collective *c, Way way) {
    const size_t size = amp_dtype_size(c->dtype), ranks = ranks_of(w);
    switch (way) {
    case NOTHING: return 0;
    case WHOLE: return smaller(c->count, larger(w->limits->message / size, 1));
    case ADD_ALL: return smaller(c->count, larger(w->limits->staging / size / ranks, 1) * ranks);
    case ADD_SHARE: return share_of(w, c);
    case PACKED_SHARE: return smaller(share_of(w, c), larger(w->limits->staging / (2 * size * ranks), 1));
    case PACKED_SUM:
    case PACKED_GATHER: return smaller(share_of(w, c), larger(w->limits->staging / (size * ranks), 1));
    }
    return 0;
}

/* Of |width| elements that are added, those that are exchanged; the remainder is gathered whole. */
static size_t body_of(const amp_lane_world *w, const amp_collective *c, size_t width) {
    const size_t ranks = ranks_of(w);
    const bool small = width <= w->limits->small / amp_dtype_size(c->dtype) / ranks;
    return small ? 0 : width - width % ranks;
}

size_t amp_lane_staging(const amp_lane_world *w, const amp_collective *c) {
    const Way way = way_of(w, c);
    const size_t size = amp_dtype_size(c->dtype), ranks = ranks_of(w), piece = piece_of(w, c, way);
    switch (way) {
    case NOTHING:
    case WHOLE: return 0;
    case ADD_ALL: { /* the last piece may be a small one */
        const size_t body = body_of(w, c, piece), small = w->limits->small / size / ranks;
        return size * larger(body, ranks * larger(piece - body, smaller(piece, larger(small, ranks - 1))));
    }
    case PACKED_SHARE: return 2 * size * ranks * piece;
    case ADD_SHARE:
    case PACKED_SUM:
    case PACKED_GATHER: return size * ranks * piece;
    }
    return 0;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

typedef struct Step {
    const amp_lane_world *w;
    amp_lane *lane;
    const amp_collective *c;
    size_t size; /* of an element */
    amp_message *out;
} Step;

static unsigned char *data_at(const Step *s, size_t element) { return (unsigned char *)s->c->data + element * s->size; }
static amp_sums_order order_of(const Step *s) {
    const bool tree = s->c->op == AMP_COLLECTIVE_ALL_REDUCE_TREE || s->c->op == AMP_COLLECTIVE_REDUCE_SCATTER_TREE;
    return tree ? AMP_SUMS_TREE : AMP_SUMS_LEFT;
}
/* Where part |rank| of the piece is in the caller's memory, and in staging. */
static unsigned char *part_at(const Step *s, int32_t rank) {
    return data_at(s, (size_t)rank * share_of(s->w, s->c) + s->lane->at);
}
static unsigned char *staged_at(const Step *s, size_t element) {
    return (unsigned char *)(s->lane->staging + 1) + element * s->size;
}
static unsigned char *staged_part(const Step *s, int32_t rank) { return staged_at(s, (size_t)rank * s->lane->width); }

/* Makes the step's message; |next|: the step after it. */
static bool make(const Step *s, int32_t next, amp_message_op op, void *data, void *to, size_t count) {
    *s->out = (amp_message){.op = op, .dtype = s->c->dtype, .data = data, .to = to, .count = count, .rank = s->c->root};
    s->lane->step = next;
    return true;
}

/* The next piece begins; false: there is none. */
static bool next_piece(const Step *s, Way way, size_t elements) {
    amp_lane *l = s->lane;
    l->at += l->width;
    l->width = smaller(piece_of(s->w, s->c, way), elements - l->at);
    return l->width > 0;
}

static bool step_whole(const Step *s) {
    static const amp_message_op ops[] = {
        [AMP_COLLECTIVE_ALL_REDUCE] = AMP_SUM_ALL,      [AMP_COLLECTIVE_REDUCE_SCATTER] = AMP_SUM_SHARE,
        [AMP_COLLECTIVE_ALL_GATHER] = AMP_GATHER,       [AMP_COLLECTIVE_BROADCAST] = AMP_FROM_RANK,
        [AMP_COLLECTIVE_ALL_REDUCE_TREE] = AMP_SUM_ALL, [AMP_COLLECTIVE_REDUCE_SCATTER_TREE] = AMP_SUM_SHARE};
    if (!next_piece(s, WHOLE, s->c->count)) return false;
    return make(s, 0, ops[s->c->op], data_at(s, s->lane->at), NULL, s->lane->width);
}

static bool step_add_all(const Step *s) {
    enum { BEGIN, EXCHANGED, GATHERED, REMAINDER_GATHERED };
    amp_lane *l = s->lane;
    const size_t part = l->body / ranks_of(s->w), remainder = l->width - l->body;
    switch (l->step) {
    case EXCHANGED: {
        unsigned char *own = data_at(s, l->at + (size_t)s->w->rank * part);
        amp_sums_add(s->c->dtype, order_of(s), staged_at(s, 0), s->w->size, part, own);
        return make(s, GATHERED, AMP_GATHER, data_at(s, l->at), NULL, l->body);
    }
    case GATHERED:
        if (!remainder) break;
        memcpy(staged_at(s, (size_t)s->w->rank * remainder), data_at(s, l->at + l->body), remainder * s->size);
        return make(s, REMAINDER_GATHERED, AMP_GATHER, staged_at(s, 0), NULL, remainder * ranks_of(s->w));
    case REMAINDER_GATHERED:
        amp_sums_add(s->c->dtype, order_of(s), staged_at(s, 0), s->w->size, remainder, data_at(s, l->at + l->body));
        break;
    }
    if (!next_piece(s, ADD_ALL, s->c->count)) return false;
    l->body = body_of(s->w, s->c, l->width);
    l->step = GATHERED;
    if (!l->body) return step_add_all(s);
    return make(s, EXCHANGED, AMP_EXCHANGE, data_at(s, l->at), staged_at(s, 0), l->body);
}

static void pack(const Step *s) {
    for (int32_t r = 0; r < s->w->size; r++) memcpy(staged_part(s, r), part_at(s, r), s->lane->width * s->size);
}

static bool step_packed(const Step *s, Way way) {
    enum { BEGIN, CAME };
    amp_lane *l = s->lane;
    const int32_t own = s->w->rank, ranks = s->w->size;
    const size_t all = l->width * ranks_of(s->w);
    if (l->step == CAME && way == ADD_SHARE)
        amp_sums_add(s->c->dtype, order_of(s), staged_at(s, 0), ranks, l->width, part_at(s, own));
    else if (l->step == CAME && way == PACKED_SHARE)
        amp_sums_add(s->c->dtype, order_of(s), staged_at(s, all), ranks, l->width, part_at(s, own));
    else if (l->step == CAME && way == PACKED_SUM) memcpy(part_at(s, own), staged_part(s, own), l->width * s->size);
    else if (l->step == CAME)
        for (int32_t r = 0; r < ranks; r++)
            if (r != own) memcpy(part_at(s, r), staged_part(s, r), l->width * s->size);
    if (!next_piece(s, way, share_of(s->w, s->c))) return false;
    const size_t count = l->width * ranks_of(s->w);
    if (way == ADD_SHARE) return make(s, CAME, AMP_EXCHANGE, s->c->data, staged_at(s, 0), count);
    if (way == PACKED_GATHER) {
        memcpy(staged_part(s, own), part_at(s, own), l->width * s->size);
        return make(s, CAME, AMP_GATHER, staged_at(s, 0), NULL, count);
    }
    pack(s);
    if (way == PACKED_SUM) return make(s, CAME, AMP_SUM_SHARE, staged_at(s, 0), NULL, count);
    return make(s, CAME, AMP_EXCHANGE, staged_at(s, 0), staged_at(s, count), count);
}

bool amp_lane_next(const amp_lane_world *w, amp_lane *lane, amp_message *out) {
    const Step s = {.w = w, .lane = lane, .c = lane->now, .size = amp_dtype_size(lane->now->dtype), .out = out};
    const Way way = way_of(w, lane->now);
    switch (way) {
    case NOTHING: return false;
    case WHOLE: return step_whole(&s);
    case ADD_ALL: return step_add_all(&s);
    default: return step_packed(&s, way);
    }
}
