/* ahead.c: see training.h. */
#include "amp/train.h"
#include "tools/amprun/train/training.h"

#include <stdlib.h>
#include <string.h>

#include "base/scale_range.h"

/* Of "dynamic(init = 65536.0, backoff = 0.5, ...)", to which the compiler adds what the model left out. */
static double argument(const char *call, const char *name) {
    const char *at = strstr(call, name);
    return at ? strtod(at + strlen(name), NULL) : 0;
}

int ahead_start(Ahead *a, const Run *run, bool waits) {
    amp_error err = {0};
    amp_scaler_state scaler;
    if (amp_session_get_scaler(run->session, &scaler, &err)) return report(&err);
    *a =
        (Ahead){.accumulate = run->info.accumulate, .waits = waits || scaler.floor_hits, .scale = (double)scaler.scale};
    if (run->info.scaler && !strncmp(run->info.scaler, "dynamic(", 8)) {
        a->backoff = argument(run->info.scaler, "backoff = ");
        a->floor = amp_scale_floor(argument(run->info.scaler, "min = "));
    }
    return 0;
}

void ahead_push(Ahead *a, AheadCall call) { a->call[a->count++] = call; }

void ahead_pop(Ahead *a, const amp_step_report *report) {
    a->scale = (double)report->scale;
    memmove(&a->call[0], &a->call[1], sizeof a->call[0] * (size_t)--a->count);
}

bool ahead_ends_step(const Ahead *a, int64_t index) { return (index + 1) % a->accumulate == 0; }

/* The last of the steps can be one at the floor: where each since the last report overflowed, that one included.  Then
 * the training ends, and what it keeps must not hold a step more. */
static bool may_be_at_floor(const Ahead *a) {
    double least = a->scale * a->backoff;
    for (int i = 0; i + 1 < a->count; i++) least *= ahead_ends_step(a, a->call[i].index) ? a->backoff : 1;
    return a->backoff > 0 && least <= a->floor * (1 + 1e-5); /* f32, rounded at each step */
}

int ahead_most(const Ahead *a) { return a->waits || may_be_at_floor(a) ? 0 : AHEAD_MOST; }
