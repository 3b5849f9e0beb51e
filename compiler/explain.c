/* explain.c: amp_explain: why each op has its dtype, as text for people and as JSON for tools. */
#include "compiler/result.h"
#include "compiler/session.h"

#include "amp/model_abi.h"
#include "base/elf.h"
#include "base/error.h"
#include "compiler/explain.h"

/* ---- the module ------------------------------------------------------------------------------ */

static bool is_elf(const Source *s) { return s->len > 4 && !memcmp(s->text, "\177ELF", 4); }

static amp_status read_module(Session *s, const char *text, size_t length, Module **out, amp_error *err) {
    Source *ir = arena_new(&s->arena, Source);
    *ir = (Source){.name = s->source->name, .text = arena_strndup(&s->arena, text, length), .len = length};
    *out = ir_read(&s->arena, &s->diags, ir);
    return *out ? AMP_OK : session_report(s, err);
}

/* A model.so keeps its IR in a section of its own, so that it can be read without running the model. */
static amp_status read_model_so(Session *s, Module **out, amp_error *err) {
    size_t offset, length;
    if (amp_elf_section(s->source->text, s->source->len, AMP_MODEL_IR_SECTION, &offset, &length, err)) {
        char why[900];
        memcpy(why, err ? err->message : "", sizeof why - 1);
        why[sizeof why - 1] = 0;
        return amp_fail(err, AMP_BAD_FILE, "%s: %s", s->source->name, why);
    }
    const char *text = s->source->text + offset;
    while (length && !text[length - 1]) length--;
    return read_module(s, text, length, out, err);
}

/* The module behind plan, and behind simplify as the ops that a person knows; the latter NULL where it is not wanted, or the source is
 * IR that lost it. */
static amp_status find_modules(Session *s, bool wants_graph, Module **m, Module **graph, amp_error *err) {
    *graph = NULL;
    AMP_TRY(is_elf(s->source) ? read_model_so(s, m, err) : session_run(s, STAGE_PLAN, TARGET_CPU, m, err));
    const char *text = (*m)->graph_text;
    return text && wants_graph ? read_module(s, text, strlen(text), graph, err) : AMP_OK;
}

/* ---- the call -------------------------------------------------------------------------------- */

static amp_status explain(Session *s, const char *glob, bool json, amp_compile_result **out, amp_error *err) {
    Module *m = NULL, *graph = NULL;
    int found = 0;
    AMP_TRY(session_open(s, err));
    AMP_TRY(find_modules(s, json, &m, &graph, err));
    if (!m->decisions.len)
        return amp_fail(err, AMP_WRONG_STATE, "%s: holds no decisions: it stopped before the pass autocast",
                        s->source->name);
    Text t;
    text_init(&t, &s->arena);
    if (json) AMP_TRY(explain_as_json(&t, m, graph, glob, &found, err));
    else found = explain_as_text(&t, m, glob);
    if (glob && !found)
        return amp_fail(err, AMP_NOT_FOUND, "%s: no op's path matches '%s'; '*' shows all", s->source->name, glob);
    return result_new(s->options.allocator, text_str(&t), t.len, out, err);
}

amp_status amp_explain(const amp_compile_options *options, const char *glob, int32_t json, amp_compile_result **out,
                       amp_error *err) {
    Session s;
    *out = NULL;
    AMP_TRY(session_init(&s, options, err));
    arena_init(&s.arena, s.options.allocator);
    if (setjmp(s.arena.out_of_memory)) {
        session_close(&s);
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: memory ran out", s.options.name);
    }
    amp_status status = explain(&s, glob, json, out, err);
    session_close(&s);
    return status;
}
