/* order.c: what happened before what between blocks of one launch, by releases and acquires in global memory.
 *
 * After the chapter "Memory Consistency Model" of the PTX ISA document: a release is a fence of device scope and a
 * strong write after it (or both in one, .release); an acquire is a strong read and such a fence after it (or
 * .acquire).  An acquire that reads what a release wrote, or what atomics made of that, comes after it.
 *
 * A clock for every pair of blocks would cost too much.  An address that is released at has a log of its releases, each
 * with the clocks of the releasing block's warps; to acquire is to remember how long the log was.  What was acquired
 * before a release is reached through it: |reach| of the log.  Only an access that touches what another block touched
 * asks whether it is known (FastTrack's epochs: one block, warp and clock), and then looks through the logs.
 *
 * In a block the clocks of race.c decide.  A fence of one thread after a barrier covers what all threads did before it
 * (|own|), but makes a release with a strong write of its own lane only, and an acquire with a strong read of it.  A
 * fence.sc does more, because such fences have one order: fenced[v] of a warp is the last clock of warp v that one has
 * followed.  Barriers carry it on, so that "all write, all fence, barrier, one thread's atomic" is a release of what
 * all wrote.  Likewise a fence.sc acquires what another thread read, if a barrier comes between.
 *
 * Lanes of a warp that have not met since are told apart, but not by fence.sc, which counts for all lanes. */
#define _POSIX_C_SOURCE 200809L
#include "fakecuda/exec/inner.h"

#include <pthread.h>
#include <stdlib.h>

/* A stamp: the warp, its clock, the lane. */
enum { LANE_BITS = 6, SEVERAL = (1 << LANE_BITS) - 1, WARP_SHIFT = 27, CLOCK = (1 << (WARP_SHIFT - LANE_BITS)) - 1 };

typedef struct Release { /* by a block, one entry of a log */
    struct Release *next;
    uint32_t log, at;
    uint32_t written;           /* stamp of the strong write */
    uint32_t own;               /* and what the lane of this stamp did up to there; 0: no more */
    uint32_t clocks[MAX_WARPS]; /* what the block's warps did up to there is released */
} Release;

typedef struct Reach { /* what entry |at| of a log had acquired */
    LogPart part;
    uint32_t at;
} Reach;

typedef struct Log {
    uint64_t address;
    uint32_t start, count; /* entries that who reads now acquires: [start, count) */
    Reach *reach;
    int reach_count, reach_room;
    Release *last;
    uint32_t last_serial;
    int last_acquired;          /* of its block, at that entry */
    uint32_t visit, from, upto; /* by the search that is number |visit| */
} Log;

struct Order {
    pthread_mutex_t lock, records;
    uint32_t first_serial;
    Release **releases; /* by block, in the order of serials: its latest; linked by |next| */
    Log *logs;
    int log_count, log_room;
    int *table; /* of logs, by address: index + 1; 0: free */
    uint32_t table_size;
    LogPart *stack; /* of a search */
    int stack_room;
    uint32_t visit;
    uint64_t changes; /* atomic */
};

static void *more(void *old, int *room, size_t size) {
    *room = *room ? 2 * *room : 16;
    void *grown = realloc(old, (size_t)*room * size);
    if (!grown) abort(); /* the host has no memory left */
    return grown;
}

Order *order_new(uint32_t first_serial, uint64_t blocks) {
    Order *o = calloc(1, sizeof *o);
    Release **releases = calloc(blocks, sizeof *releases);
    if (!o || !releases) abort(); /* the host has no memory left */
    o->first_serial = first_serial;
    o->releases = releases;
    pthread_mutex_init(&o->lock, NULL);
    pthread_mutex_init(&o->records, NULL);
    return o;
}

void order_free(Order *o, uint64_t blocks) {
    if (!o) return;
    for (uint64_t k = 0; k < blocks; k++)
        for (Release *r = o->releases[k], *next; r; r = next) {
            next = r->next;
            free(r);
        }
    for (int k = 0; k < o->log_count; k++) free(o->logs[k].reach);
    pthread_mutex_destroy(&o->lock);
    pthread_mutex_destroy(&o->records);
    free(o->releases);
    free(o->logs);
    free(o->table);
    free(o->stack);
    free(o);
}

