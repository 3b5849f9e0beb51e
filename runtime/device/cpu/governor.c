/* governor.c: see governor.h. */
#include "runtime/device/cpu/governor.h"

#include <stddef.h>

enum {
    COLD = 2,               /* calls: memory is touched for the first time */
    WINDOW = 30000000,      /* ns of a mean: several slices of the system's scheduler */
    FIRST_WINDOW = 4,       /* calls before the first trial */
    SHORT_TRIAL = 2,        /* calls after which a trial that is clearly worse may end */
    TRIAL_SHARE = 32,       /* a trial costs at most this part of the time */
    PERIOD_MIN = 100000000, /* ns between trials, doubled by each that changes nothing */
    WORTH_WAKING = 1000000  /* ns alone: to wake a worker takes some 50 us, and its processor spins and cools besides */
};
static const int64_t period_max = 8000000000;

amp_governor amp_governor_make(const void *program, amp_sizes sizes) {
    return (amp_governor){.program = program, .sizes = sizes, .cold = COLD, .period = PERIOD_MIN};
}

amp_sizes amp_governor_sizes(amp_sizes sizes) {
    int64_t places = 1;
    if (!sizes.t) return sizes;
    while (places < sizes.n * sizes.t) places *= 2;
    return (amp_sizes){places, 1};
}

int64_t amp_governor_time(amp_sizes sizes, int64_t ns) {
    if (!sizes.t) return ns;
    return (int64_t)((double)ns * (double)amp_governor_sizes(sizes).n / ((double)sizes.n * (double)sizes.t));
}

bool amp_governor_runs_alone(const amp_governor *g) { return g->prefers_one != g->on_trial; }

bool amp_governor_is_worth_waking(const amp_governor *g) { return g->alone == 0 || g->alone > WORTH_WAKING; }

static void forget(amp_timed_way *w) { w->calls = w->ns = w->least = 0; }

static void take_mean(amp_timed_way *w) {
    w->mean = w->ns / w->calls;
    forget(w);
}

static void begin_trial(amp_governor *g, amp_timed_way *other) {
    g->on_trial = true;
    forget(other);
}

/* All threads must be a little better, since they take more processor time. */
static bool one_is_better(const amp_governor *g) {
    return g->prefers_one ? g->one.mean <= g->all.mean + g->all.mean / 16 : g->one.mean <= g->all.mean;
}

static void end_trial(amp_governor *g, amp_timed_way *preferred, amp_timed_way *other) {
    int64_t cost = other->ns - other->calls * preferred->mean;
    take_mean(other);
    bool prefers_one = one_is_better(g);
    g->period = prefers_one != g->prefers_one ? PERIOD_MIN : 2 * g->period < period_max ? 2 * g->period : period_max;
    g->rest = TRIAL_SHARE * cost > g->period ? TRIAL_SHARE * cost : g->period;
    g->prefers_one = prefers_one;
    g->on_trial = false;
    forget(preferred);
}

/* Even the fastest call of the trial was slower: nothing that interrupted it can be the reason. */
static bool is_clearly_worse(const amp_timed_way *trial, const amp_timed_way *preferred) {
    return trial->calls >= SHORT_TRIAL && trial->least > preferred->mean + preferred->mean / 4;
}

static void add(amp_timed_way *w, int64_t ns) {
    w->calls++;
    w->ns += ns;
    if (w->calls == 1 || ns < w->least) w->least = ns;
}

static void record_preferred(amp_governor *g, amp_timed_way *preferred, amp_timed_way *other, int64_t ns) {
    g->rest -= ns;
    bool first = preferred->mean == 0;
    if (first ? preferred->calls < FIRST_WINDOW : preferred->ns < WINDOW) return;
    take_mean(preferred);
    bool became_slow = !g->prefers_one && preferred->mean > other->mean;
    if (first || became_slow || g->rest <= 0) begin_trial(g, other);
}

void amp_governor_record(amp_governor *g, bool alone, int64_t ns, int32_t threads) {
    amp_timed_way *way = alone ? &g->one : &g->all, *preferred = g->prefers_one ? &g->one : &g->all,
                  *other = g->prefers_one ? &g->all : &g->one;
    int64_t most = alone ? ns : ns * threads; /* on one thread */
    if (alone || g->alone == 0 || most < g->alone) g->alone = most;
    if (g->cold > 0) {
        g->cold--;
        return;
    }
    add(way, ns);
    if (way == preferred) record_preferred(g, preferred, other, ns);
    else if (way->ns >= WINDOW || is_clearly_worse(way, preferred)) end_trial(g, preferred, other);
}

void amp_governor_record_let_sleep(amp_governor *g, int64_t ns) { g->alone = ns; }
