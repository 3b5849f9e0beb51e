/* model_facts.c: what the descriptor holds of a module and no single field of the IR does: inputs with the bounds of
 * those that are indexes, initialisers with all their arguments. */
#include "codegen/descriptor.h"

#include "amp/model_abi.h"
#include "ir/operands.h"

int model_input_index(const ModelInputs *inputs, const char *name) {
    for (int i = 0; i < inputs->len; i++)
        if (!strcmp(inputs->data[i].value->name, name)) return i;
    return -1;
}

/* ---- inputs that are used as indexes ----------------------------------------------------------------------------- */

/* Labels of nll_loss are classes, ids of embedding are rows of its table.  The runtime checks every number of such an
 * input in every call, so that no kernel reads past a table and no loss is wrong in silence. */

typedef struct Indexes {
    const Func *f;
    ModelInputs *inputs;
    amp_error *err;
    int64_t bound, ignore; /* of the op at hand */
    const Op *op;
} Indexes;

/* An input that several ops use must suit them all. */
static void narrow(ModelInput *in, int64_t bound, int64_t ignore) {
    if (!in->index_bound) {
        in->index_bound = bound;
        in->index_ignore = ignore;
        return;
    }
    if (bound < in->index_bound) in->index_bound = bound;
    if (ignore != in->index_ignore) in->index_ignore = INT64_MIN;
}

static amp_status refuse(const Indexes *x, const char *what) {
    return amp_fail(
        x->err, AMP_UNSUPPORTED,
        "%s:%d:%d: %s: %s; ids must come from an input, argmax or top_k, or be kept within the %lld rows of the table: "
        "ids %% %lld, or minimum(maximum(ids, 0), %lld)",
        x->op->pos.file ? x->op->pos.file : "model", x->op->pos.line, x->op->pos.column,
        x->op->path ? x->op->path : "embedding", what, (long long)x->bound, (long long)x->bound,
        (long long)x->bound - 1);
}

/* The numbers 0 .. count - 1 along a dimension. */
static amp_status check_iota(const Indexes *x, const Op *iota) {
    const Shape *s = ir_shape(x->f, iota->out[0]);
    int64_t dim = ir_attr(iota, "dim")->i;
    Dim d = s->rank ? s->d[dim < 0 ? dim + s->rank : dim] : dim_const(1);
    const int64_t most = dim_eval(d, (Sizes){1, x->f->module->length.most});
    return !d.n && most <= x->bound ? AMP_OK : refuse(x, "its ids are counted beyond the table");
}

static amp_status check_number(const Indexes *x, double value) {
    return value >= 0 && value < (double)x->bound ? AMP_OK : refuse(x, "one of its ids is outside of the table");
}

/* The op that |o| was lowered from. */
static bool is_part_of(const Func *f, const Op *o, Opcode code) {
    const Region *r = o->region && o->region <= (uint32_t)f->regions.len ? &f->regions.data[o->region - 1] : NULL;
    return r && r->op && !strcmp(r->op, ir_op_info[code].name);
}

/* The last op of argmax, but for a reshape, and of each place of top_k: the smallest place among those that are
 * folded. */
static amp_status check_place(const Indexes *x, const Op *fold) {
    bool several = is_part_of(x->f, fold, OP_top_k);
    if (!several && !is_part_of(x->f, fold, OP_argmax)) return refuse(x, "its ids are computed");
    const Shape *s = ir_shape(x->f, fold->in[0]);
    const Dims *dims = &ir_attr(fold, "dims")->dims;
    int64_t places = 1;
    for (int i = 0; i < dims->count; i++) {
        Dim d = s->d[dims->at[i] < 0 ? dims->at[i] + s->rank : dims->at[i]];
        if (d.n) return refuse(x, "argmax looks among samples");
        places *= dim_eval(d, (Sizes){1, x->f->module->length.most});
    }
    if (places <= x->bound) return AMP_OK;
    return refuse(x, several ? "top_k looks among more places" : "argmax looks among more places");
}

/* ---- ids that are computed within bounds ------------------------------------------------------------------------- */

