/* signatures.c: initialisers, optimizers, schedules, loss scales and types of states: calls without tensors, which the
 * module keeps as calls, with every argument set to its value or its default.  Names, orders and defaults are
 * PyTorch's. */
#include "frontend/elaborate.h"

#include <math.h>

#include "base/scale_range.h"
#include "ir/loss_scale.h"
#include "ir/state_type.h"

/* ---- ranges ----------------------------------------------------------------------------------------------- */

typedef enum Range {
    ANY,
    FINITE,
    NOT_NEGATIVE,
    NOT_POSITIVE,
    POSITIVE,
    FRACTION,
    BELOW_ONE,
    ABOVE_ONE,
    AT_LEAST_ONE,
    USABLE_SCALE,
    RANGE_COUNT
} Range;

static bool is_any(double v) { return !isnan(v); }
static bool is_finite(double v) { return elab_is_finite_f32(v); }
static bool is_not_negative(double v) { return v >= 0 && elab_is_finite_f32(v); }
static bool is_not_positive(double v) { return v <= 0 && elab_is_finite_f32(v); }
static bool is_positive(double v) { return v > 0; }
static bool is_fraction(double v) { return v > 0 && v < 1; }
static bool is_below_one(double v) { return v >= 0 && v < 1; }
static bool is_above_one(double v) { return v > 1 && elab_is_finite_f32(v); }
static bool is_at_least_one(double v) { return v >= 1; }
static bool is_usable_scale(double v) { return amp_scale_is_usable(v); }

static const struct {
    bool (*holds)(double);
    const char *text;
} ranges[RANGE_COUNT] = {
    [ANY] = {is_any, "a number"},
    [FINITE] = {is_finite, "finite"},
    [NOT_NEGATIVE] = {is_not_negative, "finite and at least 0"},
    [NOT_POSITIVE] = {is_not_positive, "finite and at most 0"},
    [POSITIVE] = {is_positive, "more than 0"},
    [FRACTION] = {is_fraction, "more than 0 and less than 1"},
    [BELOW_ONE] = {is_below_one, "at least 0 and less than 1"},
    [ABOVE_ONE] = {is_above_one, "finite and more than 1"},
    [AT_LEAST_ONE] = {is_at_least_one, "at least 1"},
    [USABLE_SCALE] = {is_usable_scale, AMP_SCALE_RANGE},
};

/* ---- the table -------------------------------------------------------------------------------------------- */

enum { MAX_SIGNATURE = 7 };

typedef struct SignatureArg {
    const char *name;
    AttrType type;
    Range range;
    bool required;
    AttrValue initial;
    bool takes_schedule;
    const char *const *words; /* that a symbol may be, NULL at the end */
} SignatureArg;

typedef struct Signature {
    const char *name; /* of a loss scale or a type; others: see name_of */
    SignatureKind kind;
    SignatureArg args[MAX_SIGNATURE];
    bool (*check)(Elab *e, const Expr *x, const Call *call); /* relations between arguments; or NULL */
    InitialiserKind initialiser;
    Opcode op;          /* of an optimizer or a schedule */
    bool fits_counters; /* initialiser that can fill an i64 */
} Signature;

static const char *name_of(const Signature *s) {
    if (s->kind == SIGNATURE_INITIALISER) return amp_initialisers[s->initialiser].name;
    if (s->kind == SIGNATURE_SCHEDULE) return ir_schedule_name(s->op);
    return s->kind == SIGNATURE_OPTIMIZER ? ir_op_info[s->op].name : s->name;
}

static double number(const Call *call, const char *name) { return ir_call_arg(call, name)->value.f; }

static bool check_order(Elab *e, const Expr *x, const Call *call, const char *low, const char *high) {
    if (number(call, low) <= number(call, high)) return true;
    Text t;
    text_init(&t, e->a);
    text_printf(&t, "%s: %s is ", call->name, low);
    text_put_double(&t, number(call, low));
    text_printf(&t, ", more than %s, which is ", high);
    text_put_double(&t, number(call, high));
    elab_error(e, x->loc, "%s", text_str(&t));
    return false;
}

