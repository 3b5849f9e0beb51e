/* move_ops.c: movement, and what is made from nothing, from indexes or from rows of a table. */
#include "ir/interp/ops.h"

#include <math.h>

#include "base/hash.h"
#include "base/random.h"

/* ---- the same elements, elsewhere -------------------------------------------------------------------------------- */

void interp_op_reshape(Running *r) { FOR_EACH(r, i) result(r)[i] = r->in[0]->data[i]; }
INTERP_ALIKE(barrier, reshape)
INTERP_ALIKE(detach, reshape)
INTERP_ALIKE(flatten, reshape)

void interp_op_expand(Running *r) { FOR_EACH(r, i) result(r)[i] = interp_at(r->in[0], r->out[0], i); }

/* Dimension d of the result is dimension from[d] of x. */
static void permute(Running *r, const int64_t *from) {
    const InterpTensor *x = r->in[0];
    FOR_EACH(r, i) {
        int64_t out[MAX_RANK], in[MAX_RANK];
        interp_coordinates(r->out[0], i, out);
        for (int d = 0; d < x->rank; d++) in[from[d]] = out[d];
        result(r)[i] = x->data[interp_offset(x, in)];
    }
}

void interp_op_permute(Running *r) { permute(r, ir_attr(r->op, "dims")->dims.at); }

void interp_op_transpose(Running *r) {
    int rank = r->in[0]->rank, a = ir_dim_attr(r->op, "a", rank), b = ir_dim_attr(r->op, "b", rank);
    int64_t from[MAX_RANK];
    for (int d = 0; d < rank; d++) from[d] = d == a ? b : d == b ? a : d;
    permute(r, from);
}

/* ---- along one dimension ----------------------------------------------------------------------------------------- */

void interp_op_slice(Running *r) {
    int dim = ir_dim_attr(r->op, "dim", r->in[0]->rank);
    FOR_EACH(r, i) {
        int64_t at[MAX_RANK];
        interp_coordinates(r->out[0], i, at);
        at[dim] += interp_int(r, "from");
        result(r)[i] = r->in[0]->data[interp_offset(r->in[0], at)];
    }
}

void interp_op_pad(Running *r) {
    int dim = ir_dim_attr(r->op, "dim", r->in[0]->rank);
    FOR_EACH(r, i) {
        int64_t at[MAX_RANK];
        interp_coordinates(r->out[0], i, at);
        at[dim] -= interp_int(r, "before");
        bool is_inside = at[dim] >= 0 && at[dim] < r->in[0]->dims[dim];
        result(r)[i] = is_inside ? r->in[0]->data[interp_offset(r->in[0], at)] : interp_float(r, "value");
    }
}

void interp_op_concat(Running *r) {
    int dim = ir_dim_attr(r->op, "dim", r->in[0]->rank);
    FOR_EACH(r, i) {
        int64_t at[MAX_RANK];
        int j = 0;
        for (interp_coordinates(r->out[0], i, at); at[dim] >= r->in[j]->dims[dim]; j++) at[dim] -= r->in[j]->dims[dim];
        result(r)[i] = r->in[j]->data[interp_offset(r->in[j], at)];
    }
}

void interp_op_stack(Running *r) {
    int dim = ir_dim_attr(r->op, "dim", r->out[0]->rank);
    FOR_EACH(r, i) {
        int64_t at[MAX_RANK], j;
        interp_coordinates(r->out[0], i, at);
        j = at[dim];
        for (int d = dim; d + 1 < r->out[0]->rank; d++) at[d] = at[d + 1];
        result(r)[i] = r->in[j]->data[interp_offset(r->in[j], at)];
    }
}

/* ---- from nothing ------------------------------------------------------------------------------------------------ */

void interp_op_full(Running *r) { FOR_EACH(r, i) result(r)[i] = interp_float(r, "value"); }

void interp_op_tensor(Running *r) {
    for (int64_t i = 0; i < r->out[0]->count; i++) r->out[0]->data[i] = ir_attr(r->op, "values")->numbers->at[i];
}

void interp_op_arange(Running *r) { FOR_EACH(r, i) result(r)[i] = (double)i; }

