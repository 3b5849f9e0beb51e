/* state_file.c: see state_file.h. */
#include "runtime/files/state_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/state.h"

enum { MESSAGE_TENSOR = 256 /* "bf16[1, 2, ...]" */ };

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* Which states a file holds, and under which name: <prefix><name> or, for moments, optim/<param>/<slot>. */
static const struct Naming {
    const char *prefix;
    bool in_params, in_checkpoint;
} namings[] = {
    [AMP_STATE_PARAM] = {"", true, true},          [AMP_STATE_BUFFER] = {"", true, true},
    [AMP_STATE_MOMENT] = {"optim/", false, true},  [AMP_STATE_COUNTER] = {"counter/", false, true},
    [AMP_STATE_SCALER] = {"scaler/", false, true}, [AMP_STATE_DERIVED] = {"", false, false},
    [AMP_STATE_ACCUMULATOR] = {"", false, false},  [AMP_STATE_STAGED] = {"", false, false},
};

static const struct Naming *naming_of(const amp_state_list *l, int32_t state) {
    return &namings[l->model->states[state].role];
}

/* The number of a micro-batch has no meaning between steps, which is when files are written. */
static bool is_within_step(const amp_model_state *s) { return s->counter == AMP_COUNTER_MICRO; }

/* What a schedule said is made again by the next step. */
static bool is_made_again(const amp_model_state *s) { return s->counter == AMP_COUNTER_SCHEDULED_RATE; }

static bool is_rate(const amp_model_state *s) {
    return s->counter == AMP_COUNTER_LEARNING_RATE || s->counter == AMP_COUNTER_LR_SCALE;
}

/* A rate is in a checkpoint where it was set: so the rate of a text that was changed counts when training goes on. */
static bool is_as_in_text(const amp_model_state *s, const void *memory) {
    return is_rate(s) && amp_load_element(memory, s->storage, 0) == amp_initial_scalar(s);
}

static bool holds(const amp_state_list *l, int32_t state) {
    const amp_model_state *s = &l->model->states[state];
    if (is_within_step(s) || is_made_again(s)) return false;
    return l->kind == AMP_FILE_OF_PARAMS ? naming_of(l, state)->in_params : naming_of(l, state)->in_checkpoint;
}

/* Bytes of the name, the NUL included; written where |out| is not NULL. */
static size_t make_name(const amp_state_list *l, int32_t state, char *out, size_t room) {
    const amp_model_state *s = &l->model->states[state];
    bool moment = s->role == AMP_STATE_MOMENT;
    const char *name = moment ? l->model->states[s->of].name : s->name;
    int length =
        snprintf(out, room, "%s%s%s%s", naming_of(l, state)->prefix, name, moment ? "/" : "", moment ? s->slot : "");
    return (size_t)length + 1;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct amp_state_entry *)a)->name, ((const struct amp_state_entry *)b)->name);
}

static void fill(amp_state_list *l) {
    char *at = l->names;
    for (int32_t i = 0; i < l->model->state_count; i++) {
        if (!holds(l, i)) continue;
        l->entries[l->count++] = (struct amp_state_entry){at, i};
        at += make_name(l, i, at, l->names_bytes - (size_t)(at - l->names));
    }
    qsort(l->entries, (size_t)l->count, sizeof *l->entries, by_name);
}

amp_status amp_state_list_make(amp_state_list *l, const amp_model *model, amp_state_file_kind kind,
                               const amp_allocator *allocator, amp_error *err) {
    *l = (amp_state_list){.allocator = *allocator, .model = model, .kind = kind, .allocated = model->state_count};
    for (int32_t i = 0; i < model->state_count; i++)
        if (holds(l, i)) l->names_bytes += make_name(l, i, NULL, 0);
    l->rows_bytes = amp_states_largest(model) * sizeof *l->rows;
    l->entries = amp_alloc(allocator, (size_t)l->allocated * sizeof *l->entries);
    l->names = amp_alloc(allocator, l->names_bytes);
    l->rows = amp_alloc(allocator, l->rows_bytes);
    if (l->entries && l->names && l->rows) {
        fill(l);
        return AMP_OK;
    }
    amp_state_list_free(l);
    return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to list its tensors", model->desc.name);
}

