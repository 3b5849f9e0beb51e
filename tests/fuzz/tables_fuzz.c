/* tables_fuzz.c: the tables of a model.so with damage in them, while its hash is right: refused with a message, or so
 * sound that all of it can be named and a session be planned by it.
 *
 * A model.so is code and is trusted; its tables are data.  So pointers are never overwritten, and no count or size says
 * that there is more at a pointer than there is, unless it is beyond what the runtime takes: no check could find that.
 * Whatever else is a number in the tables, and the bytes of every text that they name up to its NUL, may be anything.
 *
 * The tables are taken from the model of tests/runtime, with a train block and groups.  The first byte is the capacity
 * of the session; each thirteen that follow overwrite one number, two or a part of a text. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amp/amp.h"
#include "amp/inspect.h"
#include "amp/train.h"
#include "runtime/model/model.h"
#include "tests/fuzz/fuzz.h"
#include "tests/runtime/tiny_model.h"

enum { RECORD = 13, RECORDS_MOST = 32, REGIONS_MOST = 4096, ARRAYS_MOST = 256 };
enum { MEMORY = 4 << 20 /* of a machine that a model may well be too large for */ };
/* What the runtime takes at most: amp_model_check_table, amp_check_kernel. */
enum { TABLE_LIMIT = 1 << 24, OPERANDS_LIMIT = 4096 };

/* ---- a machine with little memory -------------------------------------------------------------------------------- */

static size_t taken;

static void *take(void *user, size_t size, size_t align) {
    (void)user;
    if (size > MEMORY - taken) return NULL;
    taken += size;
    const size_t step = align < 16 ? 16 : align;
    return aligned_alloc(step, (size + step - 1) / step * step);
}

static void give(void *user, void *p, size_t size, size_t align) {
    (void)user, (void)align;
    taken -= size;
    free(p);
}

/* ---- what may be overwritten ------------------------------------------------------------------------------------- */

typedef struct Region { /* bytes without a pointer in them */
    char *at, *good;    /* now; as they are in the sound model */
    size_t size;
} Region;

typedef struct Counted { /* how many are at a pointer */
    uint32_t *count, real, limit;
} Counted;

static Region regions[REGIONS_MOST];
static Counted arrays[ARRAYS_MOST];
static int region_count, array_count;
static amp_model_desc desc;

/* Each thing has a block of its own, so that reading past its end shows. */
static void *copy_of(const void *from, size_t size) {
    void *to = malloc(size ? size : 1);
    if (!to) fuzz_fail("no memory");
    return memcpy(to, from, size);
}

static void add_region(void *at, size_t size) {
    if (!size) return;
    if (region_count == REGIONS_MOST) fuzz_fail("more regions than %d", REGIONS_MOST);
    regions[region_count++] = (Region){at, copy_of(at, size), size};
}

static void add_array(uint32_t *count, uint32_t limit) {
    if (array_count == ARRAYS_MOST) fuzz_fail("more arrays than %d", ARRAYS_MOST);
    arrays[array_count++] = (Counted){count, *count, limit};
}

#define NUMBERS(s, first, last)                                                                                        \
    add_region(&(s)->first, (size_t)((char *)&(s)->last - (char *)&(s)->first) + sizeof(s)->last)

/* A text, but for its NUL. */
static void own_text(const char **text) {
    if (!*text) return;
    const size_t length = strlen(*text);
    char *own = copy_of(*text, length + 1);
    *text = own;
    add_region(own, length);
}

static void own_numbers(const uint32_t **numbers, uint32_t *count, uint32_t limit) {
    if (*numbers) {
        uint32_t *own = copy_of(*numbers, *count * sizeof *own);
        *numbers = own;
        add_region(own, *count * sizeof *own);
    }
    add_region(count, sizeof *count);
    add_array(count, limit);
}

static void *own_table(amp_model_table *t) {
    if (!t->count) return NULL;
    void *own = copy_of(t->data, (size_t)t->count * t->elem_size);
    t->data = own;
    NUMBERS(t, count, elem_size);
    add_array(&t->count, TABLE_LIMIT);
    return own;
}

/* ---- the tables -------------------------------------------------------------------------------------------------- */

static void own_states(amp_model_table *t) {
    amp_model_state *s = own_table(t);
    for (uint32_t i = 0; i < t->count; i++, s++) {
        own_text(&s->name), own_text(&s->slot), own_text(&s->init);
        NUMBERS(s, role, optimizer_group);
    }
}

static void own_inputs(amp_model_table *t) {
    amp_model_input *in = own_table(t);
    for (uint32_t i = 0; i < t->count; i++, in++) {
        own_text(&in->name);
        NUMBERS(in, dtype, index_ignore);
    }
}

