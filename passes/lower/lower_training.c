/* lower_training.c: what a training step does with gradients: loss scaling, clipping, schedules, optimizers.
 * 
 * Scale factors are applied in f64 and rounded once, as torch.amp.GradScaler does.  Clipping is
 * torch.nn.utils.clip_grad_norm_.  Schedules follow docs/language.md: f64 scalars from the number s of updates done so
 * far.  Optimizers are PyTorch's fused ones (aten/src/ATen/native/cuda/fused_adam_utils.cuh, FusedSgdKernel.cu),
 * elementwise in f32; what depends on the step alone is a scalar, computed in f64 and shared by all parameters with the
 * same numbers. */
#include "passes/lower/lower.h"

#include <math.h>

#include "base/scale_range.h"

static void give_product(Lowering *l) {
    Val a = lower_operand(l, 0), b = lower_operand(l, 1);
    lower_give(l, 0, lower_binary(l, OP_mul, a, b));
}

/* Never called: it stays. */
static void lower_kept(Lowering *l) { (void)l; }

static void lower_scale_loss(Lowering *l) { give_product(l); }

static void lower_unscale(Lowering *l) { give_product(l); }

/* f32(1 / f64(scale)) */
static void lower_inverse_scale(Lowering *l) {
    Val scale = lower_cast(l, l->op->in[0], AMP_DT_F64);
    lower_give(l, 0, lower_binary(l, OP_div, lower_number_of(l, 1.0, AMP_DT_F64), scale));
}

/* bool: |g| has an element that is infinite or NaN. */
static Val any_bad(Lowering *l, int i) {
    Val bad = lower_unary(l, OP_not, ir_emit(l->f, OP_is_finite, AMP_DT_BOOL, NULL, 1, lower_operand(l, i)));
    if (!ir_shape(l->f, bad)->rank) return bad;
    return ir_emit(l->f, OP_reduce_or, AMP_DT_BOOL, NULL, 1, bad);
}

static void lower_all_finite(Lowering *l) {
    Val bad = any_bad(l, 0);
    for (int i = 1; i < l->op->n_in; i++) bad = lower_binary(l, OP_or, bad, any_bad(l, i));
    lower_give(l, 0, lower_unary(l, OP_not, bad));
}

/* f32(f64(scale) * factor) */
static Val times(Lowering *l, Val scale64, double factor) {
    Val product = lower_binary(l, OP_mul, scale64, lower_number_of(l, factor, AMP_DT_F64));
    return lower_cast(l, product, AMP_DT_F32);
}

/* aten/src/ATen/native/cuda/AmpKernels.cu, amp_update_scale_cuda_kernel:
 *     not ok: scale = f32(f64(scale) * backoff); tracker = 0
 *     ok:     tracker + 1 == interval: grown = f32(f64(scale) * growth), scale = grown if finite; tracker = 0.  Else:
 *             tracker + 1
 * and then the bounds, which PyTorch lacks: backed off not below min, grown not above max, and both within what a step
 * can use (base/scale_range.h).  The third result is 1 where not ok and already at min. */
static void lower_update_scale(Lowering *l) {
    Val scale = l->op->in[0], tracker = l->op->in[1], ok = l->op->in[2];
    double min = amp_scale_floor(lower_float(l, "min")), max = amp_scale_ceiling(lower_float(l, "max"));
    Val scale64 = lower_cast(l, scale, AMP_DT_F64);
    Val zero = lower_number_of(l, 0, AMP_DT_I32), one = lower_number_of(l, 1, AMP_DT_I32);

    Val backed_off = times(l, scale64, lower_float(l, "backoff"));
    Val lower = lower_binary(l, OP_maximum, backed_off, lower_number(l, min));
    Val grown = times(l, scale64, lower_float(l, "growth"));
    Val finite = ir_emit(l->f, OP_is_finite, AMP_DT_BOOL, NULL, 1, grown);
    Val higher = lower_binary(l, OP_minimum, grown, lower_number(l, max));
    Val next = lower_binary(l, OP_add, tracker, one);
    Val due = lower_binary(l, OP_eq, next, lower_number_of(l, (double)ir_attr(l->op, "interval")->i, AMP_DT_I32));

    Val after_ok = lower_select(l, lower_binary(l, OP_and, due, finite), higher, scale);
    lower_give(l, 0, lower_select(l, ok, after_ok, lower));
    lower_give(l, 1, lower_select(l, ok, lower_select(l, due, zero, next), zero));
    Val at_floor = lower_binary(l, OP_le, scale, lower_number(l, min));
    Val bad = lower_unary(l, OP_not, ok);
    lower_give(l, 2, lower_select(l, lower_binary(l, OP_and, bad, at_floor), one, zero));
}

