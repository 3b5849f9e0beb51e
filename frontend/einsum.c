/* einsum.c: sums of products by labels of dimensions (Einstein 1916), made of ops that exist:
 *
 *     einsum(q, k; equation = "bhtd,bhsd->bhts")
 *         transpose(k) : [b, h, d, s]      matmul(q, ..) : [b, h, t, s]
 *
 * What one tensor alone has and the result has not is summed first.  Of two tensors, labels that both have and the
 * result has too are a batch, those that it has not the inner dimension of a product; without these it is a product by
 * element.
 */
#include "frontend/elaborate.h"

enum { OPERANDS = 2, LETTERS = 128 };

typedef struct Labels { /* of a tensor's dimensions, or of three tensors' */
    char at[3 * MAX_RANK + 1];
    int count;
} Labels;

typedef struct Term {
    Val v;
    Labels labels;
} Term;

typedef struct Einsum {
    Elab *e;
    Loc call, at;    /* of the equation */
    const Loc *locs; /* of the tensors */
    Term terms[OPERANDS];
    int count;
    Labels out;
    Dim size[LETTERS]; /* by label; mul 0: there is none */
} Einsum;

/* Of ASCII, whatever the locale: Einsum.size has room for these. */
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool has(const Labels *l, char label) { return label && strchr(l->at, label); }
static void append(Labels *l, char label) { l->at[l->count++] = label; }

/* ---- the equation ------------------------------------------------------------------------------------------------ */

static bool wrong(const Einsum *x, const char *fmt, ...) AMP_PRINTF(2, 3);
static bool wrong(const Einsum *x, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    elab_error_text(x->e, x->at, arena_printf(x->e->a, "einsum: %s", arena_vprintf(x->e->a, fmt, args)));
    va_end(args);
    return false;
}

/* The labels before |end| or a comma, spaces left out. */
static bool read_labels(const Einsum *x, const char **text, const char *end, Labels *l) {
    bool result = l == &x->out;
    for (; *text < end && **text != ','; ++*text) {
        char c = **text;
        if (c == ' ') continue;
        if (c == '.') return wrong(x, "dots are not supported; give each dimension a letter");
        if (!is_letter(c))
            return wrong(x, "'%.*s' is not a label; labels are letters, as in \"bij,bjk->bik\"",
                         (int)utf8_char_len(*text, (size_t)(end - *text)), *text);
        if (has(l, c) && result) return wrong(x, "'%c' appears twice in the result", c);
        if (has(l, c))
            return wrong(x,
                         "'%c' appears twice in one tensor: traces and diagonals are not supported; multiply by a mask "
                         "and sum",
                         c);
        if (l->count == MAX_RANK) return wrong(x, "a tensor has at most %d dimensions", MAX_RANK);
        append(l, c);
    }
    return true;
}

/* Without "->" the result has the labels that appear once, in the order of the alphabet. */
static void default_result(Einsum *x) {
    for (int c = 0; c < LETTERS; c++) {
        int times = 0;
        for (int i = 0; i < x->count; i++) times += has(&x->terms[i].labels, (char)c);
        if (times == 1 && x->out.count < MAX_RANK) append(&x->out, (char)c);
    }
}

static bool read_result(Einsum *x, const char *text) {
    if (!read_labels(x, &text, text + strlen(text), &x->out)) return false;
    if (*text) return wrong(x, "there is one result");
    for (int i = 0; i < x->out.count; i++)
        if (!x->size[(int)x->out.at[i]].mul)
            return wrong(x, "no tensor has the label '%c' of the result", x->out.at[i]);
    return true;
}

/* The sizes of a tensor's labels; those that two tensors have must agree. */
static bool take_sizes(Einsum *x, int i) {
    const Shape *s = ir_shape(x->e->f, x->terms[i].v);
    const Labels *l = &x->terms[i].labels;
    Item tensor = item_tensor(x->terms[i].v);
    if (l->count != s->rank)
        return wrong(x, "%s has %d dimensions, and \"%s\" %d labels", item_describe(x->e, &tensor), s->rank, l->at,
                     l->count);
    for (int d = 0; d < s->rank; d++) {
        Dim *size = &x->size[(int)l->at[d]];
        if (!size->mul) *size = s->d[d];
        if (dim_equal(*size, s->d[d])) continue;
        Diag *diag = elab_error(x->e, x->at, "einsum: the dimensions '%c' have different sizes", l->at[d]);
        for (int n = 0; n < x->count; n++) elab_note_operand(x->e, diag, x->terms[n].v, x->locs[n]);
        return false;
    }
    return true;
}

