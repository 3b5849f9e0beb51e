/* patterns.c: nodes that are one op together, because an exporter spelled it out: linear layers, norms, softmax, ...
 *
 * A pattern is found from one node of it that is rare.  Its values inside have no readers but its own nodes.
 */
#include "onnx/deciding.h"

enum { MOST_MEMBERS = 16, MOST_READERS = 8 };

typedef struct Match {
    const OnnxDeciding *d;
    int32_t members[MOST_MEMBERS];
    int count;
} Match;

/* ---- nodes and values -------------------------------------------------------------------------------------------- */

static bool is_op(const OnnxDeciding *d, int32_t node, const char *op) {
    return node != ONNX_NONE && d->rows[node] && !strcmp(d->index->nodes[node].node->op_type, op);
}

static int32_t maker(const OnnxDeciding *d, int32_t value) {
    return value == ONNX_NONE ? ONNX_NONE : d->index->values[value].producer;
}

static int32_t maker_of_input(const OnnxDeciding *d, int32_t node, int k) {
    return maker(d, onnx_source_of(d, node, k));
}

/* The nodes that read |value|, across dropped casts; -1: more than MOST_READERS, or an output of a graph does. */
static int readers_of(const OnnxDeciding *d, int32_t value, int32_t readers[MOST_READERS], int count) {
    const OnnxValue *v = &d->index->values[value];
    for (int i = 0; i < v->uses; i++) {
        const int32_t node = d->index->uses[v->first_use + i].node;
        if (node == ONNX_NONE || i == MOST_READERS) return -1;
        if (d->out->nodes[node].fate == ONNX_DROPPED) {
            count = readers_of(d, onnx_result_of(d, node, 0), readers, count);
            if (count < 0) return -1;
        } else if (!count || readers[count - 1] != node) { /* x * x reads it twice */
            if (count == MOST_READERS) return -1;
            readers[count++] = node;
        }
    }
    return count;
}

/* The only node that reads what |node| makes, or ONNX_NONE. */
static int32_t sole_reader(const OnnxDeciding *d, int32_t node) {
    int32_t readers[MOST_READERS];
    if (node == ONNX_NONE || onnx_result_of(d, node, 0) == ONNX_NONE) return ONNX_NONE;
    return readers_of(d, onnx_result_of(d, node, 0), readers, 0) == 1 ? readers[0] : ONNX_NONE;
}

static bool is_constant(const OnnxDeciding *d, int32_t value) {
    return value != ONNX_NONE && (d->index->values[value].initializer || is_op(d, maker(d, value), "Constant"));
}

/* One element. */
static bool is_number(const OnnxDeciding *d, int32_t value) {
    return value != ONNX_NONE && onnx_typical_elements(d->solution, value) == 1.0;
}

static bool is_constant_number(const OnnxDeciding *d, int32_t value) {
    return is_constant(d, value) && is_number(d, value);
}

/* Of a node |op| of two operands, the one that is not |value|; ONNX_NONE: it is no such node. */
static int32_t other_operand(const OnnxDeciding *d, int32_t node, const char *op, int32_t value) {
    if (!is_op(d, node, op)) return ONNX_NONE;
    if (onnx_source_of(d, node, 0) == value) return onnx_source_of(d, node, 1);
    return onnx_source_of(d, node, 1) == value ? onnx_source_of(d, node, 0) : ONNX_NONE;
}

/* ---- a match in the making --------------------------------------------------------------------------------------- */

static bool has(const Match *m, int32_t node) {
    for (int i = 0; i < m->count; i++)
        if (m->members[i] == node) return true;
    return false;
}

static bool add(Match *m, int32_t node) {
    if (node != ONNX_NONE && has(m, node)) return true;
    if (node == ONNX_NONE || m->count == MOST_MEMBERS || m->d->out->nodes[node].pattern != ONNX_NONE) return false;
    m->members[m->count++] = node;
    return true;
}

