/* library_products.c: see library_products.h; the library, its calls, and what a launch has in its place. */
#include "runtime/device/cuda/library_products.h"

#include <string.h>

#include "amp/cuda.h"
#include "base/alloc.h"
#include "base/dtypes.h"
#include "base/error.h"
#include "runtime/device/cuda/library_choices.h"

enum { LEAST_ARCH = 80, MOST_SECONDS = 3 };

/* ---- the library ------------------------------------------------------------------------------------------------- */

static int32_t launches_with_calls(const amp_model *model) {
    int32_t count = 0;
    for (int32_t i = 0; i < model->program_count; i++)
        for (int32_t j = 0; j < model->programs[i].kernel_count; j++)
            count += model->programs[i].cuda_kernels[j].products.count > 0;
    return count;
}

/* Whoever asks for the fastest hears why all products are ours. */
static void say_why_own(const amp_cuda_products *p) {
    if (p->mode != AMP_PRODUCTS_FASTEST) return;
    if (p->given_up)
        amp_log_say(p->log, AMP_LOG_WARNING,
                    "products fastest: cuBLASLt is asked from sm_80 on, and %s is sm_%d: its products are ampc's own",
                    p->context->info.name, p->context->info.arch);
    else if (!launches_with_calls(p->model))
        amp_log_say(p->log, AMP_LOG_WARNING, "products fastest: %s has no launch that consists of products alone",
                    p->model->desc.name);
}

static size_t code_bytes(const amp_cuda_products *p) {
    return ((size_t)p->model->function_count + 1) * sizeof *p->code;
}

amp_status amp_cuda_products_make(amp_cuda_products *p, const amp_cuda_options *options, amp_cuda_context *context,
                                  const amp_model *model, CuStream stream, const amp_log *log,
                                  const amp_allocator *allocator, amp_error *err) {
    const double most = options->products_seconds;
    *p = (amp_cuda_products){.context = context,
                             .allocator = allocator,
                             .log = log,
                             .stream = stream,
                             .mode = options->products,
                             .most_seconds = most != 0 ? most : MOST_SECONDS,
                             .model = model};
    p->given_up = p->mode == AMP_PRODUCTS_OWN || context->info.arch < LEAST_ARCH;
    say_why_own(p);
    if (p->mode == AMP_PRODUCTS_OWN) return AMP_OK;
    p->code = amp_alloc_zeroed(allocator, code_bytes(p));
    if (!p->code) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for choices of products", model->desc.name);
    if (!options->choices) return AMP_OK;
    AMP_TRY(amp_cuda_products_check(p, err));
    return amp_cuda_choices_open(p, options->choices, err);
}

static void drop_workspace(amp_cuda_products *p) {
    if (p->workspace) AMP_CUDA_FREE(p->context, mem_free, (p->workspace)); /* which waits for what uses it */
    p->workspace = 0;
    p->workspace_bytes = 0;
}

void amp_cuda_products_free(amp_cuda_products *p) {
    for (amp_cuda_choice *c = p->choices, *next; c; c = next) {
        next = c->next;
        amp_free(p->allocator, c, amp_cuda_choice_bytes(c->count));
    }
    amp_safetensors_close(p->pinned);
    amp_free(p->allocator, p->code, p->code ? code_bytes(p) : 0);
    if (p->handle && !amp_cuda_latch_is_set(&p->context->latch)) p->library.calls.destroy(p->handle);
    drop_workspace(p);
    *p = (amp_cuda_products){0};
}

amp_status amp_cuda_products_resize(amp_cuda_products *p, size_t bytes) {
    if (bytes <= p->workspace_bytes) return AMP_OK;
    if (p->captured) return AMP_UNSUPPORTED;
    drop_workspace(p);
    AMP_TRY(AMP_CUDA(p->context, NULL, mem_alloc, (&p->workspace, bytes)));
    p->workspace_bytes = bytes;
    return AMP_OK;
}

void amp_cuda_products_fit_workspace(amp_cuda_products *p) {
    size_t most = 0;
    for (const amp_cuda_choice *c = p->choices; c; c = c->next)
        for (uint32_t i = 0; c->served && i < c->count; i++)
            if (c->algorithms[i].workspace > most) most = c->algorithms[i].workspace;
    if (p->captured || most == p->workspace_bytes) return;
    drop_workspace(p);
    if (!amp_cuda_products_resize(p, most)) return;
    for (amp_cuda_choice *c = p->choices; c; c = c->next)
        for (uint32_t i = 0; i < c->count; i++) c->served = c->served && !c->algorithms[i].workspace;
}

