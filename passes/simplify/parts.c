/* parts.c: parts of a value, taken one by one and joined one by one, as the steps of a recurrent layer do.  Without
 * these rules T steps would move T^2 of them.
 *
 *   %1 = slice(%x; 2 .. 8)      %2 = slice(%1; 1 .. 3)       =>   %2 = slice(%x; 3 .. 5)
 *   %1 = concat(%a, %b)         %2 = slice(%1; all of %b)    =>   %b
 *   %1 = concat(%a, %b)         %2 = concat(%1, %c)          =>   %2 = concat(%a, %b, %c), if nothing else reads %1
 *   %1 = pad(%a; after = 3)     %2 = pad(%b; before = 2)     =>   %1 = concat(%a, %b)
 *   %3 = add(%1, %2)                                              %3 = add(%1, 0)
 *
 * Movement changes no bit.  Of a sum of padded parts, each element is one part's plus zeros, which turn -0 into 0: so
 * does the zero that is added last.
 */
#include "passes/simplify/simplify.h"

#include <stdlib.h>

static int dim_of(const Func *f, const Op *o) { return ir_dim_attr(o, "dim", ir_shape(f, o->out[0])->rank); }

static int64_t size_along(const Func *f, Val v, int dim) { return ir_shape(f, v)->d[dim].mul; }

