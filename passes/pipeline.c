/* pipeline.c: the passes in order, which can be left out, and what runs them. */
#include <stddef.h>

#include "base/file.h"
#include "passes/fuse/kernel_check.h"
#include "passes/launch/plan_check.h"
#include "passes/launch/share.h"
#include "passes/passes.h"
#include "targets/target.h"

#define WHERE(trait) offsetof(Target, trait)

/* The folder of a pass is its group.  What a pass looks like before and after is in the first comment of its file. */
const Pass passes[STAGE_COUNT] = {
    [STAGE_ELABORATE] = {NULL, "frontend", PASS_NEEDED, "the model's text"},
    [STAGE_AUTOCAST] = {pass_autocast, "precision", PASS_NEEDED, "every op gets its dtype by the policy; casts"},
    [STAGE_MEANS] = {pass_means, "training", PASS_NEEDED, "what each loss and metric is over several batches"},
    [STAGE_AUTODIFF] = {pass_autodiff, "training", PASS_NEEDED, "forward becomes train_step, eval and infer"},
    [STAGE_PAINT] = {pass_paint, "precision", PASS_NEEDED, "dtypes of forward and backward pass together"},
    [STAGE_DISTRIBUTE] = {pass_distribute, "training", PASS_NEEDED, "micro-batches and ranks"},
    [STAGE_SCALE] = {pass_scale, "training", PASS_NEEDED, "loss scaling, if some gradient is f16"},
    [STAGE_OPTIMIZER] = {pass_optimizer, "training", PASS_NEEDED, "updates of parameters, moments and buffers"},
    [STAGE_SIMPLIFY] = {pass_simplify, "simplify", PASS_SKIPPED, "work goes whose result is known"},
    [STAGE_LOWER] = {pass_lower, "lower", PASS_NEEDED, "graph ops become core ops"},

    /* for one target: core ops become core ops */
    [STAGE_TARGET] = {pass_target, "rewrite", PASS_NEEDED, "the target, which has a kernel for each op"},
    [STAGE_TURN_COLUMNS] = {pass_turn_columns, "rewrite", PASS_SKIPPED,
                            "columns of weights in the order of stored images", WHERE(carries_moves)},
    [STAGE_SPLIT_SUMS] = {pass_split_sums, "rewrite", PASS_SKIPPED, "long sums with few results in parts"},
    [STAGE_CARRY_MOVES] = {pass_carry_moves, "rewrite", PASS_SKIPPED, "ops between a permute and its inverse lose both",
                           WHERE(carries_moves)},
    [STAGE_BARRIERS] = {pass_barriers, "rewrite", PASS_NEEDED, "ops say what they wait for"},
    [STAGE_CANCEL_MOVES] = {pass_cancel_moves, "rewrite", PASS_SKIPPED, "movement that together does nothing goes",
                            WHERE(reads_strides)},
    [STAGE_TURN_INPUTS] = {pass_turn_inputs, "rewrite", PASS_SKIPPED, "images are made of an input once",
                           WHERE(keeps_images)},
    [STAGE_PACK_BATCHES] = {pass_pack_batches, "rewrite", PASS_SKIPPED, "batched products of the runtime",
                            WHERE(reads_strides)},
    [STAGE_PACK_WINDOWS] = {pass_pack_windows, "rewrite", PASS_SKIPPED, "grouped convolutions of the runtime"},
    [STAGE_MOVE_RESULTS] = {pass_move_results, "rewrite", PASS_SKIPPED, "batched products move their results",
                            WHERE(reads_strides)},
    [STAGE_DROP_VIEWS] = {pass_drop_views, "rewrite", PASS_SKIPPED, "products need no views around them",
                          WHERE(reads_strides)},

    [STAGE_FUSE] = {pass_fuse, "fuse", PASS_PLAIN, "ops become kernels; plain: each its own"},

    /* how what crosses kernels is stored */
    [STAGE_MASTERS] = {pass_masters, "layout", PASS_SKIPPED, "parameters and moments in tiles"},
    [STAGE_WEIGHT_COPIES] = {pass_weight_copies, "layout", PASS_SKIPPED,
                             "the optimizer writes rounded copies of weights"},
    [STAGE_COPY_RESULTS] = {pass_copy_results, "layout", PASS_NEEDED, "results that are inputs or states get memory"},
    [STAGE_PACK] = {pass_pack, "layout", PASS_PLAIN, "what products read is packed; plain: rows elsewhere"},
    [STAGE_BUFFERS] = {pass_buffers, "layout", PASS_NEEDED, "a buffer for each form of a value"},

    /* when kernels run */
    [STAGE_POSTPONE] = {pass_postpone, "order", PASS_SKIPPED, "kernels that read no temporary wait"},
    [STAGE_SEQUENCE] = {pass_sequence, "order", PASS_SKIPPED, "neighbours in the order that needs less memory"},
    [STAGE_MERGE_COLUMNS] = {pass_merge_columns, "order", PASS_SKIPPED, "sums down the same columns become a kernel",
                             WHERE(batches_updates)},
    [STAGE_GATHER] = {pass_gather, "order", PASS_SKIPPED, "kernels that may share a launch stand together",
                      WHERE(batches_updates)},
    [STAGE_MERGE_LONE_COLUMNS] = {pass_merge_lone_columns, "order", PASS_SKIPPED,
                                  "sums down columns that are left alone", WHERE(batches_updates)},
    [STAGE_GATHER_SUMS] = {pass_gather_sums, "order", PASS_SKIPPED, "sums of columns and of parts stand together",
                           WHERE(batches_updates)},
    [STAGE_GATHER_CHAINS] = {pass_gather_chains, "order", PASS_SKIPPED, "products that add to an equal one follow it",
                             WHERE(batches_updates)},
    [STAGE_MERGE_SCALARS] = {pass_merge_scalars, "order", PASS_SKIPPED, "scalar kernels in a row become one",
                             WHERE(batches_updates)},
    [STAGE_BUCKETS] = {pass_buckets, "order", PASS_SKIPPED, "ranks' messages in the order of the kernels"},

    [STAGE_JOIN] = {pass_join, "launch", PASS_SKIPPED, "functions of small kernels are one launch",
                    WHERE(joins_kernels)},
    [STAGE_PLAN] = {pass_plan, "launch", PASS_NEEDED, "when buffers live, and whose memory they take"},

    /* which kernels share a launch */
    [STAGE_SUPERSTEPS] = {pass_supersteps, "launch", PASS_SKIPPED, "all kernels of a joined function",
                          WHERE(joins_kernels)},
    [STAGE_BATCH] = {pass_batch, "launch", PASS_SKIPPED, "neighbours of equal code", WHERE(batches_updates)},
    [STAGE_CHAIN] = {pass_chain, "launch", PASS_SKIPPED, "products that add to one another", WHERE(batches_updates)},
    [STAGE_SINGLE_PASS] = {pass_single_pass, "launch", PASS_SKIPPED, "sums of sums", WHERE(batches_updates)},
    [STAGE_BUNDLE] = {pass_bundle, "launch", PASS_SKIPPED, "neighbours of other code", WHERE(batches_updates)},
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

/* Of kernel IR: ir_verify does not see whether the kernels and the plan are those of the ops. */
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
