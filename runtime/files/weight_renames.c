/* weight_renames.c: see weight_renames.h.
 *
 * Names of the file that no parameter has, and parameters that the file does not have, are compared from their ends, as
 * patterns: net.3.ln.weight and 3.ln.weight have the end *.ln.weight, which is a vote for net.*=*.
 * What has most votes is tried. */
#include "runtime/files/weight_renames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "runtime/files/weight_names.h"

enum {
    PATTERNS_MOST = 2000, /* of either side are looked at */
    ENDS_MOST = 16,       /* components of a name that are looked at */
    ALIKE_MOST = 8,       /* ends that are the same */
    TRIED = 6,            /* rules of those with most votes */
    PREFIX = AMP_RENAME_TEXT / 2 - 4
};

/* ---- patterns of one side ---------------------------------------------------------------------------------------- */

typedef struct Pattern {
    const char *name; /* one of those with the pattern */
    int32_t names, rank;
    const int64_t *dims; /* of that one */
} Pattern;

static int by_pattern(const void *a, const void *b) {
    return amp_name_pattern_compare(((const Pattern *)a)->name, ((const Pattern *)b)->name);
}

static Pattern pattern_of(const amp_weight_match *m, const amp_weight_difference *d) {
    if (d->kind == AMP_WEIGHTS_EXTRA) {
        const amp_tensor_view *v = amp_weight_files_at(m->files, d->tensor);
        return (Pattern){m->names[d->tensor], 1, v->rank, v->dims};
    }
    const amp_model_state *s = &m->list->model->states[m->list->entries[d->entry].state];
    return (Pattern){m->list->entries[d->entry].name, 1, (int32_t)s->rank, s->dims};
}

/* Sorted, each once.  |out| has room for all differences. */
static int32_t list_patterns(const amp_weight_match *m, amp_weights_difference kind, Pattern *out) {
    int32_t all = 0, count = 0;
    for (int32_t i = 0; i < m->difference_count; i++)
        if (m->differences[i].kind == kind) out[all++] = pattern_of(m, &m->differences[i]);
    if (all) qsort(out, (size_t)all, sizeof *out, by_pattern);
    for (int32_t i = 0; i < all; i++) {
        if (count && !by_pattern(&out[count - 1], &out[i])) out[count - 1].names++;
        else out[count++] = out[i];
    }
    return count < PATTERNS_MOST ? count : PATTERNS_MOST;
}

/* ---- their ends -------------------------------------------------------------------------------------------------- */

typedef struct End {
    const char *at; /* in the name of the pattern, where a component begins */
    const Pattern *of;
} End;

static int by_end(const void *a, const void *b) {
    return amp_name_pattern_compare(((const End *)a)->at, ((const End *)b)->at);
}

static const char *next_component(const char *at) {
    const char *dot = strchr(at, '.');
    return dot ? dot + 1 : NULL;
}

static int32_t list_ends(const Pattern *patterns, int32_t count, End *out) {
    int32_t ends = 0;
    for (int32_t i = 0; i < count; i++) {
        int components = 0;
        for (const char *at = patterns[i].name; at && components < ENDS_MOST; at = next_component(at), components++)
            out[ends++] = (End){at, &patterns[i]};
    }
    if (ends) qsort(out, (size_t)ends, sizeof *out, by_end);
    return ends;
}

