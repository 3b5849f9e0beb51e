/* move_results.c: what moves the result of a batched product, taken into the product.
 *
 *     %y = batch_contract(%p, %v) : f32[N, 4, T, 24]                 %y = batch_contract(%p, %v; merged = true)
 *     %h = cast(%y)               : bf16[N, 4, T, 24]                      : f32[N, T, 96]
 *     %m = permute(%h; dims = (0, 2, 1, 3))                     =>   %h = cast(%y) : bf16[N, T, 96]
 *     %z = reshape(%m)            : bf16[N, T, 96]
 *
 * Heads are put together again: the products of the last batch dimension lie beside each other.  Several reshapes may
 * do so, if all of them give that matrix.  And a transpose of each product is the product of the operands in the other
 * order: (A B)^T = B^T A^T, the same sums.  Only where nothing else reads what was between.
 */
#include "passes/common/common.h"
#include "targets/target.h"

typedef struct Results {
    Func *f;
    int *uses;   /* by value id: ops that read it, and results */
    int *merges; /* by value id: reshapes of it that make one dim of the last two */
    Val *is;     /* by value id: what it has become; NO_VAL: itself */
} Results;

/* [B.., M, H, C] as a matrix of B.. * M rows and H * C columns. */
static bool merges_last(const Func *f, const Op *reshape) {
    const Shape *from = ir_shape(f, reshape->in[0]);
    Dim merged, before, channels, rows, cols;
    if (from->rank < 4 || !dim_mul(from->d[from->rank - 2], from->d[from->rank - 1], &merged)) return false;
    Shape lines = *from;
    lines.rank--;
    if (!shape_matrix(&lines, &before, &channels) || !shape_matrix(ir_shape(f, reshape->out[0]), &rows, &cols))
        return false;
    return dim_equal(rows, before) && dim_equal(cols, merged);
}

static void count_uses(Results *r) {
    const Func *f = r->f;
    for (int i = 0; i < f->results.len; i++) r->uses[f->results.data[i].value.id]++;
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        r->uses[o->pred.id]++;
        for (int n = 0; n < o->n_in; n++) r->uses[o->in[n].id]++;
        if (o->code == OP_reshape && merges_last(f, o)) r->merges[o->in[0].id]++;
    }
}

/* The batched product that made |v|, seen through casts, where each value on the way has one reader; or NULL. */
static Op *product_behind(const Results *r, Val v) {
    Op *o = ir_def(r->f, v);
    while (o && o->code == OP_cast && r->uses[v.id] == 1) {
        v = o->in[0];
        o = ir_def(r->f, v);
    }
    bool found = o && o->code == OP_batch_contract && ir_is_product(o) && r->uses[v.id] == 1;
    return found && !ir_attr(o, "merged")->b ? o : NULL;
}

/* The product's result, and the casts of it up to |v|, have this shape from now on. */
static void set_shape(const Results *r, Val v, const Op *product, Shape s) {
    for (; v.id != product->out[0].id; v = ir_def(r->f, v)->in[0]) r->f->values.data[v.id]->shape = s;
    r->f->values.data[v.id]->shape = s;
}

/* A permute that exchanges dims |i| and |i| + 1, from the back. */
static bool exchanges(const Func *f, const Op *o, int from_back) {
    if (o->code != OP_permute) return false;
    const int rank = ir_shape(f, o->out[0])->rank, first = rank - from_back;
    if (first < 0) return false;
    const Dims *dims = &ir_attr(o, "dims")->dims;
    for (int i = 0; i < rank; i++) {
        int64_t at = dims->at[i] < 0 ? dims->at[i] + rank : dims->at[i];
        if (at != (i == first ? first + 1 : i == first + 1 ? first : i)) return false;
    }
    return true;
}

static void become(Results *r, const Op *gone, Val v) {
    r->is[gone->out[0].id] = v;
    r->uses[v.id] = r->uses[gone->out[0].id];
}

/* (A B)^T */
static bool exchange_operands(Results *r, const Op *permute) {
    Op *o = exchanges(r->f, permute, 2) ? product_behind(r, permute->in[0]) : NULL;
    if (!o) return false;
    const bool ta = ir_attr(o, "ta")->b;
    const Val a = o->in[0];
    ir_attr(o, "ta")->b = !ir_attr(o, "tb")->b;
    ir_attr(o, "tb")->b = !ta;
    o->in[0] = o->in[1];
    o->in[1] = a;
    set_shape(r, permute->in[0], o, *ir_shape(r->f, permute->out[0]));
    become(r, permute, permute->in[0]);
    return true;
}

/* [B.., M, H, C] as [B.., M, H * C]. */
static bool merge_columns(Results *r, const Op *permute) {
    const Val v = permute->n_out ? permute->out[0] : NO_VAL;
    if (!r->merges[v.id] || r->merges[v.id] != r->uses[v.id] || !exchanges(r->f, permute, 3)) return false;
    Op *o = product_behind(r, permute->in[0]);
    if (!o) return false;
    Shape s = *ir_shape(r->f, v);
    s.rank--;
    dim_mul(s.d[s.rank - 1], s.d[s.rank], &s.d[s.rank - 1]); /* fits: a reshape has it as its columns */
    ir_attr(o, "merged")->b = true;
    set_shape(r, permute->in[0], o, s);
    become(r, permute, permute->in[0]);
    return true;
}

/* A reshape to the shape that its operand has got. */
static void drop_same(Results *r, const Op *reshape) {
    if (reshape->code == OP_reshape && shape_equal(ir_shape(r->f, reshape->in[0]), ir_shape(r->f, reshape->out[0])))
        r->is[reshape->out[0].id] = reshape->in[0];
}

static Val current(const Results *r, Val v) { return r->is[v.id].id ? r->is[v.id] : v; }

static void move_results(Func *f) {
    Arena *a = f->module->arena;
    Results r = {f, arena_array(a, int, f->values.len + 1), arena_array(a, int, f->values.len + 1),
                 arena_array(a, Val, f->values.len + 1)};
    count_uses(&r);
    for (int i = 0; i < f->body.len; i++) {
        Op *o = ir_op_at(f, i);
        for (int n = 0; n < o->n_in; n++) o->in[n] = current(&r, o->in[n]);
        for (int n = 0; o->after && n < o->after->count; n++) o->after->at[n] = current(&r, o->after->at[n]);
        o->pred = current(&r, o->pred);
        if (!exchange_operands(&r, o) && !merge_columns(&r, o)) drop_same(&r, o);
    }
    for (int i = 0; i < f->results.len; i++) f->results.data[i].value = current(&r, f->results.data[i].value);
    int kept = 0;
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        if (!o->n_out || !r.is[o->out[0].id].id) f->body.data[kept++] = o->id;
    }
    f->body.len = kept;
}

bool pass_move_results(PassContext *c) { return each_func(c, move_results); }
