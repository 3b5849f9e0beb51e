/* info_ranks.c: amprun info --ranks R: what a rank of R sends in a step, message by message, and what it holds in
 * memory; as text and as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tools/amprun/info/info.h"
#include "tools/standard_streams.h"

static const char *const kind_names[AMP_MESSAGE_KINDS] = {"gradients", "statistics", "buffers",
                                                          "measures",  "agreement",  "weights"};

typedef struct Ranks {
    const Args *args;
    int64_t batch;
    Run run;          /* planned as rank 0 */
    uint64_t weights; /* bytes of one rank alone */
    amp_tables tables;
    bool on_cuda;
    amp_rank_message *messages;
    int32_t count;
    uint64_t bytes[AMP_MESSAGE_KINDS], exchange;
} Ranks;

/* ---- what is sent ------------------------------------------------------------------------------------------------ */

static int list_messages(Ranks *x) {
    const char *device = run_target(x->args);
    amp_rank_message m;
    int64_t room = 0;
    while (!amp_model_message_at(x->run.model, device, x->args->ranks, x->count, &m, NULL)) {
        amp_rank_message *messages = with_room(x->messages, x->count, &room, sizeof m);
        if (!messages) return report_text("%s: no memory for its messages", x->args->model);
        x->messages = messages;
        x->messages[x->count++] = m;
        x->bytes[m.kind] += m.bytes;
        x->exchange += m.memory;
    }
    if (x->count) return 0;
    return report_text("%s: it was compiled to train alone; compile it with --distribute data, or say "
                       "data_parallel = true in its train block",
                       x->args->model);
}

static uint64_t all_bytes(const Ranks *x) {
    uint64_t sum = 0;
    for (int i = 0; i < AMP_MESSAGE_KINDS; i++) sum += x->bytes[i];
    return sum;
}

/* A sum goes round twice, as parts and as sums of the parts, and what is gathered or scattered once; of both all but
 * one part of R. */
static uint64_t sent_by_a_ring(const Ranks *x) {
    const uint64_t ranks = (uint64_t)x->args->ranks;
    uint64_t rounds = 0;
    for (int32_t i = 0; i < x->count; i++)
        rounds += x->messages[i].op != AMP_MESSAGE_ALL_REDUCE ? x->messages[i].bytes : 2 * x->messages[i].bytes;
    return rounds * (ranks - 1) / ranks;
}

static int64_t samples(const Ranks *x) { return x->batch * x->run.info.accumulate * x->args->ranks; }

static const char *kernel_name(const Ranks *x, const amp_rank_message *m) {
    const amp_program *p = x->tables.train_step;
    const int32_t i = m->complete;
    if (m->kind == AMP_MESSAGE_WEIGHTS) return "the update";
    if (i < 0) return "the start";
    return p->cuda_kernels ? p->cuda_kernels[i].name : p->kernels[i].name;
}

static int plan(Ranks *x) {
    amp_error err = {0};
    const amp_session_options options = run_options(x->args, x->batch, NULL);
    if (run_plan(&x->run, x->args, x->batch)) return 1;
    x->weights = x->run.memory.params;
    if (amp_session_plan_rank(x->run.model, &options, 0, x->args->ranks, &x->run.memory, &err)) return report(&err);
    return 0;
}

/* A session on a GPU can be planned only where there is one. */
static int open_model(Ranks *x) {
    amp_error err = {0};
    x->on_cuda = !strcmp(run_target(x->args), "cuda");
    if (!x->on_cuda && plan(x)) return 1;
    if (x->on_cuda && amp_model_load(x->args->model, NULL, &x->run.model, &err)) return report(&err);
    amp_model_get_info(x->run.model, &x->run.info);
    if (!x->run.info.can_train)
        return report_text("%s: it only infers: a model without a train block has nothing that ranks add up",
                           x->args->model);
    if (info_tables(x->args, x->run.model, &x->tables) || list_messages(x)) return 1;
    return info_check_batch(x->args, &x->tables, x->batch);
}

/* ---- what ranks have shares of ----------------------------------------------------------------------------------- */

