/* notices.c: texts that are opened, changed, saved and closed; each is analysed, and so are the models that include
 * it. */
#include "tools/ampc/lsp/server.h"

/* Paths of files that have to be told of; each once. */
typedef struct Paths {
    Arena *arena;
    Table set;
} Paths;

/* All files that an analysis read, but for the layers, which have no errors. */
static void add_files(Paths *p, const amp_analysis *a) {
    for (size_t i = 0; a && i < a->file_count; i++)
        if ((int32_t)i != a->prelude) table_set(p->arena, &p->set, arena_strdup(p->arena, a->files[i].name), p);
}

static void publish_all(Request *r, const Paths *p) {
    for (int i = 0; i < p->set.entries.len; i++) publish(r->server, r->arena, p->set.entries.data[i].key);
}

/* Before and after: what is in no file any more is told too. */
static void analyze(Request *r, Document *d, bool all_passes, Paths *p) {
    table_set(p->arena, &p->set, d->path, p);
    add_files(p, d->latest);
    document_analyze(&r->server->documents, d, all_passes);
    add_files(p, d->latest);
}

/* The models that read |path|, but |d|. */
static void analyze_readers(Request *r, const Document *d, const char *path, Paths *p) {
    for (Document *other = r->server->documents.first; other; other = other->next)
        if (other != d && document_reads(other, path)) analyze(r, other, false, p);
}

static void text_changed(Request *r, Document *d, bool all_passes) {
    Paths p = {.arena = r->arena};
    analyze(r, d, all_passes, &p);
    analyze_readers(r, d, d->path, &p);
    publish_all(r, &p);
}

static void take_version(Document *d, const amp_json *of) {
    const amp_json *version = request_member(of, "version");
    d->has_version = version && version->kind == AMP_JSON_NUMBER && version->number.is_integer;
    d->version = d->has_version ? version->number.integer : 0;
}

const char *notice_opened(Request *r) {
    const amp_json *of = request_member(r->params, "textDocument"), *text = request_member(of, "text");
    const char *uri = request_string(of, "uri");
    if (!uri || !text || text->kind != AMP_JSON_STRING) return "textDocument: uri and text";
    Document *d = documents_find(&r->server->documents, uri);
    if (!d) d = documents_open(&r->server->documents, uri);
    take_version(d, of);
    document_set_text(d, text->string.data, text->string.len);
    text_changed(r, d, true);
    return NULL;
}

/* The whole text, or what is in place of a range of it. */
static bool apply(Request *r, Document *d, const amp_json *change) {
    const amp_json *text = request_member(change, "text"), *range = request_member(change, "range");
    if (!text || text->kind != AMP_JSON_STRING) return false;
    if (!range) {
        document_set_text(d, text->string.data, text->string.len);
        return true;
    }
    const Position start = request_read_position(request_member(range, "start"));
    const Position end = request_read_position(request_member(range, "end"));
    if (start.line < 0 || start.character < 0 || end.line < 0 || end.character < 0) return false;
    const size_t from = position_offset(&d->text, start, r->server->encoding);
    const size_t to = position_offset(&d->text, end, r->server->encoding);
    if (to < from) return false;
    Text t;
    text_init(&t, r->arena);
    text_write(&t, d->text.text, from);
    text_write(&t, text->string.data, text->string.len);
    text_write(&t, d->text.text + to, d->text.size - to);
    document_set_text(d, text_str(&t), t.len);
    return true;
}

const char *notice_changed(Request *r) {
    const amp_json *changes = request_member(r->params, "contentChanges");
    Document *d = request_document(r);
    if (!d || !changes || changes->kind != AMP_JSON_ARRAY) return "textDocument and contentChanges";
    for (size_t i = 0; i < changes->array.count; i++)
        if (!apply(r, d, &changes->array.items[i])) return "contentChanges: text, and a range that is in order";
    take_version(d, request_member(r->params, "textDocument"));
    text_changed(r, d, false);
    return NULL;
}

const char *notice_saved(Request *r) {
    Document *d = request_document(r);
    if (!d) return "textDocument: is not open";
    text_changed(r, d, true);
    return NULL;
}

/* From now on the file counts, for who includes it. */
const char *notice_closed(Request *r) {
    Document *d = request_document(r);
    Paths p = {.arena = r->arena};
    if (!d) return "textDocument: is not open";
    const char *path = arena_strdup(r->arena, d->path);
    add_files(&p, d->latest);
    table_set(p.arena, &p.set, path, &p);
    documents_close(&r->server->documents, d);
    analyze_readers(r, NULL, path, &p);
    publish_all(r, &p);
    return NULL;
}
