/* model_facts.c: see model_facts.h. */
#include "codegen/model_facts.h"

#include "amp/model_abi.h"

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

int model_input_index(const ModelInputs *inputs, const char *name) {
    for (int i = 0; i < inputs->len; i++)
        if (!strcmp(inputs->data[i].value->name, name)) return i;
    return -1;
}

static void add_inputs(const Func *f, int kind, ModelInputs *out) {
    for (int i = 0; f && i < f->inputs.len; i++) {
        const Value *v = ir_value(f, f->inputs.data[i]);
        if (v->kind != VAL_INPUT || model_input_index(out, v->name) >= 0) continue;
        ModelInput in = {.value = v, .kind = kind};
        vec_push(f->module->arena, out, in);
    }
}

amp_status model_inputs(const Module *m, ModelInputs *out, amp_error *err) {
    const Func *infer = ir_func_find(m, "infer");
    int of_training = infer ? AMP_INPUT_OF_TRAINING : AMP_INPUT_OF_MODEL;
    *out = (ModelInputs){0};
    add_inputs(infer, AMP_INPUT_OF_MODEL, out);
    add_inputs(ir_func_find(m, "eval"), of_training, out);
    add_inputs(ir_func_find(m, "train_step"), of_training, out);
    add_inputs(ir_func_find(m, "micro_step"), of_training, out);
    add_inputs(ir_func_find(m, "metrics"), AMP_INPUT_AVERAGE, out);
    return model_indexes(m, out, err);
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
