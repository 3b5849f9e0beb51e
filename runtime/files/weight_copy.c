/* weight_copy.c: see weight_copy.h. */
#include "runtime/files/weight_copy.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/float_environment.h"
#include "base/rounding.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/state.h"

static const amp_model_state *state_of(const amp_weight_match *m, int32_t entry) {
    return &m->list->model->states[m->list->entries[entry].state];
}

static char *take_piece(const amp_weight_match *m, amp_error *err) {
    char *piece = amp_alloc(&m->allocator, AMP_WEIGHT_PIECE);
    if (!piece) amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to copy it", amp_weight_files_path(m->files));
    return piece;
}

static void free_piece(const amp_weight_match *m, char *piece) { amp_free(&m->allocator, piece, AMP_WEIGHT_PIECE); }

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* ---- range ------------------------------------------------------------------------------------------------------- */

/* The first of |count| elements that is finite as it is and not as |to|; |count|: none. */
static size_t find_too_large(const char *piece, amp_dtype from, size_t count, uint32_t to, double *value) {
    size_t i = 0;
    for (; i < count; i++) {
        *value = amp_load_element(piece, from, (int64_t)i);
        const float stored = to == AMP_DT_F16 ? amp_round_f16((float)*value) : (float)*value;
        if (isfinite(*value) && !isfinite(stored)) break;
    }
    return i;
}

static amp_status check_tensor(const amp_weight_match *m, int32_t entry, char *piece, amp_error *err) {
    const int32_t tensor = m->tensor_of[entry];
    const amp_tensor_view *v = amp_weight_files_at(m->files, tensor);
    const amp_model_state *s = state_of(m, entry);
    const size_t size = amp_dtype_size(v->dtype);
    double value = 0.0;
    for (size_t at = 0, n; at < v->bytes; at += n) {
        n = smaller(v->bytes - at, AMP_WEIGHT_PIECE);
        AMP_TRY(amp_weight_files_read(m->files, tensor, at, piece, n, err));
        const size_t found = find_too_large(piece, v->dtype, n / size, s->storage, &value);
        if (found == n / size) continue;
        const bool is_half = s->storage == AMP_DT_F16 && fabs(value) <= FLT_MAX;
        return amp_fail(err, AMP_MISMATCH, "%s: tensor %s: its element %zu is %g, but %s ends at %g%s",
                        amp_weight_files_path(m->files), v->name, at / size + found, value, is_half ? "f16" : "f32",
                        is_half ? 65504.0 : (double)FLT_MAX,
                        is_half ? ", and the model keeps it so: compile it with masters = bf16 or f32" : "");
    }
    return AMP_OK;
}

/* Taken as f32 from f64. */
static bool is_rounded(const amp_weight_match *m, int32_t entry) {
    int32_t tensor = m->tensor_of[entry];
    return tensor >= 0 && amp_weight_files_at(m->files, tensor)->dtype == AMP_DT_F64 &&
           amp_state_is_converted(state_of(m, entry));
}

/* Taken as a type with a smaller range than the file's. */
static bool may_be_too_large(const amp_weight_match *m, int32_t entry) {
    const int32_t tensor = m->tensor_of[entry];
    if (is_rounded(m, entry)) return true;
    return tensor >= 0 && state_of(m, entry)->storage == AMP_DT_F16 &&
           amp_weight_files_at(m->files, tensor)->dtype != AMP_DT_F16;
}

amp_status amp_weight_check_range(const amp_weight_match *m, amp_error *err) {
    AMP_DEFAULT_FLOAT_ENVIRONMENT();
    char *piece = take_piece(m, err);
    amp_status status = piece ? AMP_OK : AMP_OUT_OF_MEMORY;
    for (int32_t e = 0; !status && e < m->entry_count; e++)
        if (may_be_too_large(m, e)) status = check_tensor(m, e, piece, err);
    free_piece(m, piece);
    return status;
}

/* ---- into the states --------------------------------------------------------------------------------------------- */

/* Any float as f32, in the order of the file, to where the model has it. */
static amp_status read_converted(const amp_weight_match *m, int32_t entry, void *memory, char *piece, amp_error *err) {
    float values[256]; /* pieces are made from these, so that they need not be aligned */
    const amp_model_state *s = state_of(m, entry);
    const amp_tensor_view *v = amp_weight_files_at(m->files, m->tensor_of[entry]);
    size_t size = amp_dtype_size(v->dtype);
    amp_xxh64 sum;
    memset(memory, 0, amp_state_bytes(s)); /* padding too */
    for (size_t at = 0, n; at < v->bytes; at += n) {
        n = smaller(v->bytes - at, AMP_WEIGHT_PIECE);
        AMP_TRY(amp_weight_files_read_next(m->files, m->tensor_of[entry], at, piece, n, &sum, err));
        for (size_t i = 0, k; i < n / size; i += k) {
            k = smaller(n / size - i, sizeof values / sizeof *values);
            amp_tensor_view part = {.dtype = v->dtype, .data = piece + i * size, .bytes = k * size};
            amp_tensor_to_f32(&part, values, k);
            amp_state_put_f32(s, memory, m->transposed[entry], at / size + i, k, values);
        }
    }
    return AMP_OK;
}

