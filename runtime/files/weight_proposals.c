/* weight_proposals.c: what would make published weights fit a model, in words (weight_report.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "runtime/files/weight_names.h"
#include "runtime/files/weight_renames.h"
#include "runtime/files/weight_report.h"

enum { GLOB = 160, GLOBS_MOST = 3, TIES_TRIED = 4, TIES_SHOWN = 2 };

typedef struct Globs { /* patterns, each once */
    char glob[GLOBS_MOST][GLOB];
    int count;
    bool more; /* than have room */
} Globs;

static void add_glob(Globs *g, const char *name) {
    char pattern[GLOB];
    if (strlen(name) >= sizeof pattern) {
        g->more = true;
        return;
    }
    amp_name_pattern(name, pattern, sizeof pattern);
    for (int i = 0; i < g->count; i++)
        if (!strcmp(g->glob[i], pattern)) return;
    if (g->count == GLOBS_MOST) g->more = true;
    else strcpy(g->glob[g->count++], pattern);
}

static void put_options(amp_bounded_text *to, const char *option, const Globs *g) {
    for (int i = 0; i < g->count; i++) amp_bounded_put(to, "%s%s '%s'", to->length ? " " : "", option, g->glob[i]);
}

static const amp_model_state *state_of(const amp_weight_match *m, int32_t entry) {
    return &m->list->model->states[m->list->entries[entry].state];
}

/* ---- weights that are stored the other way round ----------------------------------------------------------------- */

bool amp_weight_is_turned(const amp_weight_match *m, const amp_weight_difference *d) {
    if (d->kind != AMP_WEIGHTS_MISFIT) return false;
    const amp_model_state *s = state_of(m, d->entry);
    const amp_tensor_view *v = amp_weight_files_at(m->files, d->tensor);
    return s->rank == 2 && v->rank == 2 && v->dims[0] == s->dims[1] && v->dims[1] == s->dims[0] &&
           !m->transposed[d->entry] && amp_state_takes_dtype(m->list, s, v->dtype);
}

/* "h.*." of "h.0.attn.c_attn.weight": up to the first number; else up to the last component. */
static size_t block_length(const char *name) {
    size_t last = 0;
    for (const char *at = name; *at;) {
        size_t length = strcspn(at, ".");
        if (length && strspn(at, "0123456789") == length) return (size_t)(at - name) + length;
        if (at[length]) last = (size_t)(at - name) + length;
        at += length + (at[length] == '.');
    }
    return last;
}

/* A square matrix of the same block is stored as its neighbours are, but its shape does not show it. */
static void find_square(const amp_weight_match *m, const amp_weight_difference *d, Globs *squares) {
    const char *turned = m->list->entries[d->entry].name, *kind = strrchr(turned, '.');
    size_t block = block_length(turned);
    for (int32_t e = 0; kind && e < m->entry_count; e++) {
        const char *name = m->list->entries[e].name, *last = strrchr(name, '.');
        const amp_model_state *s = state_of(m, e);
        if (s->rank == 2 && s->dims[0] == s->dims[1] && m->tensor_of[e] >= 0 && !m->transposed[e] && last &&
            !strcmp(last, kind) && !strncmp(name, turned, block) && name[block] == '.')
            add_glob(squares, name);
    }
}

static void propose_transpose(const amp_weight_match *m, amp_bounded_text *to) {
    Globs turned = {0}, squares = {0};
    for (int32_t i = 0; i < m->difference_count; i++) {
        if (!amp_weight_is_turned(m, &m->differences[i])) continue;
        int before = turned.count;
        add_glob(&turned, m->list->entries[m->differences[i].entry].name);
        if (turned.count > before) find_square(m, &m->differences[i], &squares);
    }
    if (!turned.count) return;
    put_options(to, "transpose", &turned);
    put_options(to, "transpose", &squares);
    amp_bounded_put(to, ", or linear(...; transposed = true) in the model: the file has these the other way round");
    if (squares.count) amp_bounded_put(to, " (likely %s, too, which is square)", squares.glob[0]);
}

/* ---- tied weights ------------------------------------------------------------------------------------------------ */

/* The entry that takes a tensor with the bytes of |tensor|; -1: none is found. */
static int32_t find_tied(const amp_weight_match *m, int32_t tensor, char *chunk) {
    const amp_tensor_view *v = amp_weight_files_at(m->files, tensor);
    int tried = 0;
    for (int32_t e = 0; e < m->entry_count && tried < TIES_TRIED; e++) {
        int32_t other = m->tensor_of[e];
        bool same = false;
        if (other < 0 || other == tensor) continue;
        const amp_tensor_view *o = amp_weight_files_at(m->files, other);
        if (o->rank != v->rank || memcmp(o->dims, v->dims, (size_t)v->rank * sizeof *v->dims)) continue;
        tried++;
        if (!amp_weight_same_bytes(m->files, tensor, other, chunk, &same, NULL) && same) return e;
    }
    return -1;
}

