/* state_file.c: see state_file.h. */
#include "runtime/files/state_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/state.h"

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

/* The number of a micro-batch has no meaning between steps, which is when files are written; how many ranks there are,
 * what is the own share, and how often a state was kept, is the session's. */
static bool is_of_session(const amp_model_state *s) {
    return s->counter == AMP_COUNTER_MICRO || s->counter == AMP_COUNTER_RANKS ||
           s->counter == AMP_COUNTER_FIRST_MICRO || s->counter == AMP_COUNTER_FULL_BATCH ||
           s->counter == AMP_COUNTER_STATES_KEPT;
}

/* What a schedule said is made again by the next step. */
static bool is_made_again(const amp_model_state *s) { return s->counter == AMP_COUNTER_SCHEDULED_RATE; }

static bool is_rate(const amp_model_state *s) {
    return s->counter == AMP_COUNTER_LEARNING_RATE || s->counter == AMP_COUNTER_LR_SCALE;
}

/* A rate is in a checkpoint where it was set: so the rate of a text that was changed counts when training goes on. */
bool amp_state_is_as_in_text(const amp_model_state *s, const void *memory) {
    return is_rate(s) && amp_load_element(memory, s->storage, 0) == amp_initial_scalar(s);
}

static bool holds(const amp_state_list *l, int32_t state) {
    const amp_model_state *s = &l->model->states[state];
    if (is_of_session(s) || is_made_again(s)) return false;
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
    l->entries = amp_alloc(allocator, (size_t)l->allocated * sizeof *l->entries);
    l->names = amp_alloc(allocator, l->names_bytes);
    if (l->entries && l->names) {
        fill(l);
        return AMP_OK;
    }
    amp_state_list_free(l);
    return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to list its tensors", model->desc.name);
}

amp_status amp_state_list_reserve(amp_state_list *l, amp_error *err) {
    l->rows_bytes = amp_states_largest(l->model) * sizeof *l->rows;
    l->rows = amp_alloc(&l->allocator, l->rows_bytes);
    if (l->rows) return AMP_OK;
    return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to read its tensors", l->model->desc.name);
}

void amp_state_list_free(amp_state_list *l) {
    amp_free(&l->allocator, l->entries, (size_t)l->allocated * sizeof *l->entries);
    amp_free(&l->allocator, l->names, l->names_bytes);
    amp_free(&l->allocator, l->rows, l->rows_bytes);
    *l = (amp_state_list){0};
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

enum { NAMED_DIFFERENCES = 3 };

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

const char *amp_tensor_describe(char out[AMP_TENSOR_TEXT], const char *dtype, const int64_t *dims, int rank) {
    int at = snprintf(out, AMP_TENSOR_TEXT, "%s[", dtype);
    for (int i = 0; i < rank; i++)
        at += snprintf(out + at, AMP_TENSOR_TEXT - (size_t)at, "%s%lld", i ? ", " : "", (long long)dims[i]);
    snprintf(out + at, AMP_TENSOR_TEXT - (size_t)at, "]");
    return out;
}

bool amp_state_takes_dtype(const amp_state_list *l, const amp_model_state *s, amp_dtype given) {
    if (given == amp_state_file_dtype(s)) return true;
    bool is_float = given >= AMP_DT_F32 && given <= AMP_DT_F64 && given != AMP_DT_TF32;
    return l->kind == AMP_FILE_OF_PARAMS && amp_state_is_converted(s) && is_float;
}

bool amp_state_has_dims(const amp_model_state *s, const int64_t *dims, int32_t rank) {
    return rank == (int32_t)s->rank && !memcmp(dims, s->dims, s->rank * sizeof *s->dims);
}

static void check_tensor(const amp_state_list *l, const struct amp_state_entry *e, const amp_tensor_view *v,
                         Differences *d) {
    char theirs[AMP_TENSOR_TEXT], ours[AMP_TENSOR_TEXT];
    const amp_model_state *s = &l->model->states[e->state];
    const char *what = s->role == AMP_STATE_PARAM ? "parameter" : "tensor";
    if (v && amp_state_takes_dtype(l, s, v->dtype) && amp_state_has_dims(s, v->dims, v->rank)) return;
    amp_tensor_describe(ours, amp_dtype_name((amp_dtype)s->storage), s->dims, (int)s->rank);
    if (v)
        differ(d, "%s %s: the file has %s, the model %s", what, e->name,
               amp_tensor_describe(theirs, v->dtype ? amp_dtype_name(v->dtype) : v->dtype_name, v->dims, v->rank),
               ours);
    else if (s->counter != AMP_COUNTER_SEED && !is_rate(s)) /* those that other tools need not write */
        differ(d, "%s %s: is not in the file; the model has %s", what, e->name, ours);
}

int32_t amp_state_list_find(const amp_state_list *l, const char *name) {
    struct amp_state_entry key = {.name = name};
    const struct amp_state_entry *e =
        l->count ? bsearch(&key, l->entries, (size_t)l->count, sizeof key, by_name) : NULL;
    return e ? (int32_t)(e - l->entries) : -1;
}

bool amp_state_is_of_training(const char *name) {
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
        if (amp_state_list_find(l, name) < 0)
            differ(&d, "tensor %s: is not in the model %s", name, l->model->desc.name);
    }
    if (d.count == 0) return AMP_OK;
    if (d.count == 1) return amp_fail(err, AMP_MISMATCH, "%s: %s", path, d.first);
    return amp_fail(err, AMP_MISMATCH, "%s: %s (and %d more)", path, d.first, d.count - 1);
}

