/* library_trial.c: measures a launch against a library's products, on memory of its own.
 *
 * First the times, in turns: of the launch, of each algorithm for each product, and of what follows the calls; each
 * is a graph of repeats between two events.  If the library's fastest take less in all, the results: the own launch
 * runs, then the calls and what follows them, on ten million results or more, and all that they write is compared.
 * If a product differs, the next algorithm has its turn. */
#include <math.h>
#include <string.h>

#include "amp/cuda.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/rounding.h"
#include "runtime/device/cuda/library_trial.h"
#include "runtime/memory/memory_plan.h"

enum {
    REPEATS = 8,
    ROUNDS = 3,
    LEAST_CHECKS = 3,
    MOST_CHECKS = 18,
    PATTERN = 524287, /* numbers, which repeat: a prime, so that lines of a matrix differ */
    PATTERN_F32 = 262139,
    COMPARED = 4 << 20,       /* bytes at a time */
    MOST_COMPARED = 32 << 20, /* of a buffer */
    PIECES = 128              /* of what has more */
};
static const double LEAST_RESULTS = 1e7, LEAST_GAIN = 0.97;
static const double CALL_US = 1; /* a launch beside a call does not overlap it, as beside another launch */

typedef struct Candidate {
    amp_cuda_algorithm by;
    CuGraphExec graph;
    double us;
    bool fails; /* or it is wrong */
} Candidate;

typedef struct Product {
    amp_cuda_matmul what;
    uint32_t like; /* the first one of the same description, which has its candidates */
    Candidate candidates[AMP_CUDA_ALGORITHMS];
    int count, used;
} Product;

typedef struct Part { /* the own launch, or what follows the calls: a program of one kernel */
    amp_program program;
    amp_run run;
    amp_cuda_tables tables;
    CuGraphExec graph;
    double us;
} Part;

typedef struct Trial {
    amp_cuda_launching launching; /* with |memory| in place of the session's */
    amp_cuda_products *p;
    amp_cuda_context *c;
    const amp_run *run;
    const amp_model_cuda_kernel *k;
    amp_memory_plan plan;
    CuPointer *memory, *kept; /* by buffer: what launches use; what the own launch wrote; 0: none */
    uint8_t *access;          /* by buffer: AMP_ACCESS_* of all operands that it is */
    char *host;               /* a pattern, or 2 * COMPARED bytes */
    Product *products;
    Part own, then;
    CuEvent events[2];
    bool incomplete; /* some algorithm was not tried, for want of memory, say */
    bool late;       /* the deadline has come */
} Trial;

#define DRIVER(t, name, arguments) AMP_TRY(AMP_CUDA((t)->c, err, name, arguments))

static size_t list_bytes(const Trial *t) { return (size_t)t->run->program->buffer_count * sizeof *t->memory; }
static size_t product_bytes(const Trial *t) { return t->k->products.count * sizeof *t->products; }
static Product *candidates_of(const Trial *t, uint32_t i) { return &t->products[t->products[i].like]; }

static bool is_late(Trial *t) { return t->late = t->late || (double)amp_nanoseconds() * 1e-9 > t->p->deadline; }

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void note_access(Trial *t, const amp_model_cuda_kernel *k) {
    for (uint32_t i = 0; k && i < k->operands.count; i++)
        t->access[k->operands.at[i]] |=
            (k->access ? k->access[i] : AMP_ACCESS_WRITE) & (AMP_ACCESS_READ | AMP_ACCESS_WRITE);
}

static amp_status make_part(Trial *t, const amp_model_cuda_kernel *k, Part *out, amp_error *err) {
    if (!k) return AMP_OK;
    out->program = *t->run->program;
    out->program.cuda_kernels = k;
    out->program.kernel_count = 1;
    out->run = (amp_run){.program = &out->program, .sizes = t->run->sizes};
    return amp_cuda_tables_make(&out->tables, &t->launching, &out->run, t->p->stream, t->p->allocator, err);
}