void order_lock_records(Order *o) { pthread_mutex_lock(&o->records); }
void order_unlock_records(Order *o) { pthread_mutex_unlock(&o->records); }

/* ---- clocks ---- */

static uint32_t clipped(uint64_t clock) { return clock < CLOCK ? (uint32_t)clock : CLOCK; }

static uint32_t stamp_of(const Warp *w, uint32_t clock, int lane) {
    return (uint32_t)w->index << WARP_SHIFT | clock << LANE_BITS | (uint32_t)lane;
}

uint32_t order_stamp(const Warp *w, int lane) { return stamp_of(w, clipped(w->block->clock_base + w->clock), lane); }

uint32_t order_stamp_of_both(uint32_t a, uint32_t b) { return a == b ? a : (a ^ b) >> LANE_BITS ? 0 : a | SEVERAL; }

void order_restart_clocks(Block *b, uint32_t clocks) {
    b->clock_base += clocks;
    for (int k = 0; k < b->seen_count; k++) b->seen[k].clock = 0;
    for (int k = 0; k < b->acquired_count; k++) b->acquired[k].clock = 0;
}

/* Whether what was acquired comes before what |lanes| of w do now. */
static bool visible(const Warp *w, uint32_t lanes, const Acquired *a) {
    return (a->warp == w->index && !(lanes & ~a->lanes)) || w->clocks.known[a->warp] >= a->clock;
}

/* ---- logs ---- */

static uint32_t table_place(const Order *o, uint64_t address) {
    uint32_t k = (uint32_t)((address * 0x9e3779b97f4a7c15ull) >> 32) & (o->table_size - 1);
    while (o->table[k] && o->logs[o->table[k] - 1].address != address) k = (k + 1) & (o->table_size - 1);
    return k;
}

static int find_log(const Order *o, uint64_t address) {
    return o->table_size ? o->table[table_place(o, address)] - 1 : -1;
}

static int make_log(Order *o, uint64_t address) {
    int found = find_log(o, address);
    if (found >= 0) return found;
    if (o->log_count == o->log_room) {
        o->logs = more(o->logs, &o->log_room, sizeof *o->logs);
        free(o->table);
        o->table_size = 4 * (uint32_t)o->log_room;
        if (!(o->table = calloc(o->table_size, sizeof *o->table))) abort(); /* the host has no memory left */
        for (int k = 0; k < o->log_count; k++) o->table[table_place(o, o->logs[k].address)] = k + 1;
    }
    o->logs[o->log_count] = (Log){.address = address};
    o->table[table_place(o, address)] = o->log_count + 1;
    return o->log_count++;
}

/* ---- release ---- */

/* What a strong write of |lane| releases; false: nothing. */
static bool covered(const Warp *w, int lane, Release *r) {
    const bool own = w->own.lanes >> lane & 1;
    bool some = own;
    memcpy(r->clocks, w->clocks.fenced, sizeof r->clocks);
    for (int v = 0; v < w->block->warp_count; v++) {
        if (own && w->own.clocks[v] > r->clocks[v]) r->clocks[v] = w->own.clocks[v];
        some |= r->clocks[v] != 0;
    }
    if (own) r->own = stamp_of(w, w->own.clock, lane);
    return some;
}

/* Whether the block's last release there covered the same. */
static bool released(const Log *l, const Block *b, const Release *r) {
    return l->count > l->start && l->last_serial == b->serial && l->last_acquired == b->acquired_count &&
           l->last->own == r->own && !memcmp(l->last->clocks, r->clocks, sizeof r->clocks);
}

static void append(Order *o, int log, const Warp *w, int lane, const Release *release) {
    Block *b = w->block;
    Log *l = &o->logs[log];
    Release *r = malloc(sizeof *r);
    if (!r) abort(); /* the host has no memory left */
    Release **of_block = &o->releases[b->serial - o->first_serial];
    *r = *release;
    r->next = *of_block;
    r->log = (uint32_t)log;
    r->at = l->count;
    *of_block = l->last = r;
    l->last_serial = b->serial;
    l->last_acquired = b->acquired_count;
    for (int k = 0; k < b->acquired_count; k++) {
        const Acquired *a = &b->acquired[k];
        bool own = a->part.log == (uint32_t)log && a->part.start >= l->start; /* who reads this, reads those */
        if (own || !visible(w, 1u << lane, a)) continue;
        if (l->reach_count == l->reach_room) l->reach = more(l->reach, &l->reach_room, sizeof *l->reach);
        l->reach[l->reach_count++] = (Reach){a->part, l->count};
    }
    l->count++;
}