static int32_t first_end(const End *ends, int32_t count, const char *at) {
    int32_t low = 0;
    for (int32_t high = count; low < high;) {
        int32_t middle = low + (high - low) / 2;
        if (amp_name_pattern_compare(ends[middle].at, at) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

static bool could_fit(const Pattern *a, const Pattern *b) {
    if (a->rank != b->rank) return false;
    if (!memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims)) return true;
    return a->rank == 2 && a->dims[0] == b->dims[1] && a->dims[1] == b->dims[0];
}

/* The only end that is |at| and whose tensor could be the parameter |wanted|; NULL: none, or several. */
static const End *find_end(const End *ends, int32_t count, const char *at, const Pattern *wanted) {
    const End *found = NULL;
    int32_t first = first_end(ends, count, at);
    for (int32_t i = first; i < count && !amp_name_pattern_compare(ends[i].at, at); i++) {
        if (i - first == ALIKE_MOST) return NULL;
        if (!could_fit(ends[i].of, wanted)) continue;
        if (found) return NULL;
        found = &ends[i];
    }
    return found;
}

/* ---- rules and their votes --------------------------------------------------------------------------------------- */

typedef struct Rule {
    char text[AMP_RENAME_TEXT];
    int32_t votes;
} Rule;

static int by_text(const void *a, const void *b) { return strcmp(((const Rule *)a)->text, ((const Rule *)b)->text); }
static int by_votes(const void *a, const void *b) {
    const Rule *x = a, *y = b;
    return x->votes != y->votes ? (x->votes < y->votes ? 1 : -1) : by_text(a, b);
}

/* The pattern of |name| up to |end|, which begins a component; false: too long to be proposed. */
static bool put_prefix(const char *name, const char *end, char out[PREFIX]) {
    char text[PREFIX];
    size_t length = (size_t)(end - name);
    if (length >= sizeof text) return false;
    memcpy(text, name, length);
    text[length] = '\0';
    amp_name_pattern(text, out, PREFIX);
    return !strchr(out, '=');
}

/* "h.*." and "layers.*." become "h." and "layers.": the * that follows takes the number too. */
static void drop_number(char *from, char *to) {
    size_t n = strlen(from), m = strlen(to);
    if (n < 2 || m < 2 || strcmp(from + n - 2, "*.") || strcmp(to + m - 2, "*.")) return;
    from[n - 2] = to[m - 2] = '\0';
}

/* FROM=TO, of what is in front of the ends. */
static bool make_rule(const char *theirs, const char *their_end, const char *ours, const char *our_end, int32_t votes,
                      Rule *out) {
    char from[PREFIX], to[PREFIX];
    if (!put_prefix(theirs, their_end, from) || !put_prefix(ours, our_end, to) || !strcmp(from, to)) return false;
    if (*their_end && *our_end) drop_number(from, to);
    snprintf(out->text, sizeof out->text, "%s%s=%s%s", from, *their_end ? "*" : "", to, *our_end ? "*" : "");
    out->votes = votes;
    return !amp_rename_check(out->text, NULL);
}

static const char *after_component(const char *at) {
    const char *next = next_component(at);
    return next ? next : at + strlen(at);
}

/* The longest end that one tensor alone has: at most two rules; the second is for fewer names. */
static int32_t vote(const End *ends, int32_t count, const Pattern *wanted, Rule *out) {
    int32_t rules = 0;
    for (const char *at = wanted->name; at; at = next_component(at)) {
        const End *e = find_end(ends, count, at, wanted);
        if (!e) continue;
        const char *theirs = e->of->name, *ours = wanted->name;
        rules += make_rule(theirs, e->at, ours, at, wanted->names, &out[rules]);
        rules += make_rule(theirs, after_component(e->at), ours, after_component(at), wanted->names, &out[rules]);
        break;
    }
    return rules;
}

/* Those with most votes first.  |out| has room for two of each pattern. */
static int32_t list_rules(const End *ends, int32_t end_count, const Pattern *wanted, int32_t wanted_count, Rule *out) {
    int32_t all = 0, count = 0;
    for (int32_t i = 0; i < wanted_count; i++) all += vote(ends, end_count, &wanted[i], &out[all]);
    if (all) qsort(out, (size_t)all, sizeof *out, by_text);
    for (int32_t i = 0; i < all; i++) {
        if (count && !by_text(&out[count - 1], &out[i])) out[count - 1].votes += out[i].votes;
        else out[count++] = out[i];
    }
    if (count) qsort(out, (size_t)count, sizeof *out, by_votes);
    return count;
}

/* Memory for it all; false: there is none. */
typedef struct Work {
    Pattern *patterns; /* EXTRA, then MISSING */
    End *ends;
    Rule *rules;
    size_t patterns_bytes, ends_bytes, rules_bytes;
} Work;

static bool make_work(Work *w, const amp_weight_match *m) {
    size_t count = (size_t)m->difference_count, most = count < PATTERNS_MOST ? count : PATTERNS_MOST;
    *w = (Work){.patterns_bytes = 2 * count * sizeof *w->patterns,
                .ends_bytes = most * ENDS_MOST * sizeof *w->ends,
                .rules_bytes = 2 * most * sizeof *w->rules};
    w->patterns = amp_alloc(&m->allocator, w->patterns_bytes);
    w->ends = amp_alloc(&m->allocator, w->ends_bytes);
    w->rules = amp_alloc(&m->allocator, w->rules_bytes);
    return w->patterns && w->ends && w->rules;
}

static void free_work(Work *w, const amp_weight_match *m) {
    amp_free(&m->allocator, w->patterns, w->patterns_bytes);
    amp_free(&m->allocator, w->ends, w->ends_bytes);
    amp_free(&m->allocator, w->rules, w->rules_bytes);
}

/* ---- trying them ------------------------------------------------------------------------------------------------- */

/* Whether |rule| leaves fewer differences; then the match is the one with it. */
static bool try_rule(amp_weight_renames *r, const amp_weight_match *first, const char *rule, int *fewest) {
    int given = 0;
    amp_weight_match match;
    while (r->rules[given]) given++;
    r->rules[given] = rule;
    r->rules[given + 1] = NULL;
    amp_status status = amp_weight_match_make(&match, first->list, first->files, &r->options, NULL);
    r->rules[given] = NULL;
    if (status) return false;
    bool better = match.difference_count < *fewest;
    if (better) *fewest = match.difference_count;
    amp_weight_match_free(&match);
    return better;
}

/* BERT's older files: layer norms. */
static const char *const known[] = {"*.gamma=*.weight", "*.beta=*.bias"};

/* Adds the best rule; false: none is better than nothing. */
static bool add_rule(amp_weight_renames *r, const amp_weight_match *first, Work *w) {
    const amp_weight_match *m = &r->match;
    const char *best = NULL;
    int fewest = m->difference_count;
    int32_t extras = list_patterns(m, AMP_WEIGHTS_EXTRA, w->patterns);
    Pattern *missing = w->patterns + first->difference_count;
    int32_t wanted = list_patterns(m, AMP_WEIGHTS_MISSING, missing);
    int32_t ends = list_ends(w->patterns, extras, w->ends),
            rules = list_rules(w->ends, ends, missing, wanted, w->rules);
    for (int32_t i = 0; i < rules && i < TRIED; i++)
        if (try_rule(r, first, w->rules[i].text, &fewest)) best = w->rules[i].text;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (try_rule(r, first, known[i], &fewest)) best = known[i];
    if (!best) return false;
    int given = 0;
    while (r->rules[given]) given++;
    snprintf(r->found[r->count], AMP_RENAME_TEXT, "%s", best);
    r->rules[given] = r->found[r->count++];
    r->rules[given + 1] = NULL;
    amp_weight_match_free(&r->match);
    return !amp_weight_match_make(&r->match, first->list, first->files, &r->options, NULL);
}

bool amp_weight_renames_find(amp_weight_renames *r, const amp_weight_match *m) {
    size_t given = 0;
    Work w = {0};
    const char *const *rules = m->options->rename;
    while (rules && rules[given]) given++;
    *r = (amp_weight_renames){.allocator = m->allocator, .options = *m->options};
    r->rules_bytes = (given + AMP_RENAMES_MOST + 2) * sizeof *r->rules;
    r->rules = amp_alloc_zeroed(&m->allocator, r->rules_bytes);
    if (!r->rules) return false;
    for (size_t i = 0; i < given; i++) r->rules[i] = rules[i];
    r->options.rename = r->rules;
    bool made = !amp_weight_match_make(&r->match, m->list, m->files, &r->options, NULL);
    if (made && make_work(&w, m))
        while (r->count < AMP_RENAMES_MOST && r->match.list && add_rule(r, m, &w)) continue;
    free_work(&w, m);
    return r->match.list != NULL;
}

void amp_weight_renames_free(amp_weight_renames *r) {
    if (!r->rules) return;
    if (r->match.list) amp_weight_match_free(&r->match);
    amp_free(&r->allocator, r->rules, r->rules_bytes);
}
