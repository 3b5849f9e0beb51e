/* explain_report.c: what a report is made of besides the parts that a caller adds: the JSON of explain, and the texts
 * of the files in which its ops are. */
#include "compiler/explain/explain.h"
#include "compiler/report/report.h"

typedef struct Contents {
    Session *session;
    const ExplainSource *source;
    const ExplainSelection *which;
} Contents;

static void put_source(amp_json_writer *w, const Contents *c, Table *told, const char *file) {
    if (!file || table_get(told, file)) return;
    const Source *found = session_find_source(c->session, file);
    table_set(c->source->m->arena, told, file, told);
    if (!found) return; /* of IR and of a model.so there is none */
    amp_json_begin_object(w, NULL);
    amp_json_put_string(w, "file", file);
    amp_json_put_string(w, "text", arena_strndup(c->source->m->arena, found->text, found->len));
    amp_json_end_object(w);
}

static void put_contents(amp_json_writer *w, const void *of) {
    const Contents *c = of;
    const Module *m = c->source->m;
    Table told = {0};
    explain_put_members(w, c->source, c->which);
    amp_json_put_string(w, "file", c->source->name);
    amp_json_put_int(w, "batch", c->which->want.batch);
    amp_json_begin_array(w, "sources");
    for (int i = 0; i < m->decisions.len; i++) put_source(w, c, &told, m->decisions.data[i].pos.file);
    amp_json_end_array(w);
}

amp_status explain_as_report(Text *t, Session *session, const ExplainSource *s, const ExplainSelection *which,
                             amp_error *err) {
    const Contents contents = {session, s, which};
    Text json;
    text_init(&json, s->m->arena);
    AMP_TRY(explain_json_text(&json, s->m->arena, put_contents, &contents, err));
    const amp_report_part explain = {"explain", text_str(&json), json.len};
    report_put(t, s->m->name, &explain, which->want.parts, which->want.part_count);
    return AMP_OK;
}
