/* server.c: messages until the editor ends: what answers which, and errors of the protocol. */
#include "tools/ampc/lsp/server.h"

enum ErrorCode { /* of JSON-RPC and of the protocol */
                 PARSE_ERROR = -32700,
                 INVALID_REQUEST = -32600,
                 METHOD_NOT_FOUND = -32601,
                 INVALID_PARAMS = -32602,
                 NOT_INITIALIZED = -32002
};

/* ---- sending ----------------------------------------------------------------------------------------------------- */

void server_send(Server *s, const amp_json_writer *w) {
    if (amp_json_writer_status(w, NULL)) arena_jump_(&s->arena);
    frame_write(s->out, w->data, w->size);
}

static void begin_answer(amp_json_writer *w, const amp_json *id) {
    amp_json_writer_init(w, NULL);
    amp_json_begin_object(w, NULL);
    amp_json_put_string(w, "jsonrpc", "2.0");
    if (id && id->kind == AMP_JSON_STRING) amp_json_put_string(w, "id", id->string.data);
    else if (id && id->kind == AMP_JSON_NUMBER && id->number.is_integer) amp_json_put_int(w, "id", id->number.integer);
    else amp_json_put_null(w, "id");
}

static void end_answer(Server *s, amp_json_writer *w) {
    amp_json_end_object(w);
    server_send(s, w);
    amp_json_writer_free(w);
}

static void send_error(Server *s, const amp_json *id, enum ErrorCode code, const char *text) {
    amp_json_writer w;
    begin_answer(&w, id);
    amp_json_begin_object(&w, "error");
    amp_json_put_int(&w, "code", code);
    amp_json_put_string(&w, "message", text);
    amp_json_end_object(&w);
    end_answer(s, &w);
}

/* ---- beginning and ending ---------------------------------------------------------------------------------------- */

static bool holds(const amp_json *array, const char *word) {
    for (size_t i = 0; array && array->kind == AMP_JSON_ARRAY && i < array->array.count; i++)
        if (array->array.items[i].kind == AMP_JSON_STRING && !strcmp(array->array.items[i].string.data, word))
            return true;
    return false;
}

static void put_capabilities(amp_json_writer *w, PositionEncoding encoding) {
    amp_json_put_string(w, "positionEncoding", encoding == POSITION_UTF8 ? "utf-8" : "utf-16");
    amp_json_begin_object(w, "textDocumentSync");
    amp_json_put_bool(w, "openClose", true);
    amp_json_put_int(w, "change", 2); /* by ranges */
    amp_json_put_bool(w, "save", true);
    amp_json_end_object(w);
    amp_json_put_bool(w, "hoverProvider", true);
    amp_json_put_bool(w, "definitionProvider", true);
    amp_json_put_bool(w, "documentSymbolProvider", true);
    amp_json_put_bool(w, "inlayHintProvider", true);
    amp_json_begin_object(w, "completionProvider");
    amp_json_begin_array(w, "triggerCharacters");
    amp_json_put_string(w, NULL, "(");
    amp_json_put_string(w, NULL, "\"");
    amp_json_end_array(w);
    amp_json_end_object(w);
}

static const char *answer_initialize(Request *r) {
    const amp_json *client = request_member(r->params, "capabilities");
    const amp_json *related = request_member(
        request_member(request_member(client, "textDocument"), "publishDiagnostics"), "relatedInformation");
    Server *s = r->server;
    if (holds(request_member(request_member(client, "general"), "positionEncodings"), "utf-8"))
        s->encoding = POSITION_UTF8;
    s->takes_related = related && related->kind == AMP_JSON_BOOL && related->boolean;
    s->state = SERVER_RUNNING;
    amp_json_begin_object(r->w, "result");
    amp_json_begin_object(r->w, "capabilities");
    put_capabilities(r->w, s->encoding);
    amp_json_end_object(r->w);
    amp_json_begin_object(r->w, "serverInfo");
    amp_json_put_string(r->w, "name", "ampc");
    amp_json_put_string(r->w, "version", amp_compile_version());
    amp_json_end_object(r->w);
    amp_json_end_object(r->w);
    return NULL;
}