static const double PI = 3.14159265358979323846;

static Val f64_number(Lowering *l, double value) { return lower_number_of(l, value, AMP_DT_F64); }
static Val less(Lowering *l, Val a, Val b) { return ir_emit(l->f, OP_lt, AMP_DT_BOOL, NULL, 2, a, b); }
static double count(const Lowering *l, const char *name) { return (double)ir_attr(l->op, name)->i; }
static Val step(Lowering *l) { return lower_cast(l, l->op->in[0], AMP_DT_F64); }

/* One operand is a number: an op, and a constant before it. */
static Val with(Lowering *l, Opcode code, Val v, double value) {
    return lower_binary(l, code, v, f64_number(l, value));
}
static Val if_less(Lowering *l, Val s, double bound, Val then, Val otherwise) {
    Val is_less = less(l, s, f64_number(l, bound));
    return lower_select(l, is_less, then, otherwise);
}

/* ---- norms of gradients ------------------------------------------------------------------------------------------ */

/* Powers of two, which change exponents alone. */
static const double FAR = 0x1p-96, SHARE = 0x1p-120;

/* Summed along the last dimension that is not 1. */
static Val squares_of_rows(Lowering *l, Val v) {
    const Shape *s = ir_shape(l->f, v);
    bool folded[MAX_RANK] = {0};
    int last = s->rank - 1;
    while (last > 0 && dim_is_one(s->d[last])) last--;
    if (last > 0) folded[last] = true;
    Val squares = lower_binary(l, OP_mul, v, v);
    return last > 0 ? lower_reduce(l, OP_reduce_sum, squares, folded, true) : squares;
}

static Val sum_of_rows(Lowering *l, Val rows) {
    Shape s = {.rank = 1};
    if (shape_count(ir_shape(l->f, rows), &s.d[0])) rows = lower_reshape(l, rows, &s);
    return lower_reduce_all(l, OP_reduce_sum, rows);
}

static Val total(Lowering *l, const Val *parts) {
    Val sum = parts[0];
    for (int i = 1; i < l->op->n_in; i++) sum = lower_binary(l, OP_add, sum, parts[i]);
    return sum;
}

/* A sum of squares is above f32 where the norm is 2^64 or more.  Squares of FAR times the numbers are added up beside
 * it, step by step so that both are in the same kernels, and count where it is infinite: then what they have lost is
 * nothing beside the norm.  All the sums come before what adds them: they may run together, and the additions are one
 * kernel. */
static void lower_global_norm(Lowering *l) {
    Val *near = arena_array(l->f->module->arena, Val, l->op->n_in);
    Val *far = arena_array(l->f->module->arena, Val, l->op->n_in);
    for (int i = 0; i < l->op->n_in; i++) {
        Val g = lower_cast(l, l->op->in[i], AMP_DT_F32);
        near[i] = squares_of_rows(l, g);
        far[i] = squares_of_rows(l, lower_scaled(l, g, FAR));
        near[i] = sum_of_rows(l, near[i]);
        far[i] = sum_of_rows(l, far[i]);
    }
    Val plain = total(l, near), large = lower_cast(l, total(l, far), AMP_DT_F64);
    Val fits = less(l, plain, lower_number(l, INFINITY));
    plain = lower_cast(l, plain, AMP_DT_F64);
    lower_give(l, 0, lower_unary(l, OP_sqrt, lower_select(l, fits, plain, with(l, OP_mul, large, 1 / (FAR * FAR)))));
}

typedef struct ClipFactors {
    Val share, then;
} ClipFactors;

/* min(1, max / (norm + 1e-6)); PyTorch divides a number by a tensor as number * (1 / tensor).  Where that is
 * below SHARE, the norm may be above f32, or the share below it: then it is computed in f64, and where it is below
 * SHARE indeed, that is a factor of its own. */
static ClipFactors clip_factors(Lowering *l, Val norm64) {
    double max = lower_float(l, "max");
    Val *shared = lower_memo(l, "clip %u %a", norm64.id, max), one = lower_number(l, 1.0);
    if (shared->id) return (ClipFactors){*shared, *lower_memo(l, "clip then %u %a", norm64.id, max)};
    Val norm = lower_cast(l, norm64, AMP_DT_F32);
    Val inverse = lower_binary(l, OP_div, one, lower_binary(l, OP_add, norm, lower_number(l, 1e-6)));
    Val share = lower_scaled(l, inverse, max), seems_tiny = less(l, share, lower_number(l, SHARE));
    Val limit = f64_number(l, max), least = f64_number(l, SHARE), whole = f64_number(l, 1.0);
    Val exact = lower_binary(l, OP_div, limit, with(l, OP_add, norm64, 1e-6));
    Val is_tiny = lower_binary(l, OP_and, seems_tiny, less(l, exact, least));
    Val then = lower_select(l, is_tiny, least, whole);
    exact = lower_cast(l, lower_binary(l, OP_div, exact, then), AMP_DT_F32);
    *shared = lower_binary(l, OP_minimum, lower_select(l, seems_tiny, exact, share), one);
    then = lower_cast(l, then, AMP_DT_F32);
    *lower_memo(l, "clip then %u %a", norm64.id, max) = then;
    return (ClipFactors){*shared, then};
}

