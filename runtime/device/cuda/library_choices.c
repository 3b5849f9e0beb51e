/* library_choices.c: see library_products.h; which launches are looked at, and where a choice comes from. */
#include "runtime/device/cuda/library_choices.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amp/cuda.h"
#include "amp/inspect.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"

enum { DESCRIPTION = 400 }; /* 17 numbers of 20 letters, and a blank */

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
        operations += 2.0 * (double)w.m * (double)w.n * (double)w.k * (double)w.batch;
    }
    return operations >= least_operations(l->products);
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

void amp_cuda_products_facts(const amp_cuda_products *p, amp_cuda_fact facts[AMP_CUDA_FACTS]) {
    const amp_cuda_device_info *d = &p->context->info;
    const int driver = p->context->driver.version, library = p->library.version;
    const char *how = getenv("AMPC_CUDA_COMPILE");
    static const char *const names[AMP_CUDA_FACTS][2] = {{"amp.device", "the device"},
                                                         {"amp.driver", "a driver of"},
                                                         {"amp.library", "cuBLASLt"},
                                                         {"amp.products", "products"},
                                                         {"amp.compile", "AMPC_CUDA_COMPILE"}};
    for (int i = 0; i < AMP_CUDA_FACTS; i++) facts[i] = (amp_cuda_fact){.key = names[i][0], .what = names[i][1]};
    snprintf(facts[0].is, sizeof facts[0].is, "%s, sm_%d, %d multiprocessors", d->name, d->arch, d->multiprocessors);
    snprintf(facts[1].is, sizeof facts[1].is, "CUDA %d.%d", driver / 1000, driver % 1000 / 10);
    snprintf(facts[2].is, sizeof facts[2].is, "%d.%d.%d", library / 1000, library % 1000 / 10, p->library.patch);
    snprintf(facts[3].is, sizeof facts[3].is, "%s", p->mode == AMP_PRODUCTS_FASTEST ? "fastest" : "same-bits");
    snprintf(facts[4].is, sizeof facts[4].is, "%s", how && *how ? how : "as users do");
}

static void describe(const amp_run *run, const amp_model_cuda_kernel *k, char *text) {
    for (uint32_t i = 0; i < k->products.count; i++) {
        amp_cuda_matmul w;
        (void)amp_cuda_matmul_of(run, k, i, &w);
        const long long sizes[] = {w.m,        w.n,    w.k,         w.batch,     w.pitch[0], w.pitch[1],
                                   w.pitch[2], w.fill, w.stride[0], w.stride[1], w.stride[2]};
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) text += sprintf(text, "%lld ", sizes[s]);
        text += sprintf(text, "%d %d %d %u %d %d;", w.type, w.result, w.compute, w.epilogue, w.a_turned, w.b_turned);
    }
}

static void hash_text(amp_sha256 *hash, const char *text) { amp_sha256_update(hash, text, strlen(text) + 1); }

const amp_cuda_cache_key *amp_cuda_products_code(const amp_cuda_products *p, uint32_t function) {
    static const amp_cuda_cache_key none;
    const amp_model_cuda_function *f = &p->model->functions[function];
    amp_cuda_cache_key *code = &p->code[function];
    if (memcmp(code, &none, sizeof none)) return code;
    amp_sha256 hash;
    amp_sha256_init(&hash);
    for (uint32_t i = 0; i < f->prelude.count; i++)
        amp_sha256_update(&hash, p->model->desc.cuda->prelude + f->prelude.at[i].at, f->prelude.at[i].size);
    hash_text(&hash, f->source);
    amp_sha256_final(&hash, code->bytes);
    return code;
}

/* Adds what the functions of |k| are compiled from, and so what their sums are. */
static void hash_code(const amp_cuda_products *p, const amp_model_cuda_kernel *k, amp_sha256 *hash) {
    for (uint32_t i = 0; k && i < k->choices.count; i++)
        amp_sha256_update(hash, amp_cuda_products_code(p, k->choices.at[i].function), sizeof(amp_cuda_cache_key));
}

