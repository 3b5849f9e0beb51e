/* pipeline.c: the passes of ir/stages.def as a table, which of them can be left out, and what runs them. */
#include <stddef.h>

#include "base/file.h"
#include "passes/fuse/kernel_check.h"
#include "passes/launch/plan_check.h"
#include "passes/launch/share.h"
#include "passes/passes.h"
#include "targets/target.h"

#define WHERE(trait) offsetof(Target, trait)
#define pass_elaborate NULL /* the front end is no pass */

const Pass passes[STAGE_COUNT] = {
#define STAGE(id, name, ...) [STAGE_##id] = {pass_##name, __VA_ARGS__},
#include "ir/stages.def"
#undef STAGE
};

static bool is_of(const Pass *p, const Target *target) {
    return !p->trait || *(const bool *)((const char *)target + p->trait);
}

bool passes_leave_out(PassOptions *o, const char *name) {
    bool any = false;
    for (int i = 0; i < STAGE_COUNT; i++) {
        if (!passes[i].left_out || (strcmp(name, ir_stage_names[i]) && strcmp(name, passes[i].group))) continue;
        o->without[i] = any = true;
    }
    return any;
}

const char *passes_optional(Arena *a) {
    Text t;
    const char *group = "";
    text_init(&t, a);
    for (int i = 0; i < STAGE_COUNT; i++) {
        if (!passes[i].left_out) continue;
        const bool same = !strcmp(group, passes[i].group), alone = !strcmp(passes[i].group, ir_stage_names[i]);
        if (!same) text_printf(&t, "%s%s", group[0] ? "; " : "", alone ? "" : arena_printf(a, "%s: ", passes[i].group));
        text_printf(&t, "%s%s", same ? ", " : "", ir_stage_names[i]);
        group = passes[i].group;
    }
    return text_str(&t);
}

/* The stage from which on a module has states of a role, and functions of a kind: passes add them. */
static const Stage first_of_role[STATE_STAGED + 1] = {
    [STATE_MOMENT] = STAGE_OPTIMIZER,       [STATE_SCALER] = STAGE_SCALE,      [STATE_DERIVED] = STAGE_WEIGHT_COPIES,
    [STATE_ACCUMULATOR] = STAGE_DISTRIBUTE, [STATE_STAGED] = STAGE_DISTRIBUTE,
};
static const Stage first_of_program[PROGRAM_KINDS] = {
    [PROGRAM_TRAIN_STEP] = STAGE_AUTODIFF,
    [PROGRAM_MICRO_STEP] = STAGE_DISTRIBUTE,
    [PROGRAM_APPLY_STEP] = STAGE_DISTRIBUTE,
    [PROGRAM_EVAL] = STAGE_AUTODIFF,
    [PROGRAM_INFER] = STAGE_AUTODIFF,
    [PROGRAM_EVAL_FP32] = STAGE_AUTODIFF,
    [PROGRAM_INFER_FP32] = STAGE_AUTODIFF,
    [PROGRAM_FORWARD_FP32] = STAGE_AUTOCAST,
    [PROGRAM_FIGURES] = STAGE_MEANS,
    [PROGRAM_REFRESH] = STAGE_WEIGHT_COPIES,
    [PROGRAM_REDUCE_STEP] = STAGE_DISTRIBUTE,
    [PROGRAM_GATHER_STEP] = STAGE_DISTRIBUTE,
    [PROGRAM_STATISTICS_STEP] = STAGE_DISTRIBUTE,
};

/* What later passes add is not there yet. */
static const char *check_stage(const Module *m) {
    const char *stage = ir_stage_names[m->stage];
    for (int i = 0; i < m->states.len; i++)
        if (first_of_role[m->states.data[i]->role] > m->stage)
            return arena_printf(m->arena, "state %s: pass %s adds states of this role, after stage %s",
                                m->states.data[i]->name, ir_stage_names[first_of_role[m->states.data[i]->role]], stage);
    for (int i = 0; i < m->funcs.len; i++)
        if (first_of_program[m->funcs.data[i]->kind] > m->stage)
            return arena_printf(m->arena, "function %s: pass %s adds it, after stage %s", m->funcs.data[i]->name,
                                ir_stage_names[first_of_program[m->funcs.data[i]->kind]], stage);
    return NULL;
}

/* For kernel IR: ir_verify does not check whether the kernels and the plan match the ops. */
static const char *check_kernels(const Module *m) {
    const char *wrong = NULL;
    for (int i = 0; i < m->funcs.len && m->stage >= STAGE_FUSE && !wrong; i++) wrong = kernel_check(m->funcs.data[i]);
    return wrong || m->stage < STAGE_BUFFERS ? wrong : plan_check(m);
}

/* A module may come from a file: what is wrong with it is then the user's to mend. */
static amp_status check_input(PassContext *c, amp_error *err) {
    const Module *m = c->m;
    const char *wrong = ir_verify(m);
    if (!wrong && !target_find(m->target))
        wrong = arena_printf(m->arena, "there is no target %s; the targets are %s", m->target, target_list(m->arena));
    if (!wrong) wrong = check_stage(m);
    if (!wrong) wrong = check_kernels(m);
    if (!wrong) wrong = share_check(c);
    if (!wrong) return AMP_OK;
    diag_error(c->diags, (Loc){0}, "module %s is not valid at stage %s: %s", m->name, ir_stage_names[m->stage], wrong);
    return amp_fail(err, AMP_BAD_SOURCE, "module %s is not valid: %s", m->name, wrong);
}

amp_status pass_run(PassContext *c, Stage stage, amp_error *err) {
    const Pass *p = &passes[stage];
    const char *name = ir_stage_names[stage];
    int errors = c->diags->errors;
    const bool left_out = c->options->without[stage] && p->left_out;
    c->m->plain[stage] = left_out && p->left_out == PASS_PLAIN;
    if (!is_of(p, target_of(c->m)) || (left_out && !c->m->plain[stage])) {
        c->m->stage = stage;
        return AMP_OK;
    }
    bool ok = p->run(c);
    if (c->diags->errors != errors) return amp_fail(err, AMP_BAD_SOURCE, "%s: pass %s found errors", c->m->name, name);
    if (!ok) return amp_fail(err, AMP_INTERNAL, "%s: pass %s failed without saying why", c->m->name, name);
    c->m->stage = stage;
    const char *wrong = ir_verify(c->m);
    if (wrong)
        return amp_fail(err, AMP_INTERNAL, "%s: pass %s left a module that is not valid: %s", c->m->name, name, wrong);
    ir_compact(c->m);
    return AMP_OK;
}

/* The last stage with the ops that a person knows goes along as text. */
static void keep_graph(Module *m) { m->graph_text = ir_text(m); }

amp_status passes_run(Module *m, Diags *diags, const PassOptions *options, Stage last, PassObserver after, void *user,
                      amp_error *err) {
    PassContext c = {m, diags, options, NULL};
    AMP_TRY(check_input(&c, err));
    for (int stage = m->stage + 1; stage <= (int)last; stage++) {
        double start = amp_seconds();
        if (options->begin) AMP_TRY(options->begin(options->user, (Stage)stage, err));
        if (stage == STAGE_LOWER) keep_graph(m);
        AMP_TRY(pass_run(&c, (Stage)stage, err));
        if (after) after(user, m, amp_seconds() - start);
    }
    return AMP_OK;
}
