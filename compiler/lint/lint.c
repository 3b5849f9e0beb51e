/* lint.c: amp_lint: the table of checks, the modules that they read, the call. */
#include "compiler/lint/lint.h"

#include <string.h>

#include "compiler/casts.h"
#include "compiler/tensor_cores.h"
#include "passes/passes.h"

static const struct Check {
    const char *id;
    void (*run)(Lint *x);                                  /* once; or NULL: */
    void (*look)(Lint *x, const LintFunc *g, const Op *o); /* at each op of the forward pass */
    const char *about;
} checks[] = {
    {"alignment", lint_alignment, NULL,
     "A size that keeps products from copies of 16 bytes, or has tensor cores multiply zeros."},
    {"cast", NULL, lint_cast,
     "An op whose type differs from that of all that is around it: casts that could be left out."},
    {"sum-overflow", NULL, lint_sum_overflow, "A sum that ends in f16 and is over more elements than it can hold."},
    {"exp-overflow", NULL, lint_exp_overflow, "exp of what nothing bounds, which is infinite in f16 above 11.1."},
    {"square-overflow", NULL, lint_square_overflow, "A square or power of what nothing bounds, which ends in f16."},
    {"variance-low", NULL, lint_variance_low, "A variance that is stored in f16."},
    {"small-constant", NULL, lint_small_constant, "A constant so small that it is 0 in f16: an eps that is none."},
    {"large-constant", NULL, lint_large_constant, "A constant so large that it is infinite in f16: a mask of -1e9."},
    {"log-zero", NULL, lint_log_zero, "log of a probability that f16 rounds to 0."},
    {"bce-logits", NULL, lint_bce_logits, "log of a sigmoid in 16 bits: binary cross-entropy without logits."},
    {"softmax-by-hand", NULL, lint_softmax_by_hand,
     "exp(x) / sum(exp(x)), or log(sum(exp(x))), without the largest subtracted: in every precision."},
    {"whole-numbers", NULL, lint_whole_numbers, "Counts and positions in a type that has not all of them."},
    {"loss-low", lint_loss_low, NULL, "A loss that is stored in 16 bits."},
    {"loss-scale", lint_loss_scale, NULL, "Gradients in f16 without a loss scale."},
    {"wide-reduce", lint_wide_reduce, NULL, "Gradients of a model of 16 bits that travel between ranks in f32."},
    {"no-gain", lint_no_gain, NULL, "A lower type that makes the step no faster, where its time is known."},
};
enum { CHECKS = sizeof checks / sizeof checks[0] };

const char *amp_lint_check(int32_t index, const char **about) {
    const bool is_there = index >= 0 && index < CHECKS;
    if (about) *about = is_there ? checks[index].about : NULL;
    return is_there ? checks[index].id : NULL;
}

/* Each of |allow| begins with the id of a check. */
static amp_status check_allow(Arena *a, const char *const *allow, size_t count, amp_error *err) {
    for (size_t i = 0; i < count; i++) {
        const char *word = allow[i] ? allow[i] : "";
        const size_t length = strcspn(word, ":");
        int known = 0;
        while (known < CHECKS && (strlen(checks[known].id) != length || strncmp(checks[known].id, word, length)))
            known++;
        if (known < CHECKS) continue;
        Text ids;
        text_init(&ids, a);
        for (int k = 0; k < CHECKS; k++) text_printf(&ids, "%s%s", k ? ", " : "", checks[k].id);
        return amp_fail(err, AMP_INVALID_ARGUMENT, "allow %s: no check has this name; there are %s", word,
                        text_str(&ids));
    }
    return AMP_OK;
}

static void look_at_ops(Lint *x, const struct Check *check) {
    for (int i = 0; i < x->funcs.len; i++) {
        const LintFunc *g = &x->funcs.data[i];
        for (int k = 0; k < g->f->body.len; k++)
            if (lint_is_forward(ir_op_at(g->f, k))) check->look(x, g, ir_op_at(g->f, k));
    }
}

