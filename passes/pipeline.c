/* pipeline.c: the passes in order, and what runs them. */
#include "base/file.h"
#include "passes/passes.h"
#include "targets/target.h"

const Pass passes[STAGE_COUNT] = {
    /* pass                    function           needs         breaks */
    [STAGE_ELABORATE] = {STAGE_ELABORATE, NULL, "the model's text", "nothing"},
    [STAGE_AUTOCAST] = {STAGE_AUTOCAST, pass_autocast, "elaborate", "nothing"},
    [STAGE_AUTODIFF] = {STAGE_AUTODIFF, pass_autodiff, "autocast", "the function forward"},
    [STAGE_SCALE] = {STAGE_SCALE, pass_scale, "autodiff", "nothing"},
    [STAGE_OPTIMIZER] = {STAGE_OPTIMIZER, pass_optimizer, "scale", "nothing"},
    [STAGE_SIMPLIFY] = {STAGE_SIMPLIFY, pass_simplify, "optimizer", "nothing"},
    [STAGE_LOWER] = {STAGE_LOWER, pass_lower, "simplify", "the graph level"},
    [STAGE_FUSE] = {STAGE_FUSE, pass_fuse, "lower", "the order of ops"},
    [STAGE_LAYOUT] = {STAGE_LAYOUT, pass_layout, "fuse", "nothing"},
    [STAGE_PLAN] = {STAGE_PLAN, pass_plan, "layout", "nothing"},
};

/* A module may come from a file: what is wrong with it is then the user's to mend. */
static amp_status check_input(const Module *m, Diags *diags, amp_error *err) {
    const char *wrong = ir_verify(m);
    if (!wrong && !target_find(m->target))
        wrong = arena_printf(m->arena, "there is no target %s; the targets are %s", m->target, target_list(m->arena));
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
static void keep_graph(Module *m) {
    Text t;
    text_init(&t, m->arena);
    ir_print(&t, m);
    m->graph_text = text_str(&t);
}

amp_status passes_run(Module *m, Diags *diags, const PassOptions *options, Stage last, PassObserver after, void *user,
                      amp_error *err) {
    PassContext c = {m, diags, options};
    AMP_TRY(check_input(m, diags, err));
    for (int stage = m->stage + 1; stage <= (int)last; stage++) {
        double start = amp_seconds();
        if (stage == STAGE_LOWER) keep_graph(m);
        AMP_TRY(run_pass(&c, &passes[stage], err));
        if (after) after(user, m, amp_seconds() - start);
    }
    return AMP_OK;
}
