/* turn_columns.c: weights that multiply flattened images, with columns in the order in which the pixels are stored.
 *
 *   state %fc.weight : f32[10, 3136]                  state %fc.weight : f32[10, 3136] hwio 49
 *     %p = permute(%x; dims = (0, 3, 1, 2))
 *     %f = reshape(%p) : f16[N, 3136]                   %f = reshape(%x) : f16[N, 3136]
 *     %y = contract(%f, %fc.weight; tb = true)    =>    %y = contract(%f, %fc.weight; tb = true)
 *     %d = contract(%dy, %fc.weight)                    %d = contract(%dy, %fc.weight)
 *                                                       %i = reshape(%d) : f16[N, 7, 7, 64]
 *     %g = reshape(%d) : f16[N, 64, 7, 7]               %g = permute(%i; dims = (0, 3, 1, 2)) : f16[N, 64, 7, 7]
 *
 * %x is [N, 7, 7, 64].  Column c * 49 + p of the weight is column p * 64 + c in memory, for its moments and sums as
 * well, so nothing is moved: the runtime counts columns as the model does wherever a user or a file sees them.  Only
 * where all that is computed with the weight, in every function, is the same in any order of the columns.
 */
#include "passes/common/common.h"
#include "targets/target.h"

typedef enum Mark { PLAIN, TURNED, ANY } Mark; /* ANY: the same in each column */

typedef struct Turning {
    Module *m;
    const State *weight;
    int64_t pixels, channels;
} Turning;

typedef VEC(Op *) OpList;

typedef struct Walk {
    const Turning *t;
    Func *f;
    Mark *mark;          /* by value id */
    OpList flat, unflat; /* the reshapes of the picture above */
    bool again;          /* one was found by what its product is computed with */
} Walk;

static bool goes_with(const Turning *t, const State *s) {
    const bool is_of = s == t->weight || (s->of && !strcmp(s->of, t->weight->name));
    return is_of && shape_equal(&s->shape, &t->weight->shape);
}

/* Images that are made again for the gradient are turned too, so that bits do not depend on checkpoints. */
static Val before_barriers(const Func *f, Val v) {
    for (const Op *o = ir_def(f, v); o && o->code == OP_barrier; o = ir_def(f, v)) v = o->in[0];
    return v;
}

static Val before_casts(const Func *f, Val v) {
    for (const Op *o = ir_def(f, v); o && (o->code == OP_cast || o->code == OP_barrier); o = ir_def(f, v)) v = o->in[0];
    return v;
}

/* The reshape that makes |v| of a permute to channels first; NULL: none does. */
static Op *flattens(const Func *f, Val v) {
    static const int64_t first[] = {0, 3, 1, 2};
    Op *o = ir_def(f, v);
    const Op *permute = o && o->code == OP_reshape ? ir_def(f, before_barriers(f, o->in[0])) : NULL;
    if (!permute || permute->code != OP_permute || ir_shape(f, v)->rank != 2) return NULL;
    const Dims *dims = &ir_attr(permute, "dims")->dims;
    for (int i = 0; i < 4; i++)
        if (dims->count != 4 || dims->at[i] != first[i]) return NULL;
    const Shape *s = ir_shape(f, o->in[0]);
    return dim_varies(s->d[1]) || dim_varies(s->d[2]) || dim_varies(s->d[3]) ? NULL : o;
}

/* ---- what the columns of a value are ----------------------------------------------------------------------------- */

static bool is_scalar(const Func *f, Val v) {
    Dim count;
    return shape_count(ir_shape(f, v), &count) && dim_is_one(count);
}

static bool is_one_column(const Func *f, Val v) {
    const Shape *s = ir_shape(f, v);
    return s->rank == 2 && dim_is_one(s->d[1]);
}

static Mark mark_of(const Walk *w, Val v) {
    const Mark mark = w->mark[v.id];
    return mark == PLAIN && (is_scalar(w->f, v) || is_one_column(w->f, v)) ? ANY : mark;
}

static bool any_turned(const Walk *w, const Op *o) {
    for (int n = 0; n < o->n_in; n++)
        if (w->mark[o->in[n].id] == TURNED && ir_reads_elements(o, n)) return true;
    return false;
}

static bool turn_image(Walk *w, Val v) {
    Op *flat = flattens(w->f, before_casts(w->f, v));
    if (!flat) return false;
    const Shape *s = ir_shape(w->f, flat->in[0]);
    if (s->d[1].mul != w->t->channels || s->d[2].mul * s->d[3].mul != w->t->pixels) return false;
    for (int i = 0; i < w->flat.len; i++)
        if (w->flat.data[i] == flat) return true;
    vec_push(w->t->m->arena, &w->flat, flat);
    w->again = true;
    return true;
}