static bool check_warmup(Elab *e, const Expr *x, const Call *call) {
    int64_t warmup = ir_call_arg(call, "warmup")->value.i, steps = ir_call_arg(call, "steps")->value.i;
    if (warmup <= steps) return true;
    elab_error(e, x->loc, "%s: warmup is %lld, more than steps, which is %lld", call->name, (long long)warmup,
               (long long)steps);
    return false;
}

static bool check_uniform(Elab *e, const Expr *x, const Call *call) { return check_order(e, x, call, "low", "high"); }

static bool check_dynamic(Elab *e, const Expr *x, const Call *call) {
    return check_order(e, x, call, "min", "init") && check_order(e, x, call, "init", "max");
}

/* torch.optim.Muon refuses 100 and more. */
static bool check_muon(Elab *e, const Expr *x, const Call *call) {
    const int64_t steps = ir_call_arg(call, "ns_steps")->value.i;
    if (steps < 100) return true;
    elab_error(e, x->loc, "muon: ns_steps must be less than 100; this is %lld", (long long)steps);
    return false;
}

static bool check_sgd(Elab *e, const Expr *x, const Call *call) {
    if (!ir_call_arg(call, "nesterov")->value.b || number(call, "momentum") > 0) return true;
    elab_error(e, x->loc, "sgd: nesterov needs a momentum of more than 0");
    return false;
}

/* clang-format off */
#define REQUIRED(name, range) {name, ATTR_FLOAT, range, true, {0}, false}
#define NUMBER(name, range, v) {name, ATTR_FLOAT, range, false, {.f = (v)}, false}
#define REQUIRED_RATE(name) {name, ATTR_FLOAT, NOT_NEGATIVE, true, {0}, true}
#define RATE(name, v) {name, ATTR_FLOAT, NOT_NEGATIVE, false, {.f = (v)}, true}
#define COUNT(name, range, v) {name, ATTR_INT, range, false, {.i = (v)}, false}
#define REQUIRED_COUNT(name, range) {name, ATTR_INT, range, true, {0}, false}
#define INIT(name) .kind = SIGNATURE_INITIALISER, .initialiser = INIT_##name
#define OPTIM(name) .kind = SIGNATURE_OPTIMIZER, .op = OP_##name
#define SCHEDULE(name) .kind = SIGNATURE_SCHEDULE, .op = OP_##name##_rate
#define FLAG(name) {name, ATTR_BOOL, ANY, false, {.b = false}, false}
#define WORD_OF(name, v, list) {name, ATTR_SYMBOL, ANY, false, {.s = (v)}, false, list}
/* clang-format on */

static const char *const lr_adjustments[] = {"original", "match_rms_adamw", "spectral_unclamped", NULL};
static const char *const roundings[] = {ROUNDING_STOCHASTIC, ROUNDING_NEAREST, NULL};

