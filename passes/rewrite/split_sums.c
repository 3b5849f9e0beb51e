/* split_sums.c: long sums with few results, over many rows or a long k, on a target that needs many blocks at once:
 * parts that blocks make side by side, and a second sum that adds them in order.
 *
 *   %w = contract(%dy, %x; ta = true) : f32[64, 96]  =>  %1 = contract(%dy, %x; ta = true, parts = 4) : f32[4, 64, 96]
 *                                                        %w = sum_parts(%1)                : f32[64, 96]
 *   %b = reduce_sum(%dy; dims = (0)) : f32[96]       =>  %2 = reshape(%dy)                 : f32[N, 128, 96]
 *                                                        %3 = reduce_sum(%2; dims = (1))   : f32[N, 96]
 *                                                        %b = reduce_sum(%3; dims = (0))   : f32[96]
 *
 * A product has few tiles and a long k where it is the gradient of a weight, or makes few results of many features;
 * targets/sum_parts.c chooses the parts.
 * What followed it follows the sum of the parts.  A sum down the rows is one number per sample first, as `lower` makes
 * it where samples are a dimension.
 *
 * The number of parts follows from shapes that do not depend on n, so the bits follow from the model and n.
 */
#include "passes/common/common.h"
#include "targets/target.h"

enum { COLUMNS = 32 }; /* of what a block of a column kernel makes */

static int64_t blocks_of(int64_t size, int64_t of) { return (size + of - 1) / of; }

/* ---- products ---------------------------------------------------------------------------------------------------- */

static Shape shape_of_parts(int64_t parts, const Shape *s) {
    Shape whole = {.rank = s->rank + 1, .d = {dim_const(parts)}};
    for (int i = 0; i < s->rank; i++) whole.d[i + 1] = s->d[i];
    return whole;
}

/* An op of what |o| came from. */
static Op *new_op(Func *f, Opcode code, Val v, const Op *o) {
    Op *made = ir_op_new(f, code, &v, 1);
    made->path = o->path;
    made->layer = o->layer;
    made->pos = o->pos;
    made->reason = o->reason;
    made->region = o->region;
    return made;
}

/* The product makes parts; their sum is the value that it made. */
static void split_product(Func *f, Op *o, int64_t parts) {
    const Val whole = o->out[0];
    const Shape s = shape_of_parts(parts, ir_shape(f, whole));
    ir_attr(o, "parts")->i = parts;
    o->n_out = 0;
    Op *sum = new_op(f, OP_sum_parts, ir_result(f, o, NULL, AMP_DT_F32, s), o);
    sum->out = arena_new(f->module->arena, Val);
    sum->out[0] = whole;
    sum->n_out = 1;
    ir_value(f, whole)->def = sum->id;
}

/* ---- sums down the rows ------------------------------------------------------------------------------------------ */

/* As a multiple of N, and of T, be it a number or not. */
static bool is_whole(Dim rows) { return rows.div == 1 && rows.mul % dim_given(rows) == 0; }

/* A sum of [.., C] over all rows; each sample has |per_sample| rows. */
static bool is_column_sum(const Func *f, const Op *o, Dim *per_sample) {
    if ((o->code != OP_reduce_sum && o->code != OP_reduce_mean) || ir_attr(o, "keep")->b) return false;
    const Shape *s = ir_shape(f, o->in[0]), *out = ir_shape(f, o->out[0]);
    Dim rows, cols;
    if (s->rank < 2 || out->rank != 1 || !shape_matrix(s, &rows, &cols) || dim_is_sized(cols)) return false;
    for (int i = 0; i < ir_attr(o, "dims")->dims.count; i++) {
        int64_t d = ir_attr(o, "dims")->dims.at[i];
        if (d == s->rank - 1 || d == -1) return false;
    }
    *per_sample = dim_const(1);
    if (!rows.n || !is_whole(rows)) return true;
    *per_sample = rows;
    per_sample->n = 0;
    return true;
}

/* Before |o| one number per sample, or chunk of one, and column. */
static void split_rows(Func *f, Op *o, Dim per_sample) {
    const Shape *x = ir_shape(f, o->in[0]);
    const Dim cols = x->d[x->rank - 1];
    const int64_t chunks = dim_is_sized(per_sample) ? 1 : chunks_of_sample(per_sample.mul, cols.mul, 1);
    const Shape samples = shape_of(3, (Dim[]){dim_n(chunks, 1), dim_divided(per_sample, chunks), cols});
    const Shape sums = shape_of(2, (Dim[]){samples.d[0], samples.d[2]});
    Op *view = new_op(f, OP_reshape, o->in[0], o);
    Op *sum = new_op(f, o->code, ir_result(f, view, NULL, AMP_DT_F32, samples), o);
    ir_attr(sum, "dims")->dims = (Dims){1, {1}};
    o->in[0] = ir_result(f, sum, NULL, AMP_DT_F32, sums);
    ir_attr(o, "dims")->dims = (Dims){1, {0}};
}

/* ---- the function ------------------------------------------------------------------------------------------------ */

static void split_sums(Func *f) {
    const int64_t wanted = target_of(f->module)->sum_blocks;
    if (!wanted) return;
    const OpIds body = ir_take_body(f);
    for (int i = 0; i < body.len; i++) {
        Op *o = ir_op(f, body.data[i]);
        Dim per_sample;
        if (is_column_sum(f, o, &per_sample) && dim_assumed(per_sample, 1) >= ROWS_PER_SAMPLE &&
            blocks_of(ir_shape(f, o->out[0])->d[0].mul, COLUMNS) < wanted)
            split_rows(f, o, per_sample);
        vec_push(f->module->arena, &f->body, body.data[i]);
        const int64_t parts = ir_parts(o) == 1 ? target_parts(target_of(f->module), f, o) : 1;
        if (parts > 1) split_product(f, o, parts);
    }
}

bool pass_split_sums(PassContext *c) { return each_func(c, split_sums); }
