/* lint.c: the call of amp_lint: options, the session, the modules that checks read. */
#include "compiler/lint/lint.h"

#include <string.h>

#include "compiler/call.h"
#include "compiler/casts.h"
#include "compiler/compile_session.h"
#include "compiler/tensor_cores.h"
#include "passes/passes.h"

typedef struct LintArguments {
    const amp_compile_options *options;
    const amp_lint_options *want;
    int32_t *count;
    amp_compile_result **out;
} LintArguments;

static bool has_narrow(const Func *const *funcs, const TensorCores *kernels) {
    const NarrowSizes list = tensor_cores_narrow(kernels->cuda->arena, funcs, &kernels->copies);
    for (int i = 0; i < list.len; i++)
        if (list.data[i].is_worth) return true;
    return false;
}

static amp_status lint(Session *s, const void *arguments, amp_error *err) {
    const LintArguments *a = arguments;
    const char *target = s->options.target ? s->options.target : "both";
    const bool for_cpu = !strcmp(target, "cpu");
    const Func *funcs[STEP_FUNCS + 1] = {NULL};
    TensorCores kernels = {0}, padded = {0};
    const int64_t batch = a->want->batch ? a->want->batch : PASSES_BATCH_HINT;
    Module *m = NULL;
    Text t;
    if (!for_cpu && strcmp(target, "cuda") != 0 && strcmp(target, "both") != 0)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "target '%s': cpu, cuda or both", target);
    AMP_TRY(lint_check_allow(&s->arena, a->want->allow, a->want->allow_count, err));
    AMP_TRY(session_open(s, err));
    AMP_TRY(compile_to_stage(s, STAGE_SIMPLIFY, &target_cpu, &m, err));
    casts_step_funcs(m, funcs);
    if (!for_cpu && m->low != AMP_DT_F32) AMP_TRY(tensor_cores_of(s, m, m->pad, &kernels, err));
    if (kernels.is_known && !m->pad && has_narrow(funcs, &kernels)) AMP_TRY(tensor_cores_of(s, m, true, &padded, err));
    const LintInput in = {.m = m,
                          .funcs = funcs,
                          .copies = kernels.is_known ? &kernels.copies : NULL,
                          .padded = padded.is_known ? &padded.copies : NULL,
                          .sizes = lint_sizes(kernels.cuda, batch),
                          .padded_sizes = lint_sizes(padded.cuda, batch),
                          .batch = batch,
                          .device = a->want->device,
                          .microseconds = a->want->microseconds,
                          .microseconds_f32 = a->want->microseconds_f32,
                          .find_source = session_find_source,
                          .user = s};
    const Findings list = lint_run(&in, a->want->allow, a->want->allow_count);
    text_init(&t, &s->arena);
    if (a->want->json) AMP_TRY(lint_as_json(&t, &in, &list, err));
    else lint_as_text(&t, &in, &list);
    if (a->count) *a->count = list.len;
    return result_new(s->options.allocator, text_str(&t), t.len, a->out, err);
}

static amp_status lint_call(void *arguments, amp_error *err) {
    const LintArguments *a = arguments;
    return session_call(a->options, lint, a, err);
}

amp_status amp_lint(const amp_compile_options *options, const amp_lint_options *which, int32_t *count,
                    amp_compile_result **out, amp_error *err) {
    amp_lint_options want;
    if (count) *count = 0;
    if (!out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_lint: out is NULL");
    *out = NULL;
    AMP_TRY(amp_options_read(&want, sizeof want, which, "amp_lint_options", err));
    if (want.allow_count && !want.allow)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_lint_options: allow is NULL, and allow_count is not 0");
    if (want.batch < 0)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_lint_options: batch %lld: a positive number, or 0 for 32",
                        (long long)want.batch);
    if (!(want.microseconds >= 0.0 && want.microseconds_f32 >= 0.0))
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_lint_options: a time is negative, or no number");
    return compiler_call(lint_call, &(LintArguments){options, &want, count, out}, err);
}

const char *amp_lint_check(int32_t index, const char **about) {
    if (about) *about = lint_doc(index);
    return lint_id(index);
}
