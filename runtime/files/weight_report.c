/* weight_report.c: see weight_report.h. */
#include "runtime/files/weight_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/files/weight_names.h"

enum { GROUPS_SHOWN = 3, PATTERN = 160 /* bytes of a pattern that are shown */, WHY = 2 * AMP_TENSOR_TEXT + 256 };

void amp_bounded_put(amp_bounded_text *to, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(to->text + to->length, sizeof to->text - to->length, format, args);
    va_end(args);
    if (length > 0) to->length += (size_t)length;
    if (to->length >= sizeof to->text) to->length = sizeof to->text - 1;
}

/* ---- one difference ---------------------------------------------------------------------------------------------- */

static const char *name_of(const amp_weight_match *m, const amp_weight_difference *d) {
    return d->kind == AMP_WEIGHTS_EXTRA || d->kind == AMP_WEIGHTS_TWICE ? amp_weight_files_at(m->files, d->tensor)->name
                                                                        : m->list->entries[d->entry].name;
}

static const amp_model_state *state_of(const amp_weight_match *m, const amp_weight_difference *d) {
    return &m->list->model->states[m->list->entries[d->entry].state];
}

static const char *describe_theirs(const amp_weight_match *m, int32_t tensor, char out[AMP_TENSOR_TEXT]) {
    const amp_tensor_view *v = amp_weight_files_at(m->files, tensor);
    return amp_tensor_describe(out, v->dtype ? amp_dtype_name(v->dtype) : v->dtype_name, v->dims, v->rank);
}

static const char *describe_ours(const amp_weight_match *m, const amp_weight_difference *d, char out[AMP_TENSOR_TEXT]) {
    const amp_model_state *s = state_of(m, d);
    return amp_tensor_describe(out, amp_dtype_name(amp_state_file_dtype(s)), s->dims, (int)s->rank);
}

/* What follows "parameter NAME: ". */
static const char *why(const amp_weight_match *m, const amp_weight_difference *d, char out[WHY]) {
    char theirs[AMP_TENSOR_TEXT], ours[AMP_TENSOR_TEXT];
    switch (d->kind) {
    case AMP_WEIGHTS_MISSING:
        snprintf(out, WHY, "is not in the file; the model has %s", describe_ours(m, d, ours));
        break;
    case AMP_WEIGHTS_EXTRA:
        snprintf(out, WHY, "is not in the model %s; the file has %s", m->list->model->desc.name,
                 describe_theirs(m, d->tensor, theirs));
        break;
    case AMP_WEIGHTS_TWICE:
        snprintf(out, WHY, "is %.100s, as %.100s is, with other numbers; ignore one of them",
                 m->list->entries[d->entry].name, amp_weight_files_at(m->files, d->other)->name);
        break;
    default:
        snprintf(out, WHY, "the file has %s, the model %s%s", describe_theirs(m, d->tensor, theirs),
                 describe_ours(m, d, ours), m->transposed[d->entry] ? ", which transpose turns" : "");
    }
    return out;
}

static void call_back(const amp_weight_match *m) {
    const amp_weights_options *o = m->options;
    char text[WHY];
    for (int32_t i = 0; o->difference && i < m->difference_count; i++) {
        const amp_weight_difference *d = &m->differences[i];
        o->difference(o->user, name_of(m, d), d->kind, why(m, d, text));
    }
}

/* ---- groups of names that differ in numbers alone ---------------------------------------------------------------- */

typedef struct Group {
    const amp_weight_difference *first;
    const char *name;
    int32_t count;
} Group;

typedef struct Member { /* of any group, for sorting */
    const amp_weight_difference *difference;
    const char *name;
} Member;

static int by_pattern(const void *a, const void *b) {
    const Member *x = a, *y = b;
    int order = amp_name_pattern_compare(x->name, y->name);
    return order ? order : x->difference < y->difference ? -1 : x->difference > y->difference;
}

/* The largest groups, and of equal ones the first by name. */
static void keep_largest(Group groups[GROUPS_SHOWN], Group g) {
    for (int i = 0; i < GROUPS_SHOWN; i++) {
        if (g.count <= groups[i].count) continue;
        Group smaller = groups[i];
        groups[i] = g;
        g = smaller;
    }
}

static void put_group(amp_bounded_text *to, const amp_weight_match *m, const Group *g) {
    char pattern[PATTERN], text[WHY];
    if (g->count == 1) amp_bounded_put(to, "%.*s", PATTERN, g->name);
    else amp_bounded_put(to, "%s (%d)", amp_name_pattern(g->name, pattern, sizeof pattern), g->count);
    if (g->first->kind == AMP_WEIGHTS_MISFIT || g->first->kind == AMP_WEIGHTS_TWICE)
        amp_bounded_put(to, ": %s", why(m, g->first, text));
}

