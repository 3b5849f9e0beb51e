/* tensor_cores.c: see tensor_cores.h.  Tensor cores of 16 bits want rows of whole 16 bytes, 8 elements, and heads of
 * 16.  What kernels do with others is asked of code generation: long rows of temporaries are padded in memory already
 * (passes/layout/pitch.c), so 50257 columns there are not narrow; and so are short ones, under `pad = true`. */
#include "compiler/tensor_cores.h"

#include <string.h>

enum { COPY_BYTES = 16, MOST_PADDING = 4 /* a quarter */ };

/* ---- the kernels ------------------------------------------------------------------------------------------------- */

amp_status tensor_cores_of(Session *s, const Module *graph, bool pad, TensorCores *out, amp_error *err) {
    Module *cuda = NULL;
    amp_error why = {0};
    *out = (TensorCores){0};
    AMP_TRY(session_copy(s, graph, &cuda, err));
    cuda->pad = pad;
    AMP_TRY(session_run_passes(s, cuda, STAGE_PLAN, &target_cuda, false, err));
    const amp_status status = codegen_cuda_copies(cuda, &out->copies, &why);
    out->is_known = !status;
    out->cuda = cuda;
    if (status && status != AMP_UNSUPPORTED && err) *err = why;
    return status == AMP_UNSUPPORTED ? AMP_OK : session_name_error(s, status, err);
}

void tensor_cores_of_planned(const Module *cuda, TensorCores *out) {
    amp_error ignored;
    *out = (TensorCores){.cuda = cuda};
    out->is_known = !codegen_cuda_copies(cuda, &out->copies, &ignored);
}

/* ---- narrow sizes ------------------------------------------------------------------------------------------------ */

const char *tensor_cores_forward_path(Arena *a, const char *path) {
    const char *end = path ? strstr(path, ".grad.") : NULL;
    return end ? arena_strndup(a, path, (size_t)(end - path)) : path ? path : "";
}

bool tensor_cores_is_of(const Func *const *funcs, const CodegenCopy *c) {
    for (int i = 0; funcs[i]; i++)
        if (!strcmp(funcs[i]->name, c->func)) return true;
    return false;
}

static bool is_head(const CodegenCopy *c) { return c->padded > c->run; }

static int64_t padded_size(const CodegenCopy *c) {
    const int64_t unit = COPY_BYTES / c->element_bytes;
    return is_head(c) ? c->padded : (c->run + unit - 1) / unit * unit;
}

bool tensor_cores_copy_is_narrow(const CodegenCopy *c) {
    return is_head(c) || (c->bytes < COPY_BYTES && padded_size(c) > c->run);
}

static bool is_same(const NarrowSize *a, const NarrowSize *b) {
    return a->run == b->run && a->is_head == b->is_head && !strcmp(a->path, b->path);
}

static void count(Arena *a, NarrowSizes *list, const CodegenCopy *c) {
    const NarrowSize n = {.pos = c->pos,
                          .path = tensor_cores_forward_path(a, c->path),
                          .run = c->run,
                          .padded = padded_size(c),
                          .element_bytes = c->element_bytes,
                          .bytes = c->bytes,
                          .products = 1,
                          .last = c->product,
                          .is_head = is_head(c),
                          .is_worth = is_head(c) || (padded_size(c) - c->run) * MOST_PADDING <= c->run};
    for (int i = 0; i < list->len; i++) {
        NarrowSize *same = &list->data[i];
        if (!is_same(same, &n)) continue;
        if (n.bytes < same->bytes) same->bytes = n.bytes;
        same->products += c->product != same->last;
        same->last = c->product;
        return;
    }
    vec_push(a, list, n);
}

NarrowSizes tensor_cores_narrow(Arena *a, const Func *const *funcs, const CodegenCopies *copies) {
    NarrowSizes list = {0};
    for (int i = 0; i < copies->len; i++)
        if (tensor_cores_is_of(funcs, &copies->data[i]) && tensor_cores_copy_is_narrow(&copies->data[i]))
            count(a, &list, &copies->data[i]);
    return list;
}

/* ---- in words ---------------------------------------------------------------------------------------------------- */

/* The one const that has the value, which then may be where it comes from; "": there is none. */
static const char *constant_of(Arena *a, const Module *m, int64_t value) {
    const char *name = NULL;
    for (int i = 0; i < m->consts.len; i++) {
        if (m->consts.data[i].value != value) continue;
        if (name) return "";
        name = m->consts.data[i].name;
    }
    return name ? arena_printf(a, " (const %s)", name) : "";
}

static double percent_more(const NarrowSize *n) { return 100.0 * (double)(n->padded - n->run) / (double)n->run; }

const char *tensor_cores_problem(Arena *a, const NarrowSize *n) {
    const int unit = COPY_BYTES / n->element_bytes, elements = n->bytes / n->element_bytes;
    if (n->is_head)
        return arena_printf(a, "heads of %lld are multiplied as %lld: %.3g %% more operations, on zeros",
                            (long long)n->run, (long long)n->padded, percent_more(n));
    return arena_printf(
        a, "%lld is no multiple of %d: rows are copied %d element%s at a time, not %d, for %d product%s of a step",
        (long long)n->run, unit, elements, elements == 1 ? "" : "s", unit, n->products, n->products == 1 ? "" : "s");
}

const char *tensor_cores_remedy(Arena *a, const Module *m, const NarrowSize *n) {
    if (n->is_head) return "heads of a multiple of 16: fewer or more of them, or another width";
    return arena_printf(a, "%lld in place of %lld%s: %.3g %% more bytes and operations there", (long long)n->padded,
                        (long long)n->run, constant_of(a, m, n->run), percent_more(n));
}
