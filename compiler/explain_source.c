/* explain_source.c: the modules that explain tells of: compiled from source, or read out of a model.so. */
#include "amp/model_abi.h"
#include "base/elf.h"
#include "base/error.h"
#include "compiler/explain.h"

static bool is_elf(const Source *s) { return s->len > 4 && !memcmp(s->text, "\177ELF", 4); }

static amp_status read_module(Session *s, const char *text, size_t length, Module **out, amp_error *err) {
    Source *ir = arena_new(&s->arena, Source);
    *ir = (Source){.name = s->source->name, .text = arena_strndup(&s->arena, text, length), .len = length};
    *out = ir_read(&s->arena, &s->diags, ir);
    if (!*out) return session_report(s, err);
    const char *wrong = ir_verify(*out);
    if (!wrong) return AMP_OK;
    diag_error(&s->diags, (Loc){0}, "its module of stage %s is not valid: %s", ir_stage_names[(*out)->stage], wrong);
    return session_report(s, err);
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

/* An option that changes what is compiled, and so nothing of a model.so; NULL: there is none. */
static const char *compiled_option(const amp_compile_options *o) {
    return o->precision        ? "precision"
           : o->policy         ? "policy"
           : o->define_count   ? "define"
           : o->eval_precision ? "eval precision"
           : o->sums           ? "sums"
                               : NULL;
}

/* Every op that autocast decides has a path and a reason; the text form can leave them out. */
static amp_status check_decisions(Session *s, const Module *m, amp_error *err) {
    if (!m->decisions.len)
        return amp_fail(err, AMP_WRONG_STATE, "%s: holds no decisions: it stopped before the pass autocast",
                        s->source->name);
    for (int i = 0; i < m->decisions.len; i++) {
        const Decision *d = &m->decisions.data[i];
        if (d->path && d->op && d->reason && d->reason->rule) continue;
        diag_error(&s->diags, (Loc){0}, "decision %d (%s) has no path, op or reason; autocast writes all three", i + 1,
                   d->path ? d->path
                   : d->op ? d->op
                           : "?");
        return session_report(s, err);
    }
    return AMP_OK;
}

amp_status explain_open(Session *s, ExplainSource *out, amp_error *err) {
    Module *graph = NULL;
    AMP_TRY(session_open(s, err));
    out->name = s->source->name;
    if (is_elf(s->source) && s->options.gpu_arch)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "gpu arch %s: %s is compiled already; give the model's source",
                        s->options.gpu_arch, s->source->name);
    if (is_elf(s->source) && compiled_option(&s->options))
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: %s is compiled already; give the model's source",
                        compiled_option(&s->options), s->source->name);
    AMP_TRY(is_elf(s->source) ? read_model_so(s, out, err) : compile_source(s, out, err));
    AMP_TRY(check_decisions(s, out->m, err));
    if (!out->m->graph_text) return AMP_OK;
    AMP_TRY(read_module(s, out->m->graph_text, strlen(out->m->graph_text), &graph, err));
    out->graph = graph;
    return AMP_OK;
}
