/* alignment.c: tensor cores of 16 bits want rows of whole 16 bytes, 8 elements, and heads of 16.  What kernels do with
 * others is asked of code generation: long rows of temporaries are padded in memory already (passes/kernels/pitch.c),
 * so 50257 columns there are no finding; and so are short ones, under `pad = true`, which is the line to add where that
 * mends all products of the finding.  Where padding takes more than a quarter more, none is told: it would cost what it
 * brings. */
#include <string.h>

#include "compiler/lint/check.h"

enum { COPY_BYTES = 16, MOST_PADDING = 4 /* a quarter */ };

typedef struct Narrow {
    Pos pos;
    const char *path; /* of the op of the forward pass */
    int64_t run, padded;
    int element_bytes, bytes;
    int products, last; /* how many are narrow so; the number of the last one */
    bool is_head;
} Narrow;

/* "fc1.linear" of "fc1.linear.grad.weight". */
static const char *forward_path(Arena *a, const char *path) {
    const char *end = path ? strstr(path, ".grad.") : NULL;
    return end ? arena_strndup(a, path, (size_t)(end - path)) : path ? path : "";
}

static bool is_of_step(const LintInput *in, const CodegenCopy *c) {
    for (int i = 0; in->funcs[i]; i++)
        if (!strcmp(in->funcs[i]->name, c->func)) return true;
    return false;
}

bool lint_is_narrow(const CodegenCopy *c, int64_t *padded) {
    const int64_t unit = COPY_BYTES / c->element_bytes;
    *padded = c->padded > c->run ? c->padded : (c->run + unit - 1) / unit * unit;
    if (c->padded > c->run) return true;
    const int64_t more = *padded - c->run;
    return c->bytes < COPY_BYTES && more > 0 && more * MOST_PADDING <= c->run;
}

/* The one const that has the value, which then may be where it comes from; "": there is none. */
static const char *constant_of(const Lint *x, int64_t value) {
    const Module *m = x->in->m;
    const char *name = NULL;
    for (int i = 0; i < m->consts.len; i++) {
        if (m->consts.data[i].value != value) continue;
        if (name) return "";
        name = m->consts.data[i].name;
    }
    return name ? arena_printf(x->arena, " (const %s)", name) : "";
}

/* Whether products of |n| copy as they do now with `pad = true` too. */
static bool is_mended(const Lint *x, const Narrow *n) {
    const CodegenCopies *after = x->in->padded;
    int64_t padded;
    for (int i = 0; after && i < after->len; i++) {
        const CodegenCopy *c = &after->data[i];
        if (is_of_step(x->in, c) && c->run == n->run && lint_is_narrow(c, &padded) &&
            !strcmp(forward_path(x->arena, c->path), n->path))
            return false;
    }
    return after;
}

/* Of the whole model. */
static const char *price_of_padding(const Lint *x) {
    const LintSizes *now = &x->in->sizes, *then = &x->in->padded_sizes;
    const double more = then->bytes - now->bytes;
    const int kernels = then->kernels - now->kernels;
    Text t;
    text_init(&t, x->arena);
    text_printf(&t, "%.3g KB more of temporaries and copies of weights at N = %lld", more / 1000,
                (long long)x->in->batch);
    if (more > 1e-4 * now->bytes && now->bytes > 0) text_printf(&t, " (%.2g %%)", 100 * more / now->bytes);
    if (kernels > 0) text_printf(&t, ", %d kernel%s more in a step", kernels, kernels == 1 ? "" : "s");
    return text_str(&t);
}

static void tell_head(Lint *x, const Narrow *n, double more) {
    lint_add_at(x, n->pos, n->path, NULL, "heads of a multiple of 16: fewer or more of them, or another width",
                arena_printf(x->arena, "heads of %lld are multiplied as %lld: %.3g %% more operations, on zeros",
                             (long long)n->run, (long long)n->padded, more));
}

static void tell_rows(Lint *x, const Narrow *n, double more) {
    Arena *a = x->arena;
    const int unit = COPY_BYTES / n->element_bytes, elements = n->bytes / n->element_bytes;
    const char *help = arena_printf(a, "%lld in place of %lld%s: %.3g %% more bytes and operations there",
                                    (long long)n->padded, (long long)n->run, constant_of(x, n->run), more);
    const char *text = arena_printf(
        a, "%lld is no multiple of %d: rows are copied %d element%s at a time, not %d, for %d product%s of a step",
        (long long)n->run, unit, elements, elements == 1 ? "" : "s", unit, n->products, n->products == 1 ? "" : "s");
    const bool mended = is_mended(x, n);
    if (mended) help = arena_printf(a, "%s; or %s", price_of_padding(x), help);
    lint_add_at(x, n->pos, n->path, NULL, help, text);
    if (mended) x->out->data[x->out->len - 1].setting = "pad = true";
}

static void tell(Lint *x, const Narrow *n) {
    const double more = 100.0 * (double)(n->padded - n->run) / (double)n->run;
    if (n->is_head) tell_head(x, n, more);
    else tell_rows(x, n, more);
}

typedef VEC(Narrow) Narrows;

static void count(Lint *x, Narrows *list, const CodegenCopy *c) {
    int64_t padded;
    if (!is_of_step(x->in, c) || !lint_is_narrow(c, &padded)) return;
    Narrow n = {.pos = c->pos,
                .path = forward_path(x->arena, c->path),
                .run = c->run,
                .padded = padded,
                .element_bytes = c->element_bytes,
                .bytes = c->bytes,
                .products = 1,
                .last = c->product,
                .is_head = c->padded > c->run};
    for (int i = 0; i < list->len; i++) {
        Narrow *same = &list->data[i];
        if (strcmp(same->path, n.path) || same->run != n.run || same->is_head != n.is_head) continue;
        if (n.bytes < same->bytes) same->bytes = n.bytes;
        same->products += c->product != same->last;
        same->last = c->product;
        return;
    }
    vec_push(x->arena, list, n);
}

void lint_alignment(Lint *x) {
    Narrows list = {0};
    for (int i = 0; x->in->copies && i < x->in->copies->len; i++) count(x, &list, &x->in->copies->data[i]);
    for (int i = 0; i < list.len; i++) tell(x, &list.data[i]);
}
