/* signature.c: whether a model is the one that a program was written for: "x: f32[N, 24] -> logits: f32[N, 2]". */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "runtime/model/model.h"
#include "runtime/model/state.h"

enum { TEXT_MAX = 4096, ITEM_MAX = 1024 };

/* ---- the model's side -------------------------------------------------------------------------------------------- */

typedef struct Item { /* an input or a result */
    const char *name;
    uint32_t dtype, rank;
    const amp_model_dim *dims;
} Item;

/* N, 3 * N * T, N / 2 */
static size_t put_dim(char *to, size_t room, const amp_model_dim *d) {
    const int count = d->of_n + d->of_t;
    if (!count) return (size_t)snprintf(to, room, "%" PRId64, d->mul);
    size_t at = 0;
    if (d->mul != 1) at += (size_t)snprintf(to, room, "%" PRId64 " * ", d->mul);
    for (int i = 0; i < count; i++)
        at += (size_t)snprintf(to + at, room - at, "%s%c", i ? " * " : "", i < d->of_n ? 'N' : 'T');
    if (d->div > 1) at += (size_t)snprintf(to + at, room - at, " / %" PRId32, d->div);
    return at;
}

/* targets: i32[N] */
static void put_item(char to[ITEM_MAX], const Item *item) {
    size_t at = (size_t)snprintf(to, ITEM_MAX, "%.200s: %s", item->name, amp_dtype_name((amp_dtype)item->dtype));
    for (uint32_t i = 0; i < item->rank; i++) {
        at += (size_t)snprintf(to + at, ITEM_MAX - at, "%s", i ? ", " : "[");
        at += put_dim(to + at, ITEM_MAX - at, &item->dims[i]);
    }
    if (item->rank) snprintf(to + at, ITEM_MAX - at, "]");
}

static Item input_item(const amp_model *m, int32_t i) {
    const amp_model_input *in = &m->inputs[i];
    return (Item){in->name, in->dtype, in->rank, in->dims};
}

static Item result_item(const amp_model *m, int32_t i) {
    const amp_model_result *r = &m->infer->results[i];
    return (Item){r->name, (uint32_t)amp_readable_dtype(r->dtype), r->rank, r->dims};
}

/* ---- the program's side ------------------------------------------------------------------------------------------ */

static void without_spaces(char *to, const char *from, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (!strchr(" \t\n", from[i])) *to++ = from[i];
    *to = '\0';
}

/* As far as the comma that is in no brackets, or |size|. */
static size_t item_length(const char *list, size_t size) {
    int depth = 0;
    size_t i = 0;
    for (; i < size && (depth > 0 || list[i] != ','); i++) depth += (list[i] == '[') - (list[i] == ']');
    return i;
}

static int32_t count_items(const char *list, size_t size) {
    int32_t count = 0;
    for (size_t at = 0; at < size; count++) at += item_length(list + at, size - at) + 1;
    return count;
}

/* A name may be left out. */
static bool is_item(const char *given, size_t size, const char *model) {
    char wanted[ITEM_MAX], has[ITEM_MAX];
    without_spaces(wanted, given, size);
    without_spaces(has, model, strlen(model));
    return !strcmp(wanted, has) || (!strchr(wanted, ':') && !strcmp(wanted, strchr(has, ':') + 1));
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

typedef struct List { /* one side of the arrow */
    const amp_model *model;
    const char *what; /* "input" */
    Item (*item)(const amp_model *model, int32_t i);
    int32_t count;
} List;

static amp_status wrong_count(const List *l, int32_t given, amp_error *err) {
    char first[ITEM_MAX] = "", text[2 * ITEM_MAX] = "";
    for (int32_t i = 0; i < l->count && strlen(text) < ITEM_MAX; i++) {
        Item item = l->item(l->model, i);
        put_item(first, &item);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? ", " : "", first);
    }
    return amp_fail(err, AMP_INVALID_ARGUMENT, "%s has %d %s%s (%.300s); the program was written for %d",
                    l->model->desc.name, l->count, l->what, l->count == 1 ? "" : "s", text, given);
}

static amp_status compare_list(const List *l, const char *text, size_t size, amp_error *err) {
    int32_t given = count_items(text, size);
    if (given != l->count) return wrong_count(l, given, err);
    for (int32_t i = 0; i < l->count; i++) {
        char has[ITEM_MAX];
        size_t length = item_length(text, size);
        Item item = l->item(l->model, i);
        put_item(has, &item);
        if (length >= ITEM_MAX || !is_item(text, length, has)) {
            size_t blank = strspn(text, " \t\n"), shown = length < ITEM_MAX ? length : ITEM_MAX;
            while (shown > blank && strchr(" \t\n", text[shown - 1])) shown--;
            return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: %s %d is %s; the program was written for %.*s",
                            l->model->desc.name, l->what, i, has, (int)(shown - (blank < shown ? blank : shown)),
                            text + blank);
        }
        text += length + (length < size), size -= length + (length < size);
    }
    return AMP_OK;
}

static bool is_blank(const char *text, size_t size) { return strspn(text, " \t\n") >= size; }

amp_status amp_model_expect(const amp_model *m, const char *signature, amp_error *err) {
    if (!m || !signature) return amp_fail(err, AMP_INVALID_ARGUMENT, "model or signature is NULL");
    const char *arrow = strstr(signature, "->");
    size_t all = strlen(signature), size = arrow ? (size_t)(arrow - signature) : all;
    if (all > TEXT_MAX)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "the signature has %zu characters; at most %d are read", all,
                        TEXT_MAX);
    List inputs = {m, "input", input_item, m->input_count}, results = {m, "result", result_item, 0};
    if (is_blank(signature, size)) size = 0;
    if (count_items(signature, size) == m->model_input_count) inputs.count = m->model_input_count;
    AMP_TRY(compare_list(&inputs, signature, size, err));
    if (!arrow) return AMP_OK;
    results.count = m->infer ? m->infer->result_count : 0;
    size = is_blank(arrow + 2, strlen(arrow + 2)) ? 0 : strlen(arrow + 2);
    return compare_list(&results, arrow + 2, size, err);
}
