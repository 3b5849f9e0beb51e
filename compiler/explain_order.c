/* explain_order.c: which ops and casts are told of, and in what order. */
#include <stdlib.h>
#include <string.h>

#include "compiler/explain.h"

amp_status explain_check_sort(const amp_explain_options *want, amp_error *err) {
    if (!want->sort || !strcmp(want->sort, "bytes")) return AMP_OK;
    return amp_fail(err, AMP_INVALID_ARGUMENT, "sort '%s': there is bytes, those of casts", want->sort);
}

/* ---- by bytes ---------------------------------------------------------------------------------------------------- */

typedef struct Weighed {
    int number, order;
    double bytes;
} Weighed;

/* The most first; among equal ones in the order of the model. */
static int compare_weighed(const void *a, const void *b) {
    const Weighed *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

typedef double Weigh(const ExplainFacts *x, int number, int64_t batch);

static double weigh_cast(const ExplainFacts *x, int number, int64_t batch) {
    return bytes_at(&x->graph_casts.data[number].bytes, batch);
}

/* All casts that the op asked for, those of the backward pass too. */
static double weigh_decision(const ExplainFacts *x, int number, int64_t batch) {
    const ExplainNumbers *casts = explain_casts_for(x, x->m->decisions.data[number].path);
    double sum = 0;
    for (int i = 0; i < casts->len; i++) sum += weigh_cast(x, casts->data[i], batch);
    return sum;
}

static void put_in_order(const ExplainFacts *x, const ExplainSelection *which, ExplainNumbers *list, Weigh *weigh) {
    if (!which->want.sort) return;
    Weighed *all = arena_array(x->m->arena, Weighed, list->len + 1);
    for (int i = 0; i < list->len; i++)
        all[i] = (Weighed){list->data[i], i, weigh(x, list->data[i], which->want.batch)};
    qsort(all, (size_t)list->len, sizeof *all, compare_weighed);
    for (int i = 0; i < list->len; i++) list->data[i] = all[i].number;
}

/* ---- what is told ------------------------------------------------------------------------------------------------ */

/* With its layer, where that is told of. */
static bool is_folded(const ExplainFacts *x, const ExplainSelection *which, const char *path) {
    const char *layer = explain_layer_of(x, path);
    return layer && explain_selects(which, layer);
}

ExplainNumbers explain_selected(const ExplainFacts *x, const ExplainSelection *which, bool fold) {
    ExplainNumbers list = {0};
    for (int i = 0; i < x->m->decisions.len; i++) {
        const char *path = x->m->decisions.data[i].path;
        if (explain_selects(which, path) && !(fold && is_folded(x, which, path))) vec_push(x->m->arena, &list, i);
    }
    return list;
}

ExplainNumbers explain_told(const ExplainFacts *x, const ExplainSelection *which, bool fold) {
    ExplainNumbers list = explain_selected(x, which, fold);
    put_in_order(x, which, &list, weigh_decision);
    return list;
}

ExplainNumbers explain_told_casts(const ExplainFacts *x, const ExplainSelection *which) {
    ExplainNumbers list = {0};
    for (int i = 0; i < x->graph_casts.len; i++)
        if (explain_selects_cast(which, &x->graph_casts.data[i])) vec_push(x->m->arena, &list, i);
    put_in_order(x, which, &list, weigh_cast);
    return list;
}