static void lower_clip_by_norm(Lowering *l) {
    ClipFactors f = clip_factors(l, l->op->in[1]);
    lower_give(l, 0, lower_binary(l, OP_mul, lower_binary(l, OP_mul, l->op->in[0], f.share), f.then));
}

/* ---- schedules --------------------------------------------------------------------------------------------------- */

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

static Val constant_rate(Lowering *l) { return f64_number(l, lower_float(l, "v")); }

static Val cosine_rate(Lowering *l) {
    double peak = lower_float(l, "peak"), floor = lower_float(l, "floor");
    double warmup = count(l, "warmup"), steps = count(l, "steps");
    Val s = step(l), rest = f64_number(l, floor);
    if (steps > warmup) {
        Val falling = along_cosine(l, peak, floor, share(l, s, warmup, steps - warmup));
        rest = if_less(l, s, steps, falling, rest);
    }
    return warmed_up(l, s, peak, warmup, rest);
}

static Val linear_rate(Lowering *l) {
    double peak = lower_float(l, "peak"), warmup = count(l, "warmup"), steps = count(l, "steps");
    Val s = step(l), rest = f64_number(l, 0.0);
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

/* (s + 1) / every is whole. */
static void lower_is_due(Lowering *l) {
    int64_t every = ir_attr(l->op, "every")->i;
    Val number = with(l, OP_add, step(l), 1.0);
    Val back = with(l, OP_mul, lower_cast(l, whole_quotient(l, number, every), AMP_DT_F64), (double)every);
    Val due = lower_unary(l, OP_not, less(l, back, number));
    lower_give(l, 0, l->op->n_in > 1 ? lower_binary(l, OP_and, due, l->op->in[1]) : due);
}

static Val step_rate(Lowering *l) {
    Val times = whole_quotient(l, step(l), ir_attr(l->op, "every")->i);
    Op *power = ir_op_new(l->f, OP_power, &times, 1);
    ir_attr(power, "base")->f = lower_float(l, "gamma");
    Val p = ir_make_results(l->f, power, AMP_DT_F64, NULL);
    return with(l, OP_mul, p, lower_float(l, "base"));
}

/* torch.optim.lr_scheduler.OneCycleLR(max_lr = peak, total_steps = steps) with its defaults: 30 % up from peak / 25,
 * then down to that / 10^4, both along half a cosine.  It ends where that one refuses to go on. */
static Val one_cycle_rate(Lowering *l) {
    double peak = lower_float(l, "peak"), steps = count(l, "steps"), top = 0.3 * steps - 1.0, last = steps - 1.0;
    double start = peak / 25.0, end = start / 1e4;
    Val s = with(l, OP_minimum, step(l), last);
    Val falling = along_cosine(l, peak, end, share(l, s, top, last - top));
    if (top <= 0) return falling;
    Val rising = along_cosine(l, start, peak, share(l, s, 0.0, top));
    Val is_over = less(l, f64_number(l, top), s);
    return lower_select(l, is_over, falling, rising);
}

/* A rate that was set is not negative. */
static Val settable_rate(Lowering *l) {
    Val rate = l->op->in[0];
    if (l->op->n_in == 1) return rate;
    Val is_free = less(l, rate, f64_number(l, 0.0));
    return lower_select(l, is_free, l->op->in[1], rate);
}

static void lower_schedule(Lowering *l) {
    Val rate = NO_VAL;
    switch (l->op->code) {
    case OP_constant_rate: rate = constant_rate(l); break;
    case OP_cosine_rate: rate = cosine_rate(l); break;
    case OP_step_rate: rate = step_rate(l); break;
    case OP_linear_rate: rate = linear_rate(l); break;
    case OP_one_cycle_rate: rate = one_cycle_rate(l); break;
    case OP_settable_rate: rate = settable_rate(l); break;
    default: break;
    }
    lower_give(l, 0, rate);
}

static Val add(Lowering *l, Val a, Val b) { return lower_binary(l, OP_add, a, b); }
static Val mul(Lowering *l, Val a, Val b) { return lower_binary(l, OP_mul, a, b); }
static Val scaled(Lowering *l, Val a, double factor) { return mul(l, a, lower_number(l, factor)); }

enum { STEP = 2, RATE = 3, DECAY = 4, FIRST_MOMENT = 5 };

/* Operand |i|, an f64 scalar, where it is a constant. */
static const double *constant(const Lowering *l, int i) {
    const Op *def = ir_def(l->f, l->op->in[i]);
    return def && def->code == OP_const ? &ir_attr(def, "value")->f : NULL;
}

/* Operand |i|, an f64 scalar, in f32: rounded once for all parameters that share it. */
static Val number(Lowering *l, int i) {
    const double *value = constant(l, i);
    if (value) return lower_number(l, *value);
    Val *shared = lower_memo(l, "f32 %u", l->op->in[i].id);
    if (!shared->id) *shared = lower_cast(l, l->op->in[i], AMP_DT_F32);
    return *shared;
}

static bool is_zero(const Lowering *l, int i) { return constant(l, i) && *constant(l, i) == 0; }

/* g + decay w */
static Val with_decay(Lowering *l, Val g, Val w) {
    return is_zero(l, DECAY) ? g : add(l, g, mul(l, w, number(l, DECAY)));
}

/* buf = momentum buf + g (buf starts as 0, so the first is g); w - lr (g + momentum buf), w - lr buf or w - lr g */
static void lower_sgd(Lowering *l) {
    Val w = lower_operand(l, 0), g = with_decay(l, lower_operand(l, 1), w);
    double momentum = lower_float(l, "momentum");
    Val buffer = NO_VAL;
    if (l->op->n_in > FIRST_MOMENT) {
        buffer = add(l, scaled(l, lower_operand(l, FIRST_MOMENT), momentum), g);
        g = lower_bool(l, "nesterov") ? add(l, g, scaled(l, buffer, momentum)) : buffer;
    }
    Val next = lower_binary(l, OP_sub, w, mul(l, g, number(l, RATE)));
    lower_give(l, 0, next);
    lower_give(l, 1, buffer.id ? buffer : next);
}

/* 1 - beta^step, in f64 */
static Val bias_correction(Lowering *l, double beta) {
    Val *shared = lower_memo(l, "bias_correction %u %a", l->op->in[STEP].id, beta);
    if (shared->id) return *shared;
    Op *power = ir_op_new(l->f, OP_power, &l->op->in[STEP], 1);
    ir_attr(power, "base")->f = beta;
    Val p = ir_make_results(l->f, power, AMP_DT_F64, NULL);
    return *shared = lower_binary(l, OP_sub, lower_number_of(l, 1.0, AMP_DT_F64), p);
}

/* lr / (1 - beta1^step) */
static Val step_size(Lowering *l) {
    double beta1 = lower_float(l, "beta1");
    Val rate = l->op->in[RATE];
    const double *lr = constant(l, RATE);
    Val *shared = lower_memo(l, "step_size %u %u %a %a", l->op->in[STEP].id, lr ? 0 : rate.id, lr ? *lr : 0.0, beta1);
    if (!shared->id) {
        *shared = lower_cast(l, lower_binary(l, OP_div, rate, bias_correction(l, beta1)), AMP_DT_F32);
    }
    return *shared;
}

/* 1 / sqrt(1 - beta2^step): a factor, because an element's division costs more than all the rest of its update */
static Val inverse_root_correction(Lowering *l) {
    double beta2 = lower_float(l, "beta2");
    Val *shared = lower_memo(l, "inverse_root_correction %u %a", l->op->in[STEP].id, beta2);
    if (!shared->id) {
        Val root = lower_unary(l, OP_sqrt, bias_correction(l, beta2));
        *shared = lower_cast(l, lower_binary(l, OP_div, lower_number_of(l, 1.0, AMP_DT_F64), root), AMP_DT_F32);
    }
    return *shared;
}

/* m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g g;  size m / (sqrt(v) inverse_root_correction + eps).
 * Lazy: size m / ((sqrt(v) + eps) inverse_root_correction) */
static Val adam_step(Lowering *l, Val g, Val size, bool lazy) {
    double beta1 = lower_float(l, "beta1"), beta2 = lower_float(l, "beta2");
    Val inverse_root = inverse_root_correction(l);
    Val m = scaled(l, lower_operand(l, FIRST_MOMENT), beta1), v = scaled(l, lower_operand(l, FIRST_MOMENT + 1), beta2);
    m = add(l, m, scaled(l, g, 1 - beta1));
    v = add(l, v, mul(l, scaled(l, g, 1 - beta2), g));
    Val denom = lower_unary(l, OP_sqrt, v);
    if (!lazy) denom = mul(l, denom, inverse_root);
    denom = add(l, denom, lower_number(l, lower_float(l, "eps")));
    if (lazy) denom = mul(l, denom, inverse_root);
    lower_give(l, 1, m);
    lower_give(l, 2, v);
    return lower_binary(l, OP_div, mul(l, size, m), denom);
}

static void adam(Lowering *l, Val w, Val g, bool lazy) {
    Val size = step_size(l);
    lower_give(l, 0, lower_binary(l, OP_sub, w, adam_step(l, g, size, lazy)));
}

static void lower_adam(Lowering *l) {
    Val w = lower_operand(l, 0);
    adam(l, w, with_decay(l, lower_operand(l, 1), w), lower_bool(l, "lazy"));
}

/* 1 - lr decay, in f64, rounded once */
static Val kept_share(Lowering *l) {
    const double *lr = constant(l, RATE), *decay = constant(l, DECAY);
    if (lr && decay) return lower_number(l, 1 - *lr * *decay);
    Val *shared = lower_memo(l, "kept_share %u %u", l->op->in[RATE].id, l->op->in[DECAY].id);
    if (!shared->id) {
        Val one = lower_number_of(l, 1.0, AMP_DT_F64), lost = mul(l, l->op->in[RATE], l->op->in[DECAY]);
        *shared = lower_cast(l, lower_binary(l, OP_sub, one, lost), AMP_DT_F32);
    }
    return *shared;
}

/* w (1 - lr decay) first: Loshchilov and Hutter 2019. */
static void lower_adamw(Lowering *l) {
    Val w = lower_operand(l, 0);
    if (!is_zero(l, DECAY)) w = mul(l, w, kept_share(l));
    adam(l, w, lower_operand(l, 1), false);
}

/* 1 / (1 - beta1^step) */
static Val inverse_correction(Lowering *l) {
    double beta1 = lower_float(l, "beta1");
    Val *shared = lower_memo(l, "inverse_correction %u %a", l->op->in[STEP].id, beta1);
    if (!shared->id) {
        Val one = lower_number_of(l, 1.0, AMP_DT_F64), correction = bias_correction(l, beta1);
        *shared = lower_cast(l, lower_binary(l, OP_div, one, correction), AMP_DT_F32);
    }
    return *shared;
}

static Val norm(Lowering *l, Val v) { return lower_unary(l, OP_sqrt, sum_of_rows(l, squares_of_rows(l, v))); }

/* r = adam's step + decay w;  w - lr |w| / |r| r, or w - lr r where a norm is 0: You et al. 2019, algorithm 2, with
 * phi the identity. */
static void lower_lamb(Lowering *l) {
    Val w = lower_operand(l, 0), size = inverse_correction(l);
    Val step = with_decay(l, adam_step(l, lower_operand(l, 1), size, false), w);
    Val weights = norm(l, w), steps = norm(l, step), none = lower_number(l, 0), one = lower_number(l, 1);
    Val has_weights = less(l, none, weights), has_both = lower_binary(l, OP_and, has_weights, less(l, none, steps));
    Val ratio = lower_select(l, has_both, lower_binary(l, OP_div, weights, steps), one);
    Val rate = mul(l, number(l, RATE), ratio);
    lower_give(l, 0, lower_binary(l, OP_sub, w, mul(l, step, rate)));
}

/* v = alpha v + (1 - alpha) g g;  step = g / (sqrt(v) + eps).  Centered: m = alpha m + (1 - alpha) g, and v - m m in
 * place of v in the step: not below 0, where rounding takes it.  momentum: buf = momentum buf + step is the step. */
static void lower_rmsprop(Lowering *l) {
    Val w = lower_operand(l, 0), g = with_decay(l, lower_operand(l, 1), w);
    double alpha = lower_float(l, "alpha"), momentum = lower_float(l, "momentum");
    Val v = scaled(l, lower_operand(l, FIRST_MOMENT), alpha), spread, next[3];
    int count = 0;
    spread = next[count++] = add(l, v, mul(l, scaled(l, g, 1 - alpha), g));
    if (lower_bool(l, "centered")) {
        Val m = scaled(l, lower_operand(l, FIRST_MOMENT + count), alpha);
        m = next[count++] = add(l, m, scaled(l, g, 1 - alpha));
        spread = lower_binary(l, OP_maximum, lower_binary(l, OP_sub, spread, mul(l, m, m)), lower_number(l, 0));
    }
    Val denom = add(l, lower_unary(l, OP_sqrt, spread), lower_number(l, lower_float(l, "eps")));
    Val step = lower_binary(l, OP_div, g, denom);
    if (momentum != 0) {
        step = add(l, scaled(l, lower_operand(l, FIRST_MOMENT + count), momentum), step);
        next[count++] = step;
    }
    w = lower_binary(l, OP_sub, w, mul(l, step, number(l, RATE)));
    lower_give(l, 0, w);
    for (int i = 0; i < 3; i++) lower_give(l, 1 + i, i < count ? next[i] : w);
}

/* lr / (1 + (step - 1) lr_decay), in f64 */
static Val decayed_rate(Lowering *l) {
    double decay = lower_float(l, "lr_decay");
    if (decay == 0) return number(l, RATE);
    Val rate = l->op->in[RATE];
    const double *lr = constant(l, RATE);
    Val *shared = lower_memo(l, "decayed_rate %u %u %a %a", l->op->in[STEP].id, lr ? 0 : rate.id, lr ? *lr : 0, decay);
    if (!shared->id) {
        Val one = lower_number_of(l, 1.0, AMP_DT_F64), step = lower_cast(l, l->op->in[STEP], AMP_DT_F64);
        Val slower = mul(l, lower_binary(l, OP_sub, step, one), lower_number_of(l, decay, AMP_DT_F64));
        *shared = lower_cast(l, lower_binary(l, OP_div, rate, add(l, one, slower)), AMP_DT_F32);
    }
    return *shared;
}

/* sum = sum + g g;  w - rate g / (sqrt(sum) + eps) */
static void lower_adagrad(Lowering *l) {
    Val w = lower_operand(l, 0), g = with_decay(l, lower_operand(l, 1), w);
    Val sum = add(l, lower_operand(l, FIRST_MOMENT), mul(l, g, g));
    Val denom = add(l, lower_unary(l, OP_sqrt, sum), lower_number(l, lower_float(l, "eps")));
    lower_give(l, 0, lower_binary(l, OP_sub, w, lower_binary(l, OP_div, mul(l, decayed_rate(l), g), denom)));
    lower_give(l, 1, sum);
}

/* w (1 - lr decay) - lr sign(beta1 m + (1 - beta1) g);  m = beta2 m + (1 - beta2) g: Chen et al. 2023. */
static void lower_lion(Lowering *l) {
    Val w = lower_operand(l, 0), g = lower_operand(l, 1), m = lower_operand(l, FIRST_MOMENT);
    double beta1 = lower_float(l, "beta1"), beta2 = lower_float(l, "beta2");
    if (!is_zero(l, DECAY)) w = mul(l, w, kept_share(l));
    Val mixed = add(l, scaled(l, m, beta1), scaled(l, g, 1 - beta1));
    lower_give(l, 0, lower_binary(l, OP_sub, w, lower_signed_by(l, number(l, RATE), mixed)));
    lower_give(l, 1, add(l, scaled(l, m, beta2), scaled(l, g, 1 - beta2)));
}

/* average + share (w - average), where share is 1 - decay, and 1 in the first step, whose average is 0 before */
static void lower_ema(Lowering *l) {
    const double decay = lower_float(l, "decay");
    Val w = lower_operand(l, 0), average = lower_operand(l, 1), number = l->op->in[STEP];
    Val *share = lower_memo(l, "ema %u %a", number.id, decay);
    if (!share->id) {
        Val is_later = ir_emit(l->f, OP_lt, AMP_DT_BOOL, NULL, 2, lower_number_of(l, 1, AMP_DT_I64), number);
        *share = lower_select(l, is_later, lower_number(l, 1 - decay), lower_number(l, 1));
    }
    lower_give(l, 0, add(l, average, mul(l, lower_binary(l, OP_sub, w, average), *share)));
}

/* ---- muon: torch.optim.Muon ---- */

static Val to_bf16(Lowering *l, Val v) { return lower_cast(l, v, AMP_DT_BF16); }
static Val to_f32(Lowering *l, Val v) { return lower_cast(l, v, AMP_DT_F32); }

/* x / |x|, all in bf16 */
static Val of_norm_one(Lowering *l, Val v) {
    Val x = to_f32(l, to_bf16(l, v)), length = to_f32(l, to_bf16(l, norm(l, x)));
    length = lower_binary(l, OP_maximum, length, lower_number(l, lower_float(l, "eps")));
    return to_bf16(l, lower_binary(l, OP_div, x, length));
}

/* Newton and Schulz' iteration, x = a x + (b A + c A A) x with A = x x^T, of Keller Jordan's post on Muon.  Of a matrix
 * with more rows than columns it is the transpose of what its transpose gives: A = x^T x, on the right. */
static Val orthogonal(Lowering *l, Val v) {
    const Dim *d = ir_shape(l->f, v)->d;
    const bool tall = d[0].mul > d[1].mul;
    Val x = of_norm_one(l, v);
    for (int64_t i = 0; i < lower_int(l, "ns_steps"); i++) {
        Val gram = to_bf16(l, lower_contract(l, x, tall, x, !tall));
        Val square = scaled(l, lower_contract(l, gram, false, gram, false), 2.0315);
        Val update = to_bf16(l, add(l, square, scaled(l, to_f32(l, gram), -4.775)));
        Val next = tall ? lower_contract(l, x, false, update, false) : lower_contract(l, update, false, x, false);
        x = to_bf16(l, add(l, next, scaled(l, to_f32(l, x), 3.4445)));
    }
    return to_f32(l, x);
}

/* torch.optim._muon._adjust_lr, in f64, rounded once */
static Val muon_rate(Lowering *l, Val w) {
    const double rows = (double)ir_shape(l->f, w)->d[0].mul, cols = (double)ir_shape(l->f, w)->d[1].mul;
    const char *how = ir_attr(l->op, "adjust_lr")->s;
    const double *lr = constant(l, RATE);
    double ratio = sqrt(fmax(1, rows / cols));
    if (!strcmp(how, "match_rms_adamw")) ratio = 0.2 * sqrt(fmax(rows, cols));
    else if (!strcmp(how, "spectral_unclamped")) ratio = sqrt(rows / cols);
    return lr ? lower_number(l, *lr * ratio) : to_f32(l, with(l, OP_mul, l->op->in[RATE], ratio));
}

/* m = momentum m + (1 - momentum) g;  w (1 - lr decay) - rate orthogonal(m, or momentum m + (1 - momentum) g) */
static void lower_muon(Lowering *l) {
    Val w = lower_operand(l, 0), g = lower_operand(l, 1);
    double momentum = lower_float(l, "momentum");
    g = scaled(l, g, 1 - momentum);
    Val m = add(l, scaled(l, lower_operand(l, FIRST_MOMENT), momentum), g);
    Val x = orthogonal(l, lower_bool(l, "nesterov") ? add(l, scaled(l, m, momentum), g) : m);
    if (!is_zero(l, DECAY)) w = mul(l, w, kept_share(l));
    lower_give(l, 0, lower_binary(l, OP_sub, w, mul(l, x, muon_rate(l, w))));
    lower_give(l, 1, m);
}

/* ---- adafactor: torch.optim.Adafactor ---- */

/* step^beta2_decay */
static Val square_share(Lowering *l) {
    double decay = lower_float(l, "beta2_decay");
    Val *shared = lower_memo(l, "square_share %u %a", l->op->in[STEP].id, decay);
    if (shared->id) return *shared;
    Val number = lower_cast(l, l->op->in[STEP], AMP_DT_F32);
    Op *power = ir_op_new(l->f, OP_pow, &number, 1);
    ir_attr(power, "e")->f = decay;
    return *shared = ir_make_results(l->f, power, AMP_DT_F32, NULL);
}

/* min(lr, 1 / sqrt(step)) */
static Val relative_rate(Lowering *l) {
    Val rate = l->op->in[RATE];
    Val *shared = lower_memo(l, "relative_rate %u %u", l->op->in[STEP].id, rate.id);
    if (shared->id) return *shared;
    Val one = lower_number_of(l, 1.0, AMP_DT_F64), root = lower_cast(l, l->op->in[STEP], AMP_DT_F64);
    Val least = lower_binary(l, OP_div, one, lower_unary(l, OP_sqrt, root));
    return *shared = to_f32(l, lower_binary(l, OP_minimum, rate, least));
}

static Val root_mean_square(Lowering *l, Val v) {
    Dim count = dim_const(1);
    shape_count(ir_shape(l->f, v), &count);
    return scaled(l, norm(l, v), 1 / sqrt((double)count.mul));
}

/* state + share (v - state), given as state |slot| */
static Val next_squares(Lowering *l, int slot, Val v) {
    Val state = lower_reshape(l, lower_operand(l, FIRST_MOMENT + slot), ir_shape(l->f, v));
    Val next = add(l, state, mul(l, lower_binary(l, OP_sub, v, state), square_share(l)));
    lower_give(l, 1 + slot, lower_reshape(l, next, ir_shape(l->f, l->op->in[FIRST_MOMENT + slot])));
    return next;
}

/* Of a matrix rows cols / mean(rows), from the means of g g along rows and columns; of a vector the state of g g. */
static Val squares_estimate(Lowering *l, Val g) {
    Val squares = mul(l, g, g);
    if (ir_shape(l->f, g)->rank != 2) return next_squares(l, 0, squares);
    Val rows = next_squares(l, 0, lower_mean_of(l, squares, (bool[MAX_RANK]){false, true}, true));
    Val cols = next_squares(l, 1, lower_mean_of(l, squares, (bool[MAX_RANK]){true}, true));
    Val mean = lower_mean_of(l, rows, (bool[MAX_RANK]){true, true}, true);
    mean = lower_binary(l, OP_maximum, mean, lower_number(l, lower_float(l, "eps1")));
    return mul(l, lower_binary(l, OP_div, rows, mean), cols);
}

/* w (1 - lr decay) - rate max(eps2, rms(w)) u / max(1, rms(u) / d),  u = g / sqrt(max(estimate, eps1^2)) */
static void lower_adafactor(Lowering *l) {
    Val w = lower_operand(l, 0), g = lower_operand(l, 1), estimate = squares_estimate(l, g);
    double eps1 = lower_float(l, "eps1");
    estimate = lower_binary(l, OP_maximum, estimate, lower_number(l, eps1 * eps1));
    Val u = lower_binary(l, OP_div, g, lower_unary(l, OP_sqrt, estimate));
    Val size = lower_binary(l, OP_maximum, root_mean_square(l, w), lower_number(l, lower_float(l, "eps2")));
    Val clip = scaled(l, root_mean_square(l, u), 1 / lower_float(l, "d"));
    clip = lower_binary(l, OP_maximum, clip, lower_number(l, 1));
    Val rate = lower_binary(l, OP_div, mul(l, relative_rate(l), size), clip);
    if (!is_zero(l, DECAY)) w = mul(l, w, kept_share(l));
    Val next = lower_binary(l, OP_sub, w, mul(l, u, rate));
    lower_give(l, 0, next);
    if (ir_shape(l->f, g)->rank != 2) lower_give(l, 2, next);
}

const LowerRow lower_training_ops[OP_COUNT] = {
    [OP_scale_loss] = {lower_scale_loss, TAKES_PLAIN},
    [OP_unscale] = {lower_unscale, TAKES_PLAIN, WEIGHTS_ALIKE},
    [OP_inverse_scale] = {lower_inverse_scale, TAKES_PLAIN},
    [OP_all_finite] = {lower_all_finite, TAKES_PLAIN, WEIGHTS_EACH},
    [OP_all_reduce] = {lower_kept, TAKES_EITHER, .stays = true},
    [OP_reduce_scatter] = {lower_kept, TAKES_EITHER, .stays = true},
    [OP_all_gather] = {lower_kept, TAKES_EITHER, .stays = true},
    [OP_gather_batches] = {lower_kept, TAKES_EITHER, .stays = true},
    [OP_sum_ranks] = {lower_kept, TAKES_EITHER, .stays = true},
    [OP_update_scale] = {lower_update_scale, TAKES_PLAIN},
    [OP_is_due] = {lower_is_due, TAKES_PLAIN},
    [OP_global_norm] = {lower_global_norm, TAKES_PLAIN, WEIGHTS_EACH},
    [OP_clip_by_norm] = {lower_clip_by_norm, TAKES_PLAIN, WEIGHTS_ALIKE},
    [OP_constant_rate] = {lower_schedule, TAKES_PLAIN},
    [OP_cosine_rate] = {lower_schedule, TAKES_PLAIN},
    [OP_step_rate] = {lower_schedule, TAKES_PLAIN},
    [OP_linear_rate] = {lower_schedule, TAKES_PLAIN},
    [OP_one_cycle_rate] = {lower_schedule, TAKES_PLAIN},
    [OP_settable_rate] = {lower_schedule, TAKES_PLAIN},
    [OP_sgd] = {lower_sgd, TAKES_PLAIN, WEIGHTS_ALIKE},
    [OP_adam] = {lower_adam, TAKES_PLAIN, WEIGHTS_ALIKE},
    [OP_adamw] = {lower_adamw, TAKES_PLAIN, WEIGHTS_ALIKE},
    [OP_adafactor] = {lower_adafactor, TAKES_PLAIN},
    [OP_adagrad] = {lower_adagrad, TAKES_PLAIN, WEIGHTS_ALIKE},
    [OP_lamb] = {lower_lamb, TAKES_PLAIN, WEIGHTS_ALIKE},
    [OP_lion] = {lower_lion, TAKES_PLAIN, WEIGHTS_ALIKE},
    [OP_muon] = {lower_muon, TAKES_PLAIN},
    [OP_rmsprop] = {lower_rmsprop, TAKES_PLAIN, WEIGHTS_ALIKE},
    [OP_ema] = {lower_ema, TAKES_PLAIN, WEIGHTS_ALIKE},
};
