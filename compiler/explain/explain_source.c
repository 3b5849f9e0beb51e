/* explain_source.c: the modules that explain reports on: compiled from source, or read out of a model.so. */
#include "amp/model_abi.h"
#include "base/error.h"
#include "compiler/explain/explain.h"
#include "compiler/compile_session.h"

static amp_status read_model_so(Session *s, ExplainSource *out, amp_error *err) {
    Module *m = NULL, *cuda = NULL;
    AMP_TRY(model_so_module(s, AMP_MODEL_IR_SECTION, &m, err));
    out->m = m;
    /* kernels for CUDA have machine code where the model was compiled with --gpu-arch */
    if (model_so_section(s, AMP_MODEL_CUDA_USES_SECTION, &out->cuda_uses, NULL)) return AMP_OK;
    AMP_TRY(model_so_module(s, AMP_MODEL_CUDA_IR_SECTION, &cuda, err));
    out->cuda = cuda;
    return AMP_OK;
}

static amp_status compile_source(Session *s, ExplainSource *out, amp_error *err) {
    Module *m = NULL;
    CodegenCuda cuda = {0};
    Text uses;
    AMP_TRY(s->options.gpu_arch ? compile_model(s, CHOICE_BOTH, &m, &cuda, err)
                                : compile_to_stage(s, STAGE_LAST, &target_cpu, &m, err));
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
    return o->precision          ? "precision"
           : o->policy           ? "policy"
           : o->define_count     ? "define"
           : o->eval_precision   ? "eval precision"
           : o->sums             ? "sums"
           : o->override_count   ? "override"
           : o->distribute       ? "distribute"
           : o->accumulate_order ? "accumulate order"
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
    if (model_so_is(s->source) && s->options.gpu_arch)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "gpu arch %s: %s is compiled already; give the model's source",
                        s->options.gpu_arch, s->source->name);
    if (model_so_is(s->source) && compiled_option(&s->options))
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: %s is compiled already; give the model's source",
                        compiled_option(&s->options), s->source->name);
    AMP_TRY(model_so_is(s->source) ? read_model_so(s, out, err) : compile_source(s, out, err));
    AMP_TRY(check_decisions(s, out->m, err));
    if (!out->m->graph_text) return AMP_OK;
    AMP_TRY(session_read_ir(s, out->m->graph_text, &graph, err));
    out->graph = graph;
    return AMP_OK;
}

amp_status explain_open_cores(Session *s, ExplainSource *x, amp_error *err) {
    const char *text;
    Module *cuda = NULL;
    if (x->cuda) tensor_cores_of_planned(x->cuda, &x->cores);
    else if (!model_so_is(s->source)) {
        return x->graph ? tensor_cores_of(s, x->graph, x->graph->pad, &x->cores, err) : AMP_OK;
    } else if (!model_so_section(s, AMP_MODEL_CUDA_IR_SECTION, &text, NULL)) {
        AMP_TRY(session_read_ir(s, text, &cuda, err));
        tensor_cores_of_planned(cuda, &x->cores);
    }
    return AMP_OK;
}