static const Signature signatures[] = {
    {INIT(zeros), .fits_counters = true},
    {INIT(ones), .fits_counters = true},
    {INIT(constant), .args = {REQUIRED("v", FINITE)}},
    {INIT(uniform), .args = {REQUIRED("low", FINITE), REQUIRED("high", FINITE)}, .check = check_uniform},
    {INIT(normal), .args = {REQUIRED("std", NOT_NEGATIVE), NUMBER("mean", FINITE, 0.0)}},
    {INIT(trunc_normal), .args = {REQUIRED("std", NOT_NEGATIVE)}},
    {INIT(kaiming_uniform), .args = {REQUIRED("a", FINITE)}},
    {INIT(kaiming_normal)},
    {INIT(xavier_uniform)},
    {INIT(xavier_normal)},

    {OPTIM(sgd),
     .args = {REQUIRED_RATE("lr"), NUMBER("momentum", NOT_NEGATIVE, 0.0), FLAG("nesterov"), RATE("weight_decay", 0.0)},
     .check = check_sgd},
    {OPTIM(adam), .args = {REQUIRED_RATE("lr"), NUMBER("beta1", BELOW_ONE, 0.9), NUMBER("beta2", BELOW_ONE, 0.999),
                           NUMBER("eps", NOT_NEGATIVE, 1e-8), RATE("weight_decay", 0.0)}},
    {OPTIM(adamw), .args = {REQUIRED_RATE("lr"), NUMBER("beta1", BELOW_ONE, 0.9), NUMBER("beta2", BELOW_ONE, 0.999),
                            NUMBER("eps", NOT_NEGATIVE, 1e-8), RATE("weight_decay", 0.01)}},
    {OPTIM(adafactor),
     .args = {RATE("lr", 0.01), NUMBER("beta2_decay", NOT_POSITIVE, -0.8), NUMBER("eps1", POSITIVE, 0x1p-23),
              NUMBER("eps2", NOT_NEGATIVE, 1e-3), NUMBER("d", AT_LEAST_ONE, 1.0), RATE("weight_decay", 0.0)}},
    {OPTIM(adagrad),
     .args = {RATE("lr", 0.01), NUMBER("lr_decay", NOT_NEGATIVE, 0.0), RATE("weight_decay", 0.0),
              NUMBER("initial_accumulator_value", NOT_NEGATIVE, 0.0), NUMBER("eps", NOT_NEGATIVE, 1e-10)}},
    {OPTIM(lamb), .args = {RATE("lr", 1e-3), NUMBER("beta1", BELOW_ONE, 0.9), NUMBER("beta2", BELOW_ONE, 0.999),
                           NUMBER("eps", NOT_NEGATIVE, 1e-6), RATE("weight_decay", 0.01)}},
    {OPTIM(lion), .args = {RATE("lr", 1e-4), NUMBER("beta1", BELOW_ONE, 0.9), NUMBER("beta2", BELOW_ONE, 0.99),
                           RATE("weight_decay", 0.0)}},
    {OPTIM(muon),
     .args = {RATE("lr", 1e-3),
              RATE("weight_decay", 0.1),
              NUMBER("momentum", BELOW_ONE, 0.95),
              {"nesterov", ATTR_BOOL, ANY, false, {.b = true}, false},
              COUNT("ns_steps", AT_LEAST_ONE, 5),
              NUMBER("eps", POSITIVE, 1e-7),
              WORD_OF("adjust_lr", "original", lr_adjustments)},
     .check = check_muon},
    {OPTIM(rmsprop), .args = {REQUIRED_RATE("lr"), NUMBER("alpha", BELOW_ONE, 0.99), NUMBER("eps", NOT_NEGATIVE, 1e-8),
                              RATE("weight_decay", 0.0), NUMBER("momentum", NOT_NEGATIVE, 0.0), FLAG("centered")}},

    {"dynamic", SIGNATURE_LOSS_SCALE,
     .args = {REQUIRED("init", USABLE_SCALE), NUMBER("growth", ABOVE_ONE, LOSS_SCALE_GROWTH),
              NUMBER("backoff", FRACTION, LOSS_SCALE_BACKOFF), COUNT("interval", AT_LEAST_ONE, LOSS_SCALE_INTERVAL),
              NUMBER("min", USABLE_SCALE, LOSS_SCALE_MIN), NUMBER("max", POSITIVE, LOSS_SCALE_MAX)},
     .check = check_dynamic},
    {"static", SIGNATURE_LOSS_SCALE, .args = {REQUIRED("v", USABLE_SCALE)}},

    {.name = "f32", .kind = SIGNATURE_STATE_TYPE},
    {"bf16", SIGNATURE_STATE_TYPE, .args = {WORD_OF("rounding", ROUNDING_STOCHASTIC, roundings)}},
    {"f16", SIGNATURE_STATE_TYPE, .args = {WORD_OF("rounding", ROUNDING_STOCHASTIC, roundings)}},
    {.name = STATE_TYPE_F8, .kind = SIGNATURE_STATE_TYPE},

    {SCHEDULE(constant), .args = {REQUIRED("v", NOT_NEGATIVE)}},
    {SCHEDULE(cosine),
     .args = {REQUIRED("peak", NOT_NEGATIVE), REQUIRED_COUNT("warmup", NOT_NEGATIVE),
              REQUIRED_COUNT("steps", AT_LEAST_ONE), NUMBER("floor", NOT_NEGATIVE, 0.0)},
     .check = check_warmup},
    {SCHEDULE(step),
     .args = {REQUIRED("base", NOT_NEGATIVE), REQUIRED_COUNT("every", AT_LEAST_ONE), REQUIRED("gamma", NOT_NEGATIVE)}},
    {SCHEDULE(linear),
     .args = {REQUIRED("peak", NOT_NEGATIVE), REQUIRED_COUNT("warmup", NOT_NEGATIVE),
              REQUIRED_COUNT("steps", AT_LEAST_ONE)},
     .check = check_warmup},
    {SCHEDULE(settable), .args = {REQUIRED("v", NOT_NEGATIVE)}},
    {SCHEDULE(one_cycle), .args = {REQUIRED("peak", NOT_NEGATIVE), REQUIRED_COUNT("steps", AT_LEAST_ONE)}},
};