static bool wrong_count(const Einsum *x, const char *text, const char *end) {
    int count = 1;
    for (; text < end; text++) count += *text == ',';
    return wrong(x, "the equation has labels for %d tensor%s, and the call has %d", count, count == 1 ? "" : "s",
                 x->count);
}

static bool read_equation(Einsum *x, const char *text) {
    const char *arrow = strstr(text, "->"), *end = arrow ? arrow : text + strlen(text), *at = text;
    for (int i = 0; i < x->count; i++) {
        if (!read_labels(x, &at, end, &x->terms[i].labels)) return false;
        if ((i < x->count - 1) != (at < end)) return wrong_count(x, text, end);
        at += at < end;
    }
    for (int i = 0; i < x->count; i++)
        if (!take_sizes(x, i)) return false;
    if (arrow) return read_result(x, arrow + 2);
    default_result(x);
    return true;
}

/* ---- ops: each does nothing where there is nothing to do, or after an error -------------------------------------- */

static Val emitted(const Einsum *x, Op *o) {
    Item item = elab_emit(x->e, x->call, o, x->locs);
    return item.kind == ITEM_TENSOR ? item.tensor : NO_VAL;
}

static Val reshaped(const Einsum *x, Val v, const Shape *s) {
    if (!v.id || shape_equal(ir_shape(x->e->f, v), s)) return v;
    Op *o = ir_op_new(x->e->f, OP_reshape, &v, 1);
    ir_result(x->e->f, o, NULL, ir_dtype(x->e->f, v), *s);
    return emitted(x, o);
}

static void sum_others(const Einsum *x, Term *t, const Labels *wanted) {
    Labels kept = {{0}, 0};
    Dims dims = {0};
    for (int i = 0; i < t->labels.count; i++) {
        if (has(wanted, t->labels.at[i])) append(&kept, t->labels.at[i]);
        else dims.at[dims.count++] = i;
    }
    if (!dims.count || !t->v.id) return;
    Op *o = ir_op_new(x->e->f, OP_sum, &t->v, 1);
    ir_attr(o, "dims")->dims = dims;
    *t = (Term){emitted(x, o), kept};
}

