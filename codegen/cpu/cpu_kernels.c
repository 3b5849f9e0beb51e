/* cpu_kernels.c: every kernel of a module as a C function below a comment that says what it is, and the tables of the
 * descriptor (codegen/descriptor.h) that name them. */
#include "base/hash.h"

#include "amp/model_abi.h"
#include "codegen/cpu/cpu.h"
#include "ir/words.h"
#include "targets/target.h"

typedef struct Body {
    const char *text, *function;
    const Offsets *offsets; /* of the first kernel that has this text */
    bool differ;            /* another kernel has other ones */
} Body;

typedef struct Bodies { /* by hash of the text, open addressing */
    Body *data;
    uint32_t count, capacity;
} Bodies;

typedef struct Emitted { /* of a kernel */
    const char *body;
    Offsets offsets;
} Emitted;

typedef struct KernelWriter {
    const Module *m;
    KernelNames *names;
    Text *out;
    amp_error *err;
    VEC(Emitted) emitted; /* of all kernels, in order */
    int next;             /* of those, the one to be written */
    Bodies shared;        /* bodies as they are emitted, without their offsets */
    Bodies functions;
} KernelWriter;

static void put_buffer(Text *t, const Func *f, uint32_t id) {
    const Buffer *b = f->buffers.data[id - 1];
    text_puts(t, "   %");
    c_comment(t, ir_value(f, b->value)->name);
    text_putc(t, ' ');
    type_print(t, ir_dtype(f, b->value), ir_shape(f, b->value));
    if (b->storage != ir_dtype(f, b->value)) text_printf(t, " as %s", amp_dtype_name(b->storage));
    if (b->layout != LAYOUT_ROWS) text_printf(t, " in %s", ir_layout_names[b->layout]);
}

/* k03  fc1: linear + bias + relu           mlp.amp:8
 *   product in train_step
 *   in   %x ...
 *   out  %4 ... */
static void put_comment(Text *t, const Walk *w) {
    const Kernel *k = w->k;
    text_printf(t, "/* %s  ", k->name);
    c_comment(t, k->title);
    if (k->pos.line) {
        text_puts(t, "           ");
        c_comment(t, k->pos.file);
        text_printf(t, ":%d", k->pos.line);
    }
    text_printf(t, "\n *   %s over [%s, %s] in %s\n *   in ", ir_kernel_kind_names[k->kind],
                emit_dim(w->arena, w->rows), emit_dim(w->arena, w->cols), w->f->name);
    for (int i = 0; i < k->reads.len; i++) put_buffer(t, w->f, k->reads.data[i]);
    text_puts(t, "\n *   out");
    for (int i = 0; i < k->writes.len; i++) put_buffer(t, w->f, k->writes.data[i]);
    text_puts(t, "\n */\n");
}

/* ---- equal bodies ------------------------------------------------------------------------------------------------ */

static Body *find_body(const Bodies *b, const char *text) {
    uint32_t i = amp_hash32(text) & (b->capacity - 1);
    while (b->data[i].text && strcmp(b->data[i].text, text)) i = (i + 1) & (b->capacity - 1);
    return &b->data[i];
}

static void grow_bodies(Arena *a, Bodies *b) {
    const Bodies old = *b;
    if (2 * b->count < b->capacity) return;
    b->capacity = b->capacity ? 2 * b->capacity : 64;
    b->data = arena_array(a, Body, b->capacity);
    for (uint32_t i = 0; i < old.capacity; i++)
        if (old.data[i].text) *find_body(b, old.data[i].text) = old.data[i];
}

/* The body of this text; *first: it is new, and of nothing else so far. */
static Body *body_of(Arena *a, Bodies *b, const char *text, bool *first) {
    grow_bodies(a, b);
    Body *body = find_body(b, text);
    *first = !body->text;
    if (!*first) return body;
    *body = (Body){.text = text};
    b->count++;
    return body;
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

/* The function of this text if there is one, else |name| from now on: then *first. */
static const char *function_of(KernelWriter *kw, const char *text, const char *name, bool *first) {
    Body *same = body_of(kw->m->arena, &kw->functions, text, first);
    if (*first) same->function = name;
    return same->function;
}

/* In the kernel of an attention nothing else draws. */
static bool draws(const Op *o) { return o->code == OP_random || (ir_is_attention(o) && ir_attr(o, "p")->f > 0.0); }

/* "uint32_t key0, uint32_t key1", or their numbers, each after a comma. */
static void put_keys(Text *t, const Walk *w, bool numbers) {
    int count = 0;
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        if (!draws(o)) continue;
        if (numbers) text_printf(t, ", 0x%08Xu", amp_hash32(ir_attr(o, "key")->s));
        else text_printf(t, ", uint32_t key%d", count++);
    }
}