static void describe_state(char out[AMP_TENSOR_TEXT], const amp_model_state *s) {
    if (s) amp_tensor_describe(out, amp_dtype_name((amp_dtype)s->storage), s->dims, (int)s->rank);
    else snprintf(out, AMP_TENSOR_TEXT, "none");
}

/* Of a name: the state of each of two models; NULL: it has none. */
static void compare_states(const char *name, const amp_model_state *own, const amp_model_state *other, char *text,
                           size_t room, int *count) {
    char ours[AMP_TENSOR_TEXT], theirs[AMP_TENSOR_TEXT];
    const amp_model_state *any = own ? own : other;
    if (own && other && own->storage == other->storage && amp_state_has_dims(own, other->dims, (int32_t)other->rank))
        return;
    if (!(own && other) && (any->counter == AMP_COUNTER_SEED || is_rate(any))) return; /* as in files */
    describe_state(ours, own);
    describe_state(theirs, other);
    const size_t at = strlen(text);
    if ((*count)++ < NAMED_DIFFERENCES) snprintf(text + at, room - at, "; %s is %s, not %s", name, theirs, ours);
}

amp_status amp_state_lists_check(const amp_state_list *l, const amp_state_list *other, const char *what,
                                 amp_error *err) {
    char text[1024] = "", more[48] = "";
    int count = 0;
    for (int32_t i = 0, j = 0; i < l->count || j < other->count;) {
        const int order = i == l->count       ? 1
                          : j == other->count ? -1
                                              : strcmp(l->entries[i].name, other->entries[j].name);
        const char *name = order <= 0 ? l->entries[i].name : other->entries[j].name;
        const amp_model_state *own = order <= 0 ? &l->model->states[l->entries[i++].state] : NULL;
        const amp_model_state *theirs = order >= 0 ? &other->model->states[other->entries[j++].state] : NULL;
        compare_states(name, own, theirs, text, sizeof text, &count);
    }
    if (count == 0) return AMP_OK;
    if (count > NAMED_DIFFERENCES) snprintf(more, sizeof more, "; and %d more", count - NAMED_DIFFERENCES);
    return amp_fail(err, AMP_MISMATCH, "%s of %s do not fit %s: %s%s", what, other->model->desc.name,
                    l->model->desc.name, text + 2, more);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static void read_tensor(const amp_state_list *l, const amp_model_state *s, const amp_tensor_view *v, void *memory) {
    if (!amp_state_is_converted(s)) {
        memcpy(memory, v->data, v->bytes);
        return;
    }
    amp_tensor_view as_stored = *v;
    if (amp_is_f8(s->storage)) as_stored.dtype = (amp_dtype)s->storage;
    if (amp_tensor_to_f32(&as_stored, l->rows, (size_t)amp_model_state_elements(s)))
        amp_state_set_f32(s, memory, l->rows);
}

/* |v| of a file whose header alone was read. */
static amp_status read_from_file(const amp_state_list *l, const amp_model_state *s, const amp_safetensors *file,
                                 amp_tensor_view v, void *memory, amp_error *err) {
    void *data = amp_alloc(&l->allocator, v.bytes);
    if (!data) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for %zu bytes of %s", v.bytes, v.name);
    amp_status status = amp_safetensors_read(file, &v, 0, data, v.bytes, err);
    v.data = data;
    if (!status) read_tensor(l, s, &v, memory);
    amp_free(&l->allocator, data, v.bytes);
    return status;
}

amp_status amp_state_list_read(const amp_state_list *l, int32_t entry, const amp_safetensors *file, void *memory,
                               amp_error *err) {
    const struct amp_state_entry *e = &l->entries[entry];
    const amp_tensor_view *v = amp_safetensors_find(file, e->name);
    const amp_model_state *s = &l->model->states[e->state];
    if (v && !v->data && v->bytes) return read_from_file(l, s, file, *v, memory, err);
    if (v) read_tensor(l, s, v, memory);
    else if (is_rate(s)) amp_store_element(memory, s->storage, 0, amp_initial_scalar(s));
    return AMP_OK;
}

amp_status amp_state_list_take(const amp_state_list *l, int32_t entry, const amp_tensor_view *v, void *const *states,
                               amp_error *err) {
    const struct amp_state_entry *e = &l->entries[entry];
    Differences d = {0};
    check_tensor(l, e, v, &d);
    if (d.count) return amp_fail(err, AMP_MISMATCH, "%s", d.first);
    const amp_model_state *s = &l->model->states[e->state];
    const size_t count = (size_t)amp_model_state_elements(s);
    if (v->dtype != amp_state_file_dtype(s) && amp_tensor_to_f32(v, l->rows, count)) {
        AMP_TRY(amp_state_check_range(s, l->rows, count, 0, err));
        amp_state_set_f32(s, states[e->state], l->rows);
    } else {
        read_tensor(l, s, v, states[e->state]);
    }
    return AMP_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

amp_tensor_view amp_state_view(const amp_model_state *s, const char *name) {
    amp_tensor_view v = {.name = name, .dtype = amp_state_file_dtype(s), .rank = (int32_t)s->rank};
    memcpy(v.dims, s->dims, s->rank * sizeof *s->dims);
    v.bytes = (size_t)amp_model_state_elements(s) * amp_dtype_size(v.dtype);
    return v;
}

typedef struct Writing {
    const amp_state_list *list;
    void *const *states;
    const amp_state_source *source;
    int32_t *state_of; /* by tensor of the file */
    char *piece;
} Writing;

enum { PIECE = 64 << 10 /* bytes */ };

amp_status amp_state_write(const amp_model_state *s, const void *memory, bool turned, char *piece, size_t bytes,
                           amp_file_writer *file, amp_error *err) {
    const amp_dtype dtype = (amp_dtype)s->storage;
    size_t size = amp_dtype_size(dtype), count = (size_t)amp_model_state_elements(s), most = bytes / size;
    if (!turned && amp_state_is_in_rows(s)) return amp_file_writer_write(file, memory, count * size, err);
    for (size_t at = 0, n; at < count; at += n) {
        n = count - at < most ? count - at : most;
        amp_state_take(s, memory, turned, at, n, piece, dtype);
        AMP_TRY(amp_file_writer_write(file, piece, n * size, err));
    }
    return AMP_OK;
}

static amp_status write_state(void *user, int32_t index, amp_file_writer *file, amp_error *err) {
    const Writing *w = user;
    int32_t state = w->state_of[index];
    const void *memory = w->states[state];
    if (w->source) AMP_TRY(w->source->fetch(w->source->user, state, &memory, err));
    return amp_state_write(&w->list->model->states[state], memory, false, w->piece, PIECE, file, err);
}

amp_status amp_state_list_write(const amp_state_list *l, void *const *states, const amp_state_source *source,
                                const char *path, const amp_metadata *metadata, int32_t metadata_count,
                                amp_error *err) {
    size_t views_bytes = (size_t)l->count * sizeof(amp_tensor_view), of_bytes = (size_t)l->count * sizeof(int32_t);
    amp_tensor_view *views = amp_alloc(&l->allocator, views_bytes);
    Writing w = {.list = l,
                 .states = states,
                 .source = source,
                 .state_of = amp_alloc(&l->allocator, of_bytes),
                 .piece = amp_alloc(&l->allocator, PIECE)};
    amp_status status = views && w.state_of && w.piece
                            ? AMP_OK
                            : amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to list its tensors", path);
    int32_t count = 0;
    for (int32_t i = 0; !status && i < l->count; i++) {
        int32_t state = l->entries[i].state;
        if (amp_state_is_as_in_text(&l->model->states[state], states[state])) continue;
        views[count] = amp_state_view(&l->model->states[state], l->entries[i].name);
        w.state_of[count++] = state;
    }
    if (!status)
        status = amp_safetensors_write_from(path, views, count, metadata, metadata_count, write_state, &w,
                                            &l->allocator, err);
    amp_free(&l->allocator, w.piece, PIECE);
    amp_free(&l->allocator, w.state_of, of_bytes);
    amp_free(&l->allocator, views, views_bytes);
    return status;
}
