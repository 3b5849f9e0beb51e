/* weight_match.c: see weight_match.h. */
#include "runtime/files/weight_match.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/names.h"
#include "base/text.h"
#include "runtime/files/weight_names.h"
#include "runtime/model/state.h"

static const amp_model_state *state_of(const amp_weight_match *m, int32_t entry) {
    return &m->list->model->states[m->list->entries[entry].state];
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static amp_status ignore(amp_weight_match *m, const char *glob, amp_error *err) {
    int32_t count = 0;
    for (int32_t i = 0; i < m->tensor_count; i++) {
        if (!text_glob_match(glob, m->names[i])) continue;
        m->entry_of[i] = AMP_IGNORED;
        count++;
    }
    if (count) return AMP_OK;
    return amp_fail(err, AMP_MISMATCH, "%s: ignore '%s' matches none of the names of its %d tensors%s%s",
                    amp_weight_files_path(m->files), glob, m->tensor_count, m->tensor_count ? "; one is " : "",
                    m->tensor_count ? m->names[0] : "");
}

static void free_name(amp_weight_match *m, int32_t i) {
    if (m->renamed[i]) amp_free(&m->allocator, m->renamed[i], strlen(m->renamed[i]) + 1);
    m->renamed[i] = NULL;
}

static amp_status rename_one(amp_weight_match *m, const char *rule, int32_t i, int32_t *count, amp_error *err) {
    size_t bytes, written;
    if (!amp_rename_apply(rule, m->names[i], NULL, 0, &bytes)) return AMP_OK;
    char *name = amp_alloc(&m->allocator, bytes);
    if (!name) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to rename", amp_weight_files_path(m->files));
    amp_rename_apply(rule, m->names[i], name, bytes, &written);
    free_name(m, i);
    m->names[i] = m->renamed[i] = name;
    ++*count;
    return AMP_OK;
}

static amp_status apply_rename(amp_weight_match *m, const char *rule, amp_error *err) {
    int32_t count = 0;
    AMP_TRY(amp_rename_check(rule, err));
    for (int32_t i = 0; i < m->tensor_count; i++)
        if (m->entry_of[i] != AMP_IGNORED) AMP_TRY(rename_one(m, rule, i, &count, err));
    if (count) return AMP_OK;
    bool first = rule == m->options->rename[0];
    return amp_fail(err, AMP_MISMATCH, "%s: rename '%s' matches none of the names of its %d tensors%s%s%s",
                    amp_weight_files_path(m->files), rule, m->tensor_count, first ? "" : ", renamed",
                    m->tensor_count ? "; one is " : "", m->tensor_count ? m->names[0] : "");
}

static amp_status no_parameter(const amp_weight_match *m, const char *option, const char *glob, const char *which,
                               amp_error *err) {
    return amp_fail(err, AMP_MISMATCH, "%s '%s' matches no parameter of %s%s; amprun info lists them", option, glob,
                    m->list->model->desc.name, which);
}

static amp_status mark_fresh(amp_weight_match *m, const char *glob, amp_error *err) {
    bool found = false;
    for (int32_t e = 0; e < m->entry_count; e++)
        if (text_glob_match(glob, m->list->entries[e].name)) found = m->fresh[e] = true;
    return found ? AMP_OK : no_parameter(m, "fresh", glob, "", err);
}

static amp_status mark_transposed(amp_weight_match *m, const char *glob, amp_error *err) {
    bool found = false;
    for (int32_t e = 0; e < m->entry_count; e++)
        if (state_of(m, e)->rank == 2 && text_glob_match(glob, m->list->entries[e].name))
            found = m->transposed[e] = true;
    return found ? AMP_OK : no_parameter(m, "transpose", glob, " with two dimensions", err);
}

static amp_status each(amp_weight_match *m, const char *const *rules,
                       amp_status (*apply)(amp_weight_match *, const char *, amp_error *), amp_error *err) {
    for (; rules && *rules; rules++) AMP_TRY(apply(m, *rules, err));
    return AMP_OK;
}

/* ---- averages ---------------------------------------------------------------------------------------------------- */

/* Of "optim/fc1.weight/ema" where "fc1.weight" begins, and its length; NULL: it is no average. */
static const char *averaged(const char *name, size_t *length) {
    static const char before[] = "optim/", after[] = "/" AMP_SLOT_EMA;
    const size_t all = strlen(name), around = sizeof before + sizeof after - 2;
    if (all <= around || strncmp(name, before, sizeof before - 1) || strcmp(name + all - sizeof after + 1, after))
        return NULL;
    *length = all - around;
    return name + sizeof before - 1;
}

static int32_t tensor_named(const amp_weight_match *m, const char *name) {
    for (int32_t i = 0; i < m->tensor_count; i++)
        if (!strcmp(amp_weight_files_at(m->files, i)->name, name)) return i;
    return -1;
}

/* The updates that a checkpoint counts of the parameter's block.  Before the first an average is zeros. */
static amp_status read_updates(const amp_weight_match *m, const char *param, int64_t *updates, amp_error *err) {
    char name[64];
    const int32_t state = amp_model_state_index(m->list->model, param);
    snprintf(name, sizeof name, "counter/step.%d", state < 0 ? -1 : (int)m->list->model->states[state].train_block - 1);
    int32_t counter = tensor_named(m, name);
    if (counter < 0) counter = tensor_named(m, "counter/step");
    *updates = 1;
    if (counter < 0 || amp_weight_files_at(m->files, counter)->bytes != sizeof *updates) return AMP_OK;
    return amp_weight_files_read(m->files, counter, 0, updates, sizeof *updates, err);
}

/* The average has the parameter's name from now on, and the parameter's own values are not wanted. */
static amp_status take_average(amp_weight_match *m, int32_t average, const char *of, size_t length, amp_error *err) {
    int64_t updates;
    char *name = amp_alloc(&m->allocator, length + 1);
    if (!name) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to rename", amp_weight_files_path(m->files));
    memcpy(name, of, length);
    name[length] = '\0';
    m->renamed[average] = name;
    AMP_TRY(read_updates(m, name, &updates, err));
    const int32_t plain = tensor_named(m, name);
    if (plain < 0 || updates < 1) {
        free_name(m, average);
        return AMP_OK;
    }
    m->names[average] = name;
    m->entry_of[plain] = AMP_IGNORED;
    return AMP_OK;
}

static amp_status take_averages(amp_weight_match *m, amp_error *err) {
    size_t length;
    bool found = false;
    for (int32_t i = 0; m->options->ema && i < m->tensor_count; i++) {
        const char *of = averaged(m->names[i], &length);
        if (of) AMP_TRY(take_average(m, i, of, length, err));
        found = found || of;
    }
    if (!m->options->ema || found) return AMP_OK;
    return amp_fail(
        err, AMP_MISMATCH,
        "%s: ema: it has no averages (optim/NAME/ema), which checkpoints have of models with `ema = ...` in a "
        "train block",
        amp_weight_files_path(m->files));
}

/* ---- tensors to entries ------------------------------------------------------------------------------------------ */

static void differ(amp_weight_match *m, amp_weights_difference kind, int32_t entry, int32_t tensor, int32_t other) {
    m->differences[m->difference_count++] = (amp_weight_difference){kind, entry, tensor, other};
}

static bool same_form(const amp_tensor_view *a, const amp_tensor_view *b) {
    return !strcmp(a->dtype_name, b->dtype_name) && a->rank == b->rank &&
           !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

amp_status amp_weight_same_bytes(const amp_weight_files *files, int32_t a, int32_t b, char *chunk, bool *same,
                                 amp_error *err) {
    const amp_tensor_view *x = amp_weight_files_at(files, a), *y = amp_weight_files_at(files, b);
    *same = same_form(x, y);
    for (size_t at = 0, n; *same && at < x->bytes; at += n) {
        n = x->bytes - at < AMP_WEIGHT_PIECE ? x->bytes - at : AMP_WEIGHT_PIECE;
        AMP_TRY(amp_weight_files_read(files, a, at, chunk, n, err));
        AMP_TRY(amp_weight_files_read(files, b, at, chunk + AMP_WEIGHT_PIECE, n, err));
        *same = !memcmp(chunk, chunk + AMP_WEIGHT_PIECE, n);
    }
    return AMP_OK;
}

/* A second tensor for one entry: fine where both are the same numbers, as of a tied weight that is stored twice. */
static amp_status take_second(amp_weight_match *m, int32_t entry, int32_t tensor, amp_error *err) {
    bool same = false;
    char *chunk = amp_alloc(&m->allocator, 2 * AMP_WEIGHT_PIECE);
    if (!chunk) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to compare", amp_weight_files_path(m->files));
    amp_status status = amp_weight_same_bytes(m->files, m->tensor_of[entry], tensor, chunk, &same, err);
    amp_free(&m->allocator, chunk, 2 * AMP_WEIGHT_PIECE);
    if (!status && !same) differ(m, AMP_WEIGHTS_TWICE, entry, tensor, m->tensor_of[entry]);
    return status;
}

/* A checkpoint serves as a file of params: what training needs besides is passed over. */
static bool is_passed_over(const amp_weight_match *m, int32_t tensor) {
    const char *format = amp_weight_files_metadata(m->files, AMP_FORMAT_KEY);
    const char *name = amp_weight_files_at(m->files, tensor)->name;
    size_t length;
    if (m->options->ema && averaged(name, &length) && m->renamed[tensor]) return false;
    return format && !strcmp(format, AMP_FORMAT_CHECKPOINT) && amp_state_is_of_training(name);
}

static amp_status place(amp_weight_match *m, int32_t tensor, amp_error *err) {
    if (m->entry_of[tensor] == AMP_IGNORED) return AMP_OK;
    int32_t entry = m->entry_of[tensor] = amp_state_list_find(m->list, m->names[tensor]);
    if (entry < 0) {
        if (is_passed_over(m, tensor)) m->entry_of[tensor] = AMP_IGNORED;
        else differ(m, AMP_WEIGHTS_EXTRA, AMP_NO_ENTRY, tensor, -1);
        return AMP_OK;
    }
    if (m->fresh[entry]) return AMP_OK;
    if (m->tensor_of[entry] >= 0) return take_second(m, entry, tensor, err);
    m->tensor_of[entry] = tensor;
    return AMP_OK;
}

void amp_weight_match_dims(const amp_weight_match *m, int32_t entry, int64_t dims[AMP_SAFETENSORS_MAX_RANK]) {
    const amp_model_state *s = state_of(m, entry);
    for (uint32_t i = 0; i < s->rank; i++) dims[i] = s->dims[m->transposed[entry] ? 1 - i : i];
}

static void check_entry(amp_weight_match *m, int32_t entry) {
    const amp_model_state *s = state_of(m, entry);
    int32_t tensor = m->tensor_of[entry];
    int64_t dims[AMP_SAFETENSORS_MAX_RANK];
    if (m->fresh[entry]) return;
    if (tensor < 0) {
        differ(m, AMP_WEIGHTS_MISSING, entry, -1, -1);
        return;
    }
    const amp_tensor_view *v = amp_weight_files_at(m->files, tensor);
    amp_weight_match_dims(m, entry, dims);
    if (v->rank != (int32_t)s->rank || memcmp(v->dims, dims, s->rank * sizeof *dims) ||
        !amp_state_takes_dtype(m->list, s, v->dtype)) {
        differ(m, AMP_WEIGHTS_MISFIT, entry, tensor, -1);
        if (m->options->partial) m->tensor_of[entry] = -1;
    }
}

/* ---- lifetime ---------------------------------------------------------------------------------------------------- */

static amp_status allocate(amp_weight_match *m, amp_error *err) {
    size_t tensors = (size_t)m->tensor_count + 1, entries = (size_t)m->entry_count + 1; /* never nothing */
    m->names = amp_alloc_zeroed(&m->allocator, tensors * sizeof *m->names);
    m->renamed = amp_alloc_zeroed(&m->allocator, tensors * sizeof *m->renamed);
    m->entry_of = amp_alloc_zeroed(&m->allocator, tensors * sizeof *m->entry_of);
    m->tensor_of = amp_alloc_zeroed(&m->allocator, entries * sizeof *m->tensor_of);
    m->fresh = amp_alloc_zeroed(&m->allocator, entries * sizeof *m->fresh);
    m->transposed = amp_alloc_zeroed(&m->allocator, entries * sizeof *m->transposed);
    m->differences = amp_alloc_zeroed(&m->allocator, (tensors + entries) * sizeof *m->differences);
    if (m->names && m->renamed && m->entry_of && m->tensor_of && m->fresh && m->transposed && m->differences)
        return AMP_OK;
    return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to compare it with the model",
                    amp_weight_files_path(m->files));
}

static amp_status fill(amp_weight_match *m, amp_error *err) {
    const amp_weights_options *o = m->options;
    AMP_TRY(allocate(m, err));
    for (int32_t i = 0; i < m->tensor_count; i++) m->names[i] = amp_weight_files_at(m->files, i)->name;
    for (int32_t e = 0; e < m->entry_count; e++) m->tensor_of[e] = -1;
    AMP_TRY(take_averages(m, err));
    AMP_TRY(each(m, o->ignore, ignore, err));
    AMP_TRY(each(m, o->rename, apply_rename, err));
    AMP_TRY(each(m, o->fresh, mark_fresh, err));
    AMP_TRY(each(m, o->transpose, mark_transposed, err));
    for (int32_t i = 0; i < m->tensor_count; i++) AMP_TRY(place(m, i, err));
    for (int32_t e = 0; e < m->entry_count; e++) check_entry(m, e);
    return AMP_OK;
}

amp_status amp_weight_match_make(amp_weight_match *m, const amp_state_list *list, const amp_weight_files *files,
                                 const amp_weights_options *options, amp_error *err) {
    *m = (amp_weight_match){.allocator = list->allocator,
                            .list = list,
                            .files = files,
                            .options = options,
                            .tensor_count = amp_weight_files_count(files),
                            .entry_count = list->count};
    amp_status status = fill(m, err);
    if (status) amp_weight_match_free(m);
    return status;
}

void amp_weight_match_free(amp_weight_match *m) {
    size_t tensors = (size_t)m->tensor_count + 1, entries = (size_t)m->entry_count + 1;
    for (int32_t i = 0; m->renamed && i < m->tensor_count; i++) free_name(m, i);
    amp_free(&m->allocator, m->names, tensors * sizeof *m->names);
    amp_free(&m->allocator, m->renamed, tensors * sizeof *m->renamed);
    amp_free(&m->allocator, m->entry_of, tensors * sizeof *m->entry_of);
    amp_free(&m->allocator, m->tensor_of, entries * sizeof *m->tensor_of);
    amp_free(&m->allocator, m->fresh, entries * sizeof *m->fresh);
    amp_free(&m->allocator, m->transposed, entries * sizeof *m->transposed);
    amp_free(&m->allocator, m->differences, (tensors + entries) * sizeof *m->differences);
    *m = (amp_weight_match){0};
}
