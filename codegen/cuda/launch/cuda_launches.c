/* cuda_launches.c: the launches of a module, as the passes of the group launch have made them; equal bodies share a
 * function. */
#include "amp/model_abi.h"
#include "codegen/cuda/cuda.h"
#include "codegen/cuda/launch/cuda_writer.h"

#include "codegen/emit.h"
#include "ir/places.h"
#include "targets/target.h"

/* ---- functions --------------------------------------------------------------------------------------------------- */

/* "train_step_k03"; "train_step_k03_1" of a choice. */
static const char *entry_name(const CudaWriter *x, const Kernel *k, int choice) {
    Text name;
    text_init(&name, x->m->arena);
    c_identifier(&name, x->w.f->name);
    text_putc(&name, '_');
    c_identifier(&name, k->name);
    if (choice) text_printf(&name, "_%d", choice);
    return text_str(&name);
}

/* -1: there is none of that text yet. */
int cuda_find_function(const CudaWriter *x, const CudaBody *body) {
    const int *index = table_get(&x->by_body, body->source);
    return index ? *index : -1;
}

/* |choice|: of the kernel's, from 1; 0: its own.  |comment|: lines of one. */
int cuda_add_function(CudaWriter *x, const Kernel *k, const CudaBody *body, int choice, const char *comment) {
    Arena *a = x->m->arena;
    CudaWritten *f = arena_new(a, CudaWritten);
    int *index = arena_new(a, int);
    *f = (CudaWritten){body->source, entry_name(x, k, choice), comment, .min_arch = body->min_arch};
    *index = x->functions.len;
    vec_push(a, &x->functions, f);
    table_set(a, &x->by_body, body->source, index);
    return *index;
}

/* The same for the steps of a loop: without the numbers of the path that a title begins with. */
static const char *title_key(Arena *a, const char *title) {
    const size_t path = strcspn(title, ":");
    return arena_printf(a, "%s%s", text_path_key(a, arena_strndup(a, title, path)), title + path);
}

/* |further|: of a part that is not the first. */
static void add_title(CudaWriter *x, int function, const Walk *w, bool further) {
    Arena *a = x->m->arena;
    CudaWritten *f = x->functions.data[function];
    const char *name = arena_printf(a, "%s%s", further ? "+ " : "", w->k->name);
    Text t;
    text_init(&t, a);
    cuda_comment_title(&t, w);
    const char *key = arena_printf(a, "%d%s", further, title_key(a, text_str(&t)));
    CudaTitle *title = table_get(&f->by_text, key);
    if (!title) {
        title = arena_new(a, CudaTitle);
        *title = (CudaTitle){.first = name, .text = text_str(&t)};
        table_set(a, &f->by_text, key, title);
        vec_push(a, &f->titles, title);
    }
    title->last = w->k->name;
    title->count++;
}

static void put_titles(Text *t, const CudaWritten *f) {
    for (int i = 0; i < f->titles.len; i++) {
        const CudaTitle *title = f->titles.data[i];
        text_printf(t, "%s%s%s", i ? " * " : "/* ", title->first, title->text);
        if (title->count == 2) text_printf(t, " *   and %s\n", title->last);
        if (title->count > 2) text_printf(t, " *   and %d more like it, to %s\n", title->count - 1, title->last);
    }
}

