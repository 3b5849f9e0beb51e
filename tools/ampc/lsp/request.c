/* request.c: parameters of messages, and places as answers write them. */
#include "tools/ampc/lsp/server.h"

const amp_json *request_member(const amp_json *of, const char *key) { return of ? amp_json_get(of, key) : NULL; }

const char *request_string(const amp_json *of, const char *key) {
    const amp_json *value = request_member(of, key);
    return value && value->kind == AMP_JSON_STRING ? value->string.data : NULL;
}

Document *request_document(const Request *r) {
    const char *uri = request_string(request_member(r->params, "textDocument"), "uri");
    return uri ? documents_find(&r->server->documents, uri) : NULL;
}

static int whole_number(const amp_json *of, const char *key) {
    const amp_json *value = request_member(of, key);
    if (!value || value->kind != AMP_JSON_NUMBER || !value->number.is_integer) return -1;
    const int64_t number = value->number.integer;
    return number < 0 ? -1 : number > INT32_MAX ? INT32_MAX : (int)number;
}

Position request_read_position(const amp_json *position) {
    return (Position){whole_number(position, "line"), whole_number(position, "character")};
}

bool request_position(const Request *r, const Document *d, size_t *offset) {
    const Position at = request_read_position(request_member(r->params, "position"));
    if (at.line < 0 || at.character < 0) return false;
    *offset = position_offset(&d->text, at, r->server->encoding);
    return true;
}

void put_position(amp_json_writer *w, const char *key, Position p) {
    amp_json_begin_object(w, key);
    amp_json_put_int(w, "line", p.line);
    amp_json_put_int(w, "character", p.character);
    amp_json_end_object(w);
}

void put_range(amp_json_writer *w, const char *key, const LinedText *t, amp_span span, PositionEncoding encoding) {
    amp_json_begin_object(w, key);
    put_position(w, "start", position_of(t, span.begin, encoding));
    put_position(w, "end", position_of(t, span.end, encoding));
    amp_json_end_object(w);
}