static bool key_of(const amp_cuda_products *p, const amp_run *run, const amp_model_cuda_kernel *k,
                   amp_cuda_cache_key *out) {
    const size_t bytes = (size_t)k->products.count * DESCRIPTION + 1;
    char *text = amp_alloc_zeroed(p->allocator, bytes);
    if (text) {
        amp_cuda_fact facts[AMP_CUDA_FACTS];
        amp_sha256 hash;
        describe(run, k, text);
        amp_cuda_products_facts(p, facts);
        amp_sha256_init(&hash);
        hash_text(&hash, "choice of products 3");
        for (int i = 0; i < AMP_CUDA_FACTS; i++) hash_text(&hash, facts[i].is);
        hash_text(&hash, text);
        hash_code(p, k, &hash);
        hash_code(p, k->then, &hash);
        amp_sha256_final(&hash, out->bytes);
    }
    amp_free(p->allocator, text, bytes);
    return text != NULL;
}

/* ---- one choice -------------------------------------------------------------------------------------------------- */

static amp_cuda_choice *add_choice(amp_cuda_products *p, const amp_run *run, const amp_model_cuda_kernel *k,
                                   const amp_cuda_cache_key *key) {
    amp_cuda_choice *c = amp_alloc_zeroed(p->allocator, amp_cuda_choice_bytes(k->products.count));
    if (!c) return NULL;
    *c = (amp_cuda_choice){.next = p->choices,
                           .program = run->program,
                           .kernel = k,
                           .n = run->sizes.n,
                           .key = *key,
                           .count = k->products.count};
    p->choices = c;
    return c;
}

typedef struct Times { /* an image begins with them */
    float own, library;
} Times;

size_t amp_cuda_choice_image(const amp_cuda_choice *c, char *out) {
    const Times times = {c->own, c->library};
    const size_t bytes = c->served ? c->count * sizeof *c->algorithms : 0;
    if (out) memcpy(out, &times, sizeof times);
    if (out) memcpy(out + sizeof times, c->algorithms, bytes);
    return sizeof times + bytes;
}

bool amp_cuda_choice_take(amp_cuda_choice *c, const void *image, size_t size) {
    const size_t bytes = c->count * sizeof *c->algorithms;
    Times times;
    if (size != sizeof times && size != sizeof times + bytes) return false;
    memcpy(&times, image, sizeof times);
    c->own = times.own;
    c->library = times.library;
    c->known = true;
    c->served = size > sizeof times;
    if (c->served) memcpy(c->algorithms, (const char *)image + sizeof times, bytes);
    for (uint32_t i = 0; c->served && i < c->count; i++)
        if (c->algorithms[i].workspace > AMP_CUDA_WORKSPACE_MOST) c->served = c->known = false;
    return c->known;
}

static bool is_like(const amp_cuda_choice *a, const amp_cuda_choice *b) {
    return !memcmp(&a->key, &b->key, sizeof a->key) && a->count == b->count;
}

static void copy_choice(amp_cuda_choice *to, const amp_cuda_choice *from) {
    to->served = from->served;
    to->ran = from->ran;
    to->own = from->own;
    to->library = from->library;
    memcpy(to->algorithms, from->algorithms, from->count * sizeof *from->algorithms);
}

/* Of a launch that is like it, in this session. */
static bool recall_like(const amp_cuda_products *p, amp_cuda_choice *c) {
    for (const amp_cuda_choice *o = p->choices; o; o = o->next) {
        if (!o->known || !is_like(o, c)) continue;
        copy_choice(c, o);
        return c->known = true;
    }
    return false;
}

static bool recall_from_disk(amp_cuda_cache *cache, amp_cuda_choice *c) {
    amp_cuda_cache_entry entry;
    if (!amp_cuda_cache_get(cache, &c->key, &entry)) return false;
    const bool known = amp_cuda_choice_take(c, entry.image, entry.size);
    amp_cuda_cache_entry_free(cache, &entry);
    return known;
}