static Findings run_checks(const LintInput *in) {
    Findings list = {0};
    Lint x = {.in = in, .arena = in->m->arena, .out = &list};
    for (int i = 0; in->funcs[i]; i++)
        vec_push(x.arena, &x.funcs, lint_func(x.arena, in->funcs[i], lint_at(&in->want)));
    for (int i = 0; i < CHECKS; i++) {
        x.id = checks[i].id;
        if (checks[i].run) checks[i].run(&x);
        else look_at_ops(&x, &checks[i]);
    }
    findings_finish(x.arena, in, &list);
    return list;
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

typedef struct LintArguments {
    const amp_lint_options *which;
    int32_t *count;
} LintArguments;

static bool has_narrow(const Func *const *funcs, const TensorCores *kernels) {
    const NarrowSizes list = tensor_cores_narrow(kernels->cuda->arena, funcs, &kernels->copies);
    for (int i = 0; i < list.len; i++)
        if (list.data[i].is_worth) return true;
    return false;
}

static amp_status read_options(const amp_lint_options *which, amp_lint_options *out, amp_error *err) {
    AMP_TRY(amp_options_read(out, sizeof *out, which, "amp_lint_options", err));
    if (out->allow_count && !out->allow)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_lint_options: allow is NULL, and allow_count is not 0");
    if (out->batch < 0)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_lint_options: batch is %lld; it must be positive, or 0 for 32",
                        (long long)out->batch);
    if (!out->batch) out->batch = PASSES_BATCH_HINT;
    if (!(out->microseconds >= 0.0 && out->microseconds_f32 >= 0.0))
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_lint_options: a time is negative or NaN");
    return AMP_OK;
}

static amp_status lint(Session *s, const void *arguments, amp_compile_result **out, amp_error *err) {
    const LintArguments *a = arguments;
    const char *target = s->options.target ? s->options.target : "both";
    const bool for_cpu = !strcmp(target, "cpu");
    const Func *funcs[STEP_FUNCS + 1] = {NULL};
    TensorCores kernels = {0}, padded = {0};
    amp_lint_options want;
    Module *m = NULL;
    Text t;
    AMP_TRY(read_options(a->which, &want, err));
    if (!for_cpu && strcmp(target, "cuda") != 0 && strcmp(target, "both") != 0)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "unknown target '%s'; use cpu, cuda or both", target);
    AMP_TRY(check_allow(&s->arena, want.allow, want.allow_count, err));
    AMP_TRY(session_open(s, err));
    AMP_TRY(compile_to_stage(s, STAGE_SIMPLIFY, &target_cpu, &m, err));
    casts_step_funcs(m, funcs);
    if (!for_cpu && m->low != AMP_DT_F32) AMP_TRY(tensor_cores_of(s, m, m->pad, &kernels, err));
    if (kernels.is_known && !m->pad && has_narrow(funcs, &kernels)) AMP_TRY(tensor_cores_of(s, m, true, &padded, err));
    const LintInput in = {.m = m,
                          .funcs = funcs,
                          .copies = kernels.is_known ? &kernels.copies : NULL,
                          .padded = padded.is_known ? &padded.copies : NULL,
                          .sizes = lint_sizes(kernels.cuda, lint_at(&want)),
                          .padded_sizes = lint_sizes(padded.cuda, lint_at(&want)),
                          .want = want,
                          .session = s};
    const Findings list = run_checks(&in);
    text_init(&t, &s->arena);
    if (want.json) AMP_TRY(lint_as_json(&t, &in, &list, err));
    else lint_as_text(&t, &in, &list);
    if (a->count) *a->count = list.len;
    return session_give_text(s, &t, out, err);
}

amp_status amp_lint(const amp_compile_options *options, const amp_lint_options *which, int32_t *count,
                    amp_compile_result **out, amp_error *err) {
    if (count) *count = 0;
    return session_call("amp_lint", options, lint, &(LintArguments){which, count}, out, err);
}
