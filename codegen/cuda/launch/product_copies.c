/* product_copies.c: in how many bytes kernels copy what their products read, for those who advise on sizes. */
#include "codegen/cuda/kinds/attention_plan.h"
#include "codegen/cuda/cuda.h"
#include "codegen/cuda/product/product_plan.h"

typedef struct Lister {
    Walk w;
    CodegenCopies *out;
} Lister;

/* Where the op of the graph that |o| came from is told. */
static const char *path_of(const Lister *x, const Op *o) {
    return o->region ? ir_region((Func *)x->w.f, o->region)->path : o->path;
}

static void add_copy(Lister *x, const Op *o, int64_t run, int64_t padded, int element_bytes, int bytes) {
    const CodegenCopy copy = {.func = x->w.f->name,
                              .path = path_of(x, o),
                              .pos = o->pos,
                              .product = x->out->len / CODEGEN_COPIES,
                              .run = run,
                              .padded = padded,
                              .element_bytes = element_bytes,
                              .bytes = bytes};
    vec_push(x->w.arena, x->out, copy);
}

static amp_status list_product(Lister *x, amp_error *err) {
    ProductPlan p;
    AMP_TRY(product_plan(&x->w, (CudaForm){0}, &p, err));
    if (!p.mma) return AMP_OK;
    add_copy(x, p.op, p.a.run, p.a.run, p.element_bytes, p.a.bytes);
    add_copy(x, p.op, p.b.run, p.b.run, p.element_bytes, p.b.bytes);
    return AMP_OK;
}

/* Rows of heads, which stand in shared memory as multiples of 16 elements. */
static amp_status list_attention(Lister *x, amp_error *err) {
    AttentionPlan p;
    AMP_TRY(attention_plan(&x->w, &p, err));
    const int64_t widths[CODEGEN_COPIES] = {p.width, p.v_width};
    for (int i = 0; i < CODEGEN_COPIES; i++) {
        const int64_t padded = (widths[i] + ATTENTION_UNIT - 1) / ATTENTION_UNIT * ATTENTION_UNIT;
        add_copy(x, p.op, widths[i], padded, p.factors->bytes, p.copy_bytes);
    }
    return AMP_OK;
}

static amp_status list_kernel(Lister *x, const Kernel *k, amp_error *err) {
    if (!(ir_kernel_info[k->kind].traits & LOADS)) return AMP_OK;
    AMP_TRY(walk_kernel(&x->w, k, err));
    return k->kind == KERNEL_PRODUCT ? list_product(x, err) : list_attention(x, err);
}

amp_status codegen_cuda_copies(const Module *m, CodegenCopies *out, amp_error *err) {
    *out = (CodegenCopies){0};
    for (int i = 0; i < m->funcs.len; i++) {
        if (ir_is_exchange(m->funcs.data[i])) continue;
        const Func *f = m->funcs.data[i];
        Lister x = {.out = out};
        walk_init(&x.w, f, m->arena);
        for (int j = 0; j < f->kernels.len; j++) AMP_TRY(list_kernel(&x, f->kernels.data[j], err));
    }
    return AMP_OK;
}
