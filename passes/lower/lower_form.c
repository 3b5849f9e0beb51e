/* lower_form.c: the two forms of a value.  Images are [N, C, H, W] in the graph; image ops of core IR want [N, H, W,
 * C].  A value gets its other form where an op asks for it, once; elementwise ops work in the form that costs the
 * fewest permutes.  Weights of convolutions have a third one. */
#include "passes/lower/lower.h"

bool lower_is_last(const Lowering *l, Val v) { return (int)v.id < l->forms.len && l->forms.data[v.id].is_last; }

static OtherForm *entry(Lowering *l, Val v) {
    while (l->forms.len <= (int)v.id) vec_push(l->f->module->arena, &l->forms, (OtherForm){0});
    return &l->forms.data[v.id];
}

static bool has_other(const Lowering *l, Val v) {
    return (int)v.id < l->forms.len && l->forms.data[v.id].other.id != 0;
}

static Val original(const Lowering *l, Val v) {
    while ((int)v.id < l->forms.len && l->forms.data[v.id].of.id) v = l->forms.data[v.id].of;
    return v;
}

/* Whether the other form was made of the value, or of a copy of the same value. */
static bool was_asked(const Lowering *l, Val v) {
    Val root = original(l, v);
    return (int)root.id < l->forms.len && l->forms.data[root.id].asked;
}

void lower_mark_copy(Lowering *l, Val copy, Val of) {
    if (copy.id != original(l, of).id) entry(l, copy)->of = original(l, of);
}

void lower_mark_last(Lowering *l, Val v) {
    if (ir_shape(l->f, v)->rank >= 3) entry(l, v)->is_last = true;
}

int lower_readers(const Lowering *l, Val v) {
    if ((int)v.id < l->graph_values) return l->readers[v.id];
    return (int)v.id < l->forms.len ? l->forms.data[v.id].readers : 0;
}

void lower_add_readers(Lowering *l, Val v, Val graph) { entry(l, v)->readers += l->readers[graph.id]; }

/* ---- permutations ------------------------------------------------------------------------------------------------ */

/* (0, 2, 3, 1): where each dimension of [N, H, W, C] comes from. */
static Dims to_last(int rank) {
    Dims d = {.count = rank, .at = {0}};
    for (int i = 1; i < rank; i++) d.at[i] = i + 1 < rank ? i + 1 : 1;
    return d;
}

/* (0, 3, 1, 2) */
static Dims to_plain(int rank) {
    Dims d = {.count = rank, .at = {0}};
    for (int i = 1; i < rank; i++) d.at[i] = i == 1 ? rank - 1 : i - 1;
    return d;
}

static Shape permuted(const Shape *s, const Dims *dims) {
    Shape out = {.rank = s->rank};
    for (int i = 0; i < s->rank; i++) out.d[i] = s->d[dims->at[i]];
    return out;
}

static Shape last_shape(const Shape *s) {
    Dims dims = to_last(s->rank);
    return permuted(s, &dims);
}

static const char *last_suffix(int rank) {
    static const char *const suffixes[] = {"nlc", "nhwc", "ndhwc"};
    return rank <= 5 ? suffixes[rank - 3] : "last";
}

void lower_name_last(Lowering *l, Val v, Val graph) {
    Arena *a = l->f->module->arena;
    const char *name = ir_value(l->f, graph)->name;
    if (is_numbered(l->f, graph)) return;
    if (v.id != graph.id) ir_rename(l->f, graph, arena_printf(a, "%s.old", name));
    ir_rename(l->f, v, arena_printf(a, "%s.%s", name, last_suffix(ir_shape(l->f, v)->rank)));
}

/* "x" for "x.nhwc"; NULL where it has no such name. */
static const char *plain_name(const Lowering *l, Val v) {
    const char *name = ir_value(l->f, v)->name, *suffix = last_suffix(ir_shape(l->f, v)->rank);
    size_t n = strlen(name), m = strlen(suffix);
    bool fits = n > m + 1 && !strcmp(name + n - m, suffix) && name[n - m - 1] == '.';
    return fits ? arena_strndup(l->f->module->arena, name, n - m - 1) : NULL;
}