static const char *function_source(const CudaWriter *x, const CudaWritten *f) {
    Text t;
    text_init(&t, x->m->arena);
    put_titles(&t, f);
    text_puts(&t, f->comment);
    text_puts(&t, " */\n");
    for (const char *s = f->body; *s; s++) {
        if (*s == '@') text_puts(&t, f->entry);
        else text_putc(&t, *s);
    }
    return text_str(&t);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static uint8_t access_of(const Walk *w, const CudaBody *body, int operand) {
    return (uint8_t)((walk_is_read(w, operand) ? AMP_ACCESS_READ : 0) |
                     (walk_is_written(w, operand) ? AMP_ACCESS_WRITE : 0) |
                     (body->again ? body->again[operand] * AMP_ACCESS_AGAIN : 0));
}

static void add_operands(CudaWriter *x, CudaKernelEntry *entry) {
    const Walk *w = &x->w;
    Arena *a = x->m->arena;
    for (int i = 0; i < w->operands.len; i++) {
        const int further = (int)w->operands.data[i] - x->buffers - 1;
        vec_push(a, &entry->operands, further < 0 ? w->operands.data[i] : x->aliases.data[further]);
        vec_push(a, &entry->access, access_of(w, &entry->body, i));
    }
}

static amp_status add_predicate(CudaWriter *x, CudaKernelEntry *entry) {
    const Walk *w = &x->w;
    Arena *a = x->m->arena;
    if (!w->k->pred.id) return AMP_OK;
    if (!x->buffer_of[w->k->pred.id])
        return amp_fail(x->err, AMP_INTERNAL, "%s: its predicate is in no buffer", walk_name(w));
    vec_push(a, &entry->operands, (uint32_t)x->buffer_of[w->k->pred.id]);
    vec_push(a, &entry->access, AMP_ACCESS_READ);
    return AMP_OK;
}

amp_status cuda_write_kernel(CudaWriter *x, const Kernel *k, CudaForm form, CudaBody *body) {
    AMP_TRY(walk_kernel(&x->w, k, x->err));
    return cuda_emit_kernel(&x->w, form, body, x->err);
}

/* ---- all launches ------------------------------------------------------------------------------------------------ */

/* Operands, work and titles of the kernels of |part|; its first kernel is member |first|. */
static amp_status add_kernels(CudaWriter *x, CudaKernelEntry *entry, int first, CudaPart *part) {
    const int operands = entry->operands.len, work = entry->work.len;
    for (int i = first; i < first + part->members; i++) {
        AMP_TRY(walk_kernel(&x->w, entry->members.data[i], x->err));
        add_operands(x, entry);
        AMP_TRY(add_predicate(x, entry));
        cuda_add_work(&x->w, &entry->work);
        for (int f = 0; f < entry->forms.len; f++)
            add_title(x, entry->forms.data[f].function, &x->w, part != entry->parts.data);
    }
    part->operands = entry->operands.len - operands;
    part->work = entry->work.len - work;
    return AMP_OK;
}

static amp_status fill_entry(CudaWriter *x, const Launch *l, CudaKernelEntry *entry) {
    AMP_TRY(cuda_write_launch(x, l, entry));
    for (int i = 0, first = 0; i < entry->parts.len; first += entry->parts.data[i++].members)
        AMP_TRY(add_kernels(x, entry, first, &entry->parts.data[i]));
    return AMP_OK;
}

/* Without calls if what follows them is no kernel of elements. */
static void add_calls(CudaWriter *x, const Launch *l, CudaKernelEntry *entry) {
    amp_error *err = x->err;
    CudaProducts calls = {0};
    Launch rest;
    entry->no_call = cuda_find_calls(x, l, &calls, &rest);
    if (entry->no_call) return;
    x->err = NULL;
    CudaKernelEntry *then = rest.parts.len ? arena_new(x->m->arena, CudaKernelEntry) : NULL;
    if (!then || !fill_entry(x, &rest, then)) {
        entry->calls = calls;
        entry->then = then;
    } else entry->no_call = "what follows its products is no kernel of elements";
    x->err = err;
}

static amp_status add_launch(CudaWriter *x, CudaProgram *program, const Launch *l) {
    CudaKernelEntry entry = {0};
    AMP_TRY(fill_entry(x, l, &entry));
    add_calls(x, l, &entry);
    vec_push(x->m->arena, &program->kernels, entry);
    return AMP_OK;
}

/* ---- the module -------------------------------------------------------------------------------------------------- */

static int *index_buffers(const Func *f) {
    int *first = arena_array(f->module->arena, int, f->values.len + 1);
    for (int i = f->buffers.len - 1; i >= 0; i--) first[f->buffers.data[i]->value.id] = i + 1;
    return first;
}

/* Its kernels and buffers in lists of their own, to which more are added. */
static Func *copy_of(const Func *f) {
    Arena *a = f->module->arena;
    Func *own = arena_new(a, Func);
    *own = *f;
    memset(&own->kernels, 0, sizeof own->kernels);
    memset(&own->buffers, 0, sizeof own->buffers);
    for (int i = 0; i < f->kernels.len; i++) vec_push(a, &own->kernels, f->kernels.data[i]);
    for (int i = 0; i < f->buffers.len; i++) vec_push(a, &own->buffers, f->buffers.data[i]);
    return own;
}

static amp_status add_program(CudaWriter *x, const Func *f) {
    CudaProgram program = {.func = f};
    x->buffer_of = index_buffers(f);
    x->own = copy_of(f);
    x->buffers = f->buffers.len;
    x->aliases.len = 0;
    walk_init(&x->w, x->own, x->m->arena);
    cuda_find_exactness(&x->w);
    for (int i = 0, next = 0; i < f->kernels.len;) {
        Launch own = {.first = i, .count = 1};
        LaunchPart part = {0};
        vec_push(x->m->arena, &part.kernels, i);
        vec_push(x->m->arena, &own.parts, part);
        const bool shares = next < f->launches.len && f->launches.data[next].first == i;
        const Launch *l = shares ? &f->launches.data[next++] : &own;
        if (shares || !ir_is_still(f, f->kernels.data[i])) AMP_TRY(add_launch(x, &program, l));
        i += l->count;
    }
    vec_push(x->m->arena, &x->out->programs, program);
    return AMP_OK;
}

static amp_status emit_kernels(const Module *m, CudaModule *out, amp_error *err) {
    CudaWriter x = {.m = m, .out = out, .err = err};
    CudaPrelude *prelude = cuda_prelude_split(m->arena, cuda_prelude);
    out->module = m;
    for (int i = 0; i < m->funcs.len; i++)
        if (!ir_is_exchange(m->funcs.data[i])) AMP_TRY(add_program(&x, m->funcs.data[i]));
    for (int i = 0; i < x.functions.len; i++) {
        const CudaWritten *f = x.functions.data[i];
        CudaFunction function = {f->entry, function_source(&x, f), .min_arch = f->min_arch};
        function.prelude = cuda_prelude_for(prelude, f->body, &function.ranges);
        vec_push(m->arena, &out->functions, function);
    }
    return AMP_OK;
}

/* ---- what codegen.h offers --------------------------------------------------------------------------------------- */

amp_status codegen_cuda(const Module *m, const CudaModule **out, amp_error *err) {
    CudaModule *cuda = arena_new(m->arena, CudaModule);
    if (m->stage < STAGE_PLAN || target_of(m) != &target_cuda)
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "module %s is at stage %s for %s: CUDA code can be emitted after the pass plan for cuda",
                        m->name, ir_stage_names[m->stage], target_of(m)->name);
    cuda->module = m;
    AMP_TRY(emit_kernels(m, cuda, err));
    *out = cuda;
    return AMP_OK;
}

const Module *codegen_cuda_module(const CudaModule *cuda) { return cuda->module; }

const char *codegen_cuda_entry(const CudaModule *cuda, int function) { return cuda->functions.data[function].entry; }

void codegen_cuda_text(const CudaModule *m, Text *out) {
    text_puts(out, "/* Model ");
    c_comment(out, m->module->name);
    text_puts(out, " for CUDA.  Compiled by NVRTC with --fmad=false, one function at a time, after what it needs of "
                   "the prelude. */\n\n");
    text_puts(out, cuda_prelude);
    for (int i = 0; i < m->functions.len; i++) text_printf(out, "\n%s", m->functions.data[i].source);
}
