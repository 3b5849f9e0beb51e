/* info_ranks.c: amprun info --ranks R: what a rank of R sends in a step, message by message, and what it holds in
 * memory; as text and as JSON.  A message is a collective of the model's table, or what ranks compare, and its numbers
 * are those by which a session makes it (runtime/model/messages.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "runtime/device/comm_calls.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/messages.h"
#include "runtime/model/state.h"
#include "runtime/session/session.h"
#include "runtime/model/model.h"
#include "tools/amprun/info/info.h"
#include "tools/standard_streams.h"

typedef enum MessageKind { GRADIENTS, STATISTICS, BUFFERS, MEASURES, AGREEMENT, WEIGHTS, MESSAGE_KINDS } MessageKind;

static const char *const kind_names[MESSAGE_KINDS] = {"gradients", "statistics", "buffers",
                                                      "measures",  "agreement",  "weights"};

typedef struct Message {
    const amp_model_collective *collective; /* NULL: AGREEMENT, which sessions add (drift.c) */
    MessageKind kind;
    amp_dtype dtype;
    const char *what;
    uint64_t bytes;
    int32_t complete; /* after this kernel of micro_step, and so are those before it; -1: from the start; of WEIGHTS
                         after apply_step */
} Message;

typedef struct Ranks {
    const Args *args;
    int64_t batch;
    Run run;                /* planned as rank 0 */
    uint64_t weights;       /* bytes of one rank alone */
    const amp_model *model; /* as the device runs it */
    bool on_cuda;
    Message *messages;
    int32_t count;
    uint64_t bytes[MESSAGE_KINDS], exchange;
} Ranks;

/* ---- what is sent ------------------------------------------------------------------------------------------------ */

static MessageKind kind_of(const amp_model *table, const amp_model_collective *c) {
    const amp_model_state *first = &table->states[c->states[0]];
    if (c->op == AMP_EXCHANGE_GATHER_BATCHES) return STATISTICS;
    if (c->op == AMP_EXCHANGE_ALL_GATHER) return WEIGHTS;
    if (first->role == AMP_STATE_STAGED) return BUFFERS;
    return first->of == AMP_MODEL_NONE ? MEASURES : GRADIENTS;
}

static void add_message(Ranks *x, Message m) {
    x->messages[x->count++] = m;
    x->bytes[m.kind] += m.bytes;
}

/* Of the table, those before apply_step or those after it. */
static void list_collectives(Ranks *x, bool after) {
    int32_t last = -1;
    for (int32_t i = 0; i < x->model->collective_count; i++) {
        const amp_model_collective *c = &x->model->collectives[i];
        const amp_program *step = x->model->train_step;
        const int32_t used =
            amp_program_sums_on_device(step) ? step->kernel_count - 1 : amp_collective_last_use(x->model, c);
        if ((kind_of(x->model, c) == WEIGHTS) != after) continue;
        if (used > last) last = used;
        add_message(x, (Message){.collective = c,
                                 .kind = kind_of(x->model, c),
                                 .dtype = (amp_dtype)c->dtype,
                                 .what = c->what,
                                 .bytes = amp_collective_bytes(x->model, c, x->args->ranks),
                                 .complete = last});
    }
}

static int list_messages(Ranks *x) {
    x->messages = calloc((size_t)x->model->collective_count + 1, sizeof *x->messages);
    if (!x->messages) return report_text("%s: no memory for its messages", x->args->model);
    list_collectives(x, false);
    add_message(x, (Message){.kind = AGREEMENT,
                             .dtype = AMP_DT_U8,
                             .what = "what ranks have in common",
                             .bytes = amp_fingerprints_bytes(x->args->ranks),
                             .complete = x->model->train_step->kernel_count - 1});
    list_collectives(x, true);
    x->exchange = x->args->ranks > 1 ? amp_exchange_bytes(x->model, x->args->ranks) : 0;
    return 0;
}

static uint64_t all_bytes(const Ranks *x) {
    uint64_t sum = 0;
    for (int i = 0; i < MESSAGE_KINDS; i++) sum += x->bytes[i];
    return sum;
}

/* A sum goes round twice, as parts and as sums of the parts, and what is gathered or scattered once; of both all but
 * one part of R. */
static bool goes_round_once(const Message *m) {
    if (m->kind == STATISTICS || m->kind == AGREEMENT) return true;
    return m->collective && amp_collective_is_shared(m->collective);
}

static uint64_t sent_by_a_ring(const Ranks *x) {
    const uint64_t ranks = (uint64_t)x->args->ranks;
    uint64_t rounds = 0;
    for (int32_t i = 0; i < x->count; i++)
        rounds += goes_round_once(&x->messages[i]) ? x->messages[i].bytes : 2 * x->messages[i].bytes;
    return rounds * (ranks - 1) / ranks;
}

static int64_t samples(const Ranks *x) { return x->batch * x->model->accumulate * x->args->ranks; }

static const char *kernel_name(const Ranks *x, const Message *m) {
    const amp_program *p = x->model->train_step;
    const int32_t i = m->complete;
    if (m->kind == WEIGHTS) return "the update";
    if (i < 0) return "the start";
    return p->cuda_kernels ? p->cuda_kernels[i].name : p->kernels[i].name;
}