static void name_other(Lowering *l, Val other, Val v, bool last) {
    const char *name = ir_value(l->f, v)->name;
    if (is_numbered(l->f, v)) return;
    name = last ? arena_printf(l->f->module->arena, "%s.%s", name, last_suffix(ir_shape(l->f, v)->rank))
                : plain_name(l, v);
    if (name) ir_rename(l->f, other, name);
}

static bool is_free(const Shape *s, bool is_last);
static Val in_form(Lowering *l, Val v, bool last);

/* A cast whose other form costs no permute is a cast of its operand's other form: one kernel, where a reshape after a
 * cast would be two. NO_VAL where |v| is none. */
static Val cast_of_other(Lowering *l, Val v, bool last) {
    const Op *def = ir_def(l->f, v);
    if (!def || def->code != OP_cast || !is_free(ir_shape(l->f, v), !last)) return NO_VAL;
    Val from = in_form(l, def->in[0], last);
    if (from.id == def->in[0].id) return NO_VAL;
    return ir_make_results(l->f, op_like(l->f, def, &from), ir_dtype(l->f, v), NULL);
}

static Val make_other(Lowering *l, Val v, bool last) {
    int rank = ir_shape(l->f, v)->rank, known = l->f->values.len;
    Dims dims = last ? to_last(rank) : to_plain(rank);
    Val other = cast_of_other(l, v, last);
    if (!other.id) other = lower_permute(l, v, &dims);
    if ((int)other.id >= known) name_other(l, other, v, last);
    if (other.id == v.id) return v; /* the same elements in the same shape */
    entry(l, v)->other = other;
    entry(l, original(l, v))->asked = true;
    entry(l, other)->asked = true;
    entry(l, other)->is_last = last;
    entry(l, other)->other = v;
    return other;
}

static Val plain_of_hwio(Lowering *l, Val v) {
    if (has_other(l, v)) return l->forms.data[v.id].other;
    Val plain = lower_permute(l, v, &(Dims){.count = 4, .at = {3, 2, 0, 1}});
    if (plain.id == v.id) return v;
    entry(l, v)->other = plain;
    entry(l, plain)->hwio = v;
    return plain;
}

static Val in_form(Lowering *l, Val v, bool last) {
    if (lower_is_hwio(l, v)) v = plain_of_hwio(l, v);
    if (ir_shape(l->f, v)->rank < 3 || lower_is_last(l, v) == last) return v;
    return has_other(l, v) ? l->forms.data[v.id].other : make_other(l, v, last);
}

Val lower_plain(Lowering *l, Val v) { return in_form(l, v, false); }
Val lower_last(Lowering *l, Val v) { return in_form(l, v, true); }

/* A second copy of what is an input but for its form and dtype; NO_VAL: it is something else. */
static Val copy_of_input(Lowering *l, Val v) {
    const Op *o = ir_def(l->f, v);
    if (!o) return ir_value(l->f, v)->kind == VAL_INPUT ? v : NO_VAL;
    if (o->code != OP_cast && o->code != OP_permute && o->code != OP_reshape) return NO_VAL;
    Val from = copy_of_input(l, o->in[0]);
    if (!from.id) return NO_VAL;
    if (o->code == OP_reshape) return lower_reshape(l, from, ir_shape(l->f, v));
    return ir_make_results(l->f, op_like(l->f, o, &from), ir_dtype(l->f, v), NULL);
}

Val lower_again(Lowering *l, Val v) {
    Val copy = copy_of_input(l, v);
    return copy.id ? copy : v;
}

/* ---- weights of convolutions ------------------------------------------------------------------------------------- */

bool lower_is_hwio(const Lowering *l, Val v) { return (int)v.id < l->forms.len && l->forms.data[v.id].is_hwio; }

void lower_mark_hwio(Lowering *l, Val v) { entry(l, v)->is_hwio = true; }

Val lower_hwio(Lowering *l, Val v) {
    if (lower_is_hwio(l, v)) return v;
    Val plain = lower_plain(l, v);
    if (entry(l, plain)->hwio.id) return entry(l, plain)->hwio;
    Val hwio = lower_permute(l, plain, &(Dims){.count = 4, .at = {2, 3, 1, 0}});
    if (hwio.id == plain.id) return plain;
    entry(l, hwio)->is_hwio = true;
    entry(l, hwio)->other = plain;
    entry(l, plain)->hwio = hwio;
    return hwio;
}

