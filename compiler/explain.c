/* explain.c: amp_explain: why each op has its dtype, as text for people and as JSON for tools. */
#include "compiler/explain.h"

#include "amp/model_abi.h"
#include "base/elf.h"
#include "base/error.h"
#include "compiler/call.h"
#include "compiler/compile_session.h"

/* ---- text for people --------------------------------------------------------------------------------------------- */

static void tell_types(Text *t, const Decision *d) {
    for (int i = 0; i < d->operands.len; i++)
        text_printf(t, "%s%s", i ? " x " : "", amp_dtype_name(d->operands.data[i]));
    text_printf(t, "%s%s", d->operands.len ? " -> " : "", amp_dtype_name(d->out));
    Opcode code = ir_opcode(d->op);
    if (code && (ir_op_info[code].flags & PRODUCT)) text_puts(t, ", accumulates in f32");
}

/* A line of a policy with its columns closed up. */
static void tell_policy_line(Text *t, const char *line) {
    for (const char *c = line; *c; c++)
        if (*c != ' ' || c[1] != ' ') text_putc(t, *c);
}

static void tell_reason(Text *t, const Module *m, const Decision *d) {
    const Reason *r = d->reason;
    text_puts(t, "  because    ");
    if (r->is_override) text_printf(t, "override at %s:%d   %s", r->where.file, r->where.line, r->rule);
    else {
        const bool is_file = m->policy_origin && r->origin && m->policy_name && !strcmp(r->origin, m->policy_name) &&
                             strcmp(m->policy_origin, m->policy_name);
        if (is_file) text_printf(t, "%s:%d   ", m->policy_origin, r->line);
        else text_printf(t, "%s.policy:%d   ", r->origin ? r->origin : "?", r->line);
        tell_policy_line(t, d->policy_text ? d->policy_text : r->rule);
    }
    if (r->because) text_printf(t, "   because \"%s\"", r->because);
    if (r->relation) text_printf(t, "   (%s %s)", r->relation, r->neighbour);
    text_putc(t, '\n');
}

/* The word of a list stands before its first line only. */
static void tell_label(Text *t, const char *label, int *told) { text_printf(t, "  %-11s", (*told)++ ? "" : label); }

static void tell_casts(Text *t, const ExplainFacts *x, const Decision *d) {
    for (int i = 0, told = 0; i < d->casts.len; i++) {
        const CastNote *c = &d->casts.data[i];
        tell_label(t, "casts", &told);
        text_puts(t, c->value);
        text_pad_to(t, 34);
        text_printf(t, "%s -> %s", amp_dtype_name(c->from), amp_dtype_name(c->to));
        const char *place = explain_cast_place(x, d, c);
        if (place) text_printf(t, "   %s", place);
        text_putc(t, '\n');
    }
}

static void tell_kernels(Text *t, const ExplainFacts *x, const Decision *d) {
    const ExplainNumbers *kernels = explain_kernels(x, d->path);
    for (int i = 0, told = 0; i < kernels->len; i++) {
        const Kernel *k = x->f->kernels.data[kernels->data[i]];
        tell_label(t, "kernel", &told);
        text_printf(t, "%s  %s\n", k->name, k->title);
    }
}

static void tell_use(Text *t, const ExplainUse *u) {
    text_printf(t, "   %s: %d registers, %d bytes of shared memory, ", u->arch, u->registers, u->shared_bytes);
    if (u->spill_bytes) text_printf(t, "%d bytes spilled", u->spill_bytes);
    else text_puts(t, "no spills");
    if (u->stack_bytes) text_printf(t, ", %d bytes of stack", u->stack_bytes);
}

/* Where machine code was made: each kernel and what it needs. */
static void tell_cuda_kernels(Text *t, const ExplainFacts *x, const Decision *d) {
    const ExplainNumbers *kernels = explain_cuda_kernels(x, d->path);
    for (int i = 0, told = 0; i < kernels->len; i++) {
        const Kernel *k = x->cuda->kernels.data[kernels->data[i]];
        const ExplainUses *uses = explain_uses(x, k);
        for (int u = 0; u < uses->len; u++) {
            tell_label(t, "on CUDA", &told);
            if (u) text_puts(t, "   ");
            else text_puts(t, k->name);
            tell_use(t, &uses->data[u]);
            text_putc(t, '\n');
        }
    }
}