/* ---- rows of a table --------------------------------------------------------------------------------------------- */

/* The row that id |i| names; -1 where the table has no such row (a backend never gets that far). */
static int64_t row_of(const InterpTensor *table, const InterpTensor *ids, int64_t i) {
    double id = ids->data[i];
    return id >= 0 && id < (double)table->dims[0] ? (int64_t)id : -1;
}

static void rows_of_table(Running *r, const InterpTensor *table, const InterpTensor *ids) {
    int64_t width = table->dims[1];
    FOR_EACH(r, i) {
        int64_t row = row_of(table, ids, i / width);
        result(r)[i] = row < 0 ? (double)NAN : table->data[row * width + i % width];
    }
}

void interp_op_embedding(Running *r) { rows_of_table(r, r->in[1], r->in[0]); }
void interp_op_gather(Running *r) { rows_of_table(r, r->in[0], r->in[1]); }

/* embedding_grad and scatter: (dy, ids, ...): rows of dy, added up by id. */
void interp_op_scatter(Running *r) {
    const InterpTensor *dy = r->in[0], *ids = r->in[1], *table = r->out[0];
    int64_t width = table->dims[1];
    FOR_EACH(r, i) result(r)[i] = 0.0;
    for (int64_t i = 0; i < dy->count; i++) {
        int64_t row = row_of(table, ids, i / width);
        if (row >= 0) result(r)[row * width + i % width] += dy->data[i];
    }
}
INTERP_ALIKE(embedding_grad, scatter)

/* The third result is memory: -1 where no id is. */
void interp_op_distinct_rows(Running *r) {
    const InterpTensor *ids = r->in[0], *seen = r->out[2];
    for (int64_t i = 0; i < seen->count; i++) seen->data[i] = -1;
    FOR_EACH(r, k) {
        const int64_t row = row_of(r->in[1], ids, k);
        double *first = row < 0 ? NULL : &seen->data[row];
        if (first && *first < 0) *first = (double)k;
        result(r)[k] = first ? *first : (double)k;
        r->out[1]->data[k] = first && *first == (double)k ? ids->data[k] : -1;
    }
}

/* ---- indexes, extents, random numbers ---------------------------------------------------------------------------- */

void interp_op_iota(Running *r) {
    InterpTensor *out = r->out[0];
    for (int64_t l = 0; l < interp_line_count(out, interp_int(r, "dim")); l++) {
        Line line = interp_line(out, interp_int(r, "dim"), l);
        for (int64_t j = 0; j < line.length; j++) out->data[line.base + j * line.stride] = (double)j;
    }
}

void interp_op_broadcast(Running *r) {
    InterpTensor *out = r->out[0];
    for (int64_t i = 0; i < out->count; i++) out->data[i] = r->in[0]->data[interp_folded_index(out, dims_of(r), i)];
}

void interp_op_extent(Running *r) { r->out[0]->data[0] = (double)interp_folded_count(r->in[0], dims_of(r)); }

void interp_op_random(Running *r) {
    uint32_t key = amp_hash32(ir_attr(r->op, "key")->s);
    uint64_t seed = (uint64_t)(int64_t)r->in[1]->data[0];
    uint32_t iteration = (uint32_t)(int64_t)r->in[2]->data[0];
    uint32_t micro = r->op->n_in > 3 ? (uint32_t)(int64_t)r->in[3]->data[0] : 0;
    uint64_t first = r->op->n_in > 4 ? (uint64_t)(int64_t)r->in[4]->data[0] : 0;
    int64_t word = interp_int(r, "word");
    const DrawNumbers numbers = ir_draw_numbers(ir_shape(r->f, r->op->out[0]));
    for (int64_t i = 0; i < r->out[0]->count; i++) {
        const uint64_t number = first + (uint64_t)ir_draw_number(&numbers, i, r->at);
        const uint64_t element = word < 0 ? number : 4 * number + (uint64_t)word;
        r->out[0]->data[i] = amp_random_unit(amp_random_u32(seed, key, iteration, micro, element));
    }
}

/* base to the e, e an integer. */
void interp_op_power(Running *r) { r->out[0]->data[0] = pow(interp_float(r, "base"), r->in[0]->data[0]); }
