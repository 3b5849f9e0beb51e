/* library_products.c: see library_products.h; calls, and what was chosen.  library_trial.c measures. */
#include "runtime/device/cuda/library_products.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amp/cuda.h"
#include "base/alloc.h"
#include "base/dtypes.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "runtime/device/cuda/cache.h"
#include "runtime/device/cuda/library_trial.h"

enum { LEAST_ARCH = 80, MOST_SECONDS = 3, DESCRIPTION = 160 };

struct amp_cuda_choice {
    amp_cuda_choice *next;
    const amp_model_cuda_kernel *kernel; /* where it was chosen: others of equal keys have choices of their own */
    int64_t n;
    amp_cuda_cache_key key;
    bool known; /* else it was looked for in vain, and is ours until it is measured */
    bool served;
    uint32_t count;
    amp_cuda_algorithm algorithms[]; /* by product; none unless |served| */
};

/* ---- the library ------------------------------------------------------------------------------------------------- */

void amp_cuda_products_make(amp_cuda_products *p, const amp_cuda_options *options, amp_cuda_context *context,
                            CuStream stream, const amp_log *log, const amp_allocator *allocator) {
    *p = (amp_cuda_products){.context = context, .allocator = allocator, .log = log, .stream = stream};
    p->mode = options->products;
    p->given_up = p->mode == AMP_PRODUCTS_OWN || context->info.arch < LEAST_ARCH;
}

static size_t choice_bytes(uint32_t count) { return sizeof(amp_cuda_choice) + count * sizeof(amp_cuda_algorithm); }

static void drop_workspace(amp_cuda_products *p) {
    if (p->workspace) AMP_CUDA_FREE(p->context, mem_free, (p->workspace)); /* which waits for what uses it */
    p->workspace = 0;
    p->workspace_bytes = 0;
}