/* |node| multiplies or divides a value by a number, and becomes a member; returns that value, or ONNX_NONE. */
static int32_t add_scaling(Match *m, int32_t node, bool (*is_factor)(const OnnxDeciding *, int32_t)) {
    const bool is_mul = is_op(m->d, node, "Mul");
    if (!is_mul && !is_op(m->d, node, "Div")) return ONNX_NONE;
    const int32_t a = onnx_source_of(m->d, node, 0), b = onnx_source_of(m->d, node, 1);
    const bool first = is_factor(m->d, b), second = is_mul && is_factor(m->d, a);
    if (!(first || second) || !add(m, node)) return ONNX_NONE;
    return first ? a : b;
}

/* |node| adds a number to a value, and becomes a member; returns that value. */
static int32_t add_addition(Match *m, int32_t node) {
    if (!is_op(m->d, node, "Add")) return ONNX_NONE;
    const int32_t a = onnx_source_of(m->d, node, 0), b = onnx_source_of(m->d, node, 1);
    const bool first = is_constant_number(m->d, b);
    if (!(first || is_constant_number(m->d, a)) || !add(m, node)) return ONNX_NONE;
    return first ? a : b;
}

/* The reader of |node| that applies |op| with a weight, which becomes a member; else |node|. */
static int32_t add_weighted(Match *m, int32_t node, const char *op) {
    const int32_t next = sole_reader(m->d, node);
    const int32_t weight = other_operand(m->d, next, op, onnx_result_of(m->d, node, 0));
    return is_constant(m->d, weight) && add(m, next) ? next : node;
}

/* Is what members make read by members alone, but for the last one's result? */
static bool is_closed(const Match *m, int32_t last) {
    for (int i = 0; i < m->count; i++) {
        int32_t readers[MOST_READERS];
        if (m->members[i] == last) continue;
        const int count = readers_of(m->d, onnx_result_of(m->d, m->members[i], 0), readers, 0);
        for (int k = 0; k < count; k++)
            if (!has(m, readers[k])) return false;
        if (count < 0 || m->d->index->nodes[m->members[i]].graph != m->d->index->nodes[last].graph) return false;
    }
    return true;
}

static PolicyClass class_of(OnnxDeciding *d, const char *names) { return onnx_name_of(d, names, 2)->line->op_class; }

/* Under `eager` a whole that follows its input is decided in parts if the lists keep a part in f32: as PyTorch, which
 * never sees the whole, does with a gelu that is written with a power. */
static bool is_decided_in_parts(OnnxDeciding *d, const Match *m, const char *op) {
    bool has_f32 = false;
    if (d->options->policy->algorithm != ALGORITHM_EAGER || class_of(d, op) != POLICY_FOLLOW) return false;
    for (int i = 0; i < m->count; i++) {
        const PolicyClass part = class_of(d, d->rows[m->members[i]]->names);
        has_f32 = has_f32 || part == POLICY_F32 || part == POLICY_F32_OUT;
    }
    return has_f32;
}

static void accept(OnnxDeciding *d, Match *m, const char *op, int32_t last) {
    if (!is_closed(m, last) || is_decided_in_parts(d, m, op)) return;
    OnnxPattern pattern = {.op = op};
    for (int i = 1; i < m->count; i++) /* in order: few, and nearly so */
        for (int k = i; k > 0 && m->members[k - 1] > m->members[k]; k--) {
            const int32_t node = m->members[k];
            m->members[k] = m->members[k - 1];
            m->members[k - 1] = node;
        }
    if (m->members[m->count - 1] != last) return;
    for (int i = 0; i < m->count; i++) {
        d->out->nodes[m->members[i]].pattern = d->out->patterns.len;
        vec_push(d->arena, &pattern.nodes, m->members[i]);
    }
    vec_push(d->arena, &d->out->patterns, pattern);
}

/* ---- linear layers ----------------------------------------------------------------------------------------------- */

/* MatMul with a weight, Add of a bias: one product with a bias, as Gemm is of matrices. */
static void find_linear(OnnxDeciding *d, int32_t product) {
    Match m = {.d = d};
    const int32_t weight = onnx_source_of(d, product, 1), turn = maker(d, weight), next = sole_reader(d, product);
    const int32_t stored = is_op(d, turn, "Transpose") ? onnx_source_of(d, turn, 0) : weight;
    const int32_t bias = other_operand(d, next, "Add", onnx_result_of(d, product, 0));
    if (!is_constant(d, stored) || !is_constant(d, bias) || d->solution->shapes[bias].rank != 1) return;
    if (add(&m, product) && add(&m, next)) accept(d, &m, "linear", next);
}