/* Whether |v|, beside what is turned, is a gradient of images that can be. */
static bool turn_gradient(Walk *w, Val v) {
    const Op *o = ir_def(w->f, v);
    bool any = false;
    if (!o || !shape_equal(ir_shape(w->f, v), &w->t->weight->shape)) return false;
    if (o->code == OP_contract && ir_attr(o, "ta")->b && !ir_attr(o, "tb")->b) return turn_image(w, o->in[1]);
    if (!(ir_op_info[o->code].flags & ELEMENTWISE)) return false;
    for (int n = 0; n < o->n_in; n++)
        if (mark_of(w, o->in[n]) == PLAIN) {
            if (!turn_gradient(w, o->in[n])) return false;
            any = true;
        }
    return any;
}

static bool see_elementwise(Walk *w, const Op *o) {
    for (int n = 0; n < o->n_in; n++)
        if (mark_of(w, o->in[n]) == PLAIN && !(turn_gradient(w, o->in[n]) && w->again)) return false;
    w->mark[o->out[0].id] = TURNED;
    return o->n_out == 1 && !(ir_op_info[o->code].flags & RANDOM);
}

static bool see_product(Walk *w, const Op *o) {
    const bool ta = ir_attr(o, "ta")->b, tb = ir_attr(o, "tb")->b;
    const bool a = w->mark[o->in[0].id] == TURNED, b = w->mark[o->in[1].id] == TURNED;
    if (!ta && tb) return a && b; /* a sum over the columns of both */
    if (a || tb) return false;
    w->mark[o->out[0].id] = TURNED;
    return true;
}

static bool sums_columns(const Func *f, const Op *o) {
    const int rank = ir_shape(f, o->in[0])->rank;
    const Dims *dims = &ir_attr(o, "dims")->dims;
    for (int i = 0; i < dims->count; i++)
        if (dims->at[i] == rank - 1 || dims->at[i] == -1) return true;
    return !dims->count;
}

static bool see_reshape(Walk *w, Op *o) {
    const Shape *s = ir_shape(w->f, o->out[0]);
    const Dim pixels = s->rank == 4 ? dim_const(s->d[2].mul * s->d[3].mul) : dim_const(0);
    if (s->rank != 4 || dim_varies(s->d[1]) || dim_varies(s->d[2]) || dim_varies(s->d[3])) return false;
    vec_push(w->t->m->arena, &w->unflat, o);
    return s->d[1].mul == w->t->channels && pixels.mul == w->t->pixels;
}

static bool see(Walk *w, Op *o) {
    const int flags = ir_op_info[o->code].flags;
    if (o->code == OP_assign)
        return goes_with(w->t, ir_state_of(w->f, o->in[0])) ? mark_of(w, o->in[1]) != PLAIN
                                                            : w->mark[o->in[1].id] != TURNED;
    if (o->code == OP_const || o->code == OP_broadcast || (o->code == OP_expand && is_scalar(w->f, o->in[0])))
        w->mark[o->out[0].id] = ANY; /* what runs down the rows is the same in each column */
    if (o->code == OP_barrier) w->mark[o->out[0].id] = w->mark[o->in[0].id];
    if (o->code == OP_barrier || !any_turned(w, o)) return true;
    if (o->code == OP_contract) return see_product(w, o);
    if (o->code == OP_reshape) return see_reshape(w, o);
    if (flags & REDUCE) return sums_columns(w->f, o);
    return flags & ELEMENTWISE && see_elementwise(w, o);
}

/* Images that the weight multiplies: their flattened form is turned with it. */
static bool see_images(Walk *w) {
    for (int i = 0; i < w->f->body.len; i++) {
        const Op *o = ir_op_at(w->f, i);
        if (o->code != OP_contract || !ir_attr(o, "tb")->b) continue;
        const Val v = before_casts(w->f, o->in[1]);
        if (ir_value(w->f, v)->kind != VAL_STATE || ir_state_of(w->f, v) != w->t->weight) continue;
        if (!turn_image(w, o->in[0])) return false;
    }
    return true;
}

static bool see_ops(Walk *w) {
    memset(w->mark, 0, sizeof w->mark[0] * (size_t)(w->f->values.len + 1));
    w->unflat.len = 0;
    w->again = false;
    for (int i = 0; i < w->f->inputs.len; i++) {
        const Val v = w->f->inputs.data[i];
        if (ir_value(w->f, v)->kind == VAL_STATE && goes_with(w->t, ir_state_of(w->f, v))) w->mark[v.id] = TURNED;
    }
    for (int i = 0; i < w->flat.len; i++) w->mark[w->flat.data[i]->out[0].id] = TURNED;
    for (int i = 0; i < w->f->body.len && !w->again; i++)
        if (!see(w, ir_op_at(w->f, i))) return false;
    return true;
}

