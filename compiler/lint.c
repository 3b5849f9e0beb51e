/* lint.c: the call of amp_lint: options, the session, the modules that checks read. */
#include "compiler/lint/lint.h"

#include <string.h>

#include "compiler/call.h"
#include "compiler/casts.h"
#include "compiler/compile_session.h"
#include "passes/passes.h"

typedef struct LintArguments {
    const amp_compile_options *options;
    const amp_lint_options *want;
    int32_t *count;
    amp_compile_result **out;
} LintArguments;

/* |file| is the name that the model's text has; files are opened by paths that end in it. */
static const Source *find_source(void *user, const char *file) {
    const Session *s = user;
    const size_t length = file ? strlen(file) : 0;
    for (const LoadedFile *f = s->files; f && length; f = f->next) {
        const char *name = f->source.name;
        const size_t whole = strlen(name);
        if (whole < length || strcmp(name + whole - length, file) != 0 || !f->text) continue;
        if (whole == length || name[whole - length - 1] == '/') return &f->source;
    }
    return length && s->source && !s->is_ir && !strcmp(s->source->name, file) ? s->source : NULL;
}

typedef struct CudaKernels {
    CodegenCopies copies;
    LintSizes sizes;
    bool found; /* else some op has no code for CUDA, and there is nothing to say */
} CudaKernels;

/* How CUDA's kernels copy, of a copy of the module. */
static amp_status read_kernels(Session *s, const Module *m, bool pad, int64_t batch, CudaKernels *out, amp_error *err) {
    Module *cuda = NULL;
    amp_error why = {0};
    AMP_TRY(session_copy(s, m, &cuda, err));
    cuda->pad = pad;
    AMP_TRY(session_run_passes(s, cuda, STAGE_PLAN, &target_cuda, false, err));
    const amp_status status = codegen_cuda_copies(cuda, &out->copies, &why);
    out->found = !status;
    out->sizes = lint_sizes(cuda, batch);
    if (status && status != AMP_UNSUPPORTED && err) *err = why;
    return status == AMP_UNSUPPORTED ? AMP_OK : session_name_error(s, status, err);
}

static bool has_narrow(const CudaKernels *kernels) {
    int64_t padded;
    for (int i = 0; kernels->found && i < kernels->copies.len; i++)
        if (lint_is_narrow(&kernels->copies.data[i], &padded)) return true;
    return false;
}

static amp_status lint(Session *s, const void *arguments, amp_error *err) {
    const LintArguments *a = arguments;
    const char *target = s->options.target ? s->options.target : "both";
    const bool for_cpu = !strcmp(target, "cpu");
    const Func *funcs[STEP_FUNCS + 1] = {NULL};
    CudaKernels kernels = {.found = false}, padded = {.found = false};
    const int64_t batch = a->want->batch ? a->want->batch : PASSES_BATCH_HINT;
    Module *m = NULL;
    Text t;
    if (!for_cpu && strcmp(target, "cuda") != 0 && strcmp(target, "both") != 0)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "target '%s': cpu, cuda or both", target);
    AMP_TRY(lint_check_allow(&s->arena, a->want->allow, a->want->allow_count, err));
    AMP_TRY(session_open(s, err));
    AMP_TRY(compile_to_stage(s, STAGE_SIMPLIFY, &target_cpu, &m, err));
    if (!for_cpu && m->low != AMP_DT_F32) AMP_TRY(read_kernels(s, m, m->pad, batch, &kernels, err));
    if (has_narrow(&kernels) && !m->pad) AMP_TRY(read_kernels(s, m, true, batch, &padded, err));
    casts_step_funcs(m, funcs);
    const LintInput in = {.m = m,
                          .funcs = funcs,
                          .copies = kernels.found ? &kernels.copies : NULL,
                          .padded = padded.found ? &padded.copies : NULL,
                          .sizes = kernels.sizes,
                          .padded_sizes = padded.sizes,
                          .batch = batch,
                          .device = a->want->device,
                          .microseconds = a->want->microseconds,
                          .microseconds_f32 = a->want->microseconds_f32,
                          .find_source = find_source,
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
