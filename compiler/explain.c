/* explain.c: the calls of amp_explain and amp_compare: options, sessions, memory that runs out. */
#include "compiler/explain.h"

#include "base/error.h"
#include "compiler/call.h"
#include "compiler/compare.h"
#include "compiler/explain_graph.h"
#include "compiler/report/report.h"
#include "passes/passes.h"

typedef struct ExplainArguments {
    const amp_compile_options *options, *before; /* before: only to compare */
    const amp_explain_options *which;
    amp_compile_result **out;
} ExplainArguments;

/* ---- one model --------------------------------------------------------------------------------------------------- */

static void draw(Text *t, const ExplainSource *x, const ExplainSelection *which) {
    const bool by_blocks = which->want.form == AMP_EXPLAIN_BLOCKS;
    const ExplainFacts facts = explain_facts(x);
    const ExplainGraph g = explain_graph(&facts, x->graph, which, by_blocks ? BLOCK_MOST : 0);
    if (by_blocks) explain_as_blocks(t, &g);
    else explain_as_dot(t, &g);
}

static amp_status explain(Session *s, const void *arguments, amp_error *err) {
    const ExplainArguments *a = arguments;
    const amp_explain_options *want = a->which;
    ExplainSource x = {0};
    const ExplainSource *sources[] = {&x};
    ExplainSelection which = {0};
    Text t;
    if (want->form == AMP_EXPLAIN_HTML)
        AMP_TRY(report_check_parts(want->parts, want->part_count, s->options.allocator, err));
    AMP_TRY(explain_open(s, &x, err));
    AMP_TRY(explain_open_cores(s, &x, err));
    AMP_TRY(explain_select(want, sources, 1, &which, err));
    text_init(&t, &s->arena);
    switch (want->form) {
    case AMP_EXPLAIN_JSON: AMP_TRY(explain_as_json(&t, &x, &which, err)); break;
    case AMP_EXPLAIN_DOT:
    case AMP_EXPLAIN_BLOCKS: draw(&t, &x, &which); break;
    case AMP_EXPLAIN_HTML: AMP_TRY(explain_as_report(&t, s, &x, &which, err)); break;
    default: explain_as_text(&t, &x, &which); break;
    }
    return result_new(s->options.allocator, text_str(&t), t.len, a->out, err);
}

static amp_status read_options(const amp_explain_options *from, amp_explain_options *out, amp_error *err) {
    AMP_TRY(amp_options_read(out, sizeof *out, from, "amp_explain_options", err));
    if (out->json) out->form = AMP_EXPLAIN_JSON;
    if (out->form < AMP_EXPLAIN_TEXT || out->form > AMP_EXPLAIN_HTML)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_explain_options: form %d: there is none of that number",
                        (int)out->form);
    if (out->batch < 0)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_explain_options: batch %lld: a positive number, or 0 for 32",
                        (long long)out->batch);
    if (!out->batch) out->batch = PASSES_BATCH_HINT;
    return explain_check_sort(out, err);
}

static amp_status explain_call(void *arguments, amp_error *err) {
    const ExplainArguments *a = arguments;
    return session_call(a->options, explain, a, err);
}

amp_status amp_explain_ops(const amp_compile_options *options, const amp_explain_options *which,
                           amp_compile_result **out, amp_error *err) {
    amp_explain_options want;
    if (!out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_explain_ops: out is NULL");
    *out = NULL;
    AMP_TRY(read_options(which, &want, err));
    return compiler_call(explain_call, &(ExplainArguments){.options = options, .which = &want, .out = out}, err);
}

amp_status amp_explain(const amp_compile_options *options, const char *glob, int32_t json, amp_compile_result **out,
                       amp_error *err) {
    if (!out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_explain: out is NULL");
    amp_explain_options which = {.struct_size = sizeof which, .path = glob, .json = json};
    return amp_explain_ops(options, &which, out, err);
}

/* ---- two models -------------------------------------------------------------------------------------------------- */

typedef struct Pair {
    Session before, after;
} Pair;

static amp_status compare(Pair *p, const amp_explain_options *want, amp_compile_result **out, amp_error *err) {
    ExplainSource before = {0}, after = {0};
    const ExplainSource *sources[] = {&before, &after};
    ExplainSelection which = {0};
    Text t;
    AMP_TRY(explain_open(&p->before, &before, err));
    AMP_TRY(explain_open(&p->after, &after, err));
    AMP_TRY(explain_select(want, sources, 2, &which, err));
    const Comparison c = compare_sources(&p->after.arena, &before, &after, &which);
    text_init(&t, &p->after.arena);
    if (want->form == AMP_EXPLAIN_JSON) AMP_TRY(compare_as_json(&t, &c, err));
    else compare_as_text(&t, &c);
    return result_new(p->after.options.allocator, text_str(&t), t.len, out, err);
}

static amp_status fail_memory(Pair *p, const Session *of, amp_error *err) {
    const char *name = of->options.name;
    session_close(&p->before);
    session_close(&p->after);
    return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: memory ran out", name);
}

static amp_status compare_call(void *arguments, amp_error *err) {
    const ExplainArguments *a = arguments;
    Pair p;
    AMP_TRY(session_init(&p.before, a->before, err));
    AMP_TRY(session_init(&p.after, a->options, err));
    arena_init(&p.before.arena, p.before.options.allocator);
    arena_init(&p.after.arena, p.after.options.allocator);
    if (setjmp(p.before.arena.out_of_memory)) return fail_memory(&p, &p.before, err);
    if (setjmp(p.after.arena.out_of_memory)) return fail_memory(&p, &p.after, err);
    amp_status status = compare(&p, a->which, a->out, err);
    session_close(&p.before);
    session_close(&p.after);
    return status;
}

amp_status amp_compare(const amp_compile_options *before, const amp_compile_options *after,
                       const amp_explain_options *which, amp_compile_result **out, amp_error *err) {
    amp_explain_options want;
    if (!out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_compare: out is NULL");
    *out = NULL;
    AMP_TRY(read_options(which, &want, err));
    if (want.form > AMP_EXPLAIN_JSON)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_compare: form %d: a comparison is text or JSON",
                        (int)want.form);
    ExplainArguments arguments = {.options = after, .before = before, .which = &want, .out = out};
    return compiler_call(compare_call, &arguments, err);
}