typedef struct Between {
    int64_t low, high;
} Between;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* What i32 arithmetic says of |v|: constants, remainders by them, extremes and choices. */
static Between between(const Func *f, Val v) {
    const Between any = {INT32_MIN, INT32_MAX};
    const Op *o = ir_def(f, v);
    Between a, b;
    if (!o || ir_dtype(f, v) != AMP_DT_I32) return any;
    switch (o->code) {
    case OP_const: a.low = a.high = (int64_t)ir_attr(o, "value")->f; return a;
    case OP_reshape:
    case OP_permute:
    case OP_slice:
    case OP_expand:
    case OP_broadcast: return between(f, o->in[0]);
    case OP_remainder: b = between(f, o->in[1]); return b.low > 0 ? (Between){0, b.high - 1} : any;
    case OP_maximum:
        a = between(f, o->in[0]), b = between(f, o->in[1]);
        return (Between){most(a.low, b.low), most(a.high, b.high)};
    case OP_minimum:
        a = between(f, o->in[0]), b = between(f, o->in[1]);
        return (Between){least(a.low, b.low), least(a.high, b.high)};
    case OP_select: /* of the numbers of a tensor */
        a = between(f, o->in[1]), b = between(f, o->in[2]);
        return (Between){least(a.low, b.low), most(a.high, b.high)};
    default: return any;
    }
}

static amp_status check_between(const Indexes *x, Val v) {
    const Between b = between(x->f, v);
    return b.low >= 0 && b.high < x->bound ? AMP_OK : refuse(x, "its ids may be outside of the table");
}

/* Follows ids back to the inputs that they are, through ops that only move them. */
static amp_status follow(const Indexes *x, Val v) {
    const Value *value = ir_value(x->f, v);
    const Op *o = ir_def(x->f, v);
    int input = value->kind == VAL_INPUT ? model_input_index(x->inputs, value->name) : -1;
    if (input >= 0) {
        narrow(&x->inputs->data[input], x->bound, x->ignore);
        return AMP_OK;
    }
    switch (o ? o->code : OP_NONE) {
    case OP_pad: AMP_TRY(check_number(x, ir_attr(o, "value")->f)); return follow(x, o->in[0]);
    case OP_cast:
        if (ir_dtype(x->f, o->in[0]) != AMP_DT_I32) return refuse(x, "its ids are converted from other numbers");
        return follow(x, o->in[0]);
    case OP_reshape:
    case OP_permute:
    case OP_slice:
    case OP_expand:
    case OP_broadcast: return follow(x, o->in[0]);
    case OP_concat:
        for (int i = 0; i < o->n_in; i++) AMP_TRY(follow(x, o->in[i]));
        return AMP_OK;
    case OP_iota: return check_iota(x, o);
    case OP_const: return check_number(x, ir_attr(o, "value")->f);
    case OP_reduce_min: return check_place(x, o);
    case OP_remainder:
    case OP_maximum:
    case OP_minimum:
    case OP_select: return check_between(x, v);
    default: return refuse(x, "its ids are computed");
    }
}

static amp_status find_rows(const Func *f, const Op *gather, ModelInputs *inputs, amp_error *err) {
    Indexes x = {.f = f, .inputs = inputs, .err = err, .op = gather, .ignore = INT64_MIN};
    if (dim_varies(ir_shape(f, gather->in[0])->d[0])) return AMP_OK; /* its kernel keeps them inside */
    x.bound = ir_shape(f, gather->in[0])->d[0].mul;
    return follow(&x, gather->in[1]);
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

/* Lowering makes of nll_loss:  iota == labels, spread over the classes;  labels == const(ignore);  all in one region.
 * Labels that are computed are not inputs: they stay unchecked, as a wrong one only matches no class. */
typedef struct Labels {
    const Op *op; /* that compares them with the classes; NULL: no nll_loss */
    int64_t bound, ignore;
} Labels;

static void note_comparison(const Func *f, const Op *o, Labels *labels) {
    const Op *a = ir_def(f, o->in[0]), *b = ir_def(f, o->in[1]);
    if (b && b->code == OP_const && ir_dtype(f, o->in[1]) == AMP_DT_I32)
        labels->ignore = (int64_t)ir_attr(b, "value")->f;
    if (!a || a->code != OP_iota) return;
    const Shape *s = ir_shape(f, o->out[0]);
    labels->op = o;
    labels->bound = dim_varies(s->d[s->rank - 1]) ? 0 : s->d[s->rank - 1].mul;
}

static void find_labels(const Func *f, ModelInputs *inputs) {
    Labels *labels = arena_array(f->module->arena, Labels, f->regions.len + 1);
    for (int i = 0; i <= f->regions.len; i++) labels[i].ignore = INT64_MIN;
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        if (o->code == OP_eq && is_part_of(f, o, OP_nll_loss)) note_comparison(f, o, &labels[o->region]);
    }
    for (int i = 1; i <= f->regions.len; i++) {
        const Labels *l = &labels[i];
        amp_error computed; /* labels that are: ignored */
        Indexes x = {f, inputs, &computed, l->bound, l->ignore, l->op};
        if (l->op && l->bound > 0) (void)follow(&x, l->op->in[1]);
    }
}

