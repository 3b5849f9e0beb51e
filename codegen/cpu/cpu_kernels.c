/* cpu_kernels.c: every kernel of a module as a C function below a comment that says what it is. */
#include "base/hash.h"
#include "codegen/c_text.h"
#include "codegen/cpu/cpu.h"
#include "ir/words.h"

typedef struct Body {
    const char *text, *function;
} Body;

typedef struct KernelWriter {
    const Module *m;
    KernelNames *names;
    Text *out;
    amp_error *err;
    Body *bodies; /* by hash of the text, open addressing */
    uint32_t body_count, body_capacity;
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
    text_printf(t, "\n *   %s over [%s, %lld] in %s\n *   in ", ir_kernel_kind_names[k->kind],
                emit_dim(w->arena, w->rows), (long long)w->cols, w->f->name);
    for (int i = 0; i < k->reads.len; i++) put_buffer(t, w->f, k->reads.data[i]);
    text_puts(t, "\n *   out");
    for (int i = 0; i < k->writes.len; i++) put_buffer(t, w->f, k->writes.data[i]);
    text_puts(t, "\n */\n");
}

/* ---- equal bodies ------------------------------------------------------------------------------------------------ */

static Body *find_body(const KernelWriter *kw, const char *text) {
    uint32_t i = amp_hash32(text) & (kw->body_capacity - 1);
    while (kw->bodies[i].text && strcmp(kw->bodies[i].text, text)) i = (i + 1) & (kw->body_capacity - 1);
    return &kw->bodies[i];
}

static void grow_bodies(KernelWriter *kw) {
    Body *old = kw->bodies;
    uint32_t count = kw->body_capacity;
    if (2 * kw->body_count < count) return;
    kw->body_capacity = count ? 2 * count : 64;
    kw->bodies = arena_array(kw->m->arena, Body, kw->body_capacity);
    for (uint32_t i = 0; i < count; i++)
        if (old[i].text) *find_body(kw, old[i].text) = old[i];
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

static void put_function(KernelWriter *kw, const Walk *w, int index, const Text *body) {
    Arena *a = kw->m->arena;
    Text name;
    text_init(&name, a);
    c_identifier(&name, w->f->name);
    text_printf(&name, "_k%02d", index);
    grow_bodies(kw);
    Body *same = find_body(kw, text_str(body));
    KernelName entry = {w->k, same->function, !same->function};
    put_comment(kw->out, w);
    if (entry.function) text_printf(kw->out, "/* the same as %s */\n\n", entry.function);
    else {
        entry.function = text_str(&name);
        *same = (Body){text_str(body), entry.function};
        kw->body_count++;
        text_printf(kw->out, "void K(%s)(const amp_kernel_args *a)\n{\n%s}\n\n", entry.function, text_str(body));
    }
    vec_push(a, kw->names, entry);
}

static amp_status emit_func(KernelWriter *kw, const Func *f) {
    Walk w;
    walk_init(&w, f, kw->m->arena);
    for (int i = 0; i < f->kernels.len; i++) {
        Text body;
        text_init(&body, kw->m->arena);
        AMP_TRY(walk_kernel(&w, f->kernels.data[i], kw->err));
        AMP_TRY(cpu_emit_kernel(&w, &body, kw->err));
        put_function(kw, &w, i, &body);
    }
    return AMP_OK;
}

amp_status cpu_emit_kernels(const Module *m, KernelNames *names, Text *out, amp_error *err) {
    KernelWriter kw = {.m = m, .names = names, .out = out, .err = err};
    for (int i = 0; i < m->funcs.len; i++) AMP_TRY(emit_func(&kw, m->funcs.data[i]));
    return AMP_OK;
}