static void tell_removed(Text *t, const ExplainFacts *x, const Decision *d) {
    const ExplainNumbers *removed = explain_removed(x, d->path);
    for (int i = 0, told = 0; i < removed->len; i++) {
        const Removed *r = &x->m->removed.data[removed->data[i]];
        tell_label(t, "gradient", &told);
        text_puts(t, r->value);
        text_pad_to(t, 34);
        text_printf(t, "removed: %s\n", r->what);
    }
}

static void tell_decision(Text *t, const ExplainFacts *x, const Decision *d) {
    text_puts(t, d->path);
    text_pad_to(t, 28);
    tell_types(t, d);
    text_pad_to(t, 88);
    text_printf(t, "%s:%d\n", d->pos.file ? d->pos.file : "?", d->pos.line);
    tell_reason(t, x->m, d);
    tell_casts(t, x, d);
    tell_kernels(t, x, d);
    tell_cuda_kernels(t, x, d);
    tell_removed(t, x, d);
    text_putc(t, '\n');
}

/* Roundings that simplify removed from what came from no op of the forward graph. */
static void tell_other_removed(Text *t, const ExplainFacts *x) {
    const Module *m = x->m;
    bool *told_above = arena_array(m->arena, bool, m->removed.len + 1);
    for (int k = 0; k < m->decisions.len; k++) {
        const ExplainNumbers *removed = explain_removed(x, m->decisions.data[k].path);
        for (int i = 0; i < removed->len; i++) told_above[removed->data[i]] = true;
    }
    for (int i = 0, told = 0; i < m->removed.len; i++) {
        const Removed *r = &m->removed.data[i];
        if (told_above[i]) continue;
        text_printf(t, "%s  %s.%s: %s\n", told++ ? "" : "roundings removed by simplify\n", r->func, r->value, r->what);
    }
}

/* The decisions whose path matches |glob| (NULL: all); returns how many there were. */
static int explain_as_text(Text *t, const ExplainSource *s, const char *glob) {
    int found = 0;
    const Module *m = s->m;
    ExplainFacts facts = explain_facts(s);
    text_printf(t, "%s: policy %s, low precision %s\n\n", m->name, m->policy_name, amp_dtype_name(m->low));
    for (int i = 0; i < m->decisions.len; i++)
        if (!glob || text_glob_match(glob, m->decisions.data[i].path)) {
            tell_decision(t, &facts, &m->decisions.data[i]);
            found++;
        }
    if (!glob) tell_other_removed(t, &facts);
    explain_params_as_text(t, m, glob);
    return found;
}

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

/* An option that changes what is compiled, and so nothing of a model.so; NULL: there is none. */
static const char *compiled_option(const amp_compile_options *o) {
    return o->precision        ? "precision"
           : o->policy         ? "policy"
           : o->define_count   ? "define"
           : o->eval_precision ? "eval precision"
                               : NULL;
}

/* The graph only where it is wanted; IR may have lost it. */
static amp_status find_modules(Session *s, bool wants_graph, ExplainSource *out, amp_error *err) {
    Module *graph = NULL;
    if (is_elf(s->source) && s->options.gpu_arch)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "gpu arch %s: %s is compiled already; give the model's source",
                        s->options.gpu_arch, s->source->name);
    if (is_elf(s->source) && compiled_option(&s->options))
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: %s is compiled already; give the model's source",
                        compiled_option(&s->options), s->source->name);
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

typedef struct ExplainArguments {
    const amp_compile_options *options;
    const char *glob;
    int32_t json;
    amp_compile_result **out;
} ExplainArguments;

static amp_status explain_call(void *arguments, amp_error *err) {
    const ExplainArguments *a = arguments;
    Session s;
    AMP_TRY(session_init(&s, a->options, err));
    arena_init(&s.arena, s.options.allocator);
    if (setjmp(s.arena.out_of_memory)) {
        session_close(&s);
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: memory ran out", s.options.name);
    }
    amp_status status = explain(&s, a->glob, a->json, a->out, err);
    session_close(&s);
    return status;
}

amp_status amp_explain(const amp_compile_options *options, const char *glob, int32_t json, amp_compile_result **out,
                       amp_error *err) {
    if (!out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_explain: out is NULL");
    *out = NULL;
    return compiler_call(explain_call, &(ExplainArguments){options, glob, json, out}, err);
}