static const char *const kind_names[SIGNATURE_KIND_COUNT] = {
    [SIGNATURE_INITIALISER] = "an initialiser", [SIGNATURE_OPTIMIZER] = "an optimizer",
    [SIGNATURE_LOSS_SCALE] = "a loss scale",    [SIGNATURE_STATE_TYPE] = "a type of states",
    [SIGNATURE_SCHEDULE] = "a schedule",
};

static const char *const kind_examples[SIGNATURE_KIND_COUNT] = {
    [SIGNATURE_INITIALISER] = "zeros()",
    [SIGNATURE_OPTIMIZER] = "adamw(lr = 0.001)",
    [SIGNATURE_LOSS_SCALE] = "dynamic(init = 65536.0), static(1024.0) or none",
    [SIGNATURE_STATE_TYPE] = "bf16 or bf16(rounding = nearest)",
    [SIGNATURE_SCHEDULE] = "cosine(peak = 0.001, warmup = 100, steps = 10000)",
};

/* A call in place of a number is a schedule, unless it is computed at compile time. */
static bool is_schedule(const Expr *x) {
    return x->kind == EXPR_CALL && !elab_is_static_builtin(x->call.callee->text, NULL, 0);
}

bool elab_refuse_schedule(Elab *e, const Expr *x, const char *what) {
    if (!is_schedule(x)) return false;
    Diag *diag = elab_error(e, x->loc, "%s is a number, not %s(...)", what, x->call.callee->text);
    diag_help(e->d, diag, "an optimizer's lr and weight_decay take schedules");
    return true;
}

enum { SIGNATURE_COUNT = sizeof signatures / sizeof signatures[0] };

static const Signature *find_signature(Elab *e, const Expr *x, SignatureKind kind) {
    const char *names[SIGNATURE_COUNT];
    int count = 0;
    for (int i = 0; i < SIGNATURE_COUNT; i++) {
        if (signatures[i].kind != kind) continue;
        if (!strcmp(name_of(&signatures[i]), x->call.callee->text)) return &signatures[i];
        names[count++] = name_of(&signatures[i]);
    }
    Diag *diag = elab_error(e, x->call.callee->loc, "'%s' is not %s", x->call.callee->text, kind_names[kind]);
    elab_help_choice(e, diag, x->call.callee->text, names, count);
    return NULL;
}

static int arg_count(const Signature *s) {
    int count = 0;
    while (count < MAX_SIGNATURE && s->args[count].name) count++;
    return count;
}

