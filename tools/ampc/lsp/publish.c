/* publish.c: the diagnostics of a file, as its editor shows them. */
#include "tools/ampc/lsp/server.h"

typedef struct Publishing {
    Server *server;
    Arena *arena;
    amp_json_writer w;
    Table told; /* several models may include the file, and find the same */
} Publishing;

static LinedText file_text(const Publishing *p, const amp_analysis *a, int file) {
    return lined_text(p->arena, a->files[file].text, a->files[file].size);
}

/* Help, and the notes of an editor that shows none at their places, go below the message. */
static const char *message_of(const Publishing *p, const amp_analysis *a, const amp_diagnostic *d) {
    Text t;
    text_init(&t, p->arena);
    text_puts(&t, d->text);
    for (size_t i = 0; i < d->note_count; i++) {
        const amp_diagnostic_note *n = &d->notes[i];
        if (n->span.file < 0) {
            text_printf(&t, "\nhelp: %s", n->text);
        } else if (!p->server->takes_related) {
            const LinedText text = file_text(p, a, n->span.file);
            text_printf(&t, "\nline %d: %s", position_of(&text, n->span.begin, POSITION_UTF8).line + 1, n->text);
        }
    }
    return text_str(&t);
}

static void put_related(Publishing *p, const amp_analysis *a, const amp_diagnostic *d) {
    amp_json_begin_array(&p->w, "relatedInformation");
    for (size_t i = 0; i < d->note_count; i++) {
        const amp_diagnostic_note *n = &d->notes[i];
        if (n->span.file < 0) continue;
        const LinedText text = file_text(p, a, n->span.file);
        amp_json_begin_object(&p->w, NULL);
        amp_json_begin_object(&p->w, "location");
        amp_json_put_string(&p->w, "uri", documents_uri(&p->server->documents, p->arena, a->files[n->span.file].name));
        put_range(&p->w, "range", &text, n->span, p->server->encoding);
        amp_json_end_object(&p->w);
        amp_json_put_string(&p->w, "message", n->text);
        amp_json_end_object(&p->w);
    }
    amp_json_end_array(&p->w);
}

static void put_diagnostic(Publishing *p, const LinedText *text, amp_span span, int severity, const char *message) {
    amp_json_begin_object(&p->w, NULL);
    put_range(&p->w, "range", text, span, p->server->encoding);
    amp_json_put_int(&p->w, "severity", severity);
    amp_json_put_string(&p->w, "source", "ampc");
    amp_json_put_string(&p->w, "message", message);
}

/* Those of one analysis that are in its file |file|, and where that is the model's own, those without a place. */
static void put_diagnostics(Publishing *p, const amp_analysis *a, int file) {
    const LinedText text = file_text(p, a, file);
    for (size_t i = 0; i < a->diagnostic_count; i++) {
        const amp_diagnostic *d = &a->diagnostics[i];
        if (d->span.file != file && !(d->span.file < 0 && file == 0)) continue;
        const amp_span span = d->span.file < 0 ? (amp_span){file, 0, 0} : d->span;
        const char *key = arena_printf(p->arena, "%u %u %s", span.begin, span.end, d->text);
        if (table_get(&p->told, key)) continue;
        table_set(p->arena, &p->told, key, p);
        put_diagnostic(p, &text, span, (int)d->severity, message_of(p, a, d));
        if (p->server->takes_related) put_related(p, a, d);
        amp_json_end_object(&p->w);
    }
}

static void put_failure(Publishing *p, const Document *d) {
    if (!d->failure) return;
    put_diagnostic(p, &d->text, (amp_span){0}, AMP_SEVERITY_ERROR, d->failure);
    amp_json_end_object(&p->w);
}

void publish(Server *s, Arena *arena, const char *path) {
    Publishing p = {.server = s, .arena = arena};
    const Document *open = documents_of_path(&s->documents, path);
    amp_json_writer_init(&p.w, NULL);
    amp_json_begin_object(&p.w, NULL);
    amp_json_put_string(&p.w, "jsonrpc", "2.0");
    amp_json_put_string(&p.w, "method", "textDocument/publishDiagnostics");
    amp_json_begin_object(&p.w, "params");
    amp_json_put_string(&p.w, "uri", documents_uri(&s->documents, arena, path));
    if (open && open->has_version) amp_json_put_int(&p.w, "version", open->version);
    amp_json_begin_array(&p.w, "diagnostics");
    if (open) put_failure(&p, open);
    for (const Document *d = s->documents.first; d; d = d->next) {
        const int file = document_file(d->latest, path);
        if (file >= 0) put_diagnostics(&p, d->latest, file);
    }
    amp_json_end_array(&p.w);
    amp_json_end_object(&p.w);
    amp_json_end_object(&p.w);
    server_send(s, &p.w);
    amp_json_writer_free(&p.w);
}