static amp_status find_indexes(const Module *m, ModelInputs *inputs, amp_error *err) {
    for (int i = 0; i < m->funcs.len; i++) {
        const Func *f = m->funcs.data[i];
        find_labels(f, inputs);
        for (int j = 0; j < f->body.len; j++)
            if (ir_op_at(f, j)->code == OP_gather) AMP_TRY(find_rows(f, ir_op_at(f, j), inputs, err));
    }
    return AMP_OK;
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static void add_inputs(const Func *f, int kind, ModelInputs *out) {
    for (int i = 0; f && i < f->inputs.len; i++) {
        const Value *v = ir_value(f, f->inputs.data[i]);
        if (v->kind != VAL_INPUT || model_input_index(out, v->name) >= 0) continue;
        ModelInput in = {.value = v, .kind = kind};
        vec_push(f->module->arena, out, in);
    }
}

amp_status model_inputs(const Module *m, ModelInputs *out, amp_error *err) {
    const Func *infer = ir_program(m, PROGRAM_INFER);
    int of_training = infer ? AMP_INPUT_OF_TRAINING : AMP_INPUT_OF_MODEL;
    *out = (ModelInputs){0};
    add_inputs(infer, AMP_INPUT_OF_MODEL, out);
    add_inputs(ir_program(m, PROGRAM_EVAL), of_training, out);
    add_inputs(ir_program(m, PROGRAM_TRAIN_STEP), of_training, out);
    add_inputs(ir_program(m, PROGRAM_MICRO_STEP), of_training, out);
    add_inputs(ir_program(m, PROGRAM_FIGURES), AMP_INPUT_AVERAGE, out);
    add_inputs(ir_program(m, PROGRAM_METRICS), AMP_INPUT_AVERAGE, out);
    return find_indexes(m, out, err);
}

/* ---- initialisers ------------------------------------------------------------------------------------------------ */

static double number_of(const CallArg *a) { return a->type == ATTR_FLOAT ? a->value.f : (double)a->value.i; }

/* By name, or by position where the argument has none. */
static const CallArg *find_arg(const Call *c, const char *name, int position) {
    for (int i = 0; i < c->args.len; i++)
        if (c->args.data[i].name ? !strcmp(c->args.data[i].name, name) : i == position) return &c->args.data[i];
    return NULL;
}

/* An argument that is left out is 0. */
static bool fill_args(const Initialiser *rule, const Call *c, ModelInit *out) {
    out->name = rule->name;
    for (uint32_t i = 0; i < rule->args_max; i++) {
        const CallArg *a = find_arg(c, rule->args[i], (int)i);
        if (!a && i < rule->args_min) return false;
        out->args[out->count++] = a ? number_of(a) : 0;
    }
    return true;
}

bool model_init(const Call *c, ModelInit *out) {
    *out = (ModelInit){0};
    if (!c->name) return true;
    const Initialiser *rule = amp_initialiser(c->name);
    return rule && fill_args(rule, c, out);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

bool model_is_scaled(const Module *m) {
    const Func *step = ir_program(m, PROGRAM_TRAIN_STEP), *f = step ? step : ir_program(m, PROGRAM_APPLY_STEP);
    return f && m->loss_scale.name && ir_result_of_kind(f, RESULT_OK, NO_BLOCK);
}

/* ---- what is looked at ------------------------------------------------------------------------------------------- */

static const char *path_of(const Func *f, const Op *o) {
    return o && o->region ? ir_region((Func *)(uintptr_t)f, o->region)->path : NULL;
}

int model_decision_of(const Module *m, const Func *f, Val v) {
    const char *path = ir_cast_path(f, ir_def(f, v));
    for (int i = 0; path && i < m->decisions.len; i++)
        if (m->decisions.data[i].path && !strcmp(m->decisions.data[i].path, path)) return i;
    return -1;
}

static bool is_of_gradient(const Func *f, const Op *o) {
    const char *path = path_of(f, o);
    return !path || strstr(path, ".grad");
}

bool *model_divisors(const Func *f) {
    bool *divides = arena_array(f->module->arena, bool, f->values.len + 1);
    for (int i = f->body.len - 1; i >= 0; i--) {
        const Op *o = ir_op_at(f, i);
        if (is_of_gradient(f, o)) continue;
        if (o->code == OP_div) divides[o->in[1].id] = true;
        if (o->code == OP_log) divides[o->in[0].id] = true;
        const bool keeps_zero = o->code == OP_cast || o->code == OP_sqrt || o->code == OP_abs ||
                                o->code == OP_broadcast || o->code == OP_expand || o->code == OP_reshape;
        if (keeps_zero && divides[o->out[0].id]) divides[o->in[0].id] = true;
    }
    return divides;
}
