/* model_facts.c: see model_facts.h. */
#include "codegen/model_facts.h"

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

int model_input_index(const ModelInputs *inputs, const char *name) {
    for (int i = 0; i < inputs->len; i++)
        if (!strcmp(inputs->data[i].value->name, name)) return i;
    return -1;
}

static void add_inputs(const Func *f, bool train_only, ModelInputs *out) {
    for (int i = 0; f && i < f->inputs.len; i++) {
        const Value *v = ir_value(f, f->inputs.data[i]);
        if (v->kind != VAL_INPUT || model_input_index(out, v->name) >= 0) continue;
        ModelInput in = {.value = v, .train_only = train_only};
        vec_push(f->module->arena, out, in);
    }
}

static bool is_from_nll_loss(const Func *f, const Op *o) {
    const Region *r = o->region && o->region <= (uint32_t)f->regions.len ? &f->regions.data[o->region - 1] : NULL;
    return r && r->op && !strcmp(r->op, "nll_loss");
}

/* Lowering makes of nll_loss:  iota(logp) == broadcast(labels)  and  labels == const(ignore), all in one region. */
static void find_labels(const Func *f, uint32_t region, ModelInputs *inputs) {
    ModelInput *labels = NULL;
    int64_t bound = 0, ignore = INT64_MIN;
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        if (o->region != region) continue;
        for (int n = 0; n < o->n_in; n++) {
            const Value *v = ir_value(f, o->in[n]);
            const Op *def = ir_def(f, o->in[n]);
            int input = v->kind == VAL_INPUT && v->dtype == AMP_DT_I32 ? model_input_index(inputs, v->name) : -1;
            if (input >= 0) labels = &inputs->data[input];
            if (o->code == OP_eq && def && def->code == OP_const && v->dtype == AMP_DT_I32)
                ignore = (int64_t)ir_attr(def, "value")->f;
        }
        if (o->code == OP_iota) bound = ir_shape(f, o->out[0])->d[ir_shape(f, o->out[0])->rank - 1].mul;
    }
    if (!labels || !bound) return;
    labels->index_bound = bound;
    labels->index_ignore = ignore;
}

void model_inputs(const Module *m, ModelInputs *out) {
    const Func *infer = ir_func_find(m, "infer");
    *out = (ModelInputs){0};
    add_inputs(infer, false, out);
    add_inputs(ir_func_find(m, "eval"), infer != NULL, out);
    add_inputs(ir_func_find(m, "train_step"), infer != NULL, out);
    add_inputs(ir_func_find(m, "micro_step"), infer != NULL, out);
    for (int i = 0; i < m->funcs.len; i++) {
        const Func *f = m->funcs.data[i];
        for (int j = 0; j < f->body.len; j++)
            if (is_from_nll_loss(f, ir_op_at(f, j))) find_labels(f, ir_op_at(f, j)->region, out);
    }
}

/* ---- initialisers ------------------------------------------------------------------------------------------------ */

typedef struct InitRule {
    const char *name, *args[2];
    double defaults[2];
    int required;
} InitRule;

/* The initialisers of docs/language.md. */
static const InitRule init_rules[] = {
    {"zeros", {NULL}, {0}, 0},           {"ones", {NULL}, {0}, 0},
    {"constant", {"v"}, {0}, 1},         {"uniform", {"low", "high"}, {0}, 2},
    {"normal", {"std", "mean"}, {0}, 1}, {"trunc_normal", {"std"}, {0}, 1},
    {"kaiming_uniform", {"a"}, {0}, 1},  {"kaiming_normal", {NULL}, {0}, 0},
    {"xavier_uniform", {NULL}, {0}, 0},  {"xavier_normal", {NULL}, {0}, 0},
};

static double number_of(const CallArg *a) { return a->type == ATTR_FLOAT ? a->value.f : (double)a->value.i; }

/* By name, or by position where the argument has none. */
static const CallArg *find_arg(const Call *c, const char *name, int position) {
    for (int i = 0; i < c->args.len; i++)
        if (c->args.data[i].name ? !strcmp(c->args.data[i].name, name) : i == position) return &c->args.data[i];
    return NULL;
}

static bool fill_args(const InitRule *rule, const Call *c, ModelInit *out) {
    out->name = rule->name;
    for (int i = 0; i < 2 && rule->args[i]; i++) {
        const CallArg *a = find_arg(c, rule->args[i], i);
        if (!a && i < rule->required) return false;
        out->args[out->count++] = a ? number_of(a) : rule->defaults[i];
    }
    return true;
}

bool model_init(const Call *c, ModelInit *out) {
    *out = (ModelInit){0};
    if (!c->name) return true;
    for (size_t i = 0; i < sizeof init_rules / sizeof init_rules[0]; i++)
        if (!strcmp(init_rules[i].name, c->name)) return fill_args(&init_rules[i], c, out);
    return false;
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

bool model_is_scaled(const Module *m) {
    const Func *step = ir_func_find(m, "train_step"), *f = step ? step : ir_func_find(m, "apply_step");
    for (int i = 0; f && m->loss_scale.name && i < f->results.len; i++)
        if (!strcmp(f->results.data[i].name, "ok")) return true;
    return false;
}