/* The parameter that a graph op reads as a weight, through casts; NULL where it is none. */
static State *weight_behind(const Func *f, const Op *o) {
    const bool reads = o->code == OP_conv2d || o->code == OP_conv_transpose2d || o->code == OP_conv2d_input_grad;
    if (!reads) return NULL;
    Val v = o->in[1];
    for (const Op *cast = ir_def(f, v); cast && cast->code == OP_cast; cast = ir_def(f, v)) v = cast->in[0];
    State *s = ir_value(f, v)->kind == VAL_STATE ? ir_state_of(f, v) : NULL;
    return s && s->role == STATE_PARAM && s->shape.rank == 4 ? s : NULL;
}

static void turn_followers(Module *m) {
    for (int i = 0; i < m->states.len; i++) {
        State *s = m->states.data[i];
        const State *of = s->of ? ir_state_find(m, s->of) : NULL;
        if (of && of->hwio && shape_equal(&of->shape, &s->shape)) s->hwio = true;
    }
}

static void turn_values(Func *f) {
    for (int i = 0; i < f->inputs.len; i++) {
        Value *v = ir_value(f, f->inputs.data[i]);
        if (v->kind == VAL_STATE) v->shape = ir_state_shape(ir_state_of(f, f->inputs.data[i]));
    }
}

void lower_turn_weights(Module *m) {
    for (int i = 0; i < m->funcs.len; i++)
        for (int j = 0; j < m->funcs.data[i]->body.len; j++) {
            State *s = weight_behind(m->funcs.data[i], ir_op_at(m->funcs.data[i], j));
            if (s) s->hwio = true;
        }
    turn_followers(m);
    for (int i = 0; i < m->funcs.len; i++) turn_values(m->funcs.data[i]);
}

/* ---- the form of an op ------------------------------------------------------------------------------------------- */

/* Whether the permute to the other form moves nothing but dimensions of size 1. */
static bool is_free(const Shape *s, bool is_last) {
    int channels = is_last ? s->rank - 1 : 1, from = is_last ? 1 : 2, to = is_last ? s->rank - 1 : s->rank;
    if (dim_is_one(s->d[channels])) return true;
    for (int i = from; i < to; i++)
        if (!dim_is_one(s->d[i])) return false;
    return true;
}

int lower_largest_rank(const Lowering *l, const Op *o) {
    int rank = 0;
    for (int i = 0; i < o->n_in; i++)
        rank = ir_shape(l->f, o->in[i])->rank > rank ? ir_shape(l->f, o->in[i])->rank : rank;
    for (int i = 0; i < o->n_out; i++)
        rank = ir_shape(l->f, o->out[i])->rank > rank ? ir_shape(l->f, o->out[i])->rank : rank;
    return rank;
}

/* Ties go to channels last: images stay so until something else is asked for. */
static bool last_is_cheaper(const Lowering *l, const Op *o, int rank) {
    int to_make_last = 0, to_make_plain = 0;
    for (int i = 0; i < o->n_in; i++) {
        const Shape *s = ir_shape(l->f, o->in[i]);
        bool last = lower_is_last(l, o->in[i]);
        if (s->rank != rank || was_asked(l, o->in[i]) || is_free(s, last)) continue;
        *(last ? &to_make_plain : &to_make_last) += 1;
    }
    return to_make_last <= to_make_plain;
}

static bool any_is_last(const Lowering *l, const Op *o, int rank) {
    for (int i = 0; i < o->n_in; i++)
        if (ir_shape(l->f, o->in[i])->rank == rank && lower_is_last(l, o->in[i])) return true;
    return false;
}

/* Elementwise on weights, at least one of them stored as [KH, KW, I, O] already. */
static bool works_on_weights(const Lowering *l, const Op *o, WeightRule rule) {
    bool any = false, fit = true;
    for (int i = 0; i < o->n_in; i++) {
        const int rank = ir_shape(l->f, o->in[i])->rank;
        any = any || lower_is_hwio(l, o->in[i]);
        fit = fit && (rank == 0 || rank == 4 || rule == WEIGHTS_EACH);
    }
    return rule != WEIGHTS_PLAIN && any && fit;
}