/* ---- norms ------------------------------------------------------------------------------------------------------- */

/* The value that |node| squares, as a power or a product; ONNX_NONE. */
static int32_t squared(const OnnxDeciding *d, int32_t node) {
    if (is_op(d, node, "Pow") && is_constant_number(d, onnx_source_of(d, node, 1))) return onnx_source_of(d, node, 0);
    const bool is_square = is_op(d, node, "Mul") && onnx_source_of(d, node, 0) == onnx_source_of(d, node, 1);
    return is_square ? onnx_source_of(d, node, 0) : ONNX_NONE;
}

/* x - mean(x), by |node|; adds both. */
static bool add_centering(Match *m, int32_t node) {
    const int32_t mean = is_op(m->d, node, "Sub") ? maker_of_input(m->d, node, 1) : ONNX_NONE;
    if (!is_op(m->d, mean, "ReduceMean") || onnx_source_of(m->d, mean, 0) != onnx_source_of(m->d, node, 0))
        return false;
    return add(m, node) && add(m, mean);
}

/* |value| is |centered|, or the same difference once more, which is added. */
static bool is_same(Match *m, int32_t value, int32_t centered) {
    const int32_t a = maker(m->d, value), b = maker(m->d, centered);
    if (value == centered) return true;
    return is_op(m->d, a, "Sub") && is_op(m->d, b, "Sub") && onnx_source_of(m->d, a, 0) == onnx_source_of(m->d, b, 0) &&
           onnx_source_of(m->d, a, 1) == onnx_source_of(m->d, b, 1) && add(m, a);
}

/* The node that divides |centered| by what |root| makes, or multiplies it by its reciprocal; adds what it takes. */
static int32_t add_division(Match *m, int32_t root, int32_t centered) {
    const OnnxDeciding *d = m->d;
    int32_t node = sole_reader(d, root);
    if (node == ONNX_NONE || !add(m, node)) return ONNX_NONE;
    const bool divides = is_op(d, node, "Div") && onnx_source_of(d, node, 1) == onnx_result_of(d, root, 0);
    if (divides && is_same(m, onnx_source_of(d, node, 0), centered)) return node;
    if (!is_op(d, node, "Reciprocal") && !(divides && is_constant_number(d, onnx_source_of(d, node, 0))))
        return ONNX_NONE;
    const int32_t product = sole_reader(d, node);
    const int32_t other = other_operand(d, product, "Mul", onnx_result_of(d, node, 0));
    return other != ONNX_NONE && is_same(m, other, centered) && add(m, product) ? product : ONNX_NONE;
}

/* ReduceMean, Sub, Pow, ReduceMean, Add, Sqrt, Div, Mul, Add; of an RMS norm Pow, ReduceMean, Add, Sqrt, Div, Mul. */
static void find_norm(OnnxDeciding *d, int32_t root) {
    Match m = {.d = d};
    const int32_t sum = maker_of_input(d, root, 0);
    if (!add(&m, root)) return;
    const int32_t mean = maker(d, add_addition(&m, sum));
    if (!is_op(d, mean, "ReduceMean") || !add(&m, mean)) return;
    const int32_t square = maker_of_input(d, mean, 0), centered = squared(d, square);
    if (centered == ONNX_NONE || !add(&m, square)) return;
    const bool is_centered = add_centering(&m, maker(d, centered));
    int32_t last = add_division(&m, root, centered);
    if (last == ONNX_NONE) return;
    const int32_t scaled = add_weighted(&m, last, "Mul");
    if (scaled != last && is_centered) last = add_weighted(&m, scaled, "Add");
    else last = scaled;
    accept(d, &m, is_centered ? "layer_norm" : "rms_norm", last);
}