static amp_status load_entry(const amp_weight_match *m, int32_t entry, void *memory, char *piece, amp_error *err) {
    const amp_model_state *s = state_of(m, entry);
    const amp_tensor_view *v = amp_weight_files_at(m->files, m->tensor_of[entry]);
    bool as_it_is = v->dtype == amp_state_file_dtype(s) && amp_state_is_in_rows(s) && !m->transposed[entry];
    if (as_it_is) return amp_weight_files_read(m->files, m->tensor_of[entry], 0, memory, v->bytes, err);
    return read_converted(m, entry, memory, piece, err);
}

static void count_entry(const amp_weight_match *m, int32_t entry, amp_weights_report *r) {
    r->fresh += m->fresh[entry];
    if (m->tensor_of[entry] < 0) return;
    r->loaded++;
    r->transposed += m->transposed[entry];
    r->rounded += is_rounded(m, entry);
}

static void count_difference(amp_weights_difference kind, amp_weights_report *r) {
    r->missing += kind == AMP_WEIGHTS_MISSING;
    r->misfits += kind == AMP_WEIGHTS_MISFIT;
    r->extra += kind == AMP_WEIGHTS_EXTRA;
}

amp_status amp_weight_load(const amp_weight_match *m, void *const *states, amp_weights_report *report, amp_error *err) {
    AMP_DEFAULT_FLOAT_ENVIRONMENT();
    amp_weights_report made = {0};
    char *piece = take_piece(m, err);
    if (!piece) return AMP_OUT_OF_MEMORY;
    amp_status status = AMP_OK;
    for (int32_t e = 0; !status && e < m->entry_count; e++) {
        if (m->tensor_of[e] >= 0) status = load_entry(m, e, states[m->list->entries[e].state], piece, err);
        count_entry(m, e, &made);
    }
    for (int32_t i = 0; i < m->tensor_count; i++) made.ignored += m->entry_of[i] == AMP_IGNORED;
    for (int32_t i = 0; i < m->difference_count; i++) count_difference(m->differences[i].kind, &made);
    if (!status) status = amp_weight_files_check_unchanged(m->files, err);
    if (!status) *report = made;
    free_piece(m, piece);
    return status;
}

/* ---- and back ---------------------------------------------------------------------------------------------------- */

typedef struct Saving {
    const amp_weight_match *match;
    void *const *states;
    amp_tensor_view *views; /* of the tensors of the files, then of entries that those do not have */
    int32_t *entry_of;      /* by view; -1: copied */
    int32_t count;
    char *piece;
} Saving;

static amp_status write_copy(const Saving *s, int32_t tensor, amp_file_writer *file, amp_error *err) {
    size_t bytes = s->views[tensor].bytes;
    amp_xxh64 sum;
    for (size_t at = 0, n; at < bytes; at += n) {
        n = smaller(bytes - at, AMP_WEIGHT_PIECE);
        AMP_TRY(amp_weight_files_read_next(s->match->files, tensor, at, s->piece, n, &sum, err));
        AMP_TRY(amp_file_writer_write(file, s->piece, n, err));
    }
    return AMP_OK;
}

static amp_status write_view(void *user, int32_t index, amp_file_writer *file, amp_error *err) {
    const Saving *s = user;
    int32_t entry = s->entry_of[index];
    if (entry < 0) return write_copy(s, index, file, err);
    const amp_model_state *state = state_of(s->match, entry);
    const void *memory = s->states[s->match->list->entries[entry].state];
    return amp_state_write(state, memory, s->match->transposed[entry], s->piece, AMP_WEIGHT_PIECE, file, err);
}

static amp_tensor_view view_of(const amp_weight_match *m, int32_t entry, const char *name) {
    amp_tensor_view v = amp_state_view(state_of(m, entry), name);
    amp_weight_match_dims(m, entry, v.dims);
    return v;
}

/* Under its own name, which no other tensor may have; an ignored one of that name gives way. */
static amp_status list_fresh(Saving *s, int32_t entry, amp_error *err) {
    const amp_weight_match *m = s->match;
    const char *name = m->list->entries[entry].name;
    int32_t at = s->count;
    for (int32_t i = 0; i < m->tensor_count; i++) {
        if (m->entry_of[i] == entry) return AMP_OK; /* listed under the name that the files have for it */
        if (!strcmp(amp_weight_files_at(m->files, i)->name, name)) at = i;
    }
    if (at < s->count && m->entry_of[at] >= 0)
        return amp_fail(err, AMP_MISMATCH,
                        "%s: parameter %s has no tensor there, and its name is that of one which %s takes; give it "
                        "another name in the model",
                        amp_weight_files_path(m->files), name, m->list->entries[m->entry_of[at]].name);
    s->entry_of[at] = entry;
    s->views[at] = view_of(m, entry, name);
    s->count += at == s->count;
    return AMP_OK;
}

