/* explain.c: the calls of amp_explain. */
#include "compiler/explain/explain.h"

#include "base/error.h"
#include "compiler/explain/explain_graph.h"
#include "compiler/report/report.h"

static void draw(Text *t, const ExplainSource *x, const ExplainSelection *which) {
    const bool by_blocks = which->want.form == AMP_EXPLAIN_BLOCKS;
    const ExplainFacts facts = explain_facts(x);
    const ExplainGraph g = explain_graph(&facts, x->graph, which, by_blocks ? BLOCK_MOST : 0);
    if (by_blocks) explain_as_blocks(t, &g);
    else explain_as_dot(t, &g);
}

static amp_status explain(Session *s, const void *options, amp_compile_result **out, amp_error *err) {
    amp_explain_options want;
    ExplainSource x = {0};
    const ExplainSource *sources[] = {&x};
    ExplainSelection which = {0};
    Text t;
    AMP_TRY(explain_read_options(options, &want, err));
    if (want.form == AMP_EXPLAIN_HTML)
        AMP_TRY(report_check_parts(want.parts, want.part_count, s->options.allocator, err));
    AMP_TRY(explain_open(s, &x, err));
    AMP_TRY(explain_open_cores(s, &x, err));
    AMP_TRY(explain_select(&want, sources, 1, &which, err));
    text_init(&t, &s->arena);
    switch (want.form) {
    case AMP_EXPLAIN_JSON: AMP_TRY(explain_as_json(&t, &x, &which, err)); break;
    case AMP_EXPLAIN_DOT:
    case AMP_EXPLAIN_BLOCKS: draw(&t, &x, &which); break;
    case AMP_EXPLAIN_HTML: AMP_TRY(explain_as_report(&t, s, &x, &which, err)); break;
    default: explain_as_text(&t, &x, &which); break;
    }
    return session_give_text(s, &t, out, err);
}

amp_status amp_explain(const amp_compile_options *options, const amp_explain_options *which, amp_compile_result **out,
                       amp_error *err) {
    return session_call("amp_explain", options, explain, which, out, err);
}
