/* lower_schedule.c: the schedules of docs/language.md: f64 scalars from the number s of updates done so far. */
#include "passes/lower/lower.h"

static const double PI = 3.14159265358979323846;

static Val number(Lowering *l, double value) { return lower_number_of(l, value, AMP_DT_F64); }
static Val less(Lowering *l, Val a, Val b) { return ir_emit(l->f, OP_lt, AMP_DT_BOOL, NULL, 2, a, b); }
static double count(const Lowering *l, const char *name) { return (double)ir_attr(l->op, name)->i; }
static Val step(Lowering *l) { return lower_cast(l, l->op->in[0], AMP_DT_F64); }

/* One operand is a number: an op, and a constant before it. */
static Val with(Lowering *l, Opcode code, Val v, double value) { return lower_binary(l, code, v, number(l, value)); }
static Val if_less(Lowering *l, Val s, double bound, Val then, Val otherwise) {
    Val is_less = less(l, s, number(l, bound));
    return lower_select(l, is_less, then, otherwise);
}

/* From |start| to |end| along half a cosine; done: 0 to 1. */
static Val along_cosine(Lowering *l, double start, double end, Val done) {
    Val wave = lower_unary(l, OP_cos, with(l, OP_mul, done, PI));
    Val height = with(l, OP_mul, with(l, OP_add, wave, 1.0), (start - end) / 2);
    return with(l, OP_add, height, end);
}

/* (s - from) / length */
static Val share(Lowering *l, Val s, double from, double length) {
    return with(l, OP_div, with(l, OP_sub, s, from), length);
}

/* peak (s + 1) / warmup while s < warmup, then |rest| */
static Val warmed_up(Lowering *l, Val s, double peak, double warmup, Val rest) {
    if (warmup < 1) return rest;
    Val rising = with(l, OP_mul, with(l, OP_add, s, 1.0), peak / warmup);
    return if_less(l, s, warmup, rising, rest);
}

static Val constant_rate(Lowering *l) { return number(l, lower_float(l, "v")); }

static Val cosine_rate(Lowering *l) {
    double peak = lower_float(l, "peak"), floor = lower_float(l, "floor");
    double warmup = count(l, "warmup"), steps = count(l, "steps");
    Val s = step(l), rest = number(l, floor);
    if (steps > warmup) {
        Val falling = along_cosine(l, peak, floor, share(l, s, warmup, steps - warmup));
        rest = if_less(l, s, steps, falling, rest);
    }
    return warmed_up(l, s, peak, warmup, rest);
}

static Val linear_rate(Lowering *l) {
    double peak = lower_float(l, "peak"), warmup = count(l, "warmup"), steps = count(l, "steps");
    Val s = step(l), rest = number(l, 0.0);
    if (steps > warmup) {
        Val falling = with(l, OP_mul, with(l, OP_sub, s, steps), -peak / (steps - warmup));
        rest = if_less(l, s, steps, falling, rest);
    }
    return warmed_up(l, s, peak, warmup, rest);
}

/* s / every, rounded down: a conversion that rounds to nearest may go up, and then the product is larger than s. */
static Val whole_quotient(Lowering *l, Val s, int64_t every) {
    Val quotient = lower_cast(l, with(l, OP_div, s, (double)every), AMP_DT_I64);
    Val back = with(l, OP_mul, lower_cast(l, quotient, AMP_DT_F64), (double)every);
    Val less_one = lower_binary(l, OP_sub, quotient, lower_number_of(l, 1, AMP_DT_I64));
    return lower_select(l, less(l, s, back), less_one, quotient);
}

static Val step_rate(Lowering *l) {
    Val times = whole_quotient(l, step(l), ir_attr(l->op, "every")->i);
    Op *power = ir_op_new(l->f, OP_power, &times, 1);
    ir_attr(power, "base")->f = lower_float(l, "gamma");
    Val p = ir_make_results(l->f, power, AMP_DT_F64, NULL);
    return with(l, OP_mul, p, lower_float(l, "base"));
}

/* torch.optim.lr_scheduler.OneCycleLR(max_lr = peak, total_steps = steps) with its defaults: 30 % up from peak / 25, then
 * down to that / 10^4, both along half a cosine.  It ends where that one refuses to go on. */
static Val one_cycle_rate(Lowering *l) {
    double peak = lower_float(l, "peak"), steps = count(l, "steps"), top = 0.3 * steps - 1.0, last = steps - 1.0;
    double start = peak / 25.0, end = start / 1e4;
    Val s = with(l, OP_minimum, step(l), last);
    Val falling = along_cosine(l, peak, end, share(l, s, top, last - top));
    if (top <= 0) return falling;
    Val rising = along_cosine(l, start, peak, share(l, s, 0.0, top));
    Val is_over = less(l, number(l, top), s);
    return lower_select(l, is_over, falling, rising);
}

static void lower_schedule(Lowering *l) {
    Val rate = NO_VAL;
    switch (l->op->code) {
    case OP_constant_rate: rate = constant_rate(l); break;
    case OP_cosine_rate: rate = cosine_rate(l); break;
    case OP_step_rate: rate = step_rate(l); break;
    case OP_linear_rate: rate = linear_rate(l); break;
    case OP_one_cycle_rate: rate = one_cycle_rate(l); break;
    default: break;
    }
    lower_give(l, 0, rate);
}

const LowerRow lower_schedule_ops[OP_COUNT] = {
    [OP_constant_rate] = {lower_schedule, TAKES_PLAIN},  [OP_cosine_rate] = {lower_schedule, TAKES_PLAIN},
    [OP_step_rate] = {lower_schedule, TAKES_PLAIN},      [OP_linear_rate] = {lower_schedule, TAKES_PLAIN},
    [OP_one_cycle_rate] = {lower_schedule, TAKES_PLAIN},
};