void order_write(Warp *w, int lane, uint64_t address, bool atomic) {
    Order *o = w->block->order;
    Release r = {.written = order_stamp(w, lane)};
    const bool fenced = covered(w, lane, &r);
    pthread_mutex_lock(&o->lock);
    int log = fenced ? make_log(o, address) : find_log(o, address);
    if (log >= 0) {
        /* What a store overwrites is never read again; an atomic hands it on. */
        if (!atomic) o->logs[log].start = o->logs[log].count;
        if (fenced && released(&o->logs[log], w->block, &r)) o->logs[log].last->written = r.written;
        else if (fenced) append(o, log, w, lane, &r);
    }
    pthread_mutex_unlock(&o->lock);
}

void order_release(Warp *w, bool sc) {
    Block *b = w->block;
    if (!b->order) return;
    uint32_t *to = sc ? w->clocks.fenced : w->own.clocks;
    for (int v = 0; v < b->warp_count; v++) {
        uint32_t last = v == w->index && sc ? w->clock : w->clocks.known[v], clock = clipped(b->clock_base + last);
        if (clock > to[v]) to[v] = clock;
    }
    if (sc) return;
    /* Of lanes that fence apart, each has what the last of them has: no false alarm. */
    w->own.lanes |= w->active;
    w->own.clock = clipped(b->clock_base + w->clock);
}

/* ---- acquire ---- */

static void add(Acquired **list, int *count, int *room, const Acquired *a) {
    for (int k = *count; k-- > 0 && k > *count - 64;) {
        const Acquired *old = &(*list)[k];
        if (old->warp == a->warp && !(a->lanes & ~old->lanes) && !memcmp(&old->part, &a->part, sizeof a->part)) return;
    }
    if (*count == *room) *list = more(*list, room, sizeof **list);
    (*list)[(*count)++] = *a;
}

void order_read(Warp *w, int lane, uint64_t address) {
    Block *b = w->block;
    Order *o = b->order;
    pthread_mutex_lock(&o->lock);
    int log = find_log(o, address);
    LogPart part = {0};
    if (log >= 0) part = (LogPart){(uint32_t)log, o->logs[log].start, o->logs[log].count};
    pthread_mutex_unlock(&o->lock);
    if (part.start == part.end) return;
    add(&b->seen, &b->seen_count, &b->seen_room, &(Acquired){part, w->index, w->clock, 1u << lane});
}

void order_acquire(Warp *w, bool sc) {
    Block *b = w->block;
    int kept = 0;
    for (int k = 0; k < b->seen_count; k++) {
        Acquired s = b->seen[k];
        const bool own = s.warp == w->index, met = w->clocks.known[s.warp] >= s.clock;
        const uint32_t lanes = sc && met ? w->active : own ? s.lanes & w->active : 0;
        if (lanes)
            add(&b->acquired, &b->acquired_count, &b->acquired_room, &(Acquired){s.part, w->index, w->clock, lanes});
        if (!own || s.lanes & ~w->active) b->seen[kept++] = s;
    }
    b->seen_count = kept;
}

/* ---- what is known ---- */

static void push(Order *o, int *depth, LogPart part) {
    if (*depth == o->stack_room) o->stack = more(o->stack, &o->stack_room, sizeof *o->stack);
    o->stack[(*depth)++] = part;
}

/* Marks all entries that are reached from the |depth| parts on the stack: of each log from |from| up to |upto|. */
static void reach_from(Order *o, int depth) {
    while (depth) {
        LogPart p = o->stack[--depth];
        Log *l = &o->logs[p.log];
        bool again = l->visit == o->visit;
        if (again && p.start >= l->from && p.end <= l->upto) continue;
        l->from = again && l->from < p.start ? l->from : p.start;
        l->upto = again && l->upto > p.end ? l->upto : p.end;
        l->visit = o->visit;
        for (int k = 0; k < l->reach_count; k++)
            if (l->reach[k].at >= l->from && l->reach[k].at < l->upto) push(o, &depth, l->reach[k].part);
    }
}

