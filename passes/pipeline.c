/* pipeline.c: the passes in order, and what runs them. */
#include "base/file.h"
#include "passes/kernels/kernel_check.h"
#include "passes/kernels/plan_check.h"
#include "passes/passes.h"
#include "targets/target.h"

const Pass passes[STAGE_COUNT] = {
    /* pass                    function           needs         breaks */
    [STAGE_ELABORATE] = {STAGE_ELABORATE, NULL, "the model's text", "nothing"},
    [STAGE_AUTOCAST] = {STAGE_AUTOCAST, pass_autocast, "elaborate", "nothing"},
    [STAGE_MEANS] = {STAGE_MEANS, pass_means, "autocast", "nothing"},
    [STAGE_AUTODIFF] = {STAGE_AUTODIFF, pass_autodiff, "means", "the function forward"},
    [STAGE_PAINT] = {STAGE_PAINT, pass_paint, "autodiff", "nothing"},
    [STAGE_DISTRIBUTE] = {STAGE_DISTRIBUTE, pass_distribute, "paint", "nothing"},
    [STAGE_SCALE] = {STAGE_SCALE, pass_scale, "distribute", "nothing"},
    [STAGE_OPTIMIZER] = {STAGE_OPTIMIZER, pass_optimizer, "scale", "nothing"},
    [STAGE_SIMPLIFY] = {STAGE_SIMPLIFY, pass_simplify, "optimizer", "nothing"},
    [STAGE_LOWER] = {STAGE_LOWER, pass_lower, "simplify", "the graph level"},
    [STAGE_FUSE] = {STAGE_FUSE, pass_fuse, "lower", "the order of ops"},
    [STAGE_LAYOUT] = {STAGE_LAYOUT, pass_layout, "fuse", "nothing"},
    [STAGE_PLAN] = {STAGE_PLAN, pass_plan, "layout", "nothing"},
};

/* The stage from which on a module has states of a role, and functions of a kind: passes add them. */
static const Stage first_of_role[STATE_STAGED + 1] = {
    [STATE_MOMENT] = STAGE_OPTIMIZER,       [STATE_SCALER] = STAGE_SCALE,      [STATE_DERIVED] = STAGE_LAYOUT,
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
    [PROGRAM_REFRESH] = STAGE_LAYOUT,
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

/* Of kernel IR: ir_verify does not see whether the kernels and the plan are those of the ops. */
static const char *check_kernels(const Module *m) {
    const char *wrong = NULL;
    for (int i = 0; i < m->funcs.len && m->stage >= STAGE_FUSE && !wrong; i++) wrong = kernel_check(m->funcs.data[i]);
    return wrong || m->stage < STAGE_LAYOUT ? wrong : plan_check(m);
}

/* A module may come from a file: what is wrong with it is then the user's to mend. */
static amp_status check_input(const Module *m, Diags *diags, amp_error *err) {
    const char *wrong = ir_verify(m);
    if (!wrong && !target_find(m->target))
        wrong = arena_printf(m->arena, "there is no target %s; the targets are %s", m->target, target_list(m->arena));
    if (!wrong) wrong = check_stage(m);
    if (!wrong) wrong = check_kernels(m);
    if (!wrong) return AMP_OK;
    diag_error(diags, (Loc){0}, "module %s is not valid at stage %s: %s", m->name, ir_stage_names[m->stage], wrong);
    return amp_fail(err, AMP_BAD_SOURCE, "module %s is not valid: %s", m->name, wrong);
}

static amp_status run_pass(PassContext *c, const Pass *p, amp_error *err) {
    const char *name = ir_stage_names[p->stage];
    int errors = c->diags->errors;
    bool ok = p->run(c);
    if (c->diags->errors != errors) return amp_fail(err, AMP_BAD_SOURCE, "%s: pass %s found errors", c->m->name, name);
    if (!ok) return amp_fail(err, AMP_INTERNAL, "%s: pass %s failed without saying why", c->m->name, name);
    c->m->stage = p->stage;
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
    PassContext c = {m, diags, options};
    AMP_TRY(check_input(m, diags, err));
    for (int stage = m->stage + 1; stage <= (int)last; stage++) {
        double start = amp_seconds();
        if (options->begin) AMP_TRY(options->begin(options->user, (Stage)stage, err));
        if (stage == STAGE_LOWER) keep_graph(m);
        AMP_TRY(run_pass(&c, &passes[stage], err));
        if (after) after(user, m, amp_seconds() - start);
    }
    return AMP_OK;
}