/* ---- for editors ------------------------------------------------------------------------------------------ */

const char *elab_signature_name(int index, const char **what) {
    if (index >= SIGNATURE_COUNT) return NULL;
    *what = kind_names[signatures[index].kind];
    return name_of(&signatures[index]);
}

bool elab_signature_argument(int index, int argument, CallSetting *out) {
    static const char *const types[] = {
        [ATTR_INT] = "int", [ATTR_FLOAT] = "float", [ATTR_BOOL] = "bool", [ATTR_SYMBOL] = "symbol"};
    if (argument >= arg_count(&signatures[index])) return false;
    const SignatureArg *arg = &signatures[index].args[argument];
    *out = (CallSetting){arg->name, types[arg->type], arg->required};
    return true;
}

/* ---- arguments -------------------------------------------------------------------------------------------- */

static const SignatureArg *arg_named(Elab *e, const Signature *s, const Name *name) {
    const char *names[MAX_SIGNATURE];
    int count = arg_count(s);
    for (int i = 0; i < count; i++) {
        if (!strcmp(s->args[i].name, name->text)) return &s->args[i];
        names[i] = s->args[i].name;
    }
    Diag *diag = elab_error(e, name->loc, "%s has no argument '%s'", name_of(s), name->text);
    elab_help_choice(e, diag, name->text, names, count);
    return NULL;
}

static bool check_range(Elab *e, const Expr *x, const char *what, Range range, double v, const Item *item) {
    if (ranges[range].holds(v)) return true;
    Diag *diag = elab_error(e, x->loc, "%s must be %s; this is %s", what, ranges[range].text, item_describe(e, item));
    elab_help_infinite_f32(e, diag, v);
    return false;
}

static bool set_schedule(Elab *e, const SignatureArg *arg, const Expr *x, Call *out) {
    Call *schedule = arena_new(e->a, Call);
    if (!strcmp(x->call.callee->text, "settable") && strcmp(arg->name, "lr")) {
        elab_error(e, x->loc, "%s: only lr can be settable", arg->name);
        return false;
    }
    if (!elab_signature(e, x, SIGNATURE_SCHEDULE, schedule)) return false;
    ir_call_set(e->a, out, arg->name, ATTR_FLOAT, (AttrValue){.f = 0.0});
    ir_call_arg(out, arg->name)->call = schedule;
    return true;
}

static bool set_symbol(Elab *e, const SignatureArg *arg, const Expr *x, const char *what, Call *out) {
    Item item = elab_eval_static(e, x, what, STATIC_SYMBOL);
    int count = 0;
    if (item.kind == ITEM_ERROR) return false;
    for (; arg->words[count]; count++)
        if (!strcmp(item.s, arg->words[count])) {
            ir_call_set(e->a, out, arg->name, ATTR_SYMBOL, (AttrValue){.s = item.s});
            return true;
        }
    Diag *diag = elab_error(e, x->loc, "%s cannot be '%s'", what, item.s);
    elab_help_choice(e, diag, item.s, arg->words, count);
    return false;
}

static bool set_arg(Elab *e, const Signature *s, const SignatureArg *arg, const Expr *x, Call *out) {
    static const StaticType types[] = {[ATTR_INT] = STATIC_INT, [ATTR_FLOAT] = STATIC_FLOAT, [ATTR_BOOL] = STATIC_BOOL};
    const char *what = arena_printf(e->a, "%s: %s", name_of(s), arg->name);
    if (is_schedule(x) && arg->takes_schedule) return set_schedule(e, arg, x, out);
    if (elab_refuse_schedule(e, x, what)) return false;
    if (arg->type == ATTR_SYMBOL) return set_symbol(e, arg, x, what, out);
    Item item = elab_eval_static(e, x, what, types[arg->type]);
    if (item.kind == ITEM_ERROR) return false;
    if (arg->type == ATTR_BOOL) {
        ir_call_set(e->a, out, arg->name, ATTR_BOOL, (AttrValue){.b = item.b});
        return true;
    }
    double v = arg->type == ATTR_INT ? (double)item.i.mul : item.f;
    const AttrValue value = arg->type == ATTR_INT ? (AttrValue){.i = item.i.mul} : (AttrValue){.f = v};
    ir_call_set(e->a, out, arg->name, arg->type, value);
    return check_range(e, x, what, arg->range, v, &item);
}

