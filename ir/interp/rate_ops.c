/* rate_ops.c: the schedules of the language, from the number s of updates done so far. */
#include "ir/interp/ops.h"

#include <math.h>

static const double PI = 3.14159265358979323846;

static double step_of(const Running *r) { return r->in[0]->data[0]; }
static double count_of(const Running *r, const char *name) { return (double)interp_int(r, name); }
static void set(Running *r, double rate) { r->out[0]->data[0] = rate; }

/* From |start| to |end| along half a cosine; done: 0 to 1. */
static double along_cosine(double start, double end, double done) {
    return end + (start - end) * (1.0 + cos(PI * done)) / 2.0;
}

static void run_constant(Running *r) { set(r, interp_float(r, "v")); }

static void run_cosine(Running *r) {
    double s = step_of(r), peak = interp_float(r, "peak"), floor = interp_float(r, "floor");
    double warmup = count_of(r, "warmup"), steps = count_of(r, "steps");
    if (s < warmup) set(r, peak * (s + 1.0) / warmup);
    else if (s >= steps) set(r, floor);
    else set(r, along_cosine(peak, floor, (s - warmup) / (steps - warmup)));
}

static void run_step(Running *r) {
    double times = floor(step_of(r) / count_of(r, "every"));
    set(r, interp_float(r, "base") * pow(interp_float(r, "gamma"), times));
}

static void run_linear(Running *r) {
    double s = step_of(r), peak = interp_float(r, "peak"), warmup = count_of(r, "warmup"), steps = count_of(r, "steps");
    if (s < warmup) set(r, peak * (s + 1.0) / warmup);
    else set(r, s >= steps ? 0.0 : peak * (steps - s) / (steps - warmup));
}

/* torch.optim.lr_scheduler.OneCycleLR(max_lr, total_steps) with its defaults; it ends where that one refuses to go
 * on. */
static void run_one_cycle(Running *r) {
    double peak = interp_float(r, "peak"), last = count_of(r, "steps") - 1.0, top = 0.3 * count_of(r, "steps") - 1.0;
    double start = peak / 25.0, end = start / 1e4, s = fmin(step_of(r), last);
    if (s <= top) set(r, along_cosine(start, peak, s / top));
    else set(r, along_cosine(peak, end, (s - top) / (last - top)));
}

const InterpFn interp_rate_ops[OP_COUNT] = {
    [OP_constant_rate] = run_constant, [OP_cosine_rate] = run_cosine,       [OP_step_rate] = run_step,
    [OP_linear_rate] = run_linear,     [OP_one_cycle_rate] = run_one_cycle,
};