amp_status amp_cuda_products_open(amp_cuda_products *p, amp_error *err) {
    if (p->handle) return AMP_OK;
    AMP_TRY(amp_cublaslt_open(&p->library, p->context->driver.version, err));
    if (!p->library.calls.create(&p->handle)) return AMP_OK;
    p->handle = NULL;
    return amp_fail(err, AMP_UNSUPPORTED, "cuBLASLt makes no handle for %s", p->context->info.name);
}

amp_status amp_cuda_products_check(amp_cuda_products *p, amp_error *err) {
    if (p->mode == AMP_PRODUCTS_OWN)
        return amp_fail(err, AMP_WRONG_STATE,
                        "products are ampc's own, and nothing is chosen: take same-bits or fastest");
    if (p->context->info.arch < LEAST_ARCH)
        return amp_fail(err, AMP_UNSUPPORTED, "products are chosen from sm_80 on, and %s is sm_%d",
                        p->context->info.name, p->context->info.arch);
    if (p->agreed) return amp_fail(err, AMP_UNSUPPORTED, "products are chosen by rank 0 when sessions are made");
    AMP_TRY(amp_cuda_products_open(p, err));
    p->given_up = false;
    return AMP_OK;
}

void amp_cuda_products_forget_graphs(amp_cuda_products *p) { p->captured = false; }

/* ---- one product ------------------------------------------------------------------------------------------------- */

static int32_t type_of(uint32_t storage) {
    return storage == AMP_DT_F16 ? LT_F16 : storage == AMP_DT_BF16 ? LT_BF16 : storage == AMP_DT_F32 ? LT_F32 : -1;
}

static const amp_model_buffer *buffer_of(const amp_run *run, const amp_model_cuda_kernel *k, uint32_t operand) {
    return &run->program->buffers[k->operands.at[operand]];
}

enum { LINE = 16 /* bytes, to which lines and matrices are aligned */ };

/* Whether matrices of |lines| lines of |length|, the first at |first|, are in the buffer, with aligned parts of 16
 * bytes. */
static bool is_inside(const amp_run *run, const amp_model_buffer *b, const amp_cuda_matmul *w, int which, double lines,
                      int64_t length, int64_t first) {
    const double all = (double)amp_model_dim_at(&b->rows, run->sizes) * (double)amp_model_dim_at(&b->cols, run->sizes);
    const int64_t line = LINE / (int64_t)amp_storage_size(b->storage), pitch = w->pitch[which],
                  stride = w->stride[which];
    return lines > 0 && length > 0 && length <= pitch && pitch % line == 0 && stride % line == 0 && first % line == 0 &&
           (double)first + (double)(w->batch - 1) * (double)stride + (lines - 1) * (double)pitch + (double)length <=
               all;
}

/* Whether each result of a batch is elsewhere: after the one before, or beside it in the same lines. */
static bool are_apart(const amp_cuda_matmul *w) {
    const double stride = (double)w->stride[2], pitch = (double)w->pitch[2], length = (double)w->n;
    return w->batch == 1 || stride >= (double)(w->m - 1) * pitch + length ||
           (stride >= length && pitch >= (double)(w->batch - 1) * stride + length);
}

/* A part of k begins in the lines of A, or with a line of it if it is turned. */
static bool set_strides(const amp_run *run, const amp_model_cuda_product *x, amp_cuda_matmul *out) {
    out->batch = x->parts > 1 ? x->parts : amp_model_dim_at(&x->batch, run->sizes);
    if (out->batch < 1 || out->batch > INT32_MAX) return false;
    for (int i = 0; i < 3; i++) out->stride[i] = out->batch == 1 ? 0 : amp_model_dim_at(&x->stride[i], run->sizes);
    if (x->parts == 1) return true;
    return (x->a_turned || out->k * x->parts <= out->pitch[0]) &&
           (!x->b_turned || out->k * x->parts <= out->pitch[1]) &&
           !__builtin_mul_overflow(out->k, x->a_turned ? out->pitch[0] : 1, &out->stride[0]) &&
           !__builtin_mul_overflow(out->k, x->b_turned ? 1 : out->pitch[1], &out->stride[1]) &&
           !__builtin_mul_overflow(out->m, out->pitch[2], &out->stride[2]);
}