static bool set_given(Elab *e, const Signature *s, const Expr *x, bool *given, Call *out) {
    bool good = true, named = false;
    for (int i = 0; i < x->call.args.len; i++) {
        const Arg *written = &x->call.args.data[i];
        named = named || written->name;
        if (named && !written->name) {
            elab_error(e, written->loc, "%s: positional arguments come before named ones", name_of(s));
            return false;
        }
        if (!written->name && i >= arg_count(s)) {
            elab_error(e, written->loc, "%s takes %d argument%s", name_of(s), arg_count(s),
                       arg_count(s) == 1 ? "" : "s");
            return false;
        }
        const SignatureArg *arg = written->name ? arg_named(e, s, written->name) : &s->args[i];
        if (arg && given[arg - s->args]) {
            elab_error(e, written->loc, "%s: '%s' is given twice", name_of(s), arg->name);
            good = false;
        } else if (arg) {
            given[arg - s->args] = true;
            good = set_arg(e, s, arg, written->value, out) && good;
        } else {
            good = false;
        }
    }
    return good;
}

/* Arguments in the order of the table, with defaults. */
static bool complete(Elab *e, const Signature *s, const Expr *x, const bool *given, Call *out) {
    Call ordered = {.name = name_of(s), .pos = elab_pos(e, x->loc)};
    for (int i = 0; i < arg_count(s); i++) {
        const SignatureArg *arg = &s->args[i];
        if (given[i]) {
            vec_push(e->a, &ordered.args, *ir_call_arg(out, arg->name));
        } else if (arg->required) {
            elab_error(e, x->loc, "%s needs the argument '%s'", name_of(s), arg->name);
            return false;
        } else {
            ir_call_set(e->a, &ordered, arg->name, arg->type, arg->initial);
        }
    }
    *out = ordered;
    return true;
}

bool elab_signature(Elab *e, const Expr *x, SignatureKind kind, Call *out) {
    *out = (Call){0};
    if (x->kind != EXPR_CALL) {
        elab_error(e, x->loc, "%s is expected here, for example %s", kind_names[kind], kind_examples[kind]);
        return false;
    }
    const Signature *s = find_signature(e, x, kind);
    if (!s) return false;
    if (elab_refuse_sharing(e, x)) return false;
    if (x->call.has_semicolon || x->call.as) {
        elab_error(e, x->loc, "%s takes neither ';' nor 'as'", name_of(s));
        return false;
    }
    bool given[MAX_SIGNATURE] = {false};
    Call collected = {0};
    bool good = set_given(e, s, x, given, &collected);
    if (!good || !complete(e, s, x, given, &collected)) return false;
    if (s->check && !s->check(e, x, &collected)) return false;
    *out = collected;
    return true;
}

/* ---- initialisers and their targets ----------------------------------------------------------------------- */

bool elab_check_initialiser(Elab *e, Loc loc, const Call *init, const State *state) {
    const Signature *s = signatures;
    while (s->kind != SIGNATURE_INITIALISER || strcmp(name_of(s), init->name)) s++; /* elab_signature has found it */
    if (state->dtype == AMP_DT_I64 && !s->fits_counters) {
        elab_error(e, loc, "an i64 is initialised with zeros() or ones(), not with %s(...)", init->name);
        return false;
    }
    if (state->shape.rank >= (int)amp_initialisers[s->initialiser].rank_min) return true;
    elab_error(e, loc, "%s needs two dimensions for its fans; %s has %d", init->name, state->name, state->shape.rank);
    return false;
}