void amp_cuda_products_free(amp_cuda_products *p) {
    for (amp_cuda_choice *c = p->choices, *next; c; c = next) {
        next = c->next;
        amp_free(p->allocator, c, choice_bytes(c->count));
    }
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

/* As large as the choices need it; after a failure they are ours. */
static void fit_workspace(amp_cuda_products *p) {
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

static amp_status open_library(amp_cuda_products *p, amp_error *err) {
    amp_error why = {0};
    amp_status status = amp_cublaslt_open(&p->library, p->context->driver.version, &why);
    if (!status && p->library.calls.create(&p->handle)) {
        p->handle = NULL;
        status = amp_fail(&why, AMP_UNSUPPORTED, "cuBLASLt makes no handle for %s", p->context->info.name);
    }
    if (!status) return AMP_OK;
    p->given_up = true;
    if (p->mode == AMP_PRODUCTS_FASTEST) return amp_fail(err, status, "%s", why.message);
    amp_log_say(p->log, AMP_LOG_INFO, "matrix products are ampc's own: %s", why.message);
    return AMP_OK;
}

/* ---- one product ------------------------------------------------------------------------------------------------- */

static int32_t type_of(uint32_t storage) {
    return storage == AMP_DT_F16 ? LT_F16 : storage == AMP_DT_BF16 ? LT_BF16 : storage == AMP_DT_F32 ? LT_F32 : -1;
}

static const amp_model_buffer *buffer_of(const amp_run *run, const amp_model_cuda_kernel *k, uint32_t operand) {
    return &run->program->buffers[k->operands.at[operand]];
}

/* Whether |lines| lines of |length|, in which parts of 16 bytes are aligned, are in the buffer. */
static bool is_inside(const amp_run *run, const amp_model_buffer *b, double lines, int64_t length, int64_t pitch) {
    enum { LINE = 16 };
    const double all = (double)amp_model_dim_at(&b->rows, run->n) * (double)amp_model_dim_at(&b->cols, run->n);
    return lines > 0 && length > 0 && length <= pitch && pitch % (LINE / (int64_t)amp_storage_size(b->storage)) == 0 &&
           (lines - 1) * (double)pitch + (double)length <= all;
}

static bool set_sizes(const amp_run *run, const amp_model_cuda_product *x, amp_cuda_matmul *out) {
    out->m = amp_model_dim_at(&x->rows, run->n);
    out->n = x->cols;
    out->k = amp_model_dim_at(&x->k, run->n);
    out->parts = x->parts;
    for (int i = 0; i < 3; i++) out->pitch[i] = amp_model_dim_at(&x->pitch[i], run->n);
    if (x->parts > 1 && out->k % ((int64_t)x->parts * AMP_PRODUCT_PART)) return false;
    out->k /= x->parts;
    return true;
}

static bool sizes_fit(const amp_run *run, const amp_model_cuda_product *x, const amp_cuda_matmul *w,
                      const amp_model_buffer *const of[4]) {
    const int64_t all = w->k * w->parts;
    return is_inside(run, of[0], (double)(x->a_turned ? all : w->m), x->a_turned ? w->m : all, w->pitch[0]) &&
           is_inside(run, of[1], (double)(x->b_turned ? w->n : all), x->b_turned ? all : w->n, w->pitch[1]) &&
           is_inside(run, of[2], (double)w->m * (double)w->parts, w->n, w->pitch[2]) &&
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
    out->stride[0] = out->k * (x->a_turned ? out->pitch[0] : 1);
    out->stride[1] = out->k * (x->b_turned ? 1 : out->pitch[1]);
    out->stride[2] = out->m * out->pitch[2];
    return true;
}

void amp_cuda_matmul_place(const amp_cuda_launching *l, const amp_run *run, const amp_model_cuda_kernel *k,
                           uint32_t number, CuPointer at[4]) {
    const amp_model_cuda_product *x = &k->products.at[number];
    const uint32_t *of = k->operands.at;
    at[0] = amp_cuda_address_of(l, run, of[x->a]);
    at[1] = amp_cuda_address_of(l, run, of[x->b]);
    at[2] = amp_cuda_address_of(l, run, of[x->result]);
    at[3] = x->bias ? amp_cuda_address_of(l, run, of[x->bias - 1]) : 0;
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
    const int32_t parts = (int32_t)w->parts;
    CublasLtResult r = lt->layout_create(out, which == 2 ? w->result : w->type, (uint64_t)(turned ? rows : cols),
                                         (uint64_t)(turned ? cols : rows), w->pitch[which]);
    if (!r) r = lt->layout_set(*out, LT_LAYOUT_BATCH, &parts, sizeof parts);
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
    enum { HOPPER = 90, LINE = 16, WORKSPACE = 4 << 20 };
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
    return r;
}

/* ---- choices ----------------------------------------------------------------------------------------------------- */

/* Floating-point operations of a launch from which the library is asked; what takes less is not worth its files. */
static double least_operations(const amp_cuda_products *p) {
    const char *set = getenv("AMPC_PRODUCTS_FROM");
    if (set) return strtod(set, NULL);
    return p->mode == AMP_PRODUCTS_FASTEST ? 0 : 2e9;
}

/* Whether the library can make all of the kernel, and that is worth a choice. */
static bool is_worth(const amp_cuda_launching *l, const amp_run *run, const amp_model_cuda_kernel *k) {
    double operations = 0;
    for (uint32_t i = 0; i < k->products.count; i++) {
        amp_cuda_matmul w;
        if (!amp_cuda_matmul_of(run, k, i, &w)) return false;
        operations += 2.0 * (double)w.m * (double)w.n * (double)w.k * (double)w.parts;
    }
    return operations >= least_operations(l->products);
}

static void describe(const amp_run *run, const amp_model_cuda_kernel *k, char *text) {
    for (uint32_t i = 0; i < k->products.count; i++) {
        amp_cuda_matmul w;
        (void)amp_cuda_matmul_of(run, k, i, &w);
        text +=
            snprintf(text, DESCRIPTION, "%lld %lld %lld %lld %lld %lld %lld %d %d %d %u %d %d;", (long long)w.m,
                     (long long)w.n, (long long)w.k, (long long)w.parts, (long long)w.pitch[0], (long long)w.pitch[1],
                     (long long)w.pitch[2], w.type, w.result, w.compute, w.epilogue, w.a_turned, w.b_turned);
    }
}

/* Adds what the functions of |k| are compiled from, and so what their sums are. */
static void hash_code(const amp_cuda_launching *l, const amp_model_cuda_kernel *k, amp_sha256 *hash) {
    for (uint32_t i = 0; k && i < k->choices.count; i++) {
        const amp_model_cuda_function *f = &l->functions->model->functions[k->choices.at[i].function];
        if (f->prelude) amp_sha256_update(hash, f->prelude, strlen(f->prelude) + 1);
        amp_sha256_update(hash, f->source, strlen(f->source) + 1);
    }
}

static void hash_text(amp_sha256 *hash, const char *text) { amp_sha256_update(hash, text, strlen(text) + 1); }

static bool key_of(const amp_cuda_launching *l, const amp_run *run, const amp_model_cuda_kernel *k,
                   amp_cuda_cache_key *out) {
    const amp_cuda_products *p = l->products;
    const size_t bytes = (size_t)k->products.count * DESCRIPTION + 1;
    const char *how = getenv("AMPC_CUDA_COMPILE");
    char *text = amp_alloc_zeroed(p->allocator, bytes), device[200];
    if (text) {
        amp_sha256 hash;
        describe(run, k, text);
        snprintf(device, sizeof device,
                 "products, %s, sm_%d, %d multiprocessors, driver %d, cuBLASLt %d.%d, mode %d, %s",
                 p->context->info.name, p->context->info.arch, p->context->info.multiprocessors,
                 p->context->driver.version, p->library.version, p->library.patch, p->mode, how ? how : "");
        amp_sha256_init(&hash);
        hash_text(&hash, device);
        hash_text(&hash, text);
        hash_code(l, k, &hash);
        hash_code(l, k->then, &hash);
        amp_sha256_final(&hash, out->bytes);
    }
    amp_free(p->allocator, text, bytes);
    return text != NULL;
}

static amp_cuda_choice *chosen_for(const amp_cuda_products *p, const amp_model_cuda_kernel *k, int64_t n) {
    amp_cuda_choice *c = p->choices;
    while (c && (c->kernel != k || c->n != n)) c = c->next;
    return c;
}

amp_cuda_choice *amp_cuda_products_find(const amp_cuda_launching *l, const amp_run *run, int32_t kernel) {
    const amp_model_cuda_kernel *k = &run->program->cuda_kernels[kernel];
    if (!l->products || !k->products.count || (run->looked_at && l->products->mode != AMP_PRODUCTS_FASTEST))
        return NULL;
    amp_cuda_choice *c = chosen_for(l->products, k, run->n);
    return c && c->served ? c : NULL;
}

static amp_cuda_choice *add_choice(amp_cuda_products *p, const amp_model_cuda_kernel *k, int64_t n,
                                   const amp_cuda_cache_key *key) {
    amp_cuda_choice *c = amp_alloc_zeroed(p->allocator, choice_bytes(k->products.count));
    if (!c) return NULL;
    *c = (amp_cuda_choice){.next = p->choices, .kernel = k, .n = n, .key = *key, .count = k->products.count};
    p->choices = c;
    return c;
}

static bool same_key(const amp_cuda_cache_key *a, const amp_cuda_cache_key *b) { return !memcmp(a, b, sizeof *a); }

/* From a launch of equal key, or from disk. */
static bool recall(amp_cuda_cache *cache, amp_cuda_choice *c, bool *from_disk) {
    const size_t bytes = c->count * sizeof *c->algorithms;
    amp_cuda_cache_entry entry;
    *from_disk = false;
    for (const amp_cuda_choice *o = c->next; o; o = o->next) {
        if (!o->known || !same_key(&o->key, &c->key) || o->count != c->count) continue;
        c->known = true;
        c->served = o->served;
        memcpy(c->algorithms, o->algorithms, bytes);
        return true;
    }
    if (!amp_cuda_cache_get(cache, &c->key, &entry)) return false;
    c->known = *from_disk = entry.size == 1 || entry.size == bytes + 1;
    c->served = c->known && entry.size > 1;
    if (c->served) memcpy(c->algorithms, (const char *)entry.image + 1, bytes);
    for (uint32_t i = 0; c->served && i < c->count; i++)
        if (c->algorithms[i].workspace > AMP_CUDA_WORKSPACE_MOST) c->served = c->known = false;
    amp_cuda_cache_entry_free(cache, &entry);
    return c->known;
}

static void keep(amp_cuda_products *p, amp_cuda_cache *cache, const amp_cuda_choice *c) {
    const size_t bytes = 1 + (c->served ? c->count * sizeof *c->algorithms : 0);
    char *image = amp_alloc_zeroed(p->allocator, bytes);
    if (!image) return;
    memcpy(image + 1, c->algorithms, bytes - 1);
    (void)amp_cuda_cache_put(
        cache, &c->key,
        &(amp_cuda_cache_entry){
            .image = image, .size = bytes, .registers = -1, .shared_bytes = -1, .spill_bytes = -1, .stack_bytes = -1});
    amp_free(p->allocator, image, bytes);
}

static void say(const amp_cuda_products *p, const amp_run *run, const amp_model_cuda_kernel *k,
                const amp_cuda_choice *c, const amp_cuda_verdict *v) {
    amp_cuda_matmul w;
    int32_t id = -1;
    size_t written;
    if (!c->served || !amp_cuda_matmul_of(run, k, 0, &w)) return;
    p->library.calls.algo_config(&c->algorithms[0].algo, LT_ALGO_ID, &id, sizeof id, &written);
    amp_log_say(p->log, AMP_LOG_INFO,
                "%s, %u product%s of %lld x %lld x %lld: cuBLASLt %d.%d, algorithm %d, %.1f of %.1f us, %s",
                k->title ? k->title : k->name, c->count, c->count == 1 ? "" : "s", (long long)w.m, (long long)w.n,
                (long long)w.k, p->library.version / 1000, p->library.version / 10 % 100, id, v->library, v->own,
                p->mode == AMP_PRODUCTS_FASTEST ? "other rounding" : "the same bits");
}

static amp_status measure(const amp_cuda_launching *l, const amp_run *run, amp_cuda_cache *cache, amp_cuda_choice *c,
                          amp_error *err) {
    amp_cuda_products *p = l->products;
    amp_cuda_verdict verdict = {0};
    const int64_t start = amp_nanoseconds();
    AMP_TRY(amp_cuda_try_library(l, run, c->kernel, true, c->algorithms, &verdict, err));
    p->seconds += (double)(amp_nanoseconds() - start) * 1e-9;
    c->known = true;
    c->served = verdict.served;
    if (verdict.measured) keep(p, cache, c);
    say(p, run, c->kernel, c, &verdict);
    return AMP_OK;
}

/* What was chosen in another process is run once before it is captured.  A graph may be using the workspace. */
static amp_status warm(const amp_cuda_launching *l, const amp_run *run, amp_cuda_choice *c, amp_error *err) {
    amp_cuda_verdict verdict = {0};
    if (!c->served) return AMP_OK;
    if (l->products->captured) AMP_TRY(AMP_CUDA(l->context, err, context_sync, ()));
    AMP_TRY(amp_cuda_try_library(l, run, c->kernel, false, c->algorithms, &verdict, err));
    c->served = verdict.served;
    return AMP_OK;
}

/* A choice for kernel |k|, if it is known. */
static amp_status look_up(const amp_cuda_launching *l, const amp_run *run, const amp_model_cuda_kernel *k,
                          amp_cuda_cache *cache, amp_error *err) {
    amp_cuda_cache_key key;
    bool from_disk;
    if (!key_of(l, run, k, &key)) return AMP_OK; /* no memory */
    amp_cuda_choice *c = add_choice(l->products, k, run->n, &key);
    if (!c) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for what makes its products", k->name);
    return recall(cache, c, &from_disk) && from_disk ? warm(l, run, c, err) : AMP_OK;
}

static amp_status measure_one(const amp_cuda_launching *l, const amp_run *run, amp_cuda_choice *c,
                              amp_cuda_cache *cache, amp_error *err) {
    amp_cuda_products *p = l->products;
    bool from_disk;
    if (recall(cache, c, &from_disk)) return AMP_OK; /* measured a moment ago, for a launch like it */
    if (p->seconds < MOST_SECONDS) return measure(l, run, cache, c, err);
    if (p->seconds < 2 * MOST_SECONDS)
        amp_log_say(
            p->log, AMP_LOG_INFO,
            "products were measured for %.1f s, and others are still ampc's own: the next session measures them",
            p->seconds);
    p->seconds = 2 * MOST_SECONDS; /* it is said once */
    return AMP_OK;
}

static bool is_new(const amp_cuda_launching *l, const amp_run *run, int32_t kernel) {
    const amp_model_cuda_kernel *k = &run->program->cuda_kernels[kernel];
    return k->products.count && amp_run_needs(run, kernel) && !chosen_for(l->products, k, run->n) &&
           is_worth(l, run, k);
}

bool amp_cuda_products_may_take(const amp_cuda_launching *l, const amp_run *run, int32_t kernel) {
    const amp_model_cuda_kernel *k = &run->program->cuda_kernels[kernel];
    const amp_cuda_choice *c = l->products && k->products.count ? chosen_for(l->products, k, run->n) : NULL;
    return c && !c->known && amp_run_needs(run, kernel);
}

/* What a program's launches have come to be. */
static void say_shares(const amp_cuda_launching *l, const amp_run *run) {
    int with_calls = 0, served = 0;
    for (int32_t i = 0; i < run->program->kernel_count; i++) {
        with_calls += run->program->cuda_kernels[i].products.count > 0;
        served += amp_cuda_products_find(l, run, i) != NULL;
    }
    if (served)
        amp_log_say(l->products->log, AMP_LOG_INFO,
                    "%s, n = %lld: cuBLASLt makes %d of %d launches of products that it could make", run->program->name,
                    (long long)run->n, served, with_calls);
}

/* What is not known yet: all functions are compiled at once. */
static amp_status measure_all(const amp_cuda_launching *l, const amp_run *run, amp_cuda_cache *cache, amp_error *err) {
    AMP_TRY(amp_cuda_need(l, run, true, err));
    for (int32_t i = 0; i < run->program->kernel_count; i++)
        if (amp_cuda_products_may_take(l, run, i))
            AMP_TRY(measure_one(l, run, chosen_for(l->products, &run->program->cuda_kernels[i], run->n), cache, err));
    return AMP_OK;
}

amp_status amp_cuda_products_choose(const amp_cuda_launching *l, const amp_run *run, bool may_measure, amp_error *err) {
    amp_cuda_products *p = l->products;
    amp_cuda_cache *cache = NULL;
    amp_status status = AMP_OK;
    bool looked = false;
    for (int32_t i = 0; p && !p->given_up && !status && i < run->program->kernel_count; i++) {
        if (!is_new(l, run, i)) continue;
        if (!p->handle) status = open_library(p, err);
        if (status || p->given_up) break;
        if (!looked) cache = amp_cuda_cache_open(p->allocator);
        looked = true;
        status = look_up(l, run, &run->program->cuda_kernels[i], cache, err);
    }
    if (looked && may_measure && !status) status = measure_all(l, run, cache, err);
    amp_cuda_cache_close(cache);
    if (!looked) return status;
    fit_workspace(p);
    if (!status) say_shares(l, run);
    return status;
}

/* ---- in place of a launch ---------------------------------------------------------------------------------------- */

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
                    k->name, (long long)run->n);
        c->served = false;
        l->products->failed = true;
        return AMP_OK;
    }
    *done = true;
    return AMP_OK;
}
