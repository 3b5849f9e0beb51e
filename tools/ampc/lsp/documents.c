/* documents.c: see documents.h. */
#include "tools/ampc/lsp/documents.h"

#include <sys/stat.h>

Document *documents_find(const Documents *all, const char *uri) {
    for (Document *d = all->first; d; d = d->next)
        if (!strcmp(d->uri, uri)) return d;
    return NULL;
}

Document *documents_open(Documents *all, const char *uri) {
    Arena *a = arena_child(all->arena);
    Document *d = arena_new(a, Document);
    *d = (Document){.next = all->first,
                    .arena = a,
                    .store = arena_child(all->arena),
                    .uri = arena_strdup(a, uri),
                    .path = uri_path(a, uri)};
    all->first = d;
    return d;
}

static void forget(Document *d) {
    if (d->complete != d->latest) amp_analysis_release(d->complete);
    amp_analysis_release(d->latest);
}

void documents_close(Documents *all, Document *d) {
    Document **link = &all->first;
    while (*link != d) link = &(*link)->next;
    *link = d->next;
    forget(d);
    arena_free(d->store);
    arena_free(d->arena);
}

void document_set_text(Document *d, const char *text, size_t size) {
    Arena *store = arena_child(d->store->parent);
    d->text = lined_text(store, arena_strndup(store, text, size), size);
    arena_free(d->store);
    d->store = store;
}

/* ---- analysing --------------------------------------------------------------------------------------------------- */

/* The complete analysis stays until another is. */
static void take(Document *d, amp_analysis *analysis) {
    if (d->latest != d->complete) amp_analysis_release(d->latest);
    d->latest = analysis;
    if (!analysis || !analysis->is_complete) return;
    amp_analysis_release(d->complete);
    d->complete = analysis;
}

void document_analyze(Documents *all, Document *d, bool all_passes) {
    Arena *scratch = arena_child(all->arena);
    VEC(amp_source_text) open = {0};
    for (const Document *other = all->first; other; other = other->next) {
        const amp_source_text text = {other->path, other->text.text, other->text.size};
        if (other != d) vec_push(scratch, &open, text);
    }
    const amp_compile_options options = {
        .struct_size = sizeof options, .name = d->path, .text = d->text.text, .text_size = d->text.size};
    const amp_analyze_options which = {
        .struct_size = sizeof which, .open = open.data, .open_count = (size_t)open.len, .all_passes = all_passes};
    amp_error err = {0};
    amp_analysis *analysis = NULL;
    const amp_status status = amp_analyze(&options, &which, &analysis, &err);
    take(d, analysis);
    d->failure = status ? arena_strdup(d->store, err.message) : NULL;
    arena_free(scratch);
}

/* ---- files of an analysis ---------------------------------------------------------------------------------------- */

static bool is_same_file(const char *a, const char *b) {
    struct stat first, second;
    if (!strcmp(a, b)) return true;
    return !stat(a, &first) && !stat(b, &second) && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

int document_file(const amp_analysis *analysis, const char *path) {
    for (size_t i = 0; analysis && i < analysis->file_count; i++)
        if (is_same_file(analysis->files[i].name, path)) return (int)i;
    return -1;
}

Document *documents_of_path(const Documents *all, const char *path) {
    for (Document *d = all->first; d; d = d->next)
        if (is_same_file(d->path, path)) return d;
    return NULL;
}

const char *documents_uri(const Documents *all, Arena *a, const char *path) {
    const Document *open = documents_of_path(all, path);
    return open ? open->uri : uri_of_path(a, path);
}

bool document_reads(const Document *d, const char *path) {
    return document_file(d->latest, path) >= 0 || document_file(d->complete, path) >= 0;
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

static View view_of(const amp_analysis *analysis, int file, const Document *d) {
    if (!analysis || file < 0) return (View){NULL, -1, {0}};
    const amp_source_text *text = &analysis->files[file];
    return (View){analysis, file, text_shift(text->text, text->size, d->text.text, d->text.size)};
}

View document_names(const Document *d) { return view_of(d->latest, 0, d); }

View document_values(const Documents *all, const Document *d) {
    if (d->complete) return view_of(d->complete, 0, d);
    for (const Document *other = all->first; other; other = other->next) {
        const int file = document_file(other->complete, d->path);
        if (file >= 0) return view_of(other->complete, file, d);
    }
    return document_names(d);
}

bool view_place(const View *v, amp_span span, amp_span *out) {
    size_t begin, end;
    if (span.file != v->file || v->file < 0) return false;
    if (!text_shift_move(&v->shift, span.begin, &begin) || !text_shift_move(&v->shift, span.end, &end)) return false;
    *out = (amp_span){0, (uint32_t)begin, (uint32_t)end};
    return end - begin == span.end - span.begin;
}

/* The end counts: a cursor stands there when the name has been written. */
static bool holds(amp_span span, int file, size_t offset) {
    return span.file == file && span.begin <= offset && offset <= span.end && span.end > span.begin;
}

const amp_symbol *view_symbol_at(const View *v, size_t offset, amp_span *name, amp_span *call) {
    const TextShift back = text_shift_reverse(&v->shift);
    const amp_analysis *a = v->analysis;
    if (!a || !text_shift_move(&back, offset, &offset)) return NULL;
    for (size_t i = 0; i < a->reference_count; i++)
        if (holds(a->references[i].span, v->file, offset)) {
            *name = a->references[i].span;
            *call = a->references[i].whole;
            return &a->symbols[a->references[i].symbol];
        }
    for (size_t i = 0; i < a->symbol_count; i++)
        if (holds(a->symbols[i].span, v->file, offset)) {
            *name = *call = a->symbols[i].span;
            return &a->symbols[i];
        }
    return NULL;
}