static void own_buffers(amp_model_table *t) {
    amp_model_buffer *b = own_table(t);
    for (uint32_t i = 0; i < t->count; i++, b++) {
        amp_model_dim dims[AMP_MODEL_MAX_RANK] = {{0}}; /* as many as a rank may say */
        memcpy(dims, b->dims ? b->dims : dims, b->rank * sizeof *dims);
        amp_model_dim *own = copy_of(dims, sizeof dims);
        own_text(&b->name);
        add_region(own, b->rank * sizeof *own);
        b->dims = own;
        NUMBERS(b, rows, part), NUMBERS(b, kind, renamed);
    }
}

static void own_kernels(amp_model_table *t) {
    amp_model_kernel *k = own_table(t);
    for (uint32_t i = 0; i < t->count; i++, k++) {
        own_text(&k->name), own_text(&k->title);
        NUMBERS(k, kind, predicate);
        own_numbers(&k->operands, &k->operand_count, OPERANDS_LIMIT);
        own_numbers(&k->updates, &k->update_count, UINT32_MAX);
        NUMBERS(k, rows, cols);
        NUMBERS(k, line, window);
    }
}

static void own_results(amp_model_table *t) {
    amp_model_result *r = own_table(t);
    for (uint32_t i = 0; i < t->count; i++, r++) {
        own_text(&r->name);
        NUMBERS(r, kind, dims);
    }
}

static void own_programs(amp_model_table *t) {
    amp_model_program *p = own_table(t);
    for (uint32_t i = 0; i < t->count; i++, p++) {
        own_text(&p->name);
        NUMBERS(p, kind, kind);
        own_buffers(&p->buffers), own_kernels(&p->kernels), own_results(&p->results);
    }
}

static void own_decisions(amp_model_table *t) {
    amp_model_decision *d = own_table(t);
    for (uint32_t i = 0; i < t->count; i++, d++) {
        amp_model_reason *r = copy_of(d->reason, sizeof *r);
        d->reason = r;
        own_text(&d->path), own_text(&d->op), own_text(&d->file);
        own_text(&r->rule), own_text(&r->text), own_text(&r->policy_text), own_text(&r->because);
        NUMBERS(d, out, column);
    }
}

static void own_training(void) {
    amp_model_train *train = own_table(&desc.trains);
    amp_model_group *g = own_table(&desc.groups);
    own_text(&train->only), own_text(&train->optimizer);
    for (uint32_t i = 0; i < desc.groups.count; i++, g++) {
        own_text(&g->pattern), own_text(&g->optimizer);
        NUMBERS(g, train_block, line);
    }
}

/* What the model by hand has not: its parameters' train block, and groups that decide about them. */
static void add_training(void) {
    static const amp_model_train trains[] = {{.only = "fc.*", .optimizer = "sgd(lr = 0.125, momentum = 0.5)"}};
    static const amp_model_group groups[] = {
        {.pattern = "*.weight", .sets = AMP_GROUP_LR_SCALE | AMP_GROUP_WEIGHT_DECAY, .lr_scale = 1, .line = 7},
        {.pattern = "*.bias",
         .sets = AMP_GROUP_FROZEN | AMP_GROUP_OPTIMIZER,
         .lr_scale = 1,
         .line = 8,
         .optimizer = "lion(lr = 0.125)"}};
    amp_model_state *states = (amp_model_state *)desc.states.data;
    desc.trains = (amp_model_table){1, sizeof *trains, trains};
    desc.groups = (amp_model_table){2, sizeof *groups, groups};
    states[0].train_block = states[1].train_block = 1;
    states[0].lr_scale_group = states[0].weight_decay_group = 1;
    states[1].frozen_group = states[1].optimizer_group = 2;
}

static void own_desc(void) {
    desc = *amp_model_query();
    void *states = copy_of(desc.states.data, (size_t)desc.states.count * desc.states.elem_size);
    desc.states.data = states;
    add_training();
    NUMBERS(&desc, magic, version);
    own_text(&desc.name), own_text(&desc.target), own_text(&desc.policy);
    own_text(&desc.precision), own_text(&desc.low), own_text(&desc.source_name), own_text(&desc.optimizer);
    NUMBERS(&desc, source_sha256, least_batch);
    own_text(&desc.scaler);
    own_states(&desc.states), own_inputs(&desc.inputs), own_programs(&desc.programs), own_decisions(&desc.decisions);
    own_training();
    free(states); /* copied once more */
}

/* ---- damage ------------------------------------------------------------------------------------------------------ */