static bool recall(const amp_cuda_products *p, amp_cuda_cache *cache, amp_cuda_choice *c) {
    if (recall_like(p, c)) return true;
    return !p->agreed && (amp_cuda_choices_recall(p, c) || recall_from_disk(cache, c));
}

static void keep(amp_cuda_products *p, amp_cuda_cache *cache, const amp_cuda_choice *c) {
    const size_t bytes = amp_cuda_choice_image(c, NULL);
    char *image = amp_alloc_zeroed(p->allocator, bytes);
    if (!image) return;
    (void)amp_cuda_choice_image(c, image);
    (void)amp_cuda_cache_put(
        cache, &c->key,
        &(amp_cuda_cache_entry){
            .image = image, .size = bytes, .registers = -1, .shared_bytes = -1, .spill_bytes = -1, .stack_bytes = -1});
    amp_free(p->allocator, image, bytes);
}

/* Whether the library has the algorithms for the sizes of |run|, and there is a workspace for them. */
static bool checks(amp_cuda_products *p, const amp_run *run, amp_cuda_choice *c) {
    for (uint32_t i = 0; i < c->count; i++) {
        amp_cuda_matmul w;
        if (!amp_cuda_matmul_of(run, c->kernel, i, &w) || !amp_cuda_matmul_check(p, &w, &c->algorithms[i]) ||
            amp_cuda_products_resize(p, c->algorithms[i].workspace))
            return false;
    }
    return true;
}

/* A graph may be using the workspace. */
amp_status amp_cuda_choice_warm(const amp_cuda_launching *l, const amp_run *run, amp_cuda_choice *c, amp_error *err) {
    amp_cuda_verdict verdict = {0};
    c->served = c->served && checks(l->products, run, c);
    if (!c->served || c->ran) return AMP_OK;
    if (l->products->captured) AMP_TRY(AMP_CUDA(l->context, err, context_sync, ()));
    AMP_TRY(amp_cuda_try_library(l, run, c->kernel, false, c->algorithms, &verdict, err));
    c->served = c->ran = verdict.served;
    return AMP_OK;
}

/* ---- what is known, and what is measured ------------------------------------------------------------------------- */

/* A choice for kernel |k|, and what is known of it. */
static amp_status look_up(const amp_cuda_launching *l, const amp_run *run, const amp_model_cuda_kernel *k,
                          amp_cuda_cache *cache, amp_error *err) {
    amp_cuda_cache_key key;
    if (!key_of(l->products, run, k, &key)) return AMP_OK; /* no memory */
    amp_cuda_choice *c = add_choice(l->products, run, k, &key);
    if (!c) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for what makes its products", k->name);
    return recall(l->products, cache, c) && !c->ran ? amp_cuda_choice_warm(l, run, c, err) : AMP_OK;
}

/* With all of each batch. */
static int64_t count_products(const amp_run *run, const amp_model_cuda_kernel *k) {
    int64_t count = 0;
    for (uint32_t i = 0; i < k->products.count; i++) count += amp_model_dim_at(&k->products.at[i].batch, run->sizes);
    return count;
}

static void say(const amp_cuda_products *p, const amp_run *run, const amp_cuda_choice *c) {
    const amp_model_cuda_kernel *k = c->kernel;
    const long long count = count_products(run, k);
    amp_cuda_matmul w;
    int32_t id = -1;
    size_t written;
    if (!c->served || !amp_cuda_matmul_of(run, k, 0, &w)) return;
    p->library.calls.algo_config(&c->algorithms[0].algo, LT_ALGO_ID, &id, sizeof id, &written);
    amp_log_say(p->log, AMP_LOG_INFO,
                "%s, %lld product%s of %lld x %lld x %lld: cuBLASLt %d.%d, algorithm %d, %.1f of %.1f us, %s",
                k->title ? k->title : k->name, count, count == 1 ? "" : "s", (long long)w.m, (long long)w.n,
                (long long)w.k, p->library.version / 1000, p->library.version / 10 % 100, id, (double)c->library,
                (double)c->own, p->mode == AMP_PRODUCTS_FASTEST ? "other rounding" : "the same bits");
}