/* Marks what |lanes| of w know. */
static void search(Warp *w, uint32_t lanes) {
    Block *b = w->block;
    Order *o = b->order;
    int depth = 0;
    o->visit++;
    for (int k = 0; k < b->acquired_count; k++)
        if (visible(w, lanes, &b->acquired[k])) push(o, &depth, b->acquired[k].part);
    reach_from(o, depth);
}

static bool marked(const Order *o, const Release *r) {
    const Log *l = &o->logs[r->log];
    return l->visit == o->visit && r->at >= l->from && r->at < l->upto;
}

/* The last clock of a warp of block |serial| up to which all lanes of w know what all of its lanes did; 0: none. */
static uint32_t known_clock(Warp *w, uint32_t serial, uint32_t warp) {
    Order *o = w->block->order;
    uint32_t clock = 0;
    pthread_mutex_lock(&o->lock);
    search(w, w->alive);
    for (const Release *r = o->releases[serial - o->first_serial]; r; r = r->next)
        if (r->clocks[warp] > clock && marked(o, r)) clock = r->clocks[warp];
    pthread_mutex_unlock(&o->lock);
    return clock;
}

/* What a release covers: what came before its fence, and its strong write, which comes after the fence. */
static bool covers(const Release *r, uint32_t stamp, bool writes_here) {
    const uint32_t warp = stamp >> WARP_SHIFT, time = stamp >> LANE_BITS, lane = stamp & SEVERAL;
    const bool of_lane = lane == SEVERAL || lane == (r->own & SEVERAL);
    return r->clocks[warp] >= (time & CLOCK) ||
           (r->own >> WARP_SHIFT == warp && r->own >> LANE_BITS >= time && of_lane) ||
           (writes_here && r->written >> WARP_SHIFT == warp && r->written >> LANE_BITS >= time);
}

/* The same for one lane, and one access. */
static bool known_to_lane(Warp *w, int lane, uint32_t serial, uint32_t stamp, uint64_t word, bool strong) {
    Order *o = w->block->order;
    bool known = false;
    pthread_mutex_lock(&o->lock);
    search(w, 1u << lane);
    for (const Release *r = o->releases[serial - o->first_serial]; r && !known; r = r->next) {
        const bool here = (o->logs[r->log].address - w->block->memory->base) / 4 == word;
        known = covers(r, stamp, strong && here) && marked(o, r);
    }
    pthread_mutex_unlock(&o->lock);
    return known;
}

bool order_known(Warp *w, int lane, uint32_t serial, uint32_t stamp, uint64_t word, bool strong) {
    uint32_t warp = stamp >> WARP_SHIFT, clock = stamp >> LANE_BITS & CLOCK;
    if (!w->block->acquired_count) return false;
    if (w->last_known.serial != serial || w->last_known.warp != warp || w->last_known.clock < clock) {
        w->last_known.serial = serial;
        w->last_known.warp = warp;
        w->last_known.clock = known_clock(w, serial, warp);
    }
    return w->last_known.clock >= clock || known_to_lane(w, lane, serial, stamp, word, strong);
}

/* ---- waiting ---- */

enum { WAITS = 1 << 12 /* reads that change nothing: that is no chance any more */ };

void order_changed(Block *b) { __atomic_fetch_add(&b->order->changes, 1, __ATOMIC_RELAXED); }

uint64_t order_changes(const Block *b) { return __atomic_load_n(&b->order->changes, __ATOMIC_RELAXED); }

void order_poll(Warp *w, uint64_t what) {
    uint64_t changes = order_changes(w->block);
    if (w->polled_changes != changes) w->polls = 0;
    w->polled_changes = changes;
    for (int k = 0; k < 4; k++)
        if (w->polled[k] == what) {
            w->polls++;
            return;
        }
    w->polled[w->polled_next++ % 4] = what;
}

bool order_waits(const Block *b) {
    uint64_t changes = order_changes(b);
    bool waits = false;
    for (int v = 0; v < b->warp_count; v++) {
        const Warp *w = &b->warps[v];
        if (w->outcome != WARP_READY) continue;
        if (w->polls < WAITS || w->polled_changes != changes) return false;
        waits = true;
    }
    return waits; /* where no warp can go on, it is the block's own deadlock */
}