static amp_status make_memory(Trial *t, bool compares, amp_error *err) {
    const amp_memory_plan_options o = {.capacity.most = t->run->sizes, .sizes_only = true, .align = 256};
    const size_t bytes = list_bytes(t);
    AMP_TRY(amp_memory_plan_make(&t->plan, t->run->program, &o, t->p->allocator, err));
    t->memory = amp_alloc_zeroed(t->p->allocator, bytes);
    t->kept = amp_alloc_zeroed(t->p->allocator, bytes);
    t->access = amp_alloc_zeroed(t->p->allocator, bytes);
    t->host = amp_alloc(t->p->allocator, 2 * COMPARED);
    t->products = amp_alloc_zeroed(t->p->allocator, product_bytes(t));
    if (!t->memory || !t->kept || !t->access || !t->host || !t->products)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to measure its products", t->k->name);
    t->launching.addresses = t->memory;
    note_access(t, t->k);
    note_access(t, t->k->then);
    for (int32_t i = 0; i < t->run->program->buffer_count; i++) {
        if (!t->access[i]) continue;
        DRIVER(t, mem_alloc, (&t->memory[i], t->plan.bytes[i]));
        if (compares && t->access[i] & AMP_ACCESS_WRITE) DRIVER(t, mem_alloc, (&t->kept[i], t->plan.bytes[i]));
    }
    return AMP_OK;
}

static void free_graph(const Trial *t, CuGraphExec graph) {
    if (graph) AMP_CUDA_FREE(t->c, graph_exec_destroy, (graph));
}

static void free_part(Trial *t, Part *part) {
    free_graph(t, part->graph);
    amp_cuda_tables_free(&part->tables, t->c);
}