/* |members|: |count| of one kind. */
static void put_groups(amp_bounded_text *to, const amp_weight_match *m, Member *members, int32_t count) {
    Group groups[GROUPS_SHOWN] = {{0}};
    int32_t shown = 0;
    qsort(members, (size_t)count, sizeof *members, by_pattern);
    for (int32_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && !amp_name_pattern_compare(members[i].name, members[end].name);) end++;
        keep_largest(groups, (Group){members[i].difference, members[i].name, end - i});
    }
    for (int i = 0; i < GROUPS_SHOWN && groups[i].count; i++) {
        amp_bounded_put(to, i ? "; " : "");
        put_group(to, m, &groups[i]);
        shown += groups[i].count;
    }
    if (shown < count) amp_bounded_put(to, "; and %d more", count - shown);
}

/* ---- the message ------------------------------------------------------------------------------------------------- */

static const struct Kind {
    amp_weights_difference kind;
    const char *one, *many, *heading;
} kinds[] = {
    {AMP_WEIGHTS_MISSING, "parameter is not in it", "parameters are not in it", "Not in the file: "},
    {AMP_WEIGHTS_EXTRA, "tensor is not in the model", "tensors are not in the model", "Not in the model: "},
    {AMP_WEIGHTS_MISFIT, "has another shape or type", "have another shape or type", "Another shape or type: "},
    {AMP_WEIGHTS_TWICE, "is there twice", "are there twice", "Twice: "},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

/* |partial| accepts what does not fit, but does not choose between two tensors for one parameter. */
static bool is_accepted(const amp_weight_match *m, amp_weights_difference kind) {
    return m->options->partial && kind != AMP_WEIGHTS_TWICE;
}

static int32_t count_refused(const amp_weight_match *m, const amp_weight_difference **first) {
    int32_t count = 0;
    for (int32_t i = 0; i < m->difference_count; i++) {
        if (is_accepted(m, m->differences[i].kind)) continue;
        if (!count++) *first = &m->differences[i];
    }
    return count;
}

static int32_t collect(const amp_weight_match *m, amp_weights_difference kind, Member *members) {
    int32_t count = 0;
    if (is_accepted(m, kind)) return 0;
    for (int32_t i = 0; i < m->difference_count; i++) {
        const amp_weight_difference *d = &m->differences[i];
        if (d->kind == kind) members[count++] = (Member){d, name_of(m, d)};
    }
    return count;
}

static void put_counts(amp_bounded_text *to, const amp_weight_match *m, Member *members) {
    bool first = true;
    for (int k = 0; k < KINDS; k++) {
        int32_t count = collect(m, kinds[k].kind, members);
        if (!count) continue;
        amp_bounded_put(to, "%s%d %s", first ? "" : ", ", count, count == 1 ? kinds[k].one : kinds[k].many);
        first = false;
    }
}

static amp_status fail_many(const amp_weight_match *m, const amp_bounded_text *proposals, Member *members,
                            amp_error *err) {
    amp_bounded_text text = {0};
    put_counts(&text, m, members);
    if (proposals->length) amp_bounded_put(&text, ". Try %s", proposals->text);
    for (int k = 0; k < KINDS; k++) {
        int32_t count = collect(m, kinds[k].kind, members);
        if (!count) continue;
        amp_bounded_put(&text, ". %s", kinds[k].heading);
        put_groups(&text, m, members, count);
    }
    return amp_fail(err, AMP_MISMATCH, "%s: does not fit the model %s: %s", amp_weight_files_path(m->files),
                    m->list->model->desc.name, text.text);
}

static amp_status fail_one(const amp_weight_match *m, const amp_weight_difference *d, const amp_bounded_text *proposals,
                           amp_error *err) {
    char text[WHY];
    bool param =
        d->kind == AMP_WEIGHTS_EXTRA || d->kind == AMP_WEIGHTS_TWICE ? false : state_of(m, d)->role == AMP_STATE_PARAM;
    return amp_fail(err, AMP_MISMATCH, "%s: %s %s: %s%s%s", amp_weight_files_path(m->files),
                    param ? "parameter" : "tensor", name_of(m, d), why(m, d, text), proposals->length ? ". Try " : "",
                    proposals->text);
}

amp_status amp_weight_report(const amp_weight_match *m, amp_error *err) {
    amp_bounded_text proposals = {0};
    const amp_weight_difference *first = NULL;
    const int32_t refused = count_refused(m, &first);
    call_back(m);
    if (!refused) return AMP_OK;
    if (!m->options->partial) amp_weight_proposals(m, &proposals);
    if (refused == 1) return fail_one(m, first, &proposals, err);
    size_t bytes = (size_t)m->difference_count * sizeof(Member);
    Member *members = amp_alloc(&m->allocator, bytes);
    if (!members)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to compare it with the model",
                        amp_weight_files_path(m->files));
    amp_status status = fail_many(m, &proposals, members, err);
    amp_free(&m->allocator, members, bytes);
    return status;
}