/* "int64_t o0, int64_t o1", or their numbers, each after a comma. */
static void put_offsets(Text *t, const Offsets *offsets, bool numbers) {
    for (int i = 0; i < offsets->len; i++) {
        if (numbers) text_printf(t, ", %lld", (long long)offsets->data[i]);
        else text_printf(t, ", int64_t o%d", i);
    }
}

/* Offsets that no other kernel changes are known to the C compiler. */
static const char *with_offsets(const KernelWriter *kw, const Emitted *k) {
    Text t;
    if (!k->offsets.len || find_body(&kw->shared, k->body)->differ) return k->body;
    text_init(&t, kw->m->arena);
    text_puts(&t, "    enum {");
    for (int i = 0; i < k->offsets.len; i++)
        text_printf(&t, "%s o%d = %lld", i ? "," : "", i, (long long)k->offsets.data[i]);
    text_printf(&t, " };\n%s", k->body);
    return text_str(&t);
}

/* Layers that draw random numbers differ by the keys, steps of a loop by offsets: their kernels call one function,
 * which has them as parameters. */
static const char *without_parameters(KernelWriter *kw, const Walk *w, const char *name, const Emitted *k) {
    static const Offsets none = {0};
    bool first;
    const char *body = with_offsets(kw, k);
    const Offsets *offsets = body == k->body ? &k->offsets : &none;
    Text parameters, call;
    text_init(&parameters, kw->m->arena);
    text_init(&call, kw->m->arena);
    put_keys(&parameters, w, false);
    put_offsets(&parameters, offsets, false);
    if (!parameters.len) return body;
    const char *shared = arena_printf(kw->m->arena, "%s_shared", name);
    const char *text = arena_printf(kw->m->arena, "%s\n%s", text_str(&parameters), body);
    shared = function_of(kw, text, shared, &first);
    if (first)
        text_printf(kw->out, "static __attribute__((noinline)) void K(%s)(const amp_kernel_args *a%s)\n{\n%s}\n\n",
                    shared, text_str(&parameters), body);
    text_printf(&call, "    K(%s)(a", shared);
    put_keys(&call, w, true);
    put_offsets(&call, offsets, true);
    text_puts(&call, ");\n");
    return text_str(&call);
}

static void put_function(KernelWriter *kw, const Walk *w, int index, const Emitted *k) {
    Arena *a = kw->m->arena;
    bool first;
    Text name;
    text_init(&name, a);
    c_identifier(&name, w->f->name);
    text_printf(&name, "_k%02d", index);
    put_comment(kw->out, w);
    const char *body = without_parameters(kw, w, text_str(&name), k);
    const char *function = function_of(kw, body, text_str(&name), &first);
    if (first) text_printf(kw->out, "void K(%s)(const amp_kernel_args *a)\n{\n%s}\n\n", function, body);
    else text_printf(kw->out, "/* the same as %s */\n\n", function);
    vec_push(a, kw->names, ((KernelName){w->k, function, first}));
}

static bool offsets_equal(const Offsets *a, const Offsets *b) {
    return a->len == b->len && (!a->len || !memcmp(a->data, b->data, sizeof *a->data * (size_t)a->len));
}

static amp_status emit_bodies(KernelWriter *kw, const Func *f) {
    Arena *a = kw->m->arena;
    Walk w;
    walk_init(&w, f, a);
    for (int i = 0; i < f->kernels.len; i++) {
        Offsets *offsets = arena_new(a, Offsets);
        bool first;
        Text body;
        text_init(&body, a);
        AMP_TRY(walk_kernel(&w, f->kernels.data[i], kw->err));
        AMP_TRY(cpu_emit_kernel(&w, &body, offsets, kw->err));
        Body *same = body_of(a, &kw->shared, text_str(&body), &first);
        if (first) same->offsets = offsets;
        else if (!offsets_equal(same->offsets, offsets)) same->differ = true;
        vec_push(a, &kw->emitted, ((Emitted){same->text, *offsets}));
    }
    return AMP_OK;
}

