/* cuda_kernels.c: every kernel of a module: equal bodies share a function; neighbours of equal body that do not depend
 * on one another share a launch. */
#include "amp/model_abi.h"
#include "codegen/cuda/cuda.h"
#include "codegen/cuda/cuda_writer.h"

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

/* The form in which a kernel may stand in a batch; NULL: it may not. */
amp_status cuda_write_batch_form(CudaWriter *x, const Kernel *k, const CudaBody *single, CudaBody *out) {
    *out = (CudaBody){0};
    if (single->batch == CUDA_BATCH_NONE) return AMP_OK;
    return cuda_write_kernel(x, k, (CudaForm){.members = 1}, out);
}

static int64_t round_up(int64_t count, int64_t to) { return (count + to - 1) / to * to; }

static void add_member(CudaWriter *x, CudaKernelEntry *entry, const Kernel *k, const CudaBody *single) {
    const bool counted = single->batch != CUDA_BATCH_NONE;
    vec_push(x->m->arena, &entry->members, k);
    vec_push(x->m->arena, &entry->batch_elements, counted ? single->elements : dim_const(1));
}

/* Of kernel |at| and those after it that are in the same batch. */
static amp_status find_batch(CudaWriter *x, int at, CudaKernelEntry *entry, CudaBody *first) {
    const Func *f = x->w.f;
    const CudaForm alone = {0};
    CudaBody form, single, next;
    AMP_TRY(cuda_write_kernel(x, f->kernels.data[at], alone, first));
    AMP_TRY(cuda_write_batch_form(x, f->kernels.data[at], first, &form));
    add_member(x, entry, f->kernels.data[at], first);
    for (int i = at + 1; form.source && i < f->kernels.len; i++) {
        const Kernel *k = f->kernels.data[i];
        if (k->kind != entry->members.data[0]->kind || !cuda_is_independent(f, entry, k)) return AMP_OK;
        AMP_TRY(cuda_write_kernel(x, k, alone, &single));
        AMP_TRY(cuda_write_batch_form(x, k, &single, &next));
        if (!next.source || strcmp(form.source, next.source) || !cuda_same_sizes(&form, &next)) return AMP_OK;
        add_member(x, entry, k, &single);
    }
    return AMP_OK;
}

/* Of kernels after |at| those that each block of its launch makes one after another (kernel_chain.c). */
static amp_status find_chain(CudaWriter *x, int at, const CudaBody *body, CudaKernelEntry *entry) {
    const Func *f = x->w.f;
    CudaBody next;
    for (int i = at + 1; body->kind == KERNEL_PRODUCT && i < f->kernels.len; i++) {
        const Kernel *k = f->kernels.data[i];
        if (!cuda_is_next_in_chain(f, entry->members.data, entry->members.len, k)) return AMP_OK;
        AMP_TRY(cuda_write_kernel(x, k, (CudaForm){0}, &next));
        if (strcmp(next.source, body->source) || !cuda_same_sizes(&next, body)) return AMP_OK;
        add_member(x, entry, k, &next);
        entry->chain = true;
    }
    return AMP_OK;
}

/* Of kernels after |at| those that are further passes of its launch (single_pass.c). */
static amp_status find_passes(CudaWriter *x, int at, const CudaBody *body, CudaKernelEntry *entry) {
    const Func *f = x->w.f;
    CudaBody next;
    if (f->kernels.data[at]->kind != KERNEL_COLUMN || !f->kernels.data[at]->segment) return AMP_OK;
    AMP_TRY(walk_kernel(&x->w, f->kernels.data[at], x->err));
    CudaPass first = cuda_first_pass(&x->w, body);
    for (int i = at + 1; i < f->kernels.len && f->kernels.data[i]->kind == KERNEL_COLUMN; i++) {
        const CudaForm form = {.columns = body->columns, .height = body->height};
        AMP_TRY(cuda_write_kernel(x, f->kernels.data[i], form, &next));
        if (!cuda_is_next_pass(&x->w, &next, &first, entry->members.data, entry->members.len)) return AMP_OK;
        vec_push(x->m->arena, &entry->members, f->kernels.data[i]);
        first.operands += x->w.operands.len;
        first.sizes += next.sizes.len;
        entry->tickets = (int)next.launch.extent[0].mul;
    }
    return AMP_OK;
}

/* Kernels after |at| in whose launch blocks do one after another what they all have to do. */
static amp_status find_longer(CudaWriter *x, int at, const CudaBody *body, CudaKernelEntry *entry) {
    if (x->bundles) AMP_TRY(find_chain(x, at, body, entry));
    return entry->chain ? AMP_OK : find_passes(x, at, body, entry);
}

/* The function of a launch over |entry|'s passes. */
static amp_status emit_passes(CudaWriter *x, const CudaKernelEntry *entry, CudaBody *out) {
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
    return walk_kernel(&x->w, entry->members.data[0], x->err);
}