void amp_state_list_free(amp_state_list *l) {
    amp_free(&l->allocator, l->entries, (size_t)l->allocated * sizeof *l->entries);
    amp_free(&l->allocator, l->names, l->names_bytes);
    amp_free(&l->allocator, l->rows, l->rows_bytes);
    *l = (amp_state_list){0};
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

typedef struct Differences {
    int count;
    char first[512];
} Differences;

static void differ(Differences *d, const char *format, ...) AMP_PRINTF(2, 3);

static void differ(Differences *d, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (d->count++ == 0) vsnprintf(d->first, sizeof d->first, format, args);
    va_end(args);
}

static const char *describe(char out[MESSAGE_TENSOR], const char *dtype, const int64_t *dims, int rank) {
    int at = snprintf(out, MESSAGE_TENSOR, "%s[", dtype);
    for (int i = 0; i < rank; i++)
        at += snprintf(out + at, MESSAGE_TENSOR - (size_t)at, "%s%lld", i ? ", " : "", (long long)dims[i]);
    snprintf(out + at, MESSAGE_TENSOR - (size_t)at, "]");
    return out;
}

/* Integers stay integers, and f64 (of scalars alone) f64; neither is ever a checkpoint's f32. */
static amp_dtype file_dtype(const amp_model_state *s) {
    bool as_it_is = s->storage == AMP_DT_I64 || s->storage == AMP_DT_I32 || s->storage == AMP_DT_F64;
    return as_it_is ? (amp_dtype)s->storage : AMP_DT_F32;
}

static bool dtype_fits(const amp_state_list *l, const amp_model_state *s, amp_dtype given) {
    if (given == file_dtype(s)) return true;
    bool converted = given == AMP_DT_F16 || given == AMP_DT_BF16 || given == AMP_DT_F64;
    return l->kind == AMP_FILE_OF_PARAMS && file_dtype(s) == AMP_DT_F32 && converted;
}

static void check_tensor(const amp_state_list *l, const struct amp_state_entry *e, const amp_tensor_view *v,
                         Differences *d) {
    char theirs[MESSAGE_TENSOR], ours[MESSAGE_TENSOR];
    const amp_model_state *s = &l->model->states[e->state];
    const char *what = s->role == AMP_STATE_PARAM ? "parameter" : "tensor";
    bool same = v && v->rank == (int32_t)s->rank && dtype_fits(l, s, v->dtype) &&
                !memcmp(v->dims, s->dims, s->rank * sizeof *s->dims);
    if (same) return;
    describe(ours, amp_dtype_name(file_dtype(s)), s->dims, (int)s->rank);
    if (v)
        differ(d, "%s %s: the file has %s, the model %s", what, e->name,
               describe(theirs, v->dtype ? amp_dtype_name(v->dtype) : v->dtype_name, v->dims, v->rank), ours);
    else if (s->counter != AMP_COUNTER_SEED && !is_rate(s)) /* those that other tools need not write */
        differ(d, "%s %s: is not in the file; the model has %s", what, e->name, ours);
}

static bool is_listed(const amp_state_list *l, const char *name) {
    struct amp_state_entry key = {.name = name};
    return bsearch(&key, l->entries, (size_t)l->count, sizeof key, by_name) != NULL;
}

/* A checkpoint serves as a file of params: what training needs besides is passed over. */
static bool is_passed_over(const amp_state_list *l, const amp_safetensors *file, const char *name) {
    const char *format = amp_safetensors_metadata(file, AMP_FORMAT_KEY);
    if (l->kind != AMP_FILE_OF_PARAMS || !format || strcmp(format, AMP_FORMAT_CHECKPOINT)) return false;
    for (size_t i = 0; i < sizeof namings / sizeof *namings; i++)
        if (*namings[i].prefix && !strncmp(name, namings[i].prefix, strlen(namings[i].prefix))) return true;
    return false;
}

amp_status amp_state_list_check(const amp_state_list *l, const amp_safetensors *file, const char *path,
                                amp_error *err) {
    Differences d = {0};
    for (int32_t i = 0; i < l->count; i++)
        check_tensor(l, &l->entries[i], amp_safetensors_find(file, l->entries[i].name), &d);
    for (int32_t i = 0; i < amp_safetensors_count(file); i++) {
        const char *name = amp_safetensors_at(file, i)->name;
        if (!is_listed(l, name) && !is_passed_over(l, file, name))
            differ(&d, "tensor %s: is not in the model %s", name, l->model->desc.name);
    }
    if (d.count == 0) return AMP_OK;
    if (d.count == 1) return amp_fail(err, AMP_MISMATCH, "%s: %s", path, d.first);
    return amp_fail(err, AMP_MISMATCH, "%s: %s (and %d more)", path, d.first, d.count - 1);
}

/* ---- reading and writing ----------------------------------------------------------------------------------------- */

static void read_tensor(const amp_state_list *l, const amp_model_state *s, const amp_tensor_view *v, void *memory) {
    if (file_dtype(s) != AMP_DT_F32) {
        memcpy(memory, v->data, v->bytes);
    } else if (amp_tensor_to_f32(v, l->rows, (size_t)amp_model_state_elements(s))) {
        amp_state_set_f32(s, memory, l->rows);
    }
}

void amp_state_list_read(const amp_state_list *l, const amp_safetensors *file, void *const *states) {
    for (int32_t i = 0; i < l->count; i++) {
        const struct amp_state_entry *e = &l->entries[i];
        const amp_tensor_view *v = amp_safetensors_find(file, e->name);
        const amp_model_state *s = &l->model->states[e->state];
        if (v) read_tensor(l, s, v, states[e->state]);
        else if (is_rate(s)) amp_store_element(states[e->state], s->storage, 0, amp_initial_scalar(s));
    }
}

amp_status amp_state_list_take(const amp_state_list *l, int32_t entry, const amp_tensor_view *v, void *const *states,
                               amp_error *err) {
    const struct amp_state_entry *e = &l->entries[entry];
    Differences d = {0};
    check_tensor(l, e, v, &d);
    if (d.count) return amp_fail(err, AMP_MISMATCH, "%s", d.first);
    read_tensor(l, &l->model->states[e->state], v, states[e->state]);
    return AMP_OK;
}

static size_t file_bytes(const amp_model_state *s) {
    return (size_t)amp_model_state_elements(s) * amp_dtype_size(file_dtype(s));
}

/* The state's tensor, its data copied to |to|. */
static amp_tensor_view make_view(const amp_state_list *l, const struct amp_state_entry *e, const void *memory,
                                 char *to) {
    const amp_model_state *s = &l->model->states[e->state];
    amp_tensor_view v = {.name = e->name, .dtype = file_dtype(s), .rank = (int32_t)s->rank, .data = to};
    memcpy(v.dims, s->dims, s->rank * sizeof *s->dims);
    v.bytes = file_bytes(s);
    if (v.dtype == AMP_DT_F32) amp_state_get_f32(s, memory, (float *)(void *)to);
    else memcpy(to, memory, v.bytes);
    return v;
}

/* Places of tensors in the copy keep the alignment of the largest element. */
static size_t padded(size_t bytes) { return (bytes + AMP_ALIGN - 1) / AMP_ALIGN * AMP_ALIGN; }

amp_status amp_state_list_write(const amp_state_list *l, void *const *states, const char *path,
                                const amp_metadata *metadata, int32_t metadata_count, amp_error *err) {
    size_t views_bytes = (size_t)l->count * sizeof(amp_tensor_view), data_bytes = 0, at = 0;
    for (int32_t i = 0; i < l->count; i++) data_bytes += padded(file_bytes(&l->model->states[l->entries[i].state]));
    amp_tensor_view *views = amp_alloc(&l->allocator, views_bytes);
    char *data = amp_alloc(&l->allocator, data_bytes);
    int32_t count = 0;
    amp_status status =
        views && data ? AMP_OK
                      : amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for %zu bytes to write", path, data_bytes);
    for (int32_t i = 0; !status && i < l->count; i++) {
        int32_t state = l->entries[i].state;
        if (is_as_in_text(&l->model->states[state], states[state])) continue;
        views[count] = make_view(l, &l->entries[i], states[state], data + at);
        at += padded(views[count++].bytes);
    }
    if (!status) status = amp_safetensors_write(path, views, count, metadata, metadata_count, &l->allocator, err);
    amp_free(&l->allocator, data, data_bytes);
    amp_free(&l->allocator, views, views_bytes);
    return status;
}