static amp_status list_views(Saving *s, amp_error *err) {
    const amp_weight_match *m = s->match;
    for (int32_t i = 0; i < m->tensor_count; i++) {
        const amp_tensor_view *v = amp_weight_files_at(m->files, i);
        bool copied = m->entry_of[i] < 0;
        s->entry_of[i] = copied ? -1 : m->entry_of[i];
        s->views[i] = copied ? *v : view_of(m, m->entry_of[i], v->name);
    }
    s->count = m->tensor_count;
    for (int32_t e = 0; e < m->entry_count; e++)
        if (m->fresh[e]) AMP_TRY(list_fresh(s, e, err));
    return AMP_OK;
}

/* Whether every element is the same, as in a matrix of zeros. */
static amp_status is_constant(const Saving *s, int32_t tensor, bool *constant, amp_error *err) {
    const amp_tensor_view *v = amp_weight_files_at(s->match->files, tensor);
    size_t count = 1, size;
    for (int32_t i = 0; i < v->rank; i++) count *= (size_t)v->dims[i];
    size = count ? v->bytes / count : 0;
    *constant = true;
    if (!size) return AMP_OK; /* nothing, or less than a byte each */
    char first[16] = {0};
    for (size_t at = 0, n; *constant && at < v->bytes; at += n) {
        n = smaller(v->bytes - at, AMP_WEIGHT_PIECE);
        AMP_TRY(amp_weight_files_read(s->match->files, tensor, at, s->piece, n, err));
        if (at == 0) memcpy(first, s->piece, size);
        *constant = !memcmp(first, s->piece, size) && !memcmp(s->piece, s->piece + size, n - size);
    }
    return AMP_OK;
}

/* Whether the ignored |tensor| has the numbers of the one that |entry| takes. */
static amp_status is_tied(const Saving *s, int32_t tensor, int32_t entry, char *chunk, bool *tied, amp_error *err) {
    const amp_weight_match *m = s->match;
    bool constant = false;
    *tied = false;
    if (m->tensor_of[entry] < 0) return AMP_OK;
    AMP_TRY(amp_weight_same_bytes(m->files, tensor, m->tensor_of[entry], chunk, tied, err));
    if (!*tied) return AMP_OK;
    AMP_TRY(is_constant(s, tensor, &constant, err));
    *tied = !constant;
    return AMP_OK;
}

/* A tied weight that is ignored would be saved as it was before training. */
static amp_status check_ties(const Saving *s, char *chunk, amp_error *err) {
    const amp_weight_match *m = s->match;
    for (int32_t i = 0; i < m->tensor_count; i++) {
        const amp_tensor_view *v = amp_weight_files_at(m->files, i);
        bool tied = false;
        if (s->entry_of[i] >= 0 || v->rank < 2) continue;
        for (int32_t e = 0; e < m->entry_count; e++) {
            AMP_TRY(is_tied(s, i, e, chunk, &tied, err));
            if (!tied) continue;
            const char *name = m->list->entries[e].name;
            return amp_fail(err, AMP_MISMATCH,
                            "%s: tensor %s is ignored, but has the numbers of %s: it would be saved as it was before "
                            "training; rename '%s=%s' instead of ignoring it saves both",
                            amp_weight_files_path(m->files), v->name, name, v->name, name);
        }
    }
    return AMP_OK;
}

static amp_status check_views(const Saving *s, amp_error *err) {
    char *chunk = amp_alloc(&s->match->allocator, 2 * AMP_WEIGHT_PIECE);
    if (!chunk)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to compare", amp_weight_files_path(s->match->files));
    amp_status status = check_ties(s, chunk, err);
    amp_free(&s->match->allocator, chunk, 2 * AMP_WEIGHT_PIECE);
    return status;
}

static amp_status write_all(Saving *s, const char *path, const amp_metadata *metadata, int32_t metadata_count,
                            amp_error *err) {
    AMP_TRY(list_views(s, err));
    AMP_TRY(check_views(s, err));
    return amp_safetensors_write_from(path, s->views, s->count, metadata, metadata_count, write_view, s,
                                      &s->match->allocator, err);
}

amp_status amp_weight_save(const amp_weight_match *m, void *const *states, const char *path,
                           const amp_metadata *metadata, int32_t metadata_count, amp_error *err) {
    Saving s = {.match = m, .states = states};
    size_t most = (size_t)m->tensor_count + (size_t)m->entry_count + 1;
    s.views = amp_alloc_zeroed(&m->allocator, most * sizeof *s.views);
    s.entry_of = amp_alloc_zeroed(&m->allocator, most * sizeof *s.entry_of);
    s.piece = take_piece(m, err);
    amp_status status = s.views && s.entry_of && s.piece
                            ? write_all(&s, path, metadata, metadata_count, err)
                            : amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to list its tensors", path);
    amp_free(&m->allocator, s.views, most * sizeof *s.views);
    amp_free(&m->allocator, s.entry_of, most * sizeof *s.entry_of);
    free_piece(m, s.piece);
    return status;
}