static amp_status put_functions(KernelWriter *kw, const Func *f) {
    Walk w;
    walk_init(&w, f, kw->m->arena);
    for (int i = 0; i < f->kernels.len; i++) {
        AMP_TRY(walk_kernel(&w, f->kernels.data[i], kw->err));
        put_function(kw, &w, i, &kw->emitted.data[kw->next++]);
    }
    return AMP_OK;
}

amp_status cpu_emit_kernels(const Module *m, KernelNames *names, Text *out, amp_error *err) {
    KernelWriter kw = {.m = m, .names = names, .out = out, .err = err};
    for (int i = 0; i < m->funcs.len; i++)
        if (!ir_is_exchange(m->funcs.data[i])) AMP_TRY(emit_bodies(&kw, m->funcs.data[i]));
    for (int i = 0; i < m->funcs.len; i++)
        if (!ir_is_exchange(m->funcs.data[i])) AMP_TRY(put_functions(&kw, m->funcs.data[i]));
    return AMP_OK;
}

/* ---- tables of the descriptor ------------------------------------------------------------------------------------ */

typedef struct Tables {
    TableWriter *rows;
    const KernelNames *names;
    int next_name;        /* of names: kernels come in the same order */
    const int *buffer_of; /* by value of the function that is being written: its first buffer */
} Tables;

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* The first buffer of each value. */
static int *index_buffers(const Func *f) {
    int *first = arena_array(f->module->arena, int, f->values.len + 1);
    for (int i = 0; i <= f->values.len; i++) first[i] = AMP_MODEL_NONE;
    for (int i = f->buffers.len - 1; i >= 0; i--) first[f->buffers.data[i]->value.id] = i;
    return first;
}

/* Weights and moments: read and written in place, tile by tile. */
static int find_updates(const Walk *w, uint32_t *updates) {
    int count = 0;
    for (int i = 0; i < w->k->reads.len; i++)
        for (int j = 0; j < w->k->writes.len; j++)
            if (w->k->reads.data[i] == w->k->writes.data[j] && walk_operand(w, i)->layout == LAYOUT_PANELS)
                updates[count++] = (uint32_t)i;
    return count;
}

static const char *arrays_name(const Tables *x, const Walk *w, int kernel) {
    return arena_printf(x->rows->m->arena, "%s_k%02d", table_func_name(x->rows, w->f), kernel);
}

typedef struct KernelArrays {
    int operands, updates;
} KernelArrays;

static KernelArrays put_kernel_arrays(const Tables *x, const Walk *w, int kernel) {
    Arena *a = x->rows->m->arena;
    uint32_t *numbers = arena_array(a, uint32_t, w->operands.len + w->k->reads.len * w->k->writes.len + 1);
    const char *name = arrays_name(x, w, kernel);
    for (int i = 0; i < w->operands.len; i++) numbers[i] = w->operands.data[i] - 1;
    table_put_numbers(x->rows->t, arena_printf(a, "%s_operands", name), numbers, w->operands.len);
    KernelArrays counts = {w->operands.len, find_updates(w, numbers)};
    table_put_numbers(x->rows->t, arena_printf(a, "%s_updates", name), numbers, counts.updates);
    return counts;
}

int cpu_product_operand(const Walk *w, const Op *product, int i) {
    Form form = target_product_form(w->f, product, i);
    return walk_find_operand(w, walk_product_source(w, product->in[i]), form.layout, form.storage);
}

static void put_window(Tables *x, const Walk *w, const Op *o) {
    static const char *const kinds[] = {
        [OP_conv] = "AMP_WINDOW_CONV",
        [OP_conv_data] = "AMP_WINDOW_CONV_DATA",
        [OP_conv_weight] = "AMP_WINDOW_CONV_WEIGHT",
    };
    Windows g = ir_windows(w->f, o);
    text_printf(x->rows->t,
                ", .window = {.kind = %s, .h = %lld, .w = %lld, .c = %lld, .oh = %lld, .ow = %lld, .oc = %lld",
                kinds[o->code], (long long)g.h, (long long)g.w, (long long)g.c, (long long)g.oh, (long long)g.ow,
                (long long)g.oc);
    text_printf(x->rows->t,
                ", .kh = %lld, .kw = %lld, .stride = {%lld, %lld}, .padding = {%lld, %lld}, .dilation = {%lld, %lld}, "
                ".groups = %lld}",
                (long long)g.kh, (long long)g.kw, (long long)g.stride[0], (long long)g.stride[1],
                (long long)g.padding[0], (long long)g.padding[1], (long long)g.dilation[0], (long long)g.dilation[1],
                (long long)(g.groups == 1 ? 0 : g.groups));
}

