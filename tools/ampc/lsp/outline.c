/* outline.c: the declarations of a text and what is in them, for an editor's list of symbols. */
#include "tools/ampc/lsp/server.h"

/* SymbolKind of the protocol. */
static const int kinds[] = {
    [AMP_SYMBOL_FILE] = 1,    [AMP_SYMBOL_CONST] = 14,    [AMP_SYMBOL_BLOCK] = 12,    [AMP_SYMBOL_MODEL] = 5,
    [AMP_SYMBOL_TRAIN] = 3,   [AMP_SYMBOL_PRECISION] = 3, [AMP_SYMBOL_INPUT] = 8,     [AMP_SYMBOL_TENSOR] = 8,
    [AMP_SYMBOL_SETTING] = 8, [AMP_SYMBOL_VALUE] = 13,    [AMP_SYMBOL_PARAMETER] = 7, [AMP_SYMBOL_STATE] = 7,
    [AMP_SYMBOL_INDEX] = 13,  [AMP_SYMBOL_METRIC] = 13,   [AMP_SYMBOL_OP] = 12,       [AMP_SYMBOL_FUNCTION] = 12,
};

static void begin_symbol(Request *r, const Document *d, const View *v, const amp_symbol *s) {
    amp_span whole = s->whole;
    const char *types = describe_types(r->arena, v->analysis, s);
    if (s->span.begin < whole.begin) whole.begin = s->span.begin;
    if (s->span.end > whole.end) whole.end = s->span.end;
    amp_json_begin_object(r->w, NULL);
    amp_json_put_string(r->w, "name", s->name);
    if (types) amp_json_put_string(r->w, "detail", types);
    amp_json_put_int(r->w, "kind", kinds[s->kind]);
    put_range(r->w, "range", &d->text, whole, r->server->encoding);
    put_range(r->w, "selectionRange", &d->text, s->span, r->server->encoding);
}

/* Of a name that is bound again, the first binding alone. */
static void put_children(Request *r, const Document *d, const View *v, size_t parent) {
    Table seen = {0};
    amp_json_begin_array(r->w, "children");
    for (size_t i = parent + 1; i < v->analysis->symbol_count; i++) {
        const amp_symbol *s = &v->analysis->symbols[i];
        if (s->parent != (int32_t)parent || table_get(&seen, s->name)) continue;
        table_set(r->arena, &seen, s->name, (void *)(uintptr_t)s);
        begin_symbol(r, d, v, s);
        amp_json_end_object(r->w);
    }
    amp_json_end_array(r->w);
}

const char *answer_outline(Request *r) {
    const Document *d = request_document(r);
    if (!d) return "textDocument: is not open";
    const View v = document_names(d);
    amp_json_begin_array(r->w, "result");
    for (size_t i = 0; v.analysis && i < v.analysis->symbol_count; i++) {
        const amp_symbol *s = &v.analysis->symbols[i];
        if (s->parent >= 0 || s->span.file != v.file || s->kind == AMP_SYMBOL_FILE || !*s->name) continue;
        begin_symbol(r, d, &v, s);
        if (s->kind != AMP_SYMBOL_CONST) put_children(r, d, &v, i);
        amp_json_end_object(r->w);
    }
    amp_json_end_array(r->w);
    return NULL;
}
