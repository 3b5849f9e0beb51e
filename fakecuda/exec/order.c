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
 * In a block the clocks of race.c decide.  fenced[v] of a warp is the last clock of warp v that a fence has followed:
 * barriers carry it on, so that "all write, all fence, barrier, one thread's atomic" is a release of what all wrote, as
 * hardware has it.  Likewise a fence acquires what another warp read, if a barrier comes between.  What one lane of a
 * warp does counts for all 32. */
#define _POSIX_C_SOURCE 200809L
#include "fakecuda/exec/inner.h"

#include <pthread.h>
#include <stdlib.h>

enum { CLOCK_BITS = 27, CLOCK = (1 << CLOCK_BITS) - 1 };

typedef struct Release { /* by a block, one entry of a log */
    struct Release *next;
    uint32_t log, at;
    uint32_t written;           /* stamp of the strong write */
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

uint32_t order_stamp(const Warp *w) {
    return (uint32_t)w->index << CLOCK_BITS | clipped(w->block->clock_base + w->clock);
}

void order_restart_clocks(Block *b, uint32_t clocks) {
    b->clock_base += clocks;
    for (int k = 0; k < b->seen_count; k++) b->seen[k].clock = 0;
    for (int k = 0; k < b->acquired_count; k++) b->acquired[k].clock = 0;
}

/* Whether what warp |by| did at |clock| comes before what w does now. */
static bool visible(const Warp *w, const Acquired *a) {
    return a->warp == w->index || w->clocks.known[a->warp] >= a->clock;
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

/* Whether the block's last release there covered the same. */
static bool released(const Log *l, const Warp *w) {
    const Block *b = w->block;
    return l->count > l->start && l->last_serial == b->serial && l->last_acquired == b->acquired_count &&
           !memcmp(l->last->clocks, w->clocks.fenced, sizeof l->last->clocks);
}

static void append(Order *o, int log, Warp *w) {
    Block *b = w->block;
    Log *l = &o->logs[log];
    Release *r = malloc(sizeof *r);
    if (!r) abort(); /* the host has no memory left */
    Release **of_block = &o->releases[b->serial - o->first_serial];
    *r = (Release){.next = *of_block, .log = (uint32_t)log, .at = l->count, .written = order_stamp(w)};
    memcpy(r->clocks, w->clocks.fenced, sizeof r->clocks);
    *of_block = l->last = r;
    l->last_serial = b->serial;
    l->last_acquired = b->acquired_count;
    for (int k = 0; k < b->acquired_count; k++) {
        const Acquired *a = &b->acquired[k];
        bool own = a->part.log == (uint32_t)log && a->part.start >= l->start; /* who reads this, reads those */
        if (own || !visible(w, a)) continue;
        if (l->reach_count == l->reach_room) l->reach = more(l->reach, &l->reach_room, sizeof *l->reach);
        l->reach[l->reach_count++] = (Reach){a->part, l->count};
    }
    l->count++;
}

void order_write(Warp *w, uint64_t address, bool atomic) {
    Order *o = w->block->order;
    bool fenced = false;
    for (int v = 0; v < w->block->warp_count; v++) fenced |= w->clocks.fenced[v] != 0;
    pthread_mutex_lock(&o->lock);
    int log = fenced ? make_log(o, address) : find_log(o, address);
    if (log >= 0) {
        /* What a store overwrites is never read again; an atomic hands it on. */
        if (!atomic) o->logs[log].start = o->logs[log].count;
        if (fenced && released(&o->logs[log], w)) o->logs[log].last->written = order_stamp(w);
        else if (fenced) append(o, log, w);
    }
    pthread_mutex_unlock(&o->lock);
}

void order_release(Warp *w) {
    Block *b = w->block;
    if (!b->order) return;
    for (int v = 0; v < b->warp_count; v++) {
        uint32_t last = v == w->index ? w->clock : w->clocks.known[v], clock = clipped(b->clock_base + last);
        if (clock > w->clocks.fenced[v]) w->clocks.fenced[v] = clock;
    }
}

/* ---- acquire ---- */

static void add(Acquired **list, int *count, int *room, const Acquired *a) {
    for (int k = *count; k-- > 0 && k > *count - 64;) {
        const Acquired *old = &(*list)[k];
        if (old->warp == a->warp && !memcmp(&old->part, &a->part, sizeof a->part)) return;
    }
    if (*count == *room) *list = more(*list, room, sizeof **list);
    (*list)[(*count)++] = *a;
}

void order_read(Warp *w, uint64_t address) {
    Block *b = w->block;
    Order *o = b->order;
    pthread_mutex_lock(&o->lock);
    int log = find_log(o, address);
    LogPart part = {0};
    if (log >= 0) part = (LogPart){(uint32_t)log, o->logs[log].start, o->logs[log].count};
    pthread_mutex_unlock(&o->lock);
    if (part.start == part.end) return;
    add(&b->seen, &b->seen_count, &b->seen_room, &(Acquired){part, w->index, w->clock});
}

void order_acquire(Warp *w) {
    Block *b = w->block;
    int kept = 0;
    for (int k = 0; k < b->seen_count; k++) {
        Acquired s = b->seen[k];
        if (visible(w, &s))
            add(&b->acquired, &b->acquired_count, &b->acquired_room, &(Acquired){s.part, w->index, w->clock});
        if (s.warp != w->index) b->seen[kept++] = s;
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

/* Marks what w knows. */
static void search(Warp *w) {
    Block *b = w->block;
    Order *o = b->order;
    int depth = 0;
    o->visit++;
    for (int k = 0; k < b->acquired_count; k++)
        if (visible(w, &b->acquired[k])) push(o, &depth, b->acquired[k].part);
    reach_from(o, depth);
}

static bool marked(const Order *o, const Release *r) {
    const Log *l = &o->logs[r->log];
    return l->visit == o->visit && r->at >= l->from && r->at < l->upto;
}

/* The last clock of a warp of block |serial| that w knows; 0: none. */
static uint32_t known_clock(Warp *w, uint32_t serial, uint32_t warp) {
    Order *o = w->block->order;
    uint32_t clock = 0;
    pthread_mutex_lock(&o->lock);
    search(w);
    for (const Release *r = o->releases[serial - o->first_serial]; r; r = r->next)
        if (r->clocks[warp] > clock && marked(o, r)) clock = r->clocks[warp];
    pthread_mutex_unlock(&o->lock);
    return clock;
}

/* A strong write comes after the fence of its release, and yet belongs to it. */
static bool known_release(Warp *w, uint32_t serial, uint32_t stamp, uint64_t word) {
    Order *o = w->block->order;
    bool known = false;
    pthread_mutex_lock(&o->lock);
    search(w);
    for (const Release *r = o->releases[serial - o->first_serial]; r && !known; r = r->next) {
        bool here = (o->logs[r->log].address - w->block->memory->base) / 4 == word;
        known = here && r->written >> CLOCK_BITS == stamp >> CLOCK_BITS && r->written >= stamp && marked(o, r);
    }
    pthread_mutex_unlock(&o->lock);
    return known;
}

bool order_known(Warp *w, uint32_t serial, uint32_t stamp, uint64_t word, bool strong) {
    uint32_t warp = stamp >> CLOCK_BITS, clock = stamp & CLOCK;
    if (!w->block->acquired_count) return false;
    if (w->last_known.serial != serial || w->last_known.warp != warp || w->last_known.clock < clock) {
        w->last_known.serial = serial;
        w->last_known.warp = warp;
        w->last_known.clock = known_clock(w, serial, warp);
    }
    return w->last_known.clock >= clock || (strong && known_release(w, serial, stamp, word));
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