/* ---- batches of products ----------------------------------------------------------------------------------------- */

static void put_strides(Text *t, char name, const Strided *x, Dim pitch) {
    text_printf(t, ", .%c = {.offset = %lld, .pitch = ", name, (long long)x->offset);
    table_put_dim(t, pitch);
    text_puts(t, ", .strides = {");
    for (int i = 0; i < x->shape.rank - 2; i++) {
        if (i) text_puts(t, ", ");
        table_put_dim(t, x->stride[i]);
    }
    text_puts(t, "}}");
}

static amp_status put_batch(Tables *x, const Walk *w, const Op *o, int a, int b) {
    Strided at[2];
    bool transposed[2];
    Dim pitch[2];
    const Shape *first = ir_shape(w->f, o->in[0]), *second = ir_shape(w->f, o->in[1]);
    const bool ta = ir_attr(o, "ta")->b, tb = ir_attr(o, "tb")->b;
    for (int i = 0; i < 2; i++) {
        if (!walk_strided(w, o->in[i], &at[i]) || !ir_strided_matrix(&at[i], &transposed[i], &pitch[i]))
            return amp_fail(x->rows->err, AMP_INTERNAL, "%s: operand %c has no strides", walk_name(w), "AB"[i]);
        transposed[i] = transposed[i] != (i ? tb : ta);
    }
    text_printf(x->rows->t,
                ", .product = {.operand = %d, .a_transposed = %d, .b_transposed = %d, .a = %d, .b = %d, .k = ",
                walk_operand(w, a)->storage, transposed[0], transposed[1], a, b);
    table_put_dim(x->rows->t, first->d[first->rank - (ta ? 2 : 1)]);
    text_printf(x->rows->t, "}, .batch = &(const amp_model_batch){.rank = %d, .in_columns = %d, .dims = {",
                first->rank - 2, ir_attr(o, "merged")->b);
    for (int i = 0; i < first->rank - 2; i++) {
        if (i) text_puts(x->rows->t, ", ");
        table_put_dim(x->rows->t, first->d[i]);
    }
    text_puts(x->rows->t, "}, .m = ");
    table_put_dim(x->rows->t, first->d[first->rank - (ta ? 1 : 2)]);
    text_puts(x->rows->t, ", .n = ");
    table_put_dim(x->rows->t, second->d[second->rank - (tb ? 2 : 1)]);
    put_strides(x->rows->t, 'a', &at[0], pitch[0]);
    put_strides(x->rows->t, 'b', &at[1], pitch[1]);
    text_putc(x->rows->t, '}');
    return AMP_OK;
}

static amp_status put_product(Tables *x, const Walk *w) {
    const Op *o;
    Dim rows, cols;
    AMP_TRY(walk_own_op(w, &o, x->rows->err));
    int a = cpu_product_operand(w, o, 0), b = cpu_product_operand(w, o, 1);
    if (a < 0 || b < 0)
        return amp_fail(x->rows->err, AMP_INTERNAL, "%s: operand %c is in no buffer that products read", walk_name(w),
                        a < 0 ? 'A' : 'B');
    if (o->code == OP_batch_contract) return put_batch(x, w, o, a, b);
    bool matrix = o->code == OP_contract, ta = matrix && ir_attr(o, "ta")->b;
    bool tb = (matrix || o->code == OP_conv_data) && ir_attr(o, "tb")->b;
    if (!matrix && ir_attr(o, "groups")->i != 1) tb = false; /* its weights are conv's in any case */
    shape_matrix(ir_shape(w->f, o->in[0]), &rows, &cols);
    text_printf(x->rows->t,
                ", .product = {.operand = %d, .a_transposed = %d, .b_transposed = %d, .a = %d, .b = %d, .k = ",
                walk_operand(w, a)->storage, ta, tb, a, b);
    table_put_dim(x->rows->t, !matrix ? dim_const(0) : ta ? rows : cols);
    text_putc(x->rows->t, '}');
    if (!matrix) put_window(x, w, o);
    return AMP_OK;
}