static bool set_sizes(const amp_run *run, const amp_model_cuda_product *x, amp_cuda_matmul *out) {
    out->m = amp_model_dim_at(&x->rows, run->sizes);
    out->n = x->cols;
    out->k = amp_model_dim_at(&x->k, run->sizes);
    for (int i = 0; i < 3; i++) out->pitch[i] = amp_model_dim_at(&x->pitch[i], run->sizes);
    if (x->parts > 1 && out->k % ((int64_t)x->parts * AMP_PRODUCT_PART)) return false;
    out->k /= x->parts;
    if (x->filled) out->fill = out->pitch[2] - out->n;
    return out->fill >= 0 && set_strides(run, x, out);
}

static bool sizes_fit(const amp_run *run, const amp_model_cuda_product *x, const amp_cuda_matmul *w,
                      const amp_model_buffer *const of[4]) {
    int64_t first[3];
    for (int i = 0; i < 3; i++) first[i] = amp_model_dim_at(&x->first[i], run->sizes);
    return is_inside(run, of[0], w, 0, (double)(x->a_turned ? w->k : w->m), x->a_turned ? w->m : w->k, first[0]) &&
           is_inside(run, of[1], w, 1, (double)(x->b_turned ? w->n : w->k), x->b_turned ? w->k : w->n, first[1]) &&
           is_inside(run, of[2], w, 2, (double)w->m, w->n + w->fill, first[2]) && are_apart(w) &&
           (!of[3] || (of[3]->storage == of[2]->storage && of[3]->cols.mul >= w->n));
}

bool amp_cuda_matmul_of(const amp_run *run, const amp_model_cuda_kernel *k, uint32_t number, amp_cuda_matmul *out) {
    const amp_model_cuda_product *x = &k->products.at[number];
    const amp_model_buffer *const of[4] = {buffer_of(run, k, x->a), buffer_of(run, k, x->b),
                                           buffer_of(run, k, x->result),
                                           x->bias ? buffer_of(run, k, x->bias - 1) : NULL};
    *out = (amp_cuda_matmul){.type = type_of(of[0]->storage), .result = type_of(of[2]->storage)};
    if (out->type < 0 || out->result < 0 || of[1]->storage != of[0]->storage) return false;
    if (!set_sizes(run, x, out) || !sizes_fit(run, x, out, of)) return false;
    out->compute = x->instruction == AMP_INSTRUCTION_MMA_TF32 ? LT_COMPUTE_32F_TF32 : LT_COMPUTE_32F;
    out->epilogue = x->bias ? LT_EPILOGUE_BIAS : LT_EPILOGUE_DEFAULT;
    out->a_turned = (int32_t)x->a_turned;
    out->b_turned = (int32_t)x->b_turned;
    return true;
}

/* Of the first element of |operand| that a call uses. */
static CuPointer address_from(const amp_cuda_launching *l, const amp_run *run, const amp_model_cuda_kernel *k,
                              uint32_t operand, const amp_model_dim *first) {
    return amp_cuda_address_of(l, run, k->operands.at[operand]) +
           (size_t)amp_model_dim_at(first, run->sizes) * amp_storage_size(buffer_of(run, k, operand)->storage);
}

void amp_cuda_matmul_place(const amp_cuda_launching *l, const amp_run *run, const amp_model_cuda_kernel *k,
                           uint32_t number, CuPointer at[4]) {
    const amp_model_cuda_product *x = &k->products.at[number];
    at[0] = address_from(l, run, k, x->a, &x->first[0]);
    at[1] = address_from(l, run, k, x->b, &x->first[1]);
    at[2] = address_from(l, run, k, x->result, &x->first[2]);
    at[3] = x->bias ? amp_cuda_address_of(l, run, k->operands.at[x->bias - 1]) : 0;
}

typedef struct Objects {
    CublasLtDesc desc;
    CublasLtLayout layouts[3]; /* of A, B, D */
    CublasLtPreference preference;
} Objects;

static void close_objects(const CublasLtApi *lt, Objects *o) {
    if (o->desc) lt->desc_destroy(o->desc);
    for (int i = 0; i < 3; i++)
        if (o->layouts[i]) lt->layout_destroy(o->layouts[i]);
    if (o->preference) lt->preference_destroy(o->preference);
}

