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

/* A model.so keeps texts in sections of their own, so that they can be read without running the model. */
static amp_status read_section(Session *s, const char *name, const char **text, amp_error *err) {
    size_t offset, length;
    amp_error why = {0};
    if (amp_elf_section(s->source->text, s->source->len, name, &offset, &length, &why))
        return amp_fail(err, AMP_BAD_FILE, "%s: %s", s->source->name, why.message);
    while (length && !s->source->text[offset + length - 1]) length--;
    *text = arena_strndup(&s->arena, s->source->text + offset, length);
    return AMP_OK;
}

static amp_status read_model_so(Session *s, ExplainSource *out, amp_error *err) {
    const char *text;
    Module *m = NULL, *cuda = NULL;
    AMP_TRY(read_section(s, AMP_MODEL_IR_SECTION, &text, err));
    AMP_TRY(read_module(s, text, strlen(text), &m, err));
    out->m = m;
    /* kernels for CUDA have machine code where the model was compiled with --gpu-arch */
    if (read_section(s, AMP_MODEL_CUDA_USES_SECTION, &out->cuda_uses, NULL)) return AMP_OK;
    AMP_TRY(read_section(s, AMP_MODEL_CUDA_IR_SECTION, &text, err));
    AMP_TRY(read_module(s, text, strlen(text), &cuda, err));
    out->cuda = cuda;
    return AMP_OK;
}

static amp_status compile_source(Session *s, ExplainSource *out, amp_error *err) {
    Module *m = NULL;
    CodegenCuda cuda = {0};
    Text uses;
    AMP_TRY(s->options.gpu_arch ? compile_model(s, CHOICE_BOTH, &m, &cuda, err)
                                : compile_to_stage(s, STAGE_PLAN, &target_cpu, &m, err));
    out->m = m;
    if (!cuda.code) return AMP_OK;
    text_init(&uses, &s->arena);
    codegen_cuda_uses(&cuda, &uses);
    out->cuda = codegen_cuda_module(cuda.code);
    out->cuda_uses = text_str(&uses);
    return AMP_OK;
}

/* The graph only where it is wanted; IR may have lost it. */
static amp_status find_modules(Session *s, bool wants_graph, ExplainSource *out, amp_error *err) {
    Module *graph = NULL;
    if (is_elf(s->source) && s->options.gpu_arch)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "gpu arch %s: %s is compiled already; give the model's source",
                        s->options.gpu_arch, s->source->name);
    AMP_TRY(is_elf(s->source) ? read_model_so(s, out, err) : compile_source(s, out, err));
    const char *text = out->m->graph_text;
    if (!text || !wants_graph) return AMP_OK;
    AMP_TRY(read_module(s, text, strlen(text), &graph, err));
    out->graph = graph;
    return AMP_OK;
}

/* ---- the call -------------------------------------------------------------------------------- */

static amp_status explain(Session *s, const char *glob, bool json, amp_compile_result **out, amp_error *err) {
    ExplainSource x = {0};
    int found = 0;
    AMP_TRY(session_open(s, err));
    AMP_TRY(find_modules(s, json, &x, err));
    if (!x.m->decisions.len)
        return amp_fail(err, AMP_WRONG_STATE, "%s: holds no decisions: it stopped before the pass autocast",
                        s->source->name);
    Text t;
    text_init(&t, &s->arena);
    if (json) AMP_TRY(explain_as_json(&t, &x, glob, &found, err));
    else found = explain_as_text(&t, &x, glob);
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