static void overwrite(const uint8_t *record) {
    const Region *r = &regions[(record[0] | record[1] << 8) % region_count];
    const size_t width = (size_t)1 << (record[4] & 3);
    const size_t at = (size_t)(record[2] | record[3] << 8) % ((r->size + width - 1) / width) * width;
    const size_t room = r->size - at;
    memcpy(r->at + at, record + 5, width < room ? width : room);
}

/* A count is at most what is there, or more than is taken. */
static void keep_trust(void) {
    for (int i = 0; i < array_count; i++)
        if (*arrays[i].count > arrays[i].real && *arrays[i].count <= arrays[i].limit) *arrays[i].count = arrays[i].real;
}

static void restore(void) {
    for (int i = 0; i < region_count; i++) memcpy(regions[i].at, regions[i].good, regions[i].size);
}

/* ---- what is accepted -------------------------------------------------------------------------------------------- */

/* As a program prints it: a text that is read to its end. */
static void print(const char *text) {
    static char out[256];
    snprintf(out, sizeof out, "%s", text ? text : "none");
}

static void print_tensor(const amp_tensor_info *info) {
    print(info->name);
    print(amp_dtype_name(info->dtype));
    if (info->rank < 0 || info->rank > AMP_MAX_RANK) fuzz_fail("%s has rank %d", info->name, info->rank);
}

static void print_training(const amp_model *model, int32_t params) {
    amp_param_training training;
    amp_group_info group;
    amp_error err;
    for (int i = 0; i < params; i++)
        if (!amp_model_param_training_at(model, i, &training, &err)) print(training.only), print(training.optimizer);
    for (int i = 0; !amp_model_group_at(model, i, &group, &err); i++) print(group.pattern);
}

static void print_model(const amp_model *model) {
    amp_model_info about;
    amp_tensor_info info;
    amp_decision decision;
    amp_error err;
    amp_model_get_info(model, &about);
    print(about.name), print(about.policy), print(about.precision), print(about.optimizer), print(about.scaler);
    print(about.source_name), print(about.compiler_version), print(about.cuda_missing), print(about.sums);
    for (int i = 0; i < about.input_count; i++)
        if (!amp_model_input_at(model, i, (amp_sizes){.n = 6}, &info, &err)) print_tensor(&info);
    for (int i = 0; i < about.result_count; i++)
        if (!amp_model_result_at(model, i, (amp_sizes){.n = 6}, &info, &err)) print_tensor(&info);
    for (int i = 0; i < about.param_count; i++)
        if (!amp_model_param_at(model, i, &info, &err)) print_tensor(&info);
    for (int i = 0; i < about.decision_count; i++)
        if (!amp_model_decision_at(model, i, &decision, &err)) print(decision.path), print(decision.reason);
    for (int i = 0; i < about.metric_count; i++) print(amp_metric_name(model, i));
    for (int i = 0; i < about.loss_count; i++) print(amp_loss_name(model, i));
    print_training(model, about.param_count);
}

/* On the device that runs no code of the model. */
static void plan(amp_model *model, int64_t capacity) {
    const amp_params_options seed = {.struct_size = sizeof seed, .seed = 7};
    const amp_session_options o = {.struct_size = sizeof o, .capacity.n = capacity, .threads = 1, .device = "null"};
    amp_params *params = NULL;
    amp_session *session = NULL;
    amp_memory_info memory;
    amp_error err = {0};
    amp_status status = amp_params_create(model, &seed, &params, &err);
    if (!status) status = amp_session_create(model, params, &o, &session, &err);
    if (!status) amp_session_get_memory(session, &memory);
    if (status == AMP_INTERNAL || (status && !*err.message)) fuzz_fail("no session: '%s'", err.message);
    amp_session_release(session);
    amp_params_release(params);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const amp_allocator allocator = {.alloc = take, .free = give};
    amp_model *model = NULL;
    amp_error err = {0};
    if (!size) return 0;
    if (!region_count) own_desc();
    for (size_t at = 1, i = 0; at + RECORD <= size && i < RECORDS_MOST; at += RECORD, i++) overwrite(data + at);
    keep_trust();
    const amp_status status = amp_model_from_desc(&desc, "tables.so", &allocator, &model, &err);
    if (!status != (model != NULL)) fuzz_fail("status %d and %s model", status, model ? "a" : "no");
    if (status == AMP_INTERNAL || (status && strncmp(err.message, "tables.so: ", 11)))
        fuzz_fail("refused with '%s'", err.message);
    if (status && size == 1) fuzz_fail("the sound model is refused: %s", err.message);
    if (model) print_model(model), plan(model, 1 + data[0] % 64);
    amp_model_release(model);
    if (taken) fuzz_fail("%zu bytes were not freed", taken);
    restore();
    return 0;
}