/* Bytes of the states that |wanted| says, on a rank. */
static uint64_t held_by(const Ranks *x, bool wanted(uint32_t role), int32_t rank, int32_t ranks) {
    const char *device = run_target(x->args);
    uint64_t bytes = 0;
    amp_rank_state s;
    for (int32_t i = 0; i < x->tables.state_count; i++)
        if (wanted(x->tables.states[i].role) && !amp_model_rank_state(x->run.model, device, i, rank, ranks, &s, NULL))
            bytes += s.held;
    return bytes;
}

static bool is_moment(uint32_t role) { return role == AMP_STATE_MOMENT; }
static bool is_weight(uint32_t role) { return role == AMP_STATE_PARAM || role == AMP_STATE_BUFFER; }

typedef struct Moments { /* bytes */
    uint64_t all, least, most;
} Moments;

static Moments moments_of(const Ranks *x) {
    Moments all = {.all = held_by(x, is_moment, 0, 1), .least = UINT64_MAX};
    for (int32_t r = 0; r < x->args->ranks; r++) {
        const uint64_t bytes = held_by(x, is_moment, r, x->args->ranks);
        if (bytes < all.least) all.least = bytes;
        if (bytes > all.most) all.most = bytes;
    }
    return all;
}

/* Of rank 0; on a device while a step runs. */
static uint64_t weights_here(const Ranks *x) {
    return x->on_cuda ? held_by(x, is_weight, 0, x->args->ranks) : x->run.memory.params;
}

static uint64_t all_weights(const Ranks *x) { return x->on_cuda ? held_by(x, is_weight, 0, 1) : x->weights; }

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void print_messages(const Ranks *x) {
    print_plain_line("%-7s %14s  %-5s %7s  %-15s %s", "message", "bytes", "dtype", "tensors", "complete after", "what");
    for (int32_t i = 0; i < x->count; i++) {
        const amp_rank_message *m = &x->messages[i];
        print_plain_line("%-7d %14" PRIu64 "  %-5s %7d  %-15s %s", i, m->bytes, amp_dtype_name(m->dtype),
                         m->state_count, kernel_name(x, m), m->what);
    }
    char kinds[256] = "";
    size_t at = 0;
    for (int i = 0; i < AMP_MESSAGE_KINDS; i++)
        if (x->bytes[i])
            at += (size_t)snprintf(kinds + at, sizeof kinds - at, "%s%s %" PRIu64, at ? ", " : "", kind_names[i],
                                   x->bytes[i]);
    print_plain_line("%-7s %14" PRIu64 "  %s", "in all", all_bytes(x), kinds);
    print_plain_line("%-7s %14" PRIu64 "  by each rank in a step, and as many received", "a ring", sent_by_a_ring(x));
}

static void print_memory(const Ranks *x) {
    MemoryKind kinds[MEMORY_KINDS];
    const Moments moments = moments_of(x);
    printf("moments  %" PRIu64 " bytes of %" PRIu64, moments.most, moments.all);
    if (moments.least < moments.most) printf(" at most, %" PRIu64 " at least", moments.least);
    printf(" on each rank\n");
    const uint64_t weights = weights_here(x), whole = all_weights(x);
    if (weights < whole)
        printf("weights  %" PRIu64 " bytes of %" PRIu64
               " on rank 0: the masters of others are away while a step runs\n",
               weights, whole);
    if (x->on_cuda) return;
    memory_kinds(&x->run.memory, kinds);
    printf("memory   of rank 0 at batch %" PRId64 ", in bytes\n", x->batch);
    for (int i = 0; i + 1 < MEMORY_KINDS; i++) printf("         %-12s %14" PRIu64 "\n", kinds[i].name, kinds[i].bytes);
    printf("         %-12s %14" PRIu64 "\n", "exchange", x->exchange);
    printf("         %-12s %14" PRIu64 "\n", "total", x->run.memory.total + x->exchange);
}