/* Of operand |which|, whose lines are the columns of a library that goes down columns. */
static CublasLtResult make_layout(const CublasLtApi *lt, const amp_cuda_matmul *w, int which, CublasLtLayout *out) {
    const bool turned = which == 0 ? w->a_turned : which == 1 && w->b_turned;
    const int64_t rows = which == 1 ? w->k : w->m, cols = which == 0 ? w->k : w->n;
    const int32_t batch = (int32_t)w->batch;
    CublasLtResult r = lt->layout_create(out, which == 2 ? w->result : w->type, (uint64_t)(turned ? rows : cols),
                                         (uint64_t)(turned ? cols : rows), w->pitch[which]);
    if (!r) r = lt->layout_set(*out, LT_LAYOUT_BATCH, &batch, sizeof batch);
    return r ? r : lt->layout_set(*out, LT_LAYOUT_STRIDE, &w->stride[which], sizeof w->stride[which]);
}

static CublasLtResult open_objects(const CublasLtApi *lt, const amp_cuda_matmul *w, CuPointer bias, Objects *o) {
    const void *at = amp_cuda_address(bias);
    *o = (Objects){0};
    CublasLtResult r = lt->desc_create(&o->desc, w->compute, LT_F32);
    if (!r) r = lt->desc_set(o->desc, LT_DESC_TRANS_A, &w->b_turned, sizeof w->b_turned);
    if (!r) r = lt->desc_set(o->desc, LT_DESC_TRANS_B, &w->a_turned, sizeof w->a_turned);
    if (!r) r = lt->desc_set(o->desc, LT_DESC_EPILOGUE, &w->epilogue, sizeof w->epilogue);
    if (!r && at) r = lt->desc_set(o->desc, LT_DESC_BIAS, &at, sizeof at);
    for (int i = 0; i < 3 && !r; i++) r = make_layout(lt, w, i, &o->layouts[i]);
    if (r) close_objects(lt, o);
    return r;
}

/* Only the fastest may split k: not by atomics, whose order is another one in each run, nor in f16, which overflows. */
static CublasLtResult prefer(const amp_cuda_products *p, CublasLtPreference *out) {
    enum { HOPPER = 90, WORKSPACE = 4 << 20 };
    const CublasLtApi *lt = &p->library.calls;
    const uint64_t workspace = p->context->info.arch >= HOPPER ? AMP_CUDA_WORKSPACE_MOST : WORKSPACE;
    const uint32_t line = LINE, split = p->mode == AMP_PRODUCTS_FASTEST ? LT_REDUCTION_IN_F32 : 0;
    CublasLtResult r = lt->preference_create(out);
    if (!r) r = lt->preference_set(*out, LT_PREFER_WORKSPACE, &workspace, sizeof workspace);
    if (!r) r = lt->preference_set(*out, LT_PREFER_REDUCTION, &split, sizeof split);
    for (int i = LT_PREFER_ALIGN_A; i <= LT_PREFER_ALIGN_D && !r; i++)
        r = lt->preference_set(*out, i, &line, sizeof line);
    return r;
}

int amp_cuda_matmul_ask(const amp_cuda_products *p, const amp_cuda_matmul *w, const CuPointer at[4],
                        CublasLtFound found[]) {
    const CublasLtApi *lt = &p->library.calls;
    Objects o;
    int count = 0;
    if (open_objects(lt, w, at[3], &o)) return -1;
    CublasLtResult r = prefer(p, &o.preference);
    if (!r)
        r = lt->heuristic(p->handle, o.desc, o.layouts[1], o.layouts[0], o.layouts[2], o.layouts[2], o.preference,
                          AMP_CUDA_ALGORITHMS, found, &count);
    close_objects(lt, &o);
    return r ? -1 : count;
}

/* The check reads no operand. */
bool amp_cuda_matmul_check(const amp_cuda_products *p, const amp_cuda_matmul *w, amp_cuda_algorithm *by) {
    enum { SOME_ADDRESS = 256 };
    const CublasLtApi *lt = &p->library.calls;
    CublasLtFound found = {.state = LT_OK};
    Objects o;
    if (open_objects(lt, w, w->epilogue == LT_EPILOGUE_BIAS ? SOME_ADDRESS : 0, &o)) return false;
    const CublasLtResult r =
        lt->algo_check(p->handle, o.desc, o.layouts[1], o.layouts[0], o.layouts[2], o.layouts[2], &by->algo, &found);
    close_objects(lt, &o);
    if (r || found.state || found.workspace > AMP_CUDA_WORKSPACE_MOST) return false;
    by->workspace = found.workspace;
    return true;
}

