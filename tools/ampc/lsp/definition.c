/* definition.c: where a name is bound, a block is written, a file is. */
#include "tools/ampc/lsp/server.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"

/* Where the layers are installed beside this program, as it has them; NULL: they are not. */
static const char *prelude_path(Arena *a, const amp_source_text *prelude) {
    char *text = NULL;
    size_t size = 0;
    amp_error ignored;
    char *program = realpath("/proc/self/exe", NULL);
    const char *slash = program ? strrchr(program, '/') : NULL;
    const char *path =
        slash ? arena_printf(a, "%.*s/../share/ampc/prelude.amp", (int)(slash - program), program) : NULL;
    free(program);
    if (!path || amp_file_read_regular(path, prelude->size, NULL, &text, &size, &ignored)) return NULL;
    const bool same = size == prelude->size && !memcmp(text, prelude->text, size);
    amp_free(NULL, text, size + 1);
    return same ? path : NULL;
}

static bool put_definition(Request *r, const Document *d, const View *v, const amp_symbol *s) {
    const amp_source_text *file = s->span.file >= 0 ? &v->analysis->files[s->span.file] : NULL;
    amp_span span = s->span;
    if (!file) return false;
    const bool is_here = s->span.file == v->file;
    if (is_here && !view_place(v, span, &span)) return false;
    const char *path = s->span.file == v->analysis->prelude ? prelude_path(r->arena, file) : file->name;
    if (!path) return false;
    const LinedText there = is_here ? d->text : lined_text(r->arena, file->text, file->size);
    amp_json_begin_object(r->w, "result");
    amp_json_put_string(r->w, "uri", is_here ? d->uri : documents_uri(&r->server->documents, r->arena, path));
    put_range(r->w, "range", &there, span, r->server->encoding);
    amp_json_end_object(r->w);
    return true;
}

const char *answer_definition(Request *r) {
    const Document *d = request_document(r);
    size_t offset;
    amp_span name, call;
    if (!d) return "textDocument: is not open";
    if (!request_position(r, d, &offset)) return "position: line and character, from 0";
    const View views[] = {document_names(d), document_values(&r->server->documents, d)};
    for (int i = 0; i < 2; i++) {
        const amp_symbol *s = view_symbol_at(&views[i], offset, &name, &call);
        if (s && put_definition(r, d, &views[i], s)) return NULL;
    }
    amp_json_put_null(r->w, "result");
    return NULL;
}
