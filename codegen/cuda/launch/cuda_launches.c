/* cuda_launches.c: the launches of a module, as the passes of the group launch have made them; equal bodies share a
 * function. */
#include "amp/model_abi.h"
#include "codegen/cuda/cuda.h"
#include "codegen/cuda/launch/cuda_writer.h"

#include "codegen/cuda/prelude_parts.h"
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
    text_init(&f->titles, a);
    *index = x->functions.len;
    vec_push(a, &x->functions, f);
    table_set(a, &x->by_body, body->source, index);
    return *index;
}

/* |part|: of a bundle, from 0. */
static void add_title(CudaWriter *x, int function, const Walk *w, int part) {
    Text *t = &x->functions.data[function]->titles;
    text_puts(t, x->functions.data[function]->users++ ? " * " : "/* ");
    if (part) text_puts(t, "+ ");
    cuda_comment_title(t, w);
}

/* Of the kernel that was emitted last. */
static int function_of(CudaWriter *x, const CudaBody *body, int choice) {
    const int known = cuda_find_function(x, body);
    Text comment;
    if (known >= 0) return known;
    text_init(&comment, x->m->arena);
    if (body->comment) text_puts(&comment, body->comment);
    else cuda_comment_body(&comment, &x->w);
    text_printf(&comment, " *   %s\n", body->how);
    return cuda_add_function(x, x->w.k, body, choice, text_str(&comment));
}