static const char *answer_shutdown(Request *r) {
    r->server->state = SERVER_SHUT_DOWN;
    amp_json_put_null(r->w, "result");
    return NULL;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static const struct {
    const char *method;
    const char *(*take)(Request *r);
    bool is_request;
} methods[] = {
    {"initialize", answer_initialize, true},
    {"shutdown", answer_shutdown, true},
    {"textDocument/didOpen", notice_opened, false},
    {"textDocument/didChange", notice_changed, false},
    {"textDocument/didSave", notice_saved, false},
    {"textDocument/didClose", notice_closed, false},
    {"textDocument/hover", answer_hover, true},
    {"textDocument/inlayHint", answer_hints, true},
    {"textDocument/definition", answer_definition, true},
    {"textDocument/documentSymbol", answer_outline, true},
    {"textDocument/completion", answer_completion, true},
};

static const char *(*find_method(const char *name, bool is_request))(Request *) {
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (methods[i].is_request == is_request && !strcmp(methods[i].method, name)) return methods[i].take;
    return NULL;
}

/* Notifications get no answer, errors included. */
static void take_notice(Server *s, Arena *a, const char *method, const amp_json *params) {
    Request r = {.server = s, .arena = a, .params = params};
    const char *(*take)(Request *) = find_method(method, false);
    if (take && s->state == SERVER_RUNNING) take(&r);
}

static void take_request(Server *s, Arena *a, const amp_json *id, const char *method, const amp_json *params) {
    const char *(*take)(Request *) = find_method(method, true);
    const bool is_first = !strcmp(method, "initialize");
    if (s->state == SERVER_NEW && !is_first) return send_error(s, id, NOT_INITIALIZED, "initialize comes first");
    if (s->state == SERVER_SHUT_DOWN) return send_error(s, id, INVALID_REQUEST, "the server was shut down");
    if (s->state == SERVER_RUNNING && is_first) return send_error(s, id, INVALID_REQUEST, "initialize comes once");
    if (!take) return send_error(s, id, METHOD_NOT_FOUND, arena_printf(a, "%s: there is no such method", method));
    amp_json_writer w;
    begin_answer(&w, id);
    Request r = {.server = s, .arena = a, .params = params, .w = &w};
    const char *wrong = take(&r);
    if (!wrong) return end_answer(s, &w);
    amp_json_writer_free(&w);
    send_error(s, id, INVALID_PARAMS, arena_printf(a, "%s: %s", method, wrong));
}

static bool is_answer(const amp_json *message) {
    return request_member(message, "id") && (request_member(message, "result") || request_member(message, "error"));
}

/* False: the editor ends. */
static bool take_message(Server *s, Arena *a, const amp_json *message) {
    const amp_json *id = request_member(message, "id"), *params = request_member(message, "params");
    const char *method = request_string(message, "method"), *version = request_string(message, "jsonrpc");
    if (!method && is_answer(message)) return true; /* this server asks nothing */
    if (!method || !version || strcmp(version, "2.0") != 0) {
        send_error(s, id, INVALID_REQUEST, "a message is an object with \"jsonrpc\": \"2.0\" and a method");
        return true;
    }
    if (!id && !strcmp(method, "exit")) return false;
    if (id) take_request(s, a, id, method, params);
    else take_notice(s, a, method, params);
    return true;
}

static bool take_frame(Server *s, Arena *a, const Frame *frame) {
    const amp_json_limits limits = {.depth = 64};
    amp_json_document *document = NULL;
    amp_error err = {0};
    if (frame->kind == FRAME_WRONG) send_error(s, NULL, INVALID_REQUEST, frame->text);
    if (frame->kind != FRAME_MESSAGE) return frame->kind != FRAME_END;
    const amp_status status = amp_json_parse(frame->text, frame->size, &limits, NULL, &document, &err);
    if (status == AMP_OUT_OF_MEMORY) arena_jump_(&s->arena);
    if (status) {
        send_error(s, NULL, PARSE_ERROR, err.message);
        return true;
    }
    const bool goes_on = take_message(s, a, amp_json_root(document));
    amp_json_free(document);
    return goes_on;
}

static int end(Server *s) {
    const bool in_order = s->state == SERVER_SHUT_DOWN;
    while (s->documents.first) documents_close(&s->documents, s->documents.first);
    arena_free(&s->arena);
    return in_order ? 0 : 1;
}

int server_run(FILE *in, FILE *out) {
    static Server s;
    s = (Server){.out = out};
    s.documents.arena = &s.arena;
    arena_init(&s.arena, NULL);
    if (setjmp(s.arena.out_of_memory)) {
        fputs("ampc: lsp: memory ran out\n", stderr);
        return 1;
    }
    for (bool goes_on = true; goes_on;) {
        Arena *a = arena_child(&s.arena);
        const Frame frame = frame_read(in, a);
        goes_on = take_frame(&s, a, &frame);
        arena_free(a);
    }
    return end(&s);
}
