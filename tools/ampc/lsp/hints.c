/* hints.c: after each name that is bound, the shape and dtype of what it means; and why, where the pointer rests. */
#include "tools/ampc/lsp/server.h"

/* The types of inputs, parameters and states are written already. */
static bool is_hinted(const amp_analysis *a, const amp_symbol *s) {
    const bool is_bound = s->kind == AMP_SYMBOL_VALUE || s->kind == AMP_SYMBOL_TENSOR || s->kind == AMP_SYMBOL_METRIC;
    return is_bound && s->value_count && a->values[s->first_value].is_tensor;
}

static void put_hint(Request *r, const Document *d, const amp_analysis *a, const amp_symbol *s, size_t end) {
    Text tooltip;
    text_init(&tooltip, r->arena);
    describe_values(&tooltip, a, s, false);
    amp_json_begin_object(r->w, NULL);
    put_position(r->w, "position", position_of(&d->text, end, r->server->encoding));
    amp_json_put_string(r->w, "label", arena_printf(r->arena, ": %s", describe_types(r->arena, a, s)));
    amp_json_put_int(r->w, "kind", 1); /* a type */
    amp_json_put_string(r->w, "tooltip", text_str(&tooltip));
    amp_json_end_object(r->w);
}

const char *answer_hints(Request *r) {
    const Document *d = request_document(r);
    const amp_json *range = request_member(r->params, "range");
    const Position start = request_read_position(request_member(range, "start"));
    const Position last = request_read_position(request_member(range, "end"));
    amp_span place;
    if (!d) return "textDocument: is not open";
    if (start.line < 0 || last.line < 0) return "range: start and end, each a line and a character";
    const size_t begin = position_offset(&d->text, start, r->server->encoding);
    const size_t end = position_offset(&d->text, last, r->server->encoding);
    const View v = document_values(&r->server->documents, d);
    amp_json_begin_array(r->w, "result");
    for (size_t i = 0; v.analysis && i < v.analysis->symbol_count; i++) {
        const amp_symbol *s = &v.analysis->symbols[i];
        if (!is_hinted(v.analysis, s) || !view_place(&v, s->span, &place)) continue;
        if (place.end >= begin && place.end <= end) put_hint(r, d, v.analysis, s, place.end);
    }
    amp_json_end_array(r->w);
    return NULL;
}