static const char *function_source(const CudaWriter *x, const CudaWritten *f) {
    Text t;
    text_init(&t, x->m->arena);
    text_puts(&t, text_str(&((CudaWritten *)f)->titles));
    text_puts(&t, f->comment);
    text_puts(&t, " */\n");
    for (const char *s = f->body; *s; s++) {
        if (*s == '@') text_puts(&t, f->entry);
        else text_putc(&t, *s);
    }
    return text_str(&t);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static uint8_t access_of(const Walk *w, int operand) {
    bool reads = cuda_is_among(w, w->k->reads.data, w->k->reads.len, operand);
    bool writes = cuda_is_among(w, w->k->writes.data, w->k->writes.len, operand);
    return (uint8_t)((reads ? AMP_ACCESS_READ : 0) | (writes ? AMP_ACCESS_WRITE : 0));
}

static void add_operands(CudaWriter *x, CudaKernelEntry *entry) {
    const Walk *w = &x->w;
    Arena *a = x->m->arena;
    for (int i = 0; i < w->operands.len; i++) {
        vec_push(a, &entry->operands, w->operands.data[i]);
        vec_push(a, &entry->access, access_of(w, i));
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
    if (x->w.cols.n)
        return amp_fail(x->err, AMP_UNSUPPORTED,
                        "%s:%d:%d: %s: its last dimension depends on N, which is not supported for CUDA; compile the "
                        "model for the CPU (--target cpu)",
                        k->pos.file ? k->pos.file : "model", k->pos.line, k->pos.column, k->title ? k->title : k->name);
    return cuda_emit_kernel(&x->w, form, body, x->err);
}

static int64_t round_up(int64_t count, int64_t to) { return (count + to - 1) / to * to; }

/* A batch, or a chain, has one function for all its kernels. */
static amp_status check_same(CudaWriter *x, const LaunchPart *part, CudaForm form) {
    const Func *f = x->w.f;
    CudaBody own, body;
    for (int i = 0; i < part->kernels.len && part->kernels.len > 1; i++) {
        AMP_TRY(cuda_write_kernel(x, f->kernels.data[part->kernels.data[i]], form, i ? &body : &own));
        if (i && strcmp(body.source, own.source))
            return amp_fail(x->err, AMP_INTERNAL,
                            "%s: its code differs from the code of %s, with which it shares a launch", walk_name(&x->w),
                            f->kernels.data[part->kernels.data[0]]->name);
    }
    return AMP_OK;
}

amp_status cuda_add_members(CudaWriter *x, const LaunchPart *part, CudaKernelEntry *entry) {
    CudaBody body;
    for (int i = 0; i < part->kernels.len; i++) {
        const Kernel *k = x->w.f->kernels.data[part->kernels.data[i]];
        AMP_TRY(cuda_write_kernel(x, k, (CudaForm){.plan = true}, &body));
        vec_push(x->m->arena, &entry->members, k);
        vec_push(x->m->arena, &entry->batch_elements, body.batch == BATCH_NONE ? dim_const(1) : body.elements);
    }
    return part->form == PART_BATCH ? check_same(x, part, (CudaForm){.members = 1}) : AMP_OK;
}

/* The function of a launch over |entry|'s passes. */
static amp_status emit_passes(CudaWriter *x, CudaKernelEntry *entry, CudaBody *out) {
    Arena *a = x->m->arena;
    const int count = entry->members.len;
    CudaBody *passes = arena_array(a, CudaBody, count);
    Text comment;
    text_init(&comment, a);
    for (int i = 0; i < count; i++) {
        const CudaForm form = {.pass = i + 1, .columns = passes[0].columns, .height = passes[0].height};
        AMP_TRY(cuda_write_kernel(x, entry->members.data[i], form, &passes[i]));
        text_printf(&comment, " *   pass %d\n", i + 1);
        cuda_comment_body(&comment, &x->w);
    }
    cuda_join_passes(a, passes, count, x->w.k->pred.id, out);
    out->comment = text_str(&comment);
    entry->tickets = (int)passes[count - 1].launch.extent[0].mul;
    return walk_kernel(&x->w, entry->members.data[0], x->err);
}

/* The launch of one member becomes that of |count|, with so many |elements|. */
void cuda_set_batch_extent(const Dim *elements, int count, BatchForm batch, CudaLaunch *launch) {
    int64_t total = 0;
    const int axis = cuda_batch_axis(batch);
    if (batch != BATCH_IN_TURN) {
        launch->extent[axis] = dim_const(count);
        launch->per[axis] = 1;
        return;
    }
    for (int i = 0; i < count; i++) total += round_up(elements[i].mul, launch->per[axis]);
    launch->extent[axis] = dim_const(total);
}

/* |choice|: as in CudaForm. */
static amp_status emit_launch(CudaWriter *x, CudaKernelEntry *entry, int choice, CudaBody *body) {
    const int members = entry->members.len;
    if (entry->passes) return emit_passes(x, entry, body);
    const CudaForm form = {.members = members > 1 ? members : 0, .choice = choice, .chain = entry->chain};
    AMP_TRY(cuda_write_kernel(x, entry->members.data[0], form, body));
    if (members > 1 && !entry->chain)
        cuda_set_batch_extent(entry->batch_elements.data, members, body->batch, &body->launch);
    return AMP_OK;
}

static amp_status add_choices(CudaWriter *x, CudaKernelEntry *entry, int count) {
    CudaBody body;
    for (int i = 1; i <= count; i++) {
        AMP_TRY(emit_launch(x, entry, i, &body));
        CudaChoice choice = {function_of(x, &body, i), body.launch};
        vec_push(x->m->arena, &entry->choices, choice);
    }
    return AMP_OK;
}

void cuda_set_launch(CudaKernelEntry *entry, const CudaBody *body) {
    entry->operand_table = body->operand_table;
    entry->tensor_cores = body->tensor_cores;
    entry->shares = body->shares;
    entry->partials = body->partials;
    entry->launch = body->launch;
    entry->sizes = body->sizes;
}

static amp_status add_functions(CudaWriter *x, CudaKernelEntry *entry) {
    CudaBody body;
    AMP_TRY(emit_launch(x, entry, 0, &body));
    if (entry->members.len == 1 || entry->tickets || entry->chain) entry->batch_elements.len = 0;
    cuda_set_launch(entry, &body);
    entry->function = function_of(x, &body, 0);
    return add_choices(x, entry, body.choices);
}

/* ---- all launches ------------------------------------------------------------------------------------------------ */

/* The part of a bundle that member |member| is of; NULL: there are none. */
static CudaPart *part_of(CudaKernelEntry *entry, int member) {
    int part = 0;
    if (!entry->parts.len) return NULL;
    while (member >= entry->parts.data[part].members) member -= entry->parts.data[part++].members;
    return &entry->parts.data[part];
}

static amp_status add_kernels(CudaWriter *x, CudaKernelEntry *entry) {
    for (int i = 0; i < entry->members.len; i++) {
        const int operands = entry->operands.len, work = entry->work.len;
        CudaPart *part = part_of(entry, i);
        const int number = part ? (int)(part - entry->parts.data) : 0;
        AMP_TRY(walk_kernel(&x->w, entry->members.data[i], x->err));
        add_operands(x, entry);
        if (!entry->tickets || part || i == entry->members.len - 1) AMP_TRY(add_predicate(x, entry));
        cuda_add_work(&x->w, &entry->work);
        add_title(x, entry->function, &x->w, number);
        for (int c = 0; c < entry->choices.len; c++) add_title(x, entry->choices.data[c].function, &x->w, number);
        if (!part) continue;
        part->operands += entry->operands.len - operands;
        part->work += entry->work.len - work;
    }
    return AMP_OK;
}

/* The functions of |l|. */
static amp_status write_launch(CudaWriter *x, const Launch *l, CudaKernelEntry *entry) {
    if (launch_has_stages(l) || (l->parts.len > 1 && !l->by_columns)) return cuda_write_parts(x, l, entry);
    for (int i = 0; i < l->parts.len; i++) AMP_TRY(cuda_add_members(x, &l->parts.data[i], entry));
    entry->passes = l->by_columns;
    entry->chain = l->parts.data[0].form == PART_CHAIN;
    if (entry->chain) AMP_TRY(check_same(x, &l->parts.data[0], (CudaForm){0}));
    return add_functions(x, entry);
}

static amp_status add_launch(CudaWriter *x, CudaProgram *program, const Launch *l) {
    CudaKernelEntry entry = {0};
    AMP_TRY(write_launch(x, l, &entry));
    AMP_TRY(add_kernels(x, &entry));
    vec_push(x->m->arena, &program->kernels, entry);
    return AMP_OK;
}

/* ---- the module -------------------------------------------------------------------------------------------------- */

static int *index_buffers(const Func *f) {
    int *first = arena_array(f->module->arena, int, f->values.len + 1);
    for (int i = f->buffers.len - 1; i >= 0; i--) first[f->buffers.data[i]->value.id] = i + 1;
    return first;
}

static amp_status add_program(CudaWriter *x, const Func *f) {
    CudaProgram program = {.func = f};
    x->buffer_of = index_buffers(f);
    walk_init(&x->w, f, x->m->arena);
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
        CudaFunction function = {f->entry, function_source(&x, f), cuda_prelude_for(prelude, f->body), f->min_arch};
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