static float as_kept(double microseconds) { return isfinite(microseconds) ? (float)microseconds : 0; }

/* The first measurement of a session always ends, so that some session has measured each. */
static amp_status measure(const amp_cuda_launching *l, const amp_run *run, amp_cuda_cache *cache, amp_cuda_choice *c,
                          amp_error *err) {
    amp_cuda_products *p = l->products;
    amp_cuda_verdict verdict = {0};
    const double start = (double)amp_nanoseconds() * 1e-9;
    p->deadline = p->seconds > 0 ? start + (p->most_seconds - p->seconds) : INFINITY;
    AMP_TRY(amp_cuda_try_library(l, run, c->kernel, true, c->algorithms, &verdict, err));
    p->seconds += (double)amp_nanoseconds() * 1e-9 - start;
    if (verdict.late) return AMP_OK;
    c->known = true;
    c->served = c->ran = verdict.served;
    c->own = as_kept(verdict.own);
    c->library = as_kept(verdict.library);
    if (verdict.measured) keep(p, cache, c);
    say(p, run, c);
    return AMP_OK;
}

static amp_status measure_one(const amp_cuda_launching *l, const amp_run *run, amp_cuda_choice *c,
                              amp_cuda_cache *cache, amp_error *err) {
    amp_cuda_products *p = l->products;
    if (recall_like(p, c)) return AMP_OK; /* measured a moment ago, for a launch like it */
    if (p->seconds < p->most_seconds) AMP_TRY(measure(l, run, cache, c, err));
    if (c->known || p->said_late) return AMP_OK;
    amp_log_say(p->log, AMP_LOG_INFO,
                "products were measured for %.1f s, and others are still ampc's own: the next session measures them",
                p->seconds);
    p->said_late = true;
    return AMP_OK;
}

/* What is not known yet: all functions are compiled at once. */
static amp_status measure_all(const amp_cuda_launching *l, const amp_run *run, amp_cuda_cache *cache, amp_error *err) {
    if (l->products->most_seconds < 0) return AMP_OK;
    AMP_TRY(amp_cuda_need(l, run, true, err));
    for (int32_t i = 0; i < run->program->kernel_count; i++)
        if (amp_cuda_products_may_take(l, run, i))
            AMP_TRY(measure_one(l, run, amp_cuda_choice_for(l->products, &run->program->cuda_kernels[i], run->sizes.n),
                                cache, err));
    return AMP_OK;
}

/* ---- another number of samples ----------------------------------------------------------------------------------- */

/* Looks for a choice at |n|, unless it was looked for; a choice that is not known is dropped again. */
static amp_status probe(const amp_cuda_launching *l, const amp_run *run, int64_t n, const amp_model_cuda_kernel *k,
                        amp_cuda_cache *cache, amp_error *err) {
    amp_cuda_products *p = l->products;
    amp_run other = *run;
    other.sizes.n = n;
    if (n < 1 || amp_cuda_choice_for(p, k, n) || !is_worth(l, &other, k)) return AMP_OK;
    AMP_TRY(look_up(l, &other, k, cache, err));
    amp_cuda_choice *c = amp_cuda_choice_for(p, k, n);
    if (!c || c->known) return AMP_OK;
    p->choices = c->next; /* it is the last */
    amp_free(p->allocator, c, amp_cuda_choice_bytes(c->count));
    return AMP_OK;
}