static int64_t begin_of(const Func *f, const Op *slice) {
    int64_t from = ir_attr(slice, "from")->i;
    return from < 0 ? from + size_along(f, slice->in[0], dim_of(f, slice)) : from;
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static void take_from(const Func *f, Op *slice, Val v, int64_t begin) {
    ir_attr(slice, "from")->i = begin;
    ir_attr(slice, "to")->i = begin + size_along(f, slice->out[0], dim_of(f, slice));
    slice->in[0] = v;
}

Val slice_again(Simplify *s, Op *o) {
    const Op *first = ir_def(s->f, o->in[0]);
    if (!first || first->code != OP_slice || dim_of(s->f, first) != dim_of(s->f, o)) return NO_VAL;
    take_from(s->f, o, first->in[0], begin_of(s->f, first) + begin_of(s->f, o));
    return NO_VAL;
}

/* A slice within one operand of a concat becomes a slice of that operand, which may be a concat again. */
Val slice_of_concat(Simplify *s, Op *o) {
    const Func *f = s->f;
    int dim = dim_of(f, o);
    for (const Op *first; (first = ir_def(f, o->in[0])) && first->code == OP_concat && dim_of(f, first) == dim;) {
        int64_t begin = begin_of(f, o), end = begin + size_along(f, o->out[0], dim), at = 0;
        int n = 0;
        while (at + size_along(f, first->in[n], dim) <= begin) at += size_along(f, first->in[n++], dim);
        if (end > at + size_along(f, first->in[n], dim)) break;
        take_from(f, o, first->in[n], begin - at);
    }
    return NO_VAL;
}

/* The concat along the same dimension that makes |v| for |o| alone, or NULL. */
static const Op *concat_for(const Simplify *s, const Op *o, Val v) {
    const Op *first = ir_def(s->f, v);
    bool same = first && first->code == OP_concat && dim_of(s->f, first) == dim_of(s->f, o);
    return same && s->uses[v.id] == 1 ? first : NULL;
}

Val concat_again(Simplify *s, Op *o) {
    int count = 0;
    for (int i = 0; i < o->n_in; i++) {
        const Op *first = concat_for(s, o, o->in[i]);
        count += first ? first->n_in : 1;
    }
    if (count == o->n_in) return NO_VAL;
    Val *in = arena_array(s->f->module->arena, Val, count);
    int n = 0;
    for (int i = 0; i < o->n_in; i++) {
        const Op *first = concat_for(s, o, o->in[i]);
        for (int j = 0; j < (first ? first->n_in : 1); j++) in[n++] = first ? first->in[j] : o->in[i];
    }
    o->in = in;
    o->n_in = count;
    return NO_VAL;
}

/* ---- sums of padded parts ---------------------------------------------------------------------------------------- */

typedef struct Part {
    Val value;
    int64_t from, to; /* of the sum, along the dimension */
} Part;

typedef VEC(Part) Parts;

typedef struct Joining {
    Func *f;
    const int *uses;
    bool *joined; /* by value id: sums that are in a chain already */
    int dim;
    Parts parts; /* of the chain at hand */
} Joining;

/* Whether |v| is a part with zeros around, which nothing else reads; along |j->dim| where there are parts already. */
static bool take_part(Joining *j, Val v) {
    const Op *o = ir_def(j->f, v);
    if (!o || o->code != OP_pad || j->uses[v.id] != 1 || ir_attr(o, "value")->f != 0.0) return false;
    if (j->parts.len && dim_of(j->f, o) != j->dim) return false;
    j->dim = dim_of(j->f, o);
    int64_t from = ir_attr(o, "before")->i;
    Part part = {o->in[0], from, from + size_along(j->f, o->in[0], j->dim)};
    vec_push(j->f->module->arena, &j->parts, part);
    return true;
}

/* The parts that the chain of sums which ends in |o| adds up; returns what they are added to, or NO_VAL. */
static Val collect_parts(Joining *j, const Op *o) {
    j->parts.len = 0;
    for (;; o = ir_def(j->f, o->in[0])) {
        if (!take_part(j, o->in[1])) return o->out[0];
        j->joined[o->out[0].id] = true;
        if (take_part(j, o->in[0])) return NO_VAL;
        const Op *before = ir_def(j->f, o->in[0]);
        if (!before || before->code != OP_add || j->uses[o->in[0].id] != 1) return o->in[0];
    }
}

static int by_place(const void *a, const void *b) {
    int64_t x = ((const Part *)a)->from, y = ((const Part *)b)->from;
    return (x > y) - (x < y);
}

/* Puts the parts in order; false where two of them overlap. */
static bool sort_parts(Joining *j) {
    qsort(j->parts.data, (size_t)j->parts.len, sizeof *j->parts.data, by_place);
    for (int i = 1; i < j->parts.len; i++)
        if (j->parts.data[i].from < j->parts.data[i - 1].to) return false;
    return true;
}

/* ---- the ops that take their place ------------------------------------------------------------------------------- */

static Op *op_for(Func *f, const Op *like, Opcode code, const Val *in, int n_in) {
    Op *o = ir_op_new(f, code, in, n_in);
    o->path = like->path;
    o->layer = like->layer;
    o->pos = like->pos;
    o->reason = like->reason;
    return o;
}

/* Zeros [from, to) of the sum |o|, where no part is. */
static Val zeros_between(const Joining *j, const Op *o, int64_t from, int64_t to) {
    Shape shape = *ir_shape(j->f, o->out[0]);
    shape.d[j->dim] = dim_const(to - from);
    return ir_result(j->f, op_for(j->f, o, OP_full, NULL, 0), NULL, ir_dtype(j->f, o->out[0]), shape);
}

static Val concat_parts(Joining *j, const Op *o) {
    Func *f = j->f;
    int64_t end = 0, size = size_along(f, o->out[0], j->dim);
    Val *in = arena_array(f->module->arena, Val, 2 * j->parts.len + 1);
    int n = 0;
    for (int i = 0; i < j->parts.len; i++) {
        const Part *part = &j->parts.data[i];
        if (part->from > end) in[n++] = zeros_between(j, o, end, part->from);
        in[n++] = part->value;
        end = part->to;
    }
    if (end < size) in[n++] = zeros_between(j, o, end, size);
    Op *all = op_for(f, o, OP_concat, in, n);
    ir_attr(all, "dim")->i = j->dim;
    return ir_make_results(f, all, ir_dtype(f, o->out[0]), NULL);
}

/* The sum |o| as a concat and one addition: to what the parts were added to, or of a zero. */
static void join_parts(Joining *j, Op *o, Val other) {
    Func *f = j->f;
    Val joined = concat_parts(j, o);
    if (!other.id) other = ir_make_results(f, op_for(f, o, OP_const, NULL, 0), AMP_DT_F32, NULL);
    o->in = arena_array(f->module->arena, Val, 2);
    o->in[0] = joined;
    o->in[1] = other;
}

/* By value id: the ends of chains, found from the last op on, so that none begins within another. */
static bool *find_chains(Joining *j) {
    bool *ends = arena_array(j->f->module->arena, bool, j->f->values.len + 1);
    for (int i = j->f->body.len - 1; i >= 0; i--) {
        const Op *o = ir_op_at(j->f, i);
        if (o->code != OP_add || j->joined[o->out[0].id]) continue;
        collect_parts(j, o);
        ends[o->out[0].id] = j->parts.len > 1 && sort_parts(j);
    }
    return ends;
}

void join_padded_parts(Func *f) {
    Arena *a = f->module->arena;
    Joining j = {.f = f, .uses = ir_use_counts(f, a), .joined = arena_array(a, bool, f->values.len + 1)};
    const bool *ends = find_chains(&j);
    const OpIds body = ir_take_body(f);
    for (int i = 0; i < body.len; i++) {
        Op *o = ir_op(f, body.data[i]);
        if (o->n_out && ends[o->out[0].id]) {
            Val other = collect_parts(&j, o);
            sort_parts(&j);
            join_parts(&j, o, other);
        }
        vec_push(a, &f->body, body.data[i]);
    }
}