/* |tied|: gets the tensors that need no other remedy, |TIES_SHOWN| at most. */
static int propose_ties(const amp_weight_match *m, int32_t tied[TIES_SHOWN], amp_bounded_text *to) {
    int count = 0, tried = 0;
    char *chunk = amp_alloc(&m->allocator, 2 * AMP_WEIGHT_PIECE);
    for (int32_t i = 0; chunk && i < m->difference_count && count < TIES_SHOWN && tried < TIES_TRIED; i++) {
        const amp_weight_difference *d = &m->differences[i];
        if (d->kind != AMP_WEIGHTS_EXTRA || amp_weight_files_at(m->files, d->tensor)->rank < 2) continue;
        tried++;
        int32_t entry = find_tied(m, d->tensor, chunk);
        if (entry < 0) continue;
        amp_bounded_put(to, "%srename '%s=%s' (the same numbers)", to->length ? " " : "", m->names[d->tensor],
                        m->list->entries[entry].name);
        tied[count++] = d->tensor;
    }
    amp_free(&m->allocator, chunk, 2 * AMP_WEIGHT_PIECE);
    return count;
}

/* ---- what is not wanted, and what the file is not to give -------------------------------------------------------- */

typedef struct Side { /* names of the files for ignore, or of the model for fresh */
    const amp_weight_match *match;
    bool of_files;
    const bool *odd; /* by name: it is one of those that differ */
} Side;

static int32_t side_count(const Side *s) { return s->of_files ? s->match->tensor_count : s->match->entry_count; }

static const char *side_name(const Side *s, int32_t i) {
    return s->of_files ? amp_weight_files_at(s->match->files, i)->name : s->match->list->entries[i].name;
}

/* Whether |glob| matches none but odd names. */
static bool is_safe(const Side *s, const char *glob) {
    for (int32_t i = 0; i < side_count(s); i++)
        if (!s->odd[i] && text_glob_match(glob, side_name(s, i))) return false;
    return true;
}

/* "*.num_batches_tracked", where all odd names end so. */
static bool common_end(const Side *s, char out[GLOB]) {
    const char *end = NULL;
    for (int32_t i = 0; i < side_count(s); i++) {
        if (!s->odd[i]) continue;
        const char *dot = strrchr(side_name(s, i), '.');
        if (!dot || (end && strcmp(end, dot)) || strlen(dot) + 2 > GLOB) return false;
        end = dot;
    }
    if (end) snprintf(out, GLOB, "*%s", end);
    return end != NULL;
}

static void propose_side(const Side *s, const char *option, amp_bounded_text *to) {
    Globs globs = {0};
    for (int32_t i = 0; i < side_count(s); i++)
        if (s->odd[i]) add_glob(&globs, side_name(s, i));
    if (globs.count > 1 || globs.more) {
        Globs one = {.count = 1};
        if (common_end(s, one.glob[0]) && is_safe(s, one.glob[0])) globs = one;
    }
    if (globs.more) return;
    for (int i = 0; i < globs.count; i++)
        if (!is_safe(s, globs.glob[i])) return;
    put_options(to, option, &globs);
}

/* Names that no rename and no transposing mends. */
static void propose_leaving(const amp_weight_match *m, const int32_t *tied, int ties, amp_bounded_text *to) {
    size_t count = (size_t)m->tensor_count + (size_t)m->entry_count + 1;
    bool *odd = amp_alloc_zeroed(&m->allocator, count * sizeof *odd);
    amp_bounded_text leaving = {0};
    if (!odd) return;
    bool *odd_entries = odd + m->tensor_count;
    for (int32_t i = 0; i < m->difference_count; i++) {
        const amp_weight_difference *d = &m->differences[i];
        bool mended = amp_weight_is_turned(m, d);
        for (int k = 0; k < ties; k++) mended |= d->kind == AMP_WEIGHTS_EXTRA && d->tensor == tied[k];
        if (mended) continue;
        if (d->kind == AMP_WEIGHTS_EXTRA) odd[d->tensor] = true;
        else if (d->kind != AMP_WEIGHTS_TWICE) odd_entries[d->entry] = true;
    }
    propose_side(&(Side){m, true, odd}, "ignore", &leaving);
    propose_side(&(Side){m, false, odd_entries}, "fresh", &leaving);
    amp_free(&m->allocator, odd, count * sizeof *odd);
    if (leaving.length) amp_bounded_put(to, "%s%s, where that is meant", to->length ? "; " : "", leaving.text);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

void amp_weight_proposals(const amp_weight_match *match, amp_bounded_text *to) {
    amp_weight_renames renames;
    int32_t tied[TIES_SHOWN];
    const amp_weight_match *m = match; /* as it would be after the renames */
    if (amp_weight_renames_find(&renames, match)) m = &renames.match;
    for (int i = 0; i < renames.count; i++)
        amp_bounded_put(to, "%srename '%s'", to->length ? " " : "", renames.found[i]);
    int ties = propose_ties(m, tied, to);
    propose_transpose(m, to);
    propose_leaving(m, tied, ties, to);
    amp_weight_renames_free(&renames);
}