/* The launch of one member becomes that of |count|, with so many |elements|. */
void cuda_set_batch_extent(const Dim *elements, int count, CudaBatch batch, CudaLaunch *launch) {
    int64_t total = 0;
    const int axis = cuda_batch_axis(batch);
    if (batch != CUDA_BATCH_IN_TURN) {
        launch->extent[axis] = dim_const(count);
        launch->per[axis] = 1;
        return;
    }
    for (int i = 0; i < count; i++) total += round_up(elements[i].mul, launch->per[axis]);
    launch->extent[axis] = dim_const(total);
}

/* |choice|: as in CudaForm. */
static amp_status emit_launch(CudaWriter *x, const CudaKernelEntry *entry, int choice, CudaBody *body) {
    const int members = entry->members.len;
    if (entry->tickets) return emit_passes(x, entry, body);
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

static void set_launch(CudaKernelEntry *entry, const CudaBody *body) {
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
    set_launch(entry, &body);
    entry->function = function_of(x, &body, 0);
    return add_choices(x, entry, body.choices);
}

/* ---- bundles ----------------------------------------------------------------------------------------------------- */

typedef struct Bundle { /* while it may still grow */
    CudaKernelEntry *entry;
    CudaBody alone[CUDA_MOST_PARTS]; /* the first kernel of each part, as it is alone */
    int members[CUDA_MOST_PARTS];
    int count;
} Bundle;

/* Its parts as those of a function in blocks of so many threads, each its own or, |choice|, that for many blocks; a
 * part without source has none such. */
static amp_status emit_parts(CudaWriter *x, const Bundle *b, int threads, int choice, CudaBody *parts) {
    int first = 0;
    for (int i = 0; i < b->count; first += b->members[i++]) {
        const int members = b->members[i] > 1 ? b->members[i] : 0;
        const CudaForm form = {.members = members, .choice = choice, .threads = threads, .part = i};
        AMP_TRY(cuda_write_kernel(x, b->entry->members.data[first], form, &parts[i]));
        if (members)
            cuda_set_batch_extent(b->entry->batch_elements.data + first, members, parts[i].batch, &parts[i].launch);
    }
    return AMP_OK;
}

static amp_status have_forms(CudaWriter *x, const Bundle *b, bool *out) {
    CudaBody parts[CUDA_MOST_PARTS];
    int threads[CUDA_MOST_FORMS];
    const int forms = cuda_bundle_threads(b->alone, b->count, threads);
    *out = true;
    for (int f = 0; f < forms; f++) {
        AMP_TRY(emit_parts(x, b, threads[f], f, parts));
        for (int i = 0; i < b->count; i++) *out &= parts[i].source != NULL;
    }
    return AMP_OK;
}

static bool all_independent(const Func *f, const CudaKernelEntry *entry, const CudaKernelEntry *next) {
    for (int i = 0; i < next->members.len; i++)
        if (!cuda_is_independent(f, entry, next->members.data[i])) return false;
    return true;
}

static void add_part(CudaWriter *x, Bundle *b, const CudaKernelEntry *next) {
    for (int i = 0; i < next->members.len; i++) {
        vec_push(x->m->arena, &b->entry->members, next->members.data[i]);
        vec_push(x->m->arena, &b->entry->batch_elements, next->batch_elements.data[i]);
    }
    b->count++;
}

static void remove_part(Bundle *b) {
    b->count--;
    b->entry->members.len -= b->members[b->count];
    b->entry->batch_elements.len -= b->members[b->count];
}

/* To the kernels of |b|, the first of which is number |at|, those after them that are in the same bundle. */
static amp_status find_bundle(CudaWriter *x, int at, Bundle *b) {
    const Func *f = x->w.f;
    while (b->count < CUDA_MOST_PARTS && b->alone[0].bundles) {
        const int then = at + b->entry->members.len;
        CudaKernelEntry next = {0};
        bool have = false;
        if (then >= f->kernels.len || !cuda_is_independent(f, b->entry, f->kernels.data[then])) return AMP_OK;
        AMP_TRY(find_batch(x, then, &next, &b->alone[b->count]));
        if (next.members.len == 1) AMP_TRY(find_longer(x, then, &b->alone[b->count], &next));
        b->members[b->count] = next.members.len;
        if (next.tickets || next.chain || !all_independent(f, b->entry, &next)) return AMP_OK;
        if (!cuda_may_bundle(b->alone, b->members, b->count + 1)) return AMP_OK;
        add_part(x, b, &next);
        AMP_TRY(have_forms(x, b, &have));
        if (have) continue;
        remove_part(b);
        return AMP_OK;
    }
    return AMP_OK;
}

static amp_status bundle_function(CudaWriter *x, const Bundle *b, const CudaBody *parts, const CudaBody *body,
                                  int choice, int *out) {
    Text comment;
    *out = cuda_find_function(x, body);
    if (*out >= 0) return AMP_OK;
    text_init(&comment, x->m->arena);
    for (int i = 0, first = 0; i < b->count; first += b->members[i++]) {
        AMP_TRY(walk_kernel(&x->w, b->entry->members.data[first], x->err));
        text_printf(&comment, " * part %d\n", i);
        cuda_comment_body(&comment, &x->w);
        text_printf(&comment, " *   %s\n", parts[i].how);
    }
    *out = cuda_add_function(x, b->entry->members.data[0], body, choice, text_str(&comment));
    return AMP_OK;
}

/* Products whose blocks take longest begin: those whose sums grow with n, as a weight gradient's do.  After the others,
 * the last of them would have the device to themselves. */
static void order_products(Bundle *b) {
    for (int i = 1; i < b->count; i++)
        for (int j = i; j > 0 && b->alone[j].sums_grow && !b->alone[j - 1].sums_grow; j--) {
            const CudaBody body = b->alone[j];
            const Kernel *k = b->entry->members.data[j];
            b->alone[j] = b->alone[j - 1];
            b->alone[j - 1] = body;
            b->entry->members.data[j] = b->entry->members.data[j - 1];
            b->entry->members.data[j - 1] = k;
        }
}

static amp_status add_bundle(CudaWriter *x, Bundle *b) {
    Arena *a = x->m->arena;
    CudaKernelEntry *entry = b->entry;
    CudaBody parts[CUDA_MOST_PARTS], body;
    int threads[CUDA_MOST_FORMS], function;
    const int forms = cuda_bundle_threads(b->alone, b->count, threads);
    if (b->alone[0].kind == KERNEL_PRODUCT) order_products(b);
    for (int i = 0; i < b->count; i++)
        vec_push(a, &entry->parts, ((CudaPart){.kind = b->alone[i].kind, .members = b->members[i]}));
    for (int f = 0; f < forms; f++) {
        AMP_TRY(emit_parts(x, b, threads[f], f, parts));
        cuda_bundle(a, parts, b->members, b->count, &body);
        AMP_TRY(bundle_function(x, b, parts, &body, f, &function));
        for (int i = 0; i < b->count; i++) vec_push(a, &entry->parts.data[i].launches, parts[i].launch);
        if (f) {
            vec_push(a, &entry->choices, ((CudaChoice){function, body.launch}));
            continue;
        }
        set_launch(entry, &body);
        entry->function = function;
    }
    if (!entry->operand_table) entry->batch_elements.len = 0;
    return AMP_OK;
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

static amp_status add_launch(CudaWriter *x, CudaProgram *program, int *at) {
    CudaKernelEntry entry = {0};
    Bundle bundle = {.entry = &entry, .count = 1};
    AMP_TRY(find_batch(x, *at, &entry, &bundle.alone[0]));
    if (entry.members.len == 1) AMP_TRY(find_longer(x, *at, &bundle.alone[0], &entry));
    bundle.members[0] = entry.members.len;
    if (!entry.tickets && !entry.chain && x->bundles) AMP_TRY(find_bundle(x, *at, &bundle));
    *at += entry.members.len;
    AMP_TRY(bundle.count > 1 ? add_bundle(x, &bundle) : add_functions(x, &entry));
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

/* |done|: whether all kernels of |f| are one launch. */
static amp_status add_joined(CudaWriter *x, const Func *f, CudaProgram *program, bool *done) {
    CudaKernelEntry entry = {0};
    if (f->joined && x->joins) AMP_TRY(cuda_join_kernels(x, f, &entry));
    *done = entry.members.len > 0;
    if (!*done) return AMP_OK;
    AMP_TRY(add_kernels(x, &entry));
    vec_push(x->m->arena, &program->kernels, entry);
    return AMP_OK;
}

static amp_status add_program(CudaWriter *x, const Func *f) {
    CudaProgram program = {.func = f};
    bool done;
    x->buffer_of = index_buffers(f);
    walk_init(&x->w, f, x->m->arena);
    cuda_find_exactness(&x->w);
    AMP_TRY(add_joined(x, f, &program, &done));
    for (int i = 0; i < f->kernels.len && !done;) {
        if (ir_is_still(f, f->kernels.data[i])) i++;
        else AMP_TRY(add_launch(x, &program, &i));
    }
    vec_push(x->m->arena, &x->out->programs, program);
    return AMP_OK;
}

static amp_status emit_kernels(const Module *m, CudaSharing sharing, CudaModule *out, amp_error *err) {
    CudaWriter x = {.m = m, .out = out, .err = err, .bundles = sharing > CUDA_BATCHES, .joins = sharing == CUDA_JOINS};
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

amp_status cuda_emit_module(const Module *m, CudaSharing sharing, const CudaModule **out, amp_error *err) {
    CudaModule *cuda = arena_new(m->arena, CudaModule);
    if (m->stage != STAGE_PLAN || target_of(m) != &target_cuda)
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "module %s is at stage %s for %s: CUDA code can be emitted after the pass plan for cuda",
                        m->name, ir_stage_names[m->stage], target_of(m)->name);
    cuda->module = m;
    AMP_TRY(emit_kernels(m, sharing, cuda, err));
    *out = cuda;
    return AMP_OK;
}

amp_status codegen_cuda(const Module *m, const CudaModule **out, amp_error *err) {
    return cuda_emit_module(m, CUDA_JOINS, out, err);
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