ChannelForm lower_choose_form(const Lowering *l, const Op *o, FormRule rule, WeightRule weights) {
    int rank = lower_largest_rank(l, o);
    if (works_on_weights(l, o, weights)) return FORM_HWIO;
    if (rule == TAKES_PLAIN || rank < 3) return FORM_PLAIN;
    if (rule == TAKES_LAST) return FORM_LAST;
    return any_is_last(l, o, rank) && last_is_cheaper(l, o, rank) ? FORM_LAST : FORM_PLAIN;
}

Shape lower_plain_shape(const Lowering *l, Val v) {
    const Shape *s = ir_shape(l->f, v);
    Dims dims = to_plain(s->rank);
    return lower_is_last(l, v) ? permuted(s, &dims) : *s;
}

Val lower_from_form(Lowering *l, Val v) {
    Dims dims = to_plain(ir_shape(l->f, v)->rank);
    return l->form == FORM_LAST ? lower_permute(l, v, &dims) : v;
}

Val lower_to_form(Lowering *l, Val v) {
    Dims dims = to_last(ir_shape(l->f, v)->rank);
    return l->form == FORM_LAST ? lower_permute(l, v, &dims) : v;
}

int lower_place_of(const Lowering *l, int dim, int rank) {
    if (l->form == FORM_PLAIN || rank != l->rank || dim == 0) return dim;
    return dim == 1 ? rank - 1 : dim - 1;
}

Shape lower_shape_in_form(const Lowering *l, const Shape *s) {
    return l->form == FORM_LAST && s->rank == l->rank ? last_shape(s) : *s;
}

/* ---- operands and results ---------------------------------------------------------------------------------------- */

/* [C, 1, 1] beside [N, C, H, W] is [1, C, 1, 1], which is [1, 1, 1, C]: a vector along the columns. */
static Val aligned(Lowering *l, Val v) {
    Shape padded = {.rank = l->rank};
    const Shape *s = ir_shape(l->f, v);
    for (int i = 0, lacking = l->rank - s->rank; i < l->rank; i++)
        padded.d[i] = i < lacking ? dim_const(1) : s->d[i - lacking];
    Dims dims = to_last(l->rank);
    return lower_permute(l, lower_reshape(l, v, &padded), &dims);
}

Val lower_given(Lowering *l, int i) {
    Val v = l->op->in[i];
    int rank = ir_shape(l->f, v)->rank;
    if (l->form == FORM_HWIO) return v; /* as start_op has made it */
    if (l->form == FORM_PLAIN) return lower_plain(l, v);
    if (rank == l->rank) return lower_last(l, v);
    return rank ? aligned(l, lower_plain(l, v)) : v;
}

Val lower_widen(Lowering *l, Val v) {
    if (!is_float(ir_dtype(l->f, v)) || ir_dtype(l->f, v) == AMP_DT_F32) return v;
    for (int w = 0; w < l->wide_count; w++)
        if (l->wide[0][w].id == v.id) return l->wide[1][w];
    Val wide = lower_cast(l, v, AMP_DT_F32);
    if (l->wide_count < MAX_WIDE) {
        l->wide[0][l->wide_count] = v;
        l->wide[1][l->wide_count++] = wide;
    }
    return wide;
}

Val lower_operand(Lowering *l, int i) { return lower_widen(l, lower_given(l, i)); }

Val lower_plain_operand(Lowering *l, int i) { return lower_widen(l, lower_plain(l, l->op->in[i])); }

/* The same elements as another value: [N, H, W, C] of one graph value may be all there is of another, whose plain form
 * it is. */
static Val again(Lowering *l, Val v) {
    const Shape s = *ir_shape(l->f, v);
    return lower_result_of(l, lower_op_of(l, OP_reshape, &v, 1), ir_dtype(l->f, v), &s);
}

void lower_give_as(Lowering *l, int i, Val v, ChannelForm form) {
    if (!v.id) return;
    Val given = lower_cast(l, v, ir_dtype(l->f, l->op->out[i]));
    if (form == FORM_LAST) lower_mark_last(l, given);
    else if (form == FORM_HWIO) lower_mark_hwio(l, given);
    else if (lower_is_last(l, given) || lower_is_hwio(l, given)) given = again(l, given);
    l->given[i] = given;
}

void lower_give(Lowering *l, int i, Val v) {
    bool of_rank = v.id && ir_shape(l->f, l->op->out[i])->rank == (l->form == FORM_HWIO ? 4 : l->rank);
    lower_give_as(l, i, v, of_rank ? l->form : FORM_PLAIN);
}