/* Zeros after each line of a result at |to|, in units of two bytes. */
static CublasLtResult fill_lines(const amp_cuda_products *p, const amp_cuda_matmul *w, CuPointer to, CuStream stream) {
    enum { UNIT = 2 };
    const size_t bytes = w->result == LT_F32 ? 4 : 2;
    const CuResult r = p->context->driver.fill_lines(to + (size_t)w->n * bytes, (size_t)w->pitch[2] * bytes, 0,
                                                     (size_t)w->fill * bytes / UNIT, (size_t)w->m, stream);
    return r ? LT_EXECUTION_FAILED : LT_OK;
}

CublasLtResult amp_cuda_matmul_run(const amp_cuda_products *p, const amp_cuda_matmul *w, const CuPointer at[4],
                                   const amp_cuda_algorithm *by, CuStream stream) {
    const CublasLtApi *lt = &p->library.calls;
    const float one = 1, zero = 0;
    void *const a = amp_cuda_address(at[0]), *const b = amp_cuda_address(at[1]), *const d = amp_cuda_address(at[2]);
    Objects o;
    CublasLtResult r = open_objects(lt, w, at[3], &o);
    if (r) return r;
    r = lt->matmul(p->handle, o.desc, &one, b, o.layouts[1], a, o.layouts[0], &zero, d, o.layouts[2], d, o.layouts[2],
                   &by->algo, by->workspace ? amp_cuda_address(p->workspace) : NULL, by->workspace, stream);
    close_objects(lt, &o);
    return r || !w->fill ? r : fill_lines(p, w, at[2], stream);
}

/* ---- in place of a launch ---------------------------------------------------------------------------------------- */

amp_cuda_choice *amp_cuda_choice_for(const amp_cuda_products *p, const amp_model_cuda_kernel *k, int64_t n) {
    amp_cuda_choice *c = p->choices;
    while (c && (c->kernel != k || c->n != n)) c = c->next;
    return c;
}

amp_cuda_choice *amp_cuda_products_find(const amp_cuda_launching *l, const amp_run *run, int32_t kernel) {
    const amp_model_cuda_kernel *k = &run->program->cuda_kernels[kernel];
    if (!l->products || !k->products.count || (run->looked_at && l->products->mode != AMP_PRODUCTS_FASTEST))
        return NULL;
    amp_cuda_choice *c = amp_cuda_choice_for(l->products, k, run->sizes.n);
    return c && c->served ? c : NULL;
}

bool amp_cuda_products_may_take(const amp_cuda_launching *l, const amp_run *run, int32_t kernel) {
    const amp_model_cuda_kernel *k = &run->program->cuda_kernels[kernel];
    const amp_cuda_choice *c =
        l->products && k->products.count ? amp_cuda_choice_for(l->products, k, run->sizes.n) : NULL;
    return c && !c->known && amp_run_needs(run, kernel);
}

amp_status amp_cuda_products_enqueue(const amp_cuda_launching *l, const amp_run *run, int32_t kernel,
                                     amp_cuda_choice *c, CuStream stream, bool *done, amp_error *err) {
    const amp_model_cuda_kernel *k = &run->program->cuda_kernels[kernel];
    AMP_TRY(amp_cuda_latch_check(&l->context->latch, err));
    for (uint32_t i = 0; i < c->count; i++) {
        CuPointer at[4];
        amp_cuda_matmul w;
        amp_cuda_matmul_place(l, run, k, i, at);
        l->products->captured |= c->algorithms[i].workspace > 0;
        if (amp_cuda_matmul_of(run, k, i, &w) && !amp_cuda_matmul_run(l->products, &w, at, &c->algorithms[i], stream))
            continue;
        /* the own launch writes all that those before have written */
        amp_log_say(l->products->log, AMP_LOG_WARNING, "%s: cuBLASLt fails at n = %lld: its products are ampc's own",
                    k->name, (long long)run->sizes.n);
        c->served = false;
        l->products->failed = true;
        return AMP_OK;
    }
    *done = true;
    return AMP_OK;
}