/* Those that amprun tune measures: of the capacity and its halves the two about n, and all in a file. */
static amp_status probe_neighbours(const amp_cuda_launching *l, const amp_run *run, const amp_model_cuda_kernel *k,
                                   amp_cuda_cache *cache, amp_error *err) {
    const amp_cuda_products *p = l->products;
    int64_t above = p->capacity;
    if (p->agreed) return AMP_OK;
    while (above / 2 >= run->sizes.n) above /= 2;
    AMP_TRY(probe(l, run, above, k, cache, err));
    AMP_TRY(probe(l, run, above / 2, k, cache, err));
    for (int i = 0; amp_cuda_choices_size(p, i); i++)
        AMP_TRY(probe(l, run, amp_cuda_choices_size(p, i), k, cache, err));
    return AMP_OK;
}

/* Of equal distance the larger one, which is measured first. */
static const amp_cuda_choice *nearest_to(const amp_cuda_products *p, const amp_cuda_choice *c) {
    const amp_cuda_choice *best = NULL;
    double least = INFINITY;
    for (const amp_cuda_choice *o = p->choices; o; o = o->next) {
        const double ratio = (double)o->n / (double)c->n, distance = fmax(ratio, 1 / ratio);
        if (o->kernel != c->kernel || !o->known || o->n == c->n) continue;
        if (distance > least || (distance == least && o->n < best->n)) continue;
        best = o;
        least = distance;
    }
    return best;
}

static bool has_workspace(const amp_cuda_choice *c) {
    for (uint32_t i = 0; i < c->count; i++)
        if (c->algorithms[i].workspace) return true;
    return false;
}

/* An algorithm adds the terms of a sum in an order that follows from itself and from k, if it has no memory in which
 * blocks could exchange parts of a sum. */
static bool has_equal_sums(const amp_run *run, const amp_cuda_choice *c, const amp_cuda_choice *nearest) {
    for (uint32_t i = 0; i < c->count; i++) {
        const amp_model_dim *k = &c->kernel->products.at[i].k;
        if (amp_model_dim_at(k, run->sizes) != amp_model_dim_at(k, (amp_sizes){.n = nearest->n})) return false;
    }
    return !has_workspace(nearest);
}

static amp_status take_nearest(const amp_cuda_launching *l, const amp_run *run, amp_cuda_choice *c,
                               amp_cuda_cache *cache, amp_error *err) {
    amp_cuda_products *p = l->products;
    const bool bits = p->mode != AMP_PRODUCTS_FASTEST;
    AMP_TRY(probe_neighbours(l, run, c->kernel, cache, err));
    const amp_cuda_choice *nearest = nearest_to(p, c);
    if (!nearest || !nearest->served || (bits && !has_equal_sums(run, c, nearest))) return AMP_OK;
    copy_choice(c, nearest);
    AMP_TRY(amp_cuda_choice_warm(l, run, c, err));
    c->served = c->served && !(bits && has_workspace(c));
    return AMP_OK;
}

/* ---- for a program ----------------------------------------------------------------------------------------------- */

/* What a program's launches have come to be. */
static void say_shares(const amp_cuda_launching *l, const amp_run *run) {
    int with_calls = 0, served = 0;
    for (int32_t i = 0; i < run->program->kernel_count; i++) {
        with_calls += run->program->cuda_kernels[i].products.count > 0;
        served += amp_cuda_products_find(l, run, i) != NULL;
    }
    if (served || l->products->mode == AMP_PRODUCTS_FASTEST)
        amp_log_say(l->products->log, AMP_LOG_INFO,
                    "%s, n = %lld: cuBLASLt makes %d of %d launches of products that it could make", run->program->name,
                    (long long)run->sizes.n, served, with_calls);
}

static amp_status open_or_give_up(amp_cuda_products *p, amp_error *err) {
    amp_error why = {0};
    const amp_status status = amp_cuda_products_open(p, &why);
    if (!status) return AMP_OK;
    p->given_up = true;
    if (p->mode == AMP_PRODUCTS_FASTEST) return amp_fail(err, status, "%s", why.message);
    amp_log_say(p->log, AMP_LOG_INFO, "matrix products are ampc's own: %s", why.message);
    return AMP_OK;
}

