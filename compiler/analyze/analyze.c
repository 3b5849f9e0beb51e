/* analyze.c: the call of amp_analyze: the session, what it runs, what its caller gets. */
#include "compiler/analyze/analysis.h"

#include "base/error.h"
#include "compiler/compile_session.h"
#include "frontend/frontend.h"
#include "targets/target.h"

enum { MOST_ERRORS = 100 };

static void tell(void *user, const Diag *d) { analysis_tell_diagnostic(user, d); }

/* Errors in the model are what was asked for. */
static amp_status unless_refused(amp_status status) { return status == AMP_BAD_SOURCE ? AMP_OK : status; }

static amp_status run_passes(Analysis *x, Session *s, const FrontendBindings *bindings, Module *m, amp_error *err) {
    AMP_TRY(session_run_passes(s, m, STAGE_AUTOCAST, &target_cpu, false, err));
    analysis_tell_decisions(x, m, bindings);
    return x->want->all_passes ? session_run_passes(s, m, STAGE_SIMPLIFY, &target_cpu, false, err) : AMP_OK;
}

static amp_status analyze_text(Analysis *x, Session *s, amp_error *err) {
    FrontendBindings bindings = {0};
    FrontendOptions front = session_frontend_options(s);
    analysis_tell_names(x, frontend_outline(&s->arena, s->source, &front));
    front.may_lack_model = true;
    front.bindings = &bindings;
    Module *m = frontend_compile(&s->arena, &s->diags, s->source, &front);
    if (!m) return unless_refused(session_report(s, err));
    session_add_overrides(s, m);
    ir_compact(m);
    return unless_refused(run_passes(x, s, &bindings, m, err));
}

/* Both arenas jump: the session's to its caller's, this one to here. */
static amp_status analyze_session(Session *s, const void *arguments, amp_compile_result **none, amp_error *err) {
    (void)none;
    Analysis *x = (Analysis *)(uintptr_t)arguments;
    if (setjmp(x->arena.out_of_memory)) return session_out_of_memory(s, err);
    s->open = x->want->open;
    s->open_count = x->want->open_count;
    s->told = tell;
    s->told_user = x;
    AMP_TRY(session_open(s, err));
    s->diags.max_errors = MOST_ERRORS;
    if (s->is_ir || model_so_is(s->source))
        return amp_fail(err, AMP_UNSUPPORTED, "%s: is not source text in the language", s->options.name);
    return analyze_text(x, s, err);
}

static void end(Analysis *x) {
    x->told.files = x->texts.data;
    x->told.file_count = (size_t)x->texts.len;
    x->told.diagnostics = x->diagnostics.data;
    x->told.diagnostic_count = (size_t)x->diagnostics.len;
    x->told.symbols = x->symbols.data;
    x->told.symbol_count = (size_t)x->symbols.len;
    x->told.references = x->references.data;
    x->told.reference_count = (size_t)x->references.len;
    x->told.decisions = x->decisions.data;
    x->told.decision_count = (size_t)x->decisions.len;
    x->want = NULL;
}

amp_status amp_analyze(const amp_compile_options *options, const amp_analyze_options *which, amp_analysis **out,
                       amp_error *err) {
    amp_analyze_options want = {0};
    amp_compile_result *none = NULL;
    if (!out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_analyze: out is NULL");
    *out = NULL;
    if (!options)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_compile_options is NULL; it must name the model at least");
    if (which) AMP_TRY(amp_options_read(&want, sizeof want, which, "amp_analyze_options", err));
    if (want.open_count && !want.open)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_analyze_options: open_count is %zu, and open is NULL",
                        want.open_count);
    const amp_allocator allocator = amp_allocator_or_default(options->allocator);
    Analysis *x = amp_alloc_zeroed(&allocator, sizeof *x);
    if (!x) return amp_fail(err, AMP_OUT_OF_MEMORY, "amp_analyze: no memory for %zu bytes", sizeof *x);
    x->allocator = allocator;
    x->want = &want;
    arena_init(&x->arena, &x->allocator);
    const amp_status status = session_call("amp_analyze", options, analyze_session, x, &none, err);
    end(x);
    if (status) amp_analysis_release(&x->told);
    else *out = &x->told;
    return status;
}

void amp_analysis_release(amp_analysis *analysis) {
    Analysis *x = (Analysis *)analysis;
    if (!x) return;
    const amp_allocator allocator = x->allocator;
    arena_free(&x->arena);
    amp_free(&allocator, x, sizeof *x);
}