static int print_text(const Ranks *x) {
    print_plain_line("%s on %s: a step of %d rank%s with %" PRId64 " x %" PRId64 " samples each: %" PRId64 " samples",
                     x->run.info.name, x->on_cuda ? "cuda" : "cpu", x->args->ranks, x->args->ranks > 1 ? "s" : "",
                     x->run.info.accumulate, x->batch, samples(x));
    print_messages(x);
    print_memory(x);
    return 0;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

/* The last kernel of the step that uses the state; -1: none. */
static int32_t last_use(const Ranks *x, int32_t state) {
    const amp_program *p = x->tables.train_step;
    int32_t last = -1;
    for (int32_t i = 0; i < p->buffer_count; i++) {
        const amp_model_buffer *b = &p->buffers[i];
        if (b->kind == AMP_BUFFER_STATE && b->index == state && b->last_kernel > last) last = b->last_kernel;
    }
    return last;
}

static void put_tensors(amp_json_writer *w, const Ranks *x, const amp_rank_message *m) {
    amp_json_begin_array(w, "tensors");
    for (int32_t i = 0; i < m->state_count; i++) {
        amp_rank_state s;
        const int32_t state = m->states[i];
        if (amp_model_rank_state(x->run.model, run_target(x->args), state, 0, 1, &s, NULL)) continue;
        amp_json_begin_object(w, NULL);
        amp_json_put_string(w, "name", x->tables.states[state].name);
        amp_json_put_int(w, "bytes", (int64_t)s.bytes);
        amp_json_put_int(w, "complete_after", last_use(x, state));
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
}

static void put_message(amp_json_writer *w, const Ranks *x, const amp_rank_message *m) {
    static const char *const ops[] = {"all_reduce", "reduce_scatter", "all_gather"};
    amp_json_begin_object(w, NULL);
    amp_json_put_string(w, "op", ops[m->op]);
    amp_json_put_string(w, "kind", kind_names[m->kind]);
    amp_json_put_int(w, "bytes", (int64_t)m->bytes);
    amp_json_put_string(w, "dtype", amp_dtype_name(m->dtype));
    amp_json_put_int(w, "complete_after", m->complete);
    amp_json_put_string(w, "what", m->what);
    put_tensors(w, x, m);
    amp_json_end_object(w);
}

static void put_sums(amp_json_writer *w, const Ranks *x) {
    amp_json_begin_object(w, "bytes");
    for (int i = 0; i < AMP_MESSAGE_KINDS; i++) amp_json_put_int(w, kind_names[i], (int64_t)x->bytes[i]);
    amp_json_put_int(w, "total", (int64_t)all_bytes(x));
    amp_json_put_int(w, "sent_by_a_ring", (int64_t)sent_by_a_ring(x));
    amp_json_end_object(w);
}

static void put_shares(amp_json_writer *w, const Ranks *x) {
    const Moments moments = moments_of(x);
    amp_json_begin_object(w, "moments");
    amp_json_put_int(w, "all", (int64_t)moments.all);
    amp_json_put_int(w, "least", (int64_t)moments.least);
    amp_json_put_int(w, "most", (int64_t)moments.most);
    amp_json_end_object(w);
    amp_json_begin_object(w, "weights");
    amp_json_put_int(w, "all", (int64_t)all_weights(x));
    amp_json_put_int(w, "rank_0", (int64_t)weights_here(x));
    amp_json_end_object(w);
}

static int print_json(const Ranks *x) {
    amp_json_writer w;
    amp_json_writer_init(&w, NULL);
    amp_json_begin_object(&w, NULL);
    amp_json_put_string(&w, "model", x->run.info.name);
    amp_json_put_string(&w, "policy", x->run.info.policy);
    amp_json_put_string(&w, "device", x->on_cuda ? "cuda" : "cpu");
    amp_json_put_int(&w, "ranks", x->args->ranks);
    amp_json_put_int(&w, "batch", x->batch);
    amp_json_put_int(&w, "accumulate", x->run.info.accumulate);
    amp_json_put_int(&w, "samples", samples(x));
    amp_json_put_int(&w, "kernels", x->tables.train_step->kernel_count);
    amp_json_begin_array(&w, "messages");
    for (int32_t i = 0; i < x->count; i++) put_message(&w, x, &x->messages[i]);
    amp_json_end_array(&w);
    put_sums(&w, x);
    put_shares(&w, x);
    if (!x->on_cuda) memory_put(&w, &x->run.memory);
    amp_json_put_int(&w, "exchange", (int64_t)x->exchange);
    return json_print(&w);
}

int command_info_ranks(const Args *a) {
    Ranks x = {.args = a, .batch = a->batch ? a->batch : 1};
    int failed = open_model(&x);
    if (!failed) failed = a->as_json ? print_json(&x) : print_text(&x);
    free(x.messages);
    run_close(&x.run);
    return failed;
}