static int plan(Ranks *x) {
    amp_comm first = {.size = x->args->ranks};
    Args planned = *x->args;
    if (run_plan(&x->run, &planned, x->batch)) return 1;
    x->weights = x->run.memory.params;
    run_close(&x->run);
    x->run = (Run){0};
    planned.comm = &first;
    return run_plan(&x->run, &planned, x->batch);
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
    x->model = info_tables(x->args, x->run.model);
    if (!x->model) return 1;
    if (!x->model->collective_count)
        return report_text("%s: it was compiled to train alone; compile it with --distribute data, or say "
                           "data_parallel = true in its train block",
                           x->args->model);
    if (info_check_batch(x->args, x->model, x->batch)) return 1;
    return list_messages(x);
}

/* ---- what ranks have shares of ----------------------------------------------------------------------------------- */

typedef struct Moments { /* bytes */
    uint64_t all, least, most;
} Moments;

static uint64_t moments_of_rank(const amp_model *m, int32_t rank, int32_t ranks) {
    uint64_t bytes = 0;
    for (int32_t i = 0; i < m->state_count; i++) {
        uint32_t at;
        if (m->states[i].role != AMP_STATE_MOMENT) continue;
        const amp_model_collective *c = amp_collective_scattering(m, m->states[i].of, &at);
        const amp_share whole = {0, amp_state_slots(&m->states[i])};
        const amp_share share = c && ranks > 1 ? amp_collective_share(m, c, at, rank, ranks) : whole;
        bytes += (uint64_t)(share.end - share.first) * amp_storage_size(m->states[i].storage);
    }
    return bytes;
}

static Moments moments_of(const Ranks *x) {
    Moments all = {.all = moments_of_rank(x->model, 0, 1), .least = UINT64_MAX};
    for (int32_t r = 0; r < x->args->ranks; r++) {
        const uint64_t bytes = moments_of_rank(x->model, r, x->args->ranks);
        if (bytes < all.least) all.least = bytes;
        if (bytes > all.most) all.most = bytes;
    }
    return all;
}

/* Of a rank on a device: weights and buffers, while a step runs. */
static uint64_t weights_of_rank(const amp_model *m, int32_t rank, int32_t ranks) {
    uint64_t bytes = 0;
    for (int32_t i = 0; i < m->state_count; i++)
        if (amp_state_is_param(&m->states[i])) bytes += amp_state_bytes(&m->states[i]);
    for (int32_t i = 0; ranks > 1 && i < m->collective_count; i++) {
        const amp_model_collective *c = &m->collectives[i];
        if (kind_of(m, c) != WEIGHTS || !amp_collective_in_place(m, i)) continue;
        for (uint32_t j = 0; j < c->state_count; j++) {
            if (!amp_master_can_be_shared(m, c->states[j])) continue;
            const amp_share share = amp_collective_share(m, c, j, rank, ranks);
            bytes -= amp_state_bytes(&m->states[c->states[j]]);
            bytes += (uint64_t)(share.end - share.first) * sizeof(float);
        }
    }
    return bytes;
}

/* Of rank 0. */
static uint64_t weights_here(const Ranks *x) {
    return x->on_cuda ? weights_of_rank(x->model, 0, x->args->ranks) : x->run.memory.params;
}

static uint64_t all_weights(const Ranks *x) { return x->on_cuda ? weights_of_rank(x->model, 0, 1) : x->weights; }

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void print_messages(const Ranks *x) {
    print_plain_line("%-7s %14s  %-5s %7s  %-15s %s", "message", "bytes", "dtype", "tensors", "complete after", "what");
    for (int32_t i = 0; i < x->count; i++) {
        const Message *m = &x->messages[i];
        print_plain_line("%-7d %14" PRIu64 "  %-5s %7u  %-15s %s", i, m->bytes, amp_dtype_name(m->dtype),
                         m->collective ? m->collective->state_count : 0, kernel_name(x, m), m->what);
    }
    char kinds[256] = "";
    size_t at = 0;
    for (int i = 0; i < MESSAGE_KINDS; i++)
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
                     x->model->accumulate, x->batch, samples(x));
    print_messages(x);
    print_memory(x);
    return 0;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void put_tensors(amp_json_writer *w, const Ranks *x, const Message *m) {
    amp_json_begin_array(w, "tensors");
    for (uint32_t i = 0; m->collective && i < m->collective->state_count; i++) {
        const int32_t state = m->collective->states[i];
        amp_json_begin_object(w, NULL);
        amp_json_put_string(w, "name", x->model->states[state].name);
        amp_json_put_int(w, "bytes", (int64_t)amp_state_bytes(&x->model->states[state]));
        amp_json_put_int(w, "complete_after", amp_state_last_use(x->model, state));
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
}

static void put_message(amp_json_writer *w, const Ranks *x, const Message *m) {
    amp_json_begin_object(w, NULL);
    const bool gathers = m->kind == STATISTICS || m->kind == AGREEMENT || m->kind == WEIGHTS;
    amp_json_put_string(w, "op", gathers ? "all_gather" : goes_round_once(m) ? "reduce_scatter" : "all_reduce");
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
    for (int i = 0; i < MESSAGE_KINDS; i++) amp_json_put_int(w, kind_names[i], (int64_t)x->bytes[i]);
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
    amp_json_put_int(&w, "accumulate", x->model->accumulate);
    amp_json_put_int(&w, "samples", samples(x));
    amp_json_put_int(&w, "kernels", x->model->train_step->kernel_count);
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