static bool see_function(Walk *w) {
    if (!see_images(w)) return false;
    do {
        if (!see_ops(w)) return false;
    } while (w->again);
    for (int i = 0; i < w->f->results.len; i++) {
        const Result *r = &w->f->results.data[i];
        if (w->mark[r->value.id] == TURNED && (r->kind != RESULT_GRADIENT || strcmp(r->of, w->t->weight->name)))
            return false;
    }
    return true;
}

/* ---- the same with turned columns -------------------------------------------------------------------------------- */

/* The image as it is stored, then as the graph sees it. */
static void turn_back(Func *f, Op *o) {
    const Val image = o->out[0];
    const Shape s = *ir_shape(f, image), last = shape_of(4, (Dim[]){s.d[0], s.d[2], s.d[3], s.d[1]});
    o->n_out = 0;
    const Val stored = ir_result(f, o, NULL, ir_dtype(f, image), last);
    Op *permute = ir_op_new(f, OP_permute, &stored, 1);
    ir_attr(permute, "dims")->dims = (Dims){4, {0, 3, 1, 2}};
    permute->path = o->path;
    permute->layer = o->layer;
    permute->pos = o->pos;
    permute->reason = o->reason;
    permute->region = o->region;
    permute->out = arena_new(f->module->arena, Val);
    permute->out[0] = image;
    permute->n_out = 1;
    ir_value(f, image)->def = permute->id;
}

static void turn_function(const Walk *w) {
    Func *f = w->f;
    for (int i = 0; i < w->flat.len; i++) {
        Op *flat = w->flat.data[i];
        flat->in[0] = ir_def(f, before_barriers(f, flat->in[0]))->in[0];
    }
    const OpIds body = ir_take_body(f);
    for (int i = 0; i < body.len; i++) {
        vec_push(f->module->arena, &f->body, body.data[i]);
        for (int j = 0; j < w->unflat.len; j++)
            if (w->unflat.data[j]->id.id == body.data[i].id) turn_back(f, w->unflat.data[j]);
    }
    for (int i = 0; i < f->results.len; i++)
        if (w->mark[f->results.data[i].value.id] == TURNED) f->results.data[i].pixels = w->t->pixels;
}

/* ---- which weights ----------------------------------------------------------------------------------------------- */

static void turn_weight(Turning *t) {
    Module *m = t->m;
    Walk *walks = arena_array(m->arena, Walk, m->funcs.len + 1);
    for (int i = 0; i < m->funcs.len; i++) {
        Func *f = m->funcs.data[i];
        walks[i] = (Walk){.t = t, .f = f, .mark = arena_array(m->arena, Mark, f->values.len + 1)};
        if (!see_function(&walks[i])) return;
    }
    for (int i = 0; i < m->funcs.len; i++) turn_function(&walks[i]);
    for (int i = 0; i < m->states.len; i++)
        if (goes_with(t, m->states.data[i])) m->states.data[i]->pixels = t->pixels;
}

/* The weight by which |o| multiplies flattened images; NULL: it does not. */
static const State *weight_of_images(const Func *f, const Op *o, Turning *t) {
    if (o->code != OP_contract || ir_attr(o, "ta")->b || !ir_attr(o, "tb")->b) return NULL;
    const Val v = before_casts(f, o->in[1]);
    const Op *flat = flattens(f, before_casts(f, o->in[0]));
    const State *s = flat && ir_value(f, v)->kind == VAL_STATE ? ir_state_of(f, v) : NULL;
    if (!s || s->role != STATE_PARAM || s->shape.rank != 2 || s->pixels) return NULL;
    const Shape *image = ir_shape(f, flat->in[0]);
    t->channels = image->d[1].mul;
    t->pixels = image->d[2].mul * image->d[3].mul;
    return t->pixels > 1 && t->channels > 1 && s->shape.d[1].mul == t->pixels * t->channels ? s : NULL;
}

bool pass_turn_columns(PassContext *c) {
    Module *m = c->m;
    for (int i = 0; i < m->funcs.len; i++) {
        const Func *f = m->funcs.data[i];
        for (int j = 0; j < f->body.len; j++) {
            Turning t = {.m = m};
            t.weight = weight_of_images(f, ir_op_at(f, j), &t);
            if (t.weight) turn_weight(&t);
        }
    }
    return true;
}