/* Reshape, InstanceNormalization, Reshape, Mul, Add. */
static void find_group_norm(OnnxDeciding *d, int32_t norm) {
    Match m = {.d = d};
    const int32_t before = maker_of_input(d, norm, 0), after = sole_reader(d, norm);
    if (!is_op(d, before, "Reshape") || !is_op(d, after, "Reshape")) return;
    if (!add(&m, before) || !add(&m, norm) || !add(&m, after)) return;
    const int32_t scaled = add_weighted(&m, after, "Mul");
    if (scaled == after) return;
    accept(d, &m, "group_norm", add_weighted(&m, scaled, "Add"));
}

/* ---- softmax and attention --------------------------------------------------------------------------------------- */

/* ReduceMax, Sub, Exp, ReduceSum, Div. */
static void find_softmax(OnnxDeciding *d, int32_t exp) {
    Match m = {.d = d};
    int32_t readers[MOST_READERS];
    const int32_t made = onnx_result_of(d, exp, 0), subtraction = maker_of_input(d, exp, 0);
    if (readers_of(d, made, readers, 0) != 2 || !add(&m, exp)) return;
    const int which = is_op(d, readers[0], "ReduceSum") ? 0 : 1;
    const int32_t sum = readers[which], division = readers[1 - which];
    if (!is_op(d, sum, "ReduceSum") || !is_op(d, division, "Div") || onnx_source_of(d, division, 0) != made ||
        onnx_source_of(d, division, 1) != onnx_result_of(d, sum, 0))
        return;
    if (!add(&m, sum) || !add(&m, division)) return;
    const int32_t max = is_op(d, subtraction, "Sub") ? maker_of_input(d, subtraction, 1) : ONNX_NONE;
    if (is_op(d, max, "ReduceMax") && onnx_source_of(d, max, 0) == onnx_source_of(d, subtraction, 0))
        if (!add(&m, subtraction) || !add(&m, max)) return;
    accept(d, &m, "softmax", division);
}

/* After the softmax some exporters write zeros in place of NaN: IsNaN, Where. */
static int32_t add_nan_guard(Match *m, int32_t softmax) {
    const OnnxDeciding *d = m->d;
    int32_t readers[MOST_READERS];
    if (readers_of(d, onnx_result_of(d, softmax, 0), readers, 0) != 2) return softmax;
    const int which = is_op(d, readers[0], "IsNaN") ? 0 : 1;
    const int32_t test = readers[which], where = readers[1 - which];
    if (!is_op(d, test, "IsNaN") || !is_op(d, where, "Where") || maker_of_input(d, where, 0) != test) return softmax;
    return add(m, test) && add(m, where) ? where : softmax;
}

/* Mul and Mul, MatMul, Add, Softmax, MatMul: scaled_dot_product_attention, which scales both factors.  What scales the
 * product was written as separate ops, and is decided so. */
static void find_attention(OnnxDeciding *d, int32_t softmax) {
    Match m = {.d = d};
    int32_t scores = maker_of_input(d, softmax, 0);
    if (!add(&m, softmax)) return;
    if (is_op(d, scores, "Add")) {
        if (!add(&m, scores)) return;
        const int32_t first = maker_of_input(d, scores, 0);
        scores = is_op(d, first, "MatMul") ? first : maker_of_input(d, scores, 1);
    }
    if (!is_op(d, scores, "MatMul") || !add(&m, scores)) return;
    for (int k = 0; k < 2; k++)
        if (add_scaling(&m, maker_of_input(d, scores, k), is_number) == ONNX_NONE) return;
    const int32_t weights = add_nan_guard(&m, softmax), product = sole_reader(d, weights);
    if (!is_op(d, product, "MatMul") || onnx_source_of(d, product, 0) != onnx_result_of(d, weights, 0)) return;
    if (add(&m, product)) accept(d, &m, "attention", product);
}

/* ---- activations ------------------------------------------------------------------------------------------------- */

