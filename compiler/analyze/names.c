/* names.c: symbols and references of an analysis, as the outline has them. */
#include "compiler/analyze/analysis.h"

/* One list for each: kinds are numbered alike. */
#define SAME(kind) _Static_assert((int)SYMBOL_##kind == (int)AMP_SYMBOL_##kind, "the same number")
SAME(FILE);
SAME(CONST);
SAME(BLOCK);
SAME(MODEL);
SAME(TRAIN);
SAME(PRECISION);
SAME(INPUT);
SAME(TENSOR);
SAME(SETTING);
SAME(VALUE);
SAME(PARAMETER);
SAME(STATE);
SAME(INDEX);
SAME(METRIC);
SAME(OP);
SAME(FUNCTION);

static const amp_symbol_argument *copy_arguments(Analysis *x, const Symbol *s) {
    amp_symbol_argument *out = arena_array(&x->arena, amp_symbol_argument, s->args.len + 1);
    for (int i = 0; i < s->args.len; i++) {
        const SymbolArg *arg = &s->args.data[i];
        out[i] = (amp_symbol_argument){analysis_copy(x, arg->name), analysis_copy(x, arg->type),
                                       analysis_copy(x, arg->initial)};
    }
    return out;
}

static void tell_symbol(Analysis *x, const Symbol *s) {
    amp_symbol told = {.kind = (amp_symbol_kind)s->kind,
                       .parent = s->parent,
                       .name = analysis_copy(x, s->name),
                       .span = analysis_span(x, s->loc),
                       .whole = analysis_span(x, s->whole),
                       .about = analysis_copy(x, s->about),
                       .arguments = copy_arguments(x, s),
                       .argument_count = (size_t)s->args.len,
                       .least = s->least,
                       .most = s->most};
    vec_push(&x->arena, &x->symbols, told);
}

void analysis_tell_names(Analysis *x, const Outline *outline) {
    for (int i = 0; i < outline->sources.len; i++) x->told.prelude = analysis_file(x, outline->sources.data[i]);
    for (int i = 0; i < outline->symbols.len; i++) tell_symbol(x, &outline->symbols.data[i]);
    for (int i = 0; i < outline->references.len; i++) {
        const Reference *r = &outline->references.data[i];
        amp_reference told = {analysis_span(x, r->loc), analysis_span(x, r->whole), r->symbol};
        vec_push(&x->arena, &x->references, told);
    }
}