static void put_in_order(const Einsum *x, Term *t, const Labels *order) {
    int rank = order->count, moved = 0, last_two = 0;
    Dims dims = {.count = rank};
    for (int i = 0; i < rank; i++) {
        dims.at[i] = strchr(t->labels.at, order->at[i]) - t->labels.at;
        moved += dims.at[i] != i;
        last_two += i >= rank - 2 && dims.at[i] != i;
    }
    if (!moved || !t->v.id) return;
    Op *o = ir_op_new(x->e->f, moved == 2 && last_two == 2 ? OP_transpose : OP_permute, &t->v, 1);
    if (o->code == OP_permute) ir_attr(o, "dims")->dims = dims;
    *t = (Term){emitted(x, o), *order};
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* The labels by what becomes of them: in the order of the result, and |inner| in the order of the first tensor. */
typedef struct Groups {
    Labels batch, left, right, inner;
} Groups;

static Groups find_groups(const Einsum *x) {
    const Labels *a = &x->terms[0].labels, *b = &x->terms[1].labels;
    Groups g = {0};
    for (int i = 0; i < x->out.count; i++) {
        char c = x->out.at[i];
        append(!has(b, c) ? &g.left : !has(a, c) ? &g.right : &g.batch, c);
    }
    for (int i = 0; i < a->count; i++)
        if (has(b, a->at[i]) && !has(&x->out, a->at[i])) append(&g.inner, a->at[i]);
    return g;
}

static Labels joined(const Labels *a, const Labels *b, const Labels *c) {
    const Labels *const parts[] = {a, b, c};
    Labels all = {{0}, 0};
    for (int p = 0; p < 3; p++)
        for (int i = 0; i < parts[p]->count; i++) append(&all, parts[p]->at[i]);
    return all;
}

static bool append_size(const Einsum *x, Shape *s, const Labels *group) {
    Dim all = dim_const(1);
    for (int i = 0; i < group->count; i++)
        if (!dim_mul(all, x->size[(int)group->at[i]], &all) || all.n > 1)
            return wrong(x, "'%s' would be one dimension of a product, which depends on N twice or is too large",
                         group->at);
    s->d[s->rank++] = all;
    return true;
}

static Shape sizes_of(const Einsum *x, const Labels *l) {
    Shape s = {0};
    for (int i = 0; i < l->count; i++) s.d[s.rank++] = x->size[(int)l->at[i]];
    return s;
}

/* The term as [batch.., first, second], each group one dimension. */
static void as_matrices(const Einsum *x, Term *t, const Labels *batch, const Labels *first, const Labels *second) {
    Labels order = joined(batch, first, second);
    Shape s = sizes_of(x, batch);
    put_in_order(x, t, &order);
    if (!append_size(x, &s, first) || !append_size(x, &s, second)) t->v = NO_VAL;
    else t->v = reshaped(x, t->v, &s);
}

static Term product(Einsum *x, const Groups *g) {
    Term *a = &x->terms[0], *b = &x->terms[1];
    Labels labels = joined(&g->batch, &g->left, &g->right), rows = joined(&g->left, &g->inner, &(Labels){0});
    bool stays = !g->batch.count && g->left.count && g->inner.count == 1; /* [.., K] times a matrix */
    if (stays) put_in_order(x, a, &rows);
    else as_matrices(x, a, &g->batch, &g->left, &g->inner);
    as_matrices(x, b, &g->batch, &g->inner, &g->right);
    if (!a->v.id || !b->v.id) return (Term){NO_VAL, labels};
    Shape s = sizes_of(x, &labels);
    return (Term){reshaped(x, emitted(x, ir_op_new(x->e->f, OP_matmul, (Val[]){a->v, b->v}, 2)), &s), labels};
}

/* The term with the result's dimensions, those that it has not of size 1. */
static void spread(const Einsum *x, Term *t) {
    Labels order = {{0}, 0};
    Shape s = {0};
    for (int i = 0; i < x->out.count; i++) {
        bool own = has(&t->labels, x->out.at[i]);
        if (own) append(&order, x->out.at[i]);
        s.d[s.rank++] = own ? x->size[(int)x->out.at[i]] : dim_const(1);
    }
    put_in_order(x, t, &order);
    t->v = reshaped(x, t->v, &s);
}

static Term product_by_element(Einsum *x) {
    Val in[OPERANDS];
    for (int i = 0; i < OPERANDS; i++) {
        spread(x, &x->terms[i]);
        in[i] = x->terms[i].v;
    }
    if (!in[0].id || !in[1].id) return (Term){NO_VAL, x->out};
    return (Term){emitted(x, ir_op_new(x->e->f, OP_mul, in, OPERANDS)), x->out};
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

static Term evaluate(Einsum *x) {
    for (int i = 0; i < x->count; i++) {
        Labels wanted = x->count == 1 ? x->out : joined(&x->out, &x->terms[1 - i].labels, &(Labels){0});
        sum_others(x, &x->terms[i], &wanted);
    }
    if (x->count == 1) return x->terms[0];
    Groups g = find_groups(x);
    return g.inner.count ? product(x, &g) : product_by_element(x);
}

Item elab_einsum(Elab *e, const Expr *call, const Op *o, const Loc *locs, Loc at, const char *equation) {
    Einsum x = {.e = e, .call = call->loc, .at = at, .locs = locs, .count = o->n_in};
    for (int i = 0; i < x.count; i++) x.terms[i].v = o->in[i];
    if (!read_equation(&x, equation)) return ERROR_ITEM;
    Term result = evaluate(&x);
    put_in_order(&x, &result, &x.out);
    return result.v.id ? item_tensor(result.v) : ERROR_ITEM;
}
