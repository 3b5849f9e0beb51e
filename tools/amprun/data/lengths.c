/* lengths.c: see data_column.h. */
#include "tools/amprun/data/data_column.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- what an input takes ----------------------------------------------------------------------------------------- */

bool lengths_concern(const DataInputs *inputs, int input) {
    const amp_tensor_info *whole = &inputs->input[input], *unit = &inputs->at_unit[input];
    bool differ = false;
    for (int i = 0; inputs->length && i < whole->rank; i++) differ = differ || whole->dims[i] != unit->dims[i];
    return differ;
}

int lengths_take_padding(Column *c, const DataInputs *inputs, int input, const char *from) {
    const int64_t ignored = inputs->ignored[input];
    c->padding = ignored != INT64_MIN ? ignored : 0;
    if (input < inputs->model_inputs || ignored != INT64_MIN || !inputs->bound[input]) return 0;
    return report_text("%s: the texts of a batch are padded to one length, and the loss would count the padding of %s; "
                       "write cross_entropy(...; ignore = -100) in the model",
                       from, c->name);
}

/* Each dimension but the first is fixed or a multiple of T. */
static int take_dims(Column *c, const DataInputs *inputs, int input, const char *from) {
    const amp_tensor_info *whole = &inputs->input[input], *unit = &inputs->at_unit[input];
    bool is_linear = whole->dims[0] == unit->dims[0];
    for (int i = 1; i < whole->rank; i++) {
        const bool has_length = whole->dims[i] != unit->dims[i];
        c->of_unit[i] = has_length ? unit->dims[i] : 0;
        is_linear = is_linear && (!has_length || unit->dims[i] * (inputs->length / inputs->unit) == whole->dims[i]);
    }
    if (is_linear) return 0;
    return report_text("%s: the model's input %s is not fed from samples with lengths: a dimension of it is T * T, or "
                       "samples and T in one; declare it as [N, T]",
                       from, c->name);
}

/* Elements of dimension |i| that a length takes. */
static int64_t part(const Column *c, int i, int64_t length, int64_t unit) {
    return c->of_unit[i] ? (c->of_unit[i] * length + unit - 1) / unit : c->dims[i];
}

static int check_dims(const Dataset *d, const Column *c, const amp_tensor_info *whole, const char *from) {
    int64_t longest = 0;
    for (int64_t i = 1; i < d->count; i++) longest = d->lengths[i] > d->lengths[longest] ? i : longest;
    for (int i = 1; i < c->rank; i++) {
        if (!c->of_unit[i] && c->dims[i] != whole->dims[i])
            return report_text("%s: %s has %" PRId64 " numbers in dimension %d, the model's input %" PRId64, from,
                               c->name, c->dims[i], i, whole->dims[i]);
        if (part(c, i, d->lengths[longest], d->unit) > c->dims[i])
            return report_text("%s: lengths[%" PRId64 "] is %" PRId64 ", but %s has %" PRId64
                               " numbers in dimension %d",
                               from, longest, d->lengths[longest], c->name, c->dims[i], i);
    }
    return 0;
}

int lengths_take_column(const Dataset *d, Column *c, const DataInputs *inputs, int input, const int64_t *dims,
                        int32_t rank, const char *from) {
    const amp_tensor_info *whole = &inputs->input[input];
    if (rank != whole->rank)
        return report_text("%s: %s has %d dimensions, the model's input %d", from, c->name, rank, whole->rank);
    if (lengths_take_padding(c, inputs, input, from) || take_dims(c, inputs, input, from)) return 1;
    c->rank = rank;
    c->elements = 1;
    memcpy(c->dims, dims, sizeof *dims * (size_t)rank);
    for (int i = 1; i < rank; i++) c->elements *= dims[i];
    return check_dims(d, c, whole, from);
}

/* ---- copying ----------------------------------------------------------------------------------------------------- */

char *lengths_pad(const Column *c, int64_t count, char *to) {
    const int32_t narrow = (int32_t)c->padding;
    const size_t size = amp_dtype_size(c->dtype);
    if (!c->padding) memset(to, 0, size * (size_t)count);
    for (int64_t i = 0; c->padding && i < count; i++)
        memcpy(to + (size_t)i * size, size == sizeof narrow ? (const void *)&narrow : &c->padding, size);
    return to + size * (size_t)count;
}

typedef struct Copy {
    const Column *column;
    size_t from[AMP_MAX_RANK];                     /* bytes of an element of the dimension, in the file */
    int64_t taken[AMP_MAX_RANK], to[AMP_MAX_RANK]; /* elements of the dimension */
    int64_t inner[AMP_MAX_RANK];                   /* numbers in an element of the dimension, in the batch */
} Copy;

static char *copy_dim(const Copy *k, int i, const char *from, char *to) {
    const Column *c = k->column;
    if (i + 1 == c->rank) {
        const size_t bytes = k->from[i] * (size_t)k->taken[i];
        memcpy(to, from, bytes);
        return lengths_pad(c, k->to[i] - k->taken[i], to + bytes);
    }
    for (int64_t at = 0; at < k->taken[i]; at++, from += k->from[i]) to = copy_dim(k, i + 1, from, to);
    return lengths_pad(c, (k->to[i] - k->taken[i]) * k->inner[i], to);
}

char *lengths_copy(const Column *c, int64_t row, int64_t length, int64_t t, int64_t unit, char *to) {
    Copy k = {.column = c};
    size_t bytes = amp_dtype_size(c->dtype);
    int64_t inner = 1;
    for (int i = c->rank - 1; i > 0; i--) {
        k.from[i] = bytes;
        k.inner[i] = inner;
        k.taken[i] = part(c, i, length, unit);
        k.to[i] = part(c, i, t, unit);
        bytes *= (size_t)c->dims[i];
        inner *= k.to[i];
    }
    return copy_dim(&k, 1, c->data + bytes * (size_t)row, to);
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

static int by_length(const void *a, const void *b, void *data) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    const int64_t of_x = data_length(data, x), of_y = data_length(data, y);
    if (of_x != of_y) return of_x > of_y ? -1 : 1;
    return (x > y) - (x < y);
}

void lengths_order(const Dataset *d, uint64_t seed, int64_t epoch, int64_t *order) {
    for (int64_t i = 0; i < d->count; i++) order[i] = i;
    qsort_r(order, (size_t)d->count, sizeof *order, by_length, (void *)(uintptr_t)d);
    for (int64_t from = 0, to; epoch != DATA_IN_ORDER && from < d->count; from = to) {
        for (to = from; to < d->count && data_length(d, order[to]) == data_length(d, order[from]);) to++;
        shuffle_part(order, from, to, seed, epoch);
    }
}