static void end(Trial *t) {
    const amp_allocator *a = t->p->allocator;
    const size_t bytes = list_bytes(t);
    AMP_CUDA_FREE(t->c, stream_sync, (t->p->stream));
    for (uint32_t i = 0; t->products && i < t->k->products.count; i++)
        for (int j = 0; j < t->products[i].count; j++) free_graph(t, t->products[i].candidates[j].graph);
    free_part(t, &t->own);
    free_part(t, &t->then);
    for (int i = 0; i < 2; i++)
        if (t->events[i]) AMP_CUDA_FREE(t->c, event_destroy, (t->events[i]));
    for (int32_t i = 0; t->memory && t->kept && i < t->run->program->buffer_count; i++) {
        if (t->memory[i]) AMP_CUDA_FREE(t->c, mem_free, (t->memory[i]));
        if (t->kept[i]) AMP_CUDA_FREE(t->c, mem_free, (t->kept[i]));
    }
    amp_free(a, t->memory, bytes);
    amp_free(a, t->kept, bytes);
    amp_free(a, t->access, bytes);
    amp_free(a, t->host, 2 * COMPARED);
    amp_free(a, t->products, product_bytes(t));
    amp_memory_plan_free(&t->plan, a);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static uint32_t draw(uint32_t *state) { /* Marsaglia's xorshift */
    *state ^= *state << 13;
    *state ^= *state >> 17;
    return *state ^= *state << 5;
}

/* A round of each in turn.  FASTEST: positive, so that sums in another order differ by their rounding alone. */
typedef enum Numbers {
    MIXED, /* runs of 64 that are ordinary, subnormal in f16, or larger than others */
    TIES,  /* odd sixteenths, whose sums are often halfway between two numbers; and a few infinities, which hide what
                else is in their rows and columns */
    PLAIN, /* all of one size: the order of their sums shows most */
    NUMBERS
} Numbers;

static float mixed(uint32_t bits, uint32_t kind) {
    const float unit = (float)(bits >> 8) * 0x1p-24F;
    if (kind == 0) return (unit - 0.5F) * 0x1p-18F;
    return (2 * unit - 1) * (kind == 1 ? 4 : 1);
}

/* Which of eight kinds the run has that number |i| is in: another one in each buffer and round, or runs of two operands
 * would meet in all sums alike. */
static uint32_t kind_of_run(uint32_t i, uint32_t seed) {
    uint32_t state = (i / 64 + 1) * 2654435761U ^ seed;
    (void)draw(&state);
    return draw(&state) >> 29;
}

static float number_at(uint32_t i, uint32_t seed, uint32_t *state, Numbers what, bool fastest) {
    const uint32_t bits = draw(state);
    const float unit = (float)(bits >> 8) * 0x1p-24F;
    if (what == TIES && i % 131071 == 77) return INFINITY;
    if (fastest) return 0.5F + unit / 2;
    if (what == TIES) return ((float)(bits % 64) - 31.5F) * 0.125F;
    return what == PLAIN ? 2 * unit - 1 : mixed(bits, kind_of_run(i, seed));
}

static size_t put_number(char *to, uint32_t storage, float x) {
    const uint16_t half = storage == AMP_DT_BF16 ? amp_f32_to_bf16(x) : amp_f32_to_f16(x);
    if (storage == AMP_DT_F32) memcpy(to, &x, sizeof x);
    else memcpy(to, &half, sizeof half);
    return storage == AMP_DT_F32 ? sizeof x : sizeof half;
}

static bool is_float(uint32_t storage) {
    return storage == AMP_DT_F32 || storage == AMP_DT_F16 || storage == AMP_DT_BF16;
}

/* Of positive numbers the sum of k products is about 1 if they are so much smaller: then a bias counts. */
static float scale_of(const Trial *t, int32_t buffer) {
    for (uint32_t i = 0; t->p->mode == AMP_PRODUCTS_FASTEST && i < t->k->products.count; i++) {
        const amp_model_cuda_product *x = &t->k->products.at[i];
        if ((int32_t)t->k->operands.at[x->a] == buffer || (int32_t)t->k->operands.at[x->b] == buffer)
            return 1 / sqrtf((float)amp_model_dim_at(&x->k, t->run->sizes));
    }
    return 1;
}

/* Numbers for buffer |i| in host memory, again and again from the first; their bytes. */
static size_t draw_numbers(Trial *t, int32_t i, uint32_t round) {
    const uint32_t storage = t->run->program->buffers[i].storage, seed = (round * 1009 + (uint32_t)i + 1) * 2654435761U;
    const uint32_t count = storage == AMP_DT_F32 ? PATTERN_F32 : PATTERN;
    const float scale = scale_of(t, i);
    uint32_t state = seed | 1;
    size_t bytes = 0;
    for (uint32_t n = 0; n < count && bytes < t->plan.bytes[i]; n++)
        bytes += put_number(
            t->host + bytes, storage,
            scale * number_at(n, seed, &state, (Numbers)(round % NUMBERS), t->p->mode == AMP_PRODUCTS_FASTEST));
    return bytes < t->plan.bytes[i] ? bytes : t->plan.bytes[i];
}

/* What is read has numbers, of |round| alone; all else is zero, and what is only written has no number. */
static amp_status fill(Trial *t, int32_t i, uint32_t round, amp_error *err) {
    const amp_model_buffer *b = &t->run->program->buffers[i];
    const bool read = t->access[i] & AMP_ACCESS_READ,
               numbers = read && is_float(b->storage) && b->kind != AMP_BUFFER_LOOK;
    const size_t bytes = t->plan.bytes[i];
    const bool empty = b->kind == AMP_BUFFER_FLAG || b->kind == AMP_BUFFER_LOOK || read;
    if (!numbers) return AMP_CUDA(t->c, err, fill8, (t->memory[i], empty ? 0 : 0xFF, bytes, t->p->stream));
    size_t filled = draw_numbers(t, i, round);
    DRIVER(t, copy_in, (t->memory[i], t->host, filled, t->p->stream));
    DRIVER(t, stream_sync, (t->p->stream));
    for (size_t more; filled < bytes; filled += more) {
        more = filled < bytes - filled ? filled : bytes - filled;
        DRIVER(t, copy, (t->memory[i] + filled, t->memory[i], more, t->p->stream));
    }
    return AMP_OK;
}

/* |written| alone: what launches write. */
static amp_status fill_all(Trial *t, uint32_t round, bool written, amp_error *err) {
    for (int32_t i = 0; i < t->run->program->buffer_count; i++)
        if (t->access[i] && (!written || t->access[i] & AMP_ACCESS_WRITE)) AMP_TRY(fill(t, i, round, err));
    return AMP_OK;
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static amp_status launch_part(const Trial *t, const Part *part, amp_error *err) {
    amp_cuda_tables tables = part->tables;
    return amp_cuda_launch(&t->launching, &part->run, 0, &tables, false, t->p->stream, err);
}

static CublasLtResult call(const Trial *t, uint32_t i, const amp_cuda_algorithm *by) {
    CuPointer at[4];
    amp_cuda_matmul_place(&t->launching, t->run, t->k, i, at);
    return amp_cuda_matmul_run(t->p, &t->products[i].what, at, by, t->p->stream);
}

static void note(const Trial *t, Candidate *c, CublasLtResult result) {
    if (result)
        amp_log_say(t->p->log, AMP_LOG_WARNING, "%s: an algorithm of cuBLASLt fails with status %d and is not used",
                    t->k->name, result);
    c->fails |= result != 0;
}

static Candidate *used_for(const Trial *t, uint32_t i) {
    Product *product = candidates_of(t, i);
    return &product->candidates[product->used];
}

/* Each runs once outside of a capture, which loads it. */
static amp_status find_candidates(Trial *t, uint32_t i, amp_error *err) {
    CublasLtFound found[AMP_CUDA_ALGORITHMS];
    Product *product = &t->products[i];
    CuPointer at[4];
    amp_cuda_matmul_place(&t->launching, t->run, t->k, i, at);
    const int count = amp_cuda_matmul_ask(t->p, &product->what, at, found);
    t->incomplete |= count < 0;
    for (int f = 0; f < count && !is_late(t); f++) {
        Candidate *c = &product->candidates[product->count];
        if (found[f].state) continue;
        *c = (Candidate){.by = {found[f].algo, found[f].workspace}};
        const CublasLtResult result =
            amp_cuda_products_resize(t->p, found[f].workspace) ? LT_ALLOC_FAILED : call(t, i, &c->by);
        t->incomplete |= result == LT_ALLOC_FAILED;
        note(t, c, result);
        DRIVER(t, stream_sync, (t->p->stream));
        product->count++;
    }
    return AMP_OK;
}

static amp_status describe_products(Trial *t, bool ask, amp_error *err) {
    for (uint32_t i = 0; i < t->k->products.count; i++) {
        Product *product = &t->products[i];
        if (!amp_cuda_matmul_of(t->run, t->k, i, &product->what))
            return amp_fail(err, AMP_INTERNAL, "no call makes product %u at n = %lld", i, (long long)t->run->sizes.n);
        product->like = 0;
        while (memcmp(&t->products[product->like].what, &product->what, sizeof product->what)) product->like++;
        if (product->like == i && ask) AMP_TRY(find_candidates(t, i, err));
    }
    return AMP_OK;
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

/* A graph of repeats of |part|, or of product |i| by |c|. */
static amp_status capture(Trial *t, const Part *part, uint32_t i, Candidate *c, CuGraphExec *out, amp_error *err) {
    CuGraph graph = NULL;
    amp_status status = AMP_OK;
    DRIVER(t, capture_begin, (t->p->stream, CU_CAPTURE_THREAD_LOCAL));
    for (int r = 0; r < REPEATS && !status; r++) {
        if (part) status = launch_part(t, part, err);
        else if (!c->fails) note(t, c, call(t, i, &c->by));
    }
    if (status) {
        AMP_CUDA_FREE(t->c, capture_end, (t->p->stream, &graph));
    } else {
        status = AMP_CUDA(t->c, err, capture_end, (t->p->stream, &graph));
        if (!status) status = AMP_CUDA(t->c, err, graph_instantiate, (out, graph, 0));
    }
    if (graph) AMP_CUDA_FREE(t->c, graph_destroy, (graph));
    return status;
}

static amp_status time_graph(Trial *t, CuGraphExec graph, double *us, amp_error *err) {
    float milliseconds = 0;
    if (!graph) return AMP_OK;
    DRIVER(t, event_record, (t->events[0], t->p->stream));
    DRIVER(t, graph_launch, (graph, t->p->stream));
    DRIVER(t, event_record, (t->events[1], t->p->stream));
    DRIVER(t, event_sync, (t->events[1]));
    DRIVER(t, event_elapsed, (&milliseconds, t->events[0], t->events[1]));
    *us = fmin(*us, (double)milliseconds * 1e3 / REPEATS);
    return AMP_OK;
}

static amp_status capture_all(Trial *t, amp_error *err) {
    AMP_TRY(capture(t, &t->own, 0, NULL, &t->own.graph, err));
    if (t->k->then) AMP_TRY(capture(t, &t->then, 0, NULL, &t->then.graph, err));
    for (uint32_t i = 0; i < t->k->products.count; i++)
        for (int j = 0; j < t->products[i].count && !is_late(t); j++) {
            Candidate *c = &t->products[i].candidates[j];
            if (c->fails || !capture(t, NULL, i, c, &c->graph, err)) continue;
            AMP_TRY(amp_cuda_latch_check(&t->c->latch, err));
            c->fails = true; /* what fails in it may end the capture */
        }
    return AMP_OK;
}

static amp_status time_round(Trial *t, amp_error *err) {
    AMP_TRY(time_graph(t, t->own.graph, &t->own.us, err));
    AMP_TRY(time_graph(t, t->then.graph, &t->then.us, err));
    for (uint32_t i = 0; i < t->k->products.count; i++)
        for (int j = 0; j < t->products[i].count && !is_late(t); j++)
            AMP_TRY(time_graph(t, t->products[i].candidates[j].graph, &t->products[i].candidates[j].us, err));
    return AMP_OK;
}

static amp_status time_all(Trial *t, amp_error *err) {
    AMP_TRY(capture_all(t, err));
    AMP_TRY(time_round(t, err)); /* the first is slow */
    t->own.us = INFINITY;
    t->then.us = t->k->then ? INFINITY : 0;
    for (uint32_t i = 0; i < t->k->products.count; i++)
        for (int j = 0; j < t->products[i].count; j++) t->products[i].candidates[j].us = INFINITY;
    for (int r = 0; r < ROUNDS; r++) AMP_TRY(time_round(t, err));
    return AMP_OK;
}

/* The fastest algorithm of each product that is not dropped, and what all takes; false: some product has none. */
static bool take_fastest(Trial *t, double *us) {
    *us = t->then.us;
    for (uint32_t i = 0; i < t->k->products.count; i++) {
        Product *product = candidates_of(t, i);
        product->used = -1;
        for (int j = 0; j < product->count; j++) {
            const Candidate *c = &product->candidates[j];
            if (!c->fails && (product->used < 0 || c->us < product->candidates[product->used].us)) product->used = j;
        }
        if (product->used < 0) return false;
        *us += product->candidates[product->used].us;
    }
    return true;
}

/* ---- right or wrong ---------------------------------------------------------------------------------------------- */

static float number_from(const char *at, uint32_t storage) {
    float x;
    uint16_t half;
    if (storage == AMP_DT_F32) return memcpy(&x, at, sizeof x), x;
    memcpy(&half, at, sizeof half);
    return storage == AMP_DT_BF16 ? amp_bf16_to_f32(half) : amp_f16_to_f32(half);
}

/* Whether numbers of positive terms are the same but for rounding; others are the same bits. */
static bool is_near(const char *a, const char *b, size_t bytes, uint32_t storage) {
    const float most = storage == AMP_DT_BF16 ? 0x1.1p-7F : storage == AMP_DT_F16 ? 0x1p-9F : 0x1p-10F;
    if (!is_float(storage)) return !memcmp(a, b, bytes);
    for (size_t i = 0; i < bytes; i += storage == AMP_DT_F32 ? 4 : 2) {
        const float x = number_from(a + i, storage), y = number_from(b + i, storage);
        if (!(fabsf(x - y) <= most * fmaxf(fabsf(x), fabsf(y))) && !(x == y) && !(isnan(x) && isnan(y))) return false;
    }
    return true;
}

/* Where piece |index| of a large buffer begins.  Pieces are spread over it, so that all products of a batch have some,
 * and are elsewhere in each round. */
static size_t place_piece(size_t bytes, size_t index, uint32_t round) {
    const size_t piece = MOST_COMPARED / PIECES, apart = bytes / PIECES, shift = round * 5 % MOST_CHECKS;
    if (index + 1 == PIECES) return bytes - piece;
    return (index * apart + (apart - piece) / MOST_CHECKS * shift) & ~(size_t)15;
}

/* |bytes| from |at| on, of buffer |i| and of what the own launch wrote into it. */
static amp_status compare_piece(Trial *t, int32_t i, size_t at, size_t bytes, bool bits, bool *same, amp_error *err) {
    char *const other = t->host + COMPARED;
    DRIVER(t, copy_out, (t->host, t->memory[i] + at, bytes, t->p->stream));
    DRIVER(t, copy_out, (other, t->kept[i] + at, bytes, t->p->stream));
    DRIVER(t, stream_sync, (t->p->stream));
    *same = bits ? !memcmp(t->host, other, bytes) : is_near(t->host, other, bytes, t->run->program->buffers[i].storage);
    return AMP_OK;
}

static amp_status compare(Trial *t, int32_t i, uint32_t round, bool bits, bool *same, amp_error *err) {
    const size_t bytes = t->plan.bytes[i];
    *same = true;
    if (bytes > MOST_COMPARED) {
        for (size_t index = 0; index < PIECES && *same; index++)
            AMP_TRY(compare_piece(t, i, place_piece(bytes, index, round), MOST_COMPARED / PIECES, bits, same, err));
        return AMP_OK;
    }
    for (size_t at = 0; at < bytes && *same; at += COMPARED)
        AMP_TRY(compare_piece(t, i, at, bytes - at < COMPARED ? bytes - at : COMPARED, bits, same, err));
    return AMP_OK;
}

static amp_status keep_written(Trial *t, amp_error *err) {
    for (int32_t i = 0; i < t->run->program->buffer_count; i++)
        if (t->kept[i]) DRIVER(t, copy, (t->kept[i], t->memory[i], t->plan.bytes[i], t->p->stream));
    return AMP_OK;
}

static amp_status run_library(Trial *t, uint32_t round, bool *ran, amp_error *err) {
    AMP_TRY(fill_all(t, round, true, err));
    *ran = true;
    for (uint32_t i = 0; i < t->k->products.count && *ran; i++) {
        note(t, used_for(t, i), call(t, i, &used_for(t, i)->by));
        *ran = !used_for(t, i)->fails;
    }
    return *ran && t->k->then ? launch_part(t, &t->then, err) : AMP_OK;
}

static int32_t result_of(const Trial *t, uint32_t i) { return (int32_t)t->k->operands.at[t->k->products.at[i].result]; }

static bool is_of_product(const Trial *t, int32_t buffer) {
    for (uint32_t i = 0; i < t->k->products.count; i++)
        if (result_of(t, i) == buffer) return true;
    return false;
}

/* Drops the algorithms whose products differ; |*same|: nothing that launches write does. */
static amp_status compare_all(Trial *t, uint32_t round, bool bits, bool *same, amp_error *err) {
    bool of_products = true, one = true;
    *same = true;
    for (uint32_t i = 0; i < t->k->products.count; i++) {
        if (!i || result_of(t, i) != result_of(t, i - 1)) /* several calls of a batch write into one buffer */
            AMP_TRY(compare(t, result_of(t, i), round, bits, &one, err));
        used_for(t, i)->fails |= !one;
        of_products = of_products && one;
    }
    for (int32_t i = 0; i < t->run->program->buffer_count && of_products && *same; i++)
        if (t->kept[i] && t->run->program->buffers[i].kind != AMP_BUFFER_LOOK && !is_of_product(t, i))
            AMP_TRY(compare(t, i, round, bits, same, err));
    if (of_products && !*same) /* what follows the calls: none of them may stand */
        for (uint32_t i = 0; i < t->k->products.count; i++) used_for(t, i)->fails = true;
    *same = *same && of_products;
    return AMP_OK;
}

/* On numbers of |round|: the library against the own launch, and a second time against the first. */
static amp_status check_round(Trial *t, uint32_t round, bool *right, amp_error *err) {
    const bool bits = t->p->mode != AMP_PRODUCTS_FASTEST;
    AMP_TRY(fill_all(t, round, false, err));
    AMP_TRY(launch_part(t, &t->own, err));
    AMP_TRY(keep_written(t, err));
    AMP_TRY(run_library(t, round, right, err));
    if (*right) AMP_TRY(compare_all(t, round, bits, right, err));
    if (!*right) return AMP_OK;
    if (!bits) AMP_TRY(keep_written(t, err));
    AMP_TRY(run_library(t, round, right, err));
    if (*right) AMP_TRY(compare_all(t, round, true, right, err));
    return AMP_OK;
}

/* That are compared in a round; of a large product some. */
static double results_of(const Trial *t) {
    double all = 0;
    for (uint32_t i = 0; i < t->k->products.count; i++) {
        const amp_cuda_matmul *w = &t->products[i].what;
        all += (double)w->m * (double)w->n * (double)w->batch;
    }
    return all;
}

static amp_status check(Trial *t, bool *right, amp_error *err) {
    double results = 0;
    *right = true;
    for (uint32_t round = 0;
         *right && !is_late(t) && round < MOST_CHECKS && (round < LEAST_CHECKS || results < LEAST_RESULTS); round++) {
        AMP_TRY(check_round(t, round, right, err));
        results += results_of(t);
    }
    return AMP_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static amp_status choose(Trial *t, amp_cuda_algorithm *out, amp_cuda_verdict *v, amp_error *err) {
    AMP_TRY(time_all(t, err));
    v->own = t->own.us;
    while (!v->served && take_fastest(t, &v->library) && v->library < LEAST_GAIN * v->own &&
           v->library + CALL_US < v->own && !is_late(t))
        AMP_TRY(check(t, &v->served, err));
    v->late = t->late;
    v->served = v->served && !t->late;
    v->measured = !t->incomplete && !t->late;
    for (uint32_t i = 0; v->served && i < t->k->products.count; i++) out[i] = used_for(t, i)->by;
    return AMP_OK;
}

static amp_status warm(Trial *t, const amp_cuda_algorithm *known, amp_cuda_verdict *v, amp_error *err) {
    v->served = true;
    for (int32_t i = 0; i < t->run->program->buffer_count; i++)
        if (t->memory[i]) DRIVER(t, fill8, (t->memory[i], 0, t->plan.bytes[i], t->p->stream));
    for (uint32_t i = 0; i < t->k->products.count && v->served; i++)
        v->served = !amp_cuda_products_resize(t->p, known[i].workspace) && !call(t, i, &known[i]);
    return AMP_CUDA(t->c, err, stream_sync, (t->p->stream));
}

static amp_status run(Trial *t, bool check, amp_cuda_algorithm *algorithms, amp_cuda_verdict *v, amp_error *err) {
    AMP_TRY(make_memory(t, check, err));
    if (check) AMP_TRY(fill_all(t, 0, false, err));
    AMP_TRY(describe_products(t, check, err));
    if (!check) return warm(t, algorithms, v, err);
    AMP_TRY(make_part(t, t->k, &t->own, err));
    AMP_TRY(make_part(t, t->k->then, &t->then, err));
    for (int i = 0; i < 2; i++) DRIVER(t, event_create, (&t->events[i], CU_EVENT_DEFAULT));
    return choose(t, algorithms, v, err);
}

/* Too little memory, and whatever else is no failure of the device, leaves the own launch. */
amp_status amp_cuda_try_library(const amp_cuda_launching *l, const amp_run *of, const amp_model_cuda_kernel *k,
                                bool check, amp_cuda_algorithm *out, amp_cuda_verdict *verdict, amp_error *err) {
    Trial t = {.launching = *l, .p = l->products, .c = l->context, .run = of, .k = k};
    amp_error why = {0};
    t.launching.products = NULL;
    *verdict = (amp_cuda_verdict){0};
    if (k->products.count > AMP_PRODUCTS_MOST) return AMP_OK;
    const amp_status status = run(&t, check, out, verdict, &why);
    end(&t);
    if (!status) return AMP_OK;
    verdict->served = verdict->measured = false;
    AMP_TRY(amp_cuda_latch_check(&t.c->latch, err));
    amp_log_say(t.p->log, AMP_LOG_INFO, "%s: its products were not measured: %s", k->name, why.message);
    return AMP_OK;
}