static amp_status put_kernel(Tables *x, const Walk *w, int index, KernelArrays counts) {
    const Kernel *k = w->k;
    const char *name = arrays_name(x, w, index);
    const KernelKind kind = cpu_product_as_device(w) ? KERNEL_TILE : k->kind;
    int predicate = k->pred.id ? x->buffer_of[k->pred.id] : AMP_MODEL_NONE;
    if (k->pred.id && predicate < 0)
        return amp_fail(x->rows->err, AMP_INTERNAL, "%s: its predicate is in no buffer", walk_name(w));
    text_puts(x->rows->t, "    {");
    table_put_field(x->rows->t, "name", k->name);
    table_put_field(x->rows->t, "title", k->title ? k->title : "");
    text_printf(x->rows->t, ".kind = %d, .predicate = %d, .operand_count = %d, .operands = ", kind, predicate,
                counts.operands);
    text_printf(x->rows->t, counts.operands ? "%s_operands, .rows = " : "0, .rows = ", name);
    table_put_dim(x->rows->t, w->rows);
    text_puts(x->rows->t, ", .cols = ");
    table_put_dim(x->rows->t, w->cols);
    text_printf(x->rows->t, ", .run = RUN(%s)", x->names->data[x->next_name++].function);
    if (counts.updates) text_printf(x->rows->t, ", .updates = %s_updates, .update_count = %d", name, counts.updates);
    if (k->pos.line) text_printf(x->rows->t, ", .line = %d", k->pos.line);
    if (k->segment.mul) {
        text_puts(x->rows->t, ", .segment = ");
        table_put_dim(x->rows->t, k->segment);
    }
    if (kind == KERNEL_PRODUCT) AMP_TRY(put_product(x, w));
    if (k->kind == KERNEL_ATTENTION) text_printf(x->rows->t, ", .attention = &%s_attention", name);
    text_puts(x->rows->t, "},\n");
    return AMP_OK;
}

static amp_status put_kernels(Tables *x, const Func *f) {
    Walk w;
    KernelArrays *counts = arena_array(x->rows->m->arena, KernelArrays, f->kernels.len + 1);
    x->buffer_of = index_buffers(f);
    walk_init(&w, f, x->rows->m->arena);
    for (int i = 0; i < f->kernels.len; i++) {
        AMP_TRY(walk_kernel(&w, f->kernels.data[i], x->rows->err));
        counts[i] = put_kernel_arrays(x, &w, i);
        if (f->kernels.data[i]->kind == KERNEL_ATTENTION)
            AMP_TRY(cpu_put_attention(x->rows, &w, arrays_name(x, &w, i)));
    }
    if (f->kernels.len)
        text_printf(x->rows->t, "static const amp_model_kernel %s_kernels[] = {\n", table_func_name(x->rows, f));
    for (int i = 0; i < f->kernels.len; i++) {
        AMP_TRY(walk_kernel(&w, f->kernels.data[i], x->rows->err));
        AMP_TRY(put_kernel(x, &w, i, counts[i]));
    }
    if (f->kernels.len) text_puts(x->rows->t, "};\n\n");
    return AMP_OK;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static amp_status put_program_arrays(Tables *x) {
    for (int i = 0; i < x->rows->m->funcs.len; i++) {
        if (ir_is_exchange(x->rows->m->funcs.data[i])) continue;
        table_put_buffers(x->rows, x->rows->m->funcs.data[i], NULL);
        AMP_TRY(put_kernels(x, x->rows->m->funcs.data[i]));
        AMP_TRY(table_put_results(x->rows, x->rows->m->funcs.data[i]));
    }
    return AMP_OK;
}

static int put_programs(Tables *x) {
    int count = 0;
    text_puts(x->rows->t, "static const amp_model_program programs[] = {\n");
    for (int kind = 1; kind < MODEL_PROGRAM_KINDS; kind++) {
        const Func *f = ir_program(x->rows->m, (ProgramKind)kind);
        if (!f) continue;
        table_put_program(x->rows, f, "amp_model_kernel", f->kernels.len);
        count++;
    }
    text_puts(x->rows->t, "};\n\n");
    return count;
}

/* Each function once: kernels with equal bodies share it. */
void cpu_put_declarations(Text *t, const KernelNames *names) {
    for (int i = 0; i < names->len; i++)
        if (names->data[i].first) text_printf(t, "DECLARE(%s)\n", names->data[i].function);
    text_putc(t, '\n');
}

amp_status cpu_put_programs(TableWriter *rows, const KernelNames *names, int *count) {
    Tables x = {.rows = rows, .names = names};
    AMP_TRY(put_program_arrays(&x));
    *count = put_programs(&x);
    return AMP_OK;
}
