/* fuse_attention.c: what the kernel of attention stores of its results: rounded, or beside each other, as columns of
 * one matrix.
 *
 *     %q, %k, %v = cast(..)                         rounded, or not
 *     %c = concat(%q, %k, %v; dim = 2)              joins them
 *     %w = cast(%c)                                 in f32 again, if they were rounded
 *     %s = add(%w, 0)                               no zero is negative: a sum of padded parts
 *     %y = cast(%s)                                 rounded
 *
 * Gradients of queries, keys and values that are slices of one product.  The kernel may end with any of the three.  Its
 * ops say to code generation which they are. */
#include "passes/fuse/fuse.h"

#include <math.h>

typedef enum Step { NONE, MADE, ROUNDED, JOINED, WIDENED, CLEARED, ENDED } Step;

typedef struct Made { /* a value: the attention that it comes from, and the last step on the way */
    const Op *by;
    Step step;
} Made;

typedef struct Following {
    const Func *f;
    const int *uses;
    Made *at; /* by value id */
} Following;

/* Nothing but what follows reads it. */
static bool is_read_once(const Following *x, Val v) { return x->uses[v.id] == 1; }

static Step after_cast(const Following *x, const Op *o, const Made *from) {
    const Dtype to = ir_dtype(x->f, o->out[0]);
    const bool rounds = to == ir_dtype(x->f, from->by->in[ir_attention_operands(x->f, from->by).q]);
    if (from->step == MADE) return rounds ? ROUNDED : NONE;
    if (!is_read_once(x, o->in[0])) return NONE;
    if (from->step == CLEARED) return rounds ? ENDED : NONE;
    return from->step == JOINED && to == AMP_DT_F32 ? WIDENED : NONE;
}

/* Two neighbouring columns are stored at once. */
static bool has_pairs(const Shape *s) { return !dim_varies(s->d[s->rank - 1]) && s->d[s->rank - 1].mul % 2 == 0; }

static Step after_concat(const Following *x, const Op *o, const Made *from) {
    const int last = ir_shape(x->f, o->out[0])->rank - 1;
    if (o->n_in < 2 || from->by->code != OP_attend_grad || ir_dim_attr(o, "dim", last + 1) != last) return NONE;
    if (from->step != MADE && from->step != ROUNDED) return NONE;
    for (int n = 0; n < o->n_in; n++) {
        const Val v = o->in[n];
        const Made *part = &x->at[v.id];
        if (part->by != from->by || part->step != from->step || !is_read_once(x, v)) return NONE;
        if (part->step == ROUNDED && !is_read_once(x, ir_def(x->f, v)->in[0])) return NONE;
        if (!has_pairs(ir_shape(x->f, v))) return NONE;
    }
    return JOINED;
}

static bool is_zero(const Func *f, Val v) {
    const Op *o = ir_def(f, v);
    return o && o->code == OP_const && ir_attr(o, "value")->f == 0.0 && !signbit(ir_attr(o, "value")->f);
}

static Step after_add(const Following *x, const Op *o, const Made *from) {
    const bool is_joined = from->step == JOINED || from->step == WIDENED;
    if (!is_joined || !is_read_once(x, o->in[0]) || !is_zero(x->f, o->in[1])) return NONE;
    return ir_dtype(x->f, o->out[0]) == AMP_DT_F32 ? CLEARED : NONE;
}

static void follow(Following *x, const Op *o) {
    const Made from = o->n_in && o->n_out ? x->at[o->in[0].id] : (Made){0};
    for (int r = 0; r < o->n_out && ir_is_attention(o); r++) /* the second of attend is the logarithms of sums */
        if (!r || o->code == OP_attend_grad) x->at[o->out[r].id] = (Made){o, MADE};
    if (!from.step) return;
    const Step step = o->code == OP_cast     ? after_cast(x, o, &from)
                      : o->code == OP_concat ? after_concat(x, o, &from)
                      : o->code == OP_add    ? after_add(x, o, &from)
                                             : NONE;
    if (step) x->at[o->out[0].id] = (Made){from.by, step};
}

bool *attention_stored(const Func *f, Arena *a) {
    bool *stored = arena_array(a, bool, f->values.len + 1);
    if (!target_of(f->module)->rounds_attention) return stored;
    Following x = {f, ir_use_counts(f, a), arena_array(a, Made, f->values.len + 1)};
    for (int i = 0; i < f->body.len; i++) follow(&x, ir_op_at(f, i));
    for (int i = 0; i < f->values.len; i++) stored[i] = x.at[i].step > MADE && x.at[i].step != WIDENED;
    return stored;
}