/* Kernel |i| of |run|, unless it was looked at; |*cache| is opened for the first. */
static amp_status choose_one(const amp_cuda_launching *l, const amp_run *run, int32_t i, bool may_measure,
                             amp_cuda_cache **cache, bool *looked, amp_error *err) {
    amp_cuda_products *p = l->products;
    const amp_model_cuda_kernel *k = &run->program->cuda_kernels[i];
    if (!k->products.count || !amp_run_needs(run, i)) return AMP_OK;
    const amp_cuda_choice *c = amp_cuda_choice_for(p, k, run->sizes.n);
    if (c ? c->known || !may_measure : !is_worth(l, run, k)) return AMP_OK;
    AMP_TRY(open_or_give_up(p, err));
    if (p->given_up) return AMP_OK;
    if (!*looked) *cache = amp_cuda_cache_open(p->allocator);
    *looked = true;
    return c ? AMP_OK : look_up(l, run, k, *cache, err);
}

/* Those that are still not known. */
static amp_status take_all_nearest(const amp_cuda_launching *l, const amp_run *run, amp_cuda_cache *cache,
                                   amp_error *err) {
    for (int32_t i = 0; i < run->program->kernel_count; i++) {
        const amp_model_cuda_kernel *k = &run->program->cuda_kernels[i];
        if (!amp_cuda_products_may_take(l, run, i)) continue;
        amp_cuda_choice *c = amp_cuda_choice_for(l->products, k, run->sizes.n);
        if (!c->served) AMP_TRY(take_nearest(l, run, c, cache, err));
    }
    return AMP_OK;
}

amp_status amp_cuda_products_choose(const amp_cuda_launching *l, const amp_run *run, bool may_measure, amp_error *err) {
    amp_cuda_products *p = l->products;
    amp_cuda_cache *cache = NULL;
    amp_status status = AMP_OK;
    bool looked = false;
    if (p && may_measure && run->sizes.n > p->capacity) p->capacity = run->sizes.n;
    for (int32_t i = 0; p && !p->given_up && !status && i < run->program->kernel_count; i++)
        status = choose_one(l, run, i, may_measure, &cache, &looked, err);
    if (looked && may_measure && !status) status = measure_all(l, run, cache, err);
    if (looked && !status) status = take_all_nearest(l, run, cache, err);
    amp_cuda_cache_close(cache);
    if (!looked) return status;
    amp_cuda_products_fit_workspace(p);
    if (!status) say_shares(l, run);
    return status;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

bool amp_cuda_choice_at(const amp_cuda_products *p, int32_t index, amp_product_choice *out) {
    int32_t after = -1;
    for (const amp_cuda_choice *c = p->choices; c; c = c->next) after++;
    const amp_cuda_choice *c = p->choices;
    for (; c && after > index; after--) c = c->next;
    amp_cuda_matmul w = {0};
    size_t written;
    if (!c || index < 0 || after < index) return false;
    const amp_run run = {.program = c->program, .sizes = {.n = c->n}};
    *out = (amp_product_choice){.program = c->program->name,
                                .kernel = c->kernel->name,
                                .title = c->kernel->title ? c->kernel->title : "",
                                .n = c->n,
                                .products = (int32_t)count_products(&run, c->kernel),
                                .algorithm = -1,
                                .own = (double)c->own,
                                .library = (double)c->library,
                                .measured = c->known,
                                .library_version = p->library.version};
    if (amp_cuda_matmul_of(&run, c->kernel, 0, &w))
        out->rows = w.m, out->cols = w.n, out->k = w.k * c->kernel->products.at->parts;
    if (c->served)
        p->library.calls.algo_config(&c->algorithms[0].algo, LT_ALGO_ID, &out->algorithm, sizeof out->algorithm,
                                     &written);
    return true;
}