/* From 1 + erf(..) on, which |sum| makes: times |x| and a half, in any order. */
static void find_gelu_end(OnnxDeciding *d, Match *m, int32_t sum, int32_t x) {
    const int32_t product = sole_reader(d, sum);
    const int32_t other = other_operand(d, product, "Mul", onnx_result_of(d, sum, 0));
    if (other == ONNX_NONE) return;
    const int32_t next = sole_reader(d, product);
    if (other == x) {
        if (add(m, product) && add_scaling(m, next, is_constant_number) != ONNX_NONE) accept(d, m, "gelu", next);
    } else if (is_constant_number(d, other)) {
        const bool is_last = other_operand(d, next, "Mul", onnx_result_of(d, product, 0)) == x;
        if (is_last && add(m, product) && add(m, next)) accept(d, m, "gelu", next);
    } else if (add_scaling(m, maker(d, other), is_constant_number) == x) {
        if (add(m, product)) accept(d, m, "gelu", product);
    }
}

/* Div, Erf, Add, Mul, Mul. */
static void find_gelu(OnnxDeciding *d, int32_t erf) {
    Match m = {.d = d};
    const int32_t sum = sole_reader(d, erf);
    if (!add(&m, erf)) return;
    const int32_t x = add_scaling(&m, maker_of_input(d, erf, 0), is_constant_number);
    if (x != ONNX_NONE && add_addition(&m, sum) != ONNX_NONE) find_gelu_end(d, &m, sum, x);
}

/* x^3, by |node|, as a power or two products, which become members. */
static bool add_cube(Match *m, int32_t node, int32_t x) {
    const OnnxDeciding *d = m->d;
    if (!add(m, node)) return false;
    if (is_op(d, node, "Pow"))
        return onnx_source_of(d, node, 0) == x && is_constant_number(d, onnx_source_of(d, node, 1));
    const int32_t square = maker(d, other_operand(d, node, "Mul", x));
    return squared(d, square) == x && add(m, square);
}

/* Pow, Mul, Add, Mul, Tanh, Add, Mul, Mul: 0.5 x (1 + tanh(0.798 (x + 0.0447 x^3))). */
static void find_tanh_gelu(OnnxDeciding *d, int32_t tanh) {
    Match m = {.d = d};
    const int32_t sum = sole_reader(d, tanh);
    if (!add(&m, tanh)) return;
    const int32_t inner = maker(d, add_scaling(&m, maker_of_input(d, tanh, 0), is_constant_number));
    if (!is_op(d, inner, "Add") || !add(&m, inner)) return;
    for (int k = 0; k < 2; k++) {
        const int32_t x = onnx_source_of(d, inner, k);
        Match with = m;
        const int32_t cube = maker(d, add_scaling(&with, maker_of_input(d, inner, 1 - k), is_constant_number));
        if (cube == ONNX_NONE || !add_cube(&with, cube, x)) continue;
        if (add_addition(&with, sum) != ONNX_NONE) find_gelu_end(d, &with, sum, x);
        return;
    }
}

/* Sigmoid, Mul. */
static void find_silu(OnnxDeciding *d, int32_t sigmoid) {
    Match m = {.d = d};
    const int32_t product = sole_reader(d, sigmoid), x = onnx_source_of(d, sigmoid, 0);
    if (other_operand(d, product, "Mul", onnx_result_of(d, sigmoid, 0)) != x) return;
    if (add(&m, sigmoid) && add(&m, product)) accept(d, &m, "silu", product);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

void onnx_find_patterns(OnnxDeciding *d) {
    static const struct {
        const char *op;
        void (*find)(OnnxDeciding *, int32_t);
    } finders[] = {
        {"MatMul", find_linear},  {"Sqrt", find_norm},         {"InstanceNormalization", find_group_norm},
        {"Exp", find_softmax},    {"Softmax", find_attention}, {"Erf", find_gelu},
        {"Tanh", find_tanh_gelu}, {"Sigmoid", find_silu},
    };
    for (int32_t node = 0; node < d->index->node_count; node++)
        for (size_t i = 0; d->rows[node] && i < sizeof finders / sizeof *finders; i++)
            if (!strcmp(d->rows[node]->op, finders[i].op) && onnx_result_of(d, node, 0) != ONNX_NONE)
                finders[i].find(d, node);
}
