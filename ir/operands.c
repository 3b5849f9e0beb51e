/* operands.c: what the operands of ops may be: types that signatures in ops.def allow, and how core ops reach them. */
#include "ir/operands.h"

#include "base/dtypes.h"

/* ---- levels and signatures --------------------------------------------------------------------------------------- */

int legal_level(Stage stage) { return stage < STAGE_LOWER ? GRAPH : CORE; }

const char *legal_signatures(Opcode code, int level) {
    return level == GRAPH ? ir_op_info[code].graph : ir_op_info[code].core;
}

/* ---- types against signatures ------------------------------------------------------------------------------------ */

typedef struct Matching {
    const Func *f;
    const char *at;      /* in the signature */
    Dtype product, type; /* what P and T stand for; AMP_DT_NONE: not met yet */
} Matching;

static bool is_graph_float(Dtype t) { return amp_readable_dtype(t) == AMP_DT_F32; }

static bool same(Dtype *met, Dtype t) {
    if (*met == AMP_DT_NONE) *met = t;
    return *met == t;
}

/* Before autocast, floats that meet may differ: an f16 input and an f32 weight. */
static bool is_undecided(const Matching *m, Dtype t) {
    return m->f->module->stage == STAGE_ELABORATE && is_graph_float(t);
}

static bool matches_letter(Matching *m, char letter, Dtype t) {
    switch (letter) {
    case 'F': return is_graph_float(t);
    case 'P': return is_graph_float(t) && (is_undecided(m, t) || same(&m->product, t));
    case 'T': return same(&m->type, t) || (is_undecided(m, t) && is_undecided(m, m->type));
    case 'f': return t == AMP_DT_F32;
    case 'd': return t == AMP_DT_F64;
    case 'i': return t == AMP_DT_I32;
    case 'l': return t == AMP_DT_I64;
    case 'b': return t == AMP_DT_BOOL;
    default: return letter == '*';
    }
}

/* Values against letters up to '>', '|' or the end. */
static bool matches_list(Matching *m, const Val *list, int n) {
    for (int i = 0; i < n; i++) {
        if (m->at[0] && m->at[1] == '+' && !matches_letter(m, m->at[0], ir_dtype(m->f, list[i]))) return false;
        if (m->at[0] && m->at[1] == '+') continue;
        if (!matches_letter(m, *m->at, ir_dtype(m->f, list[i]))) return false;
        m->at += m->at[1] == '?' ? 2 : 1;
    }
    if (m->at[0] && (m->at[1] == '+' || m->at[1] == '?')) m->at += 2;
    return *m->at == '>' || *m->at == '|' || *m->at == '\0';
}

static bool matches(Matching *m, const Op *o) {
    if (!matches_list(m, o->in, o->n_in) || *m->at != '>') return false;
    m->at++;
    return matches_list(m, o->out, o->n_out) && *m->at != '>';
}

bool legal_types(const Func *f, const Op *o, int level) {
    for (const char *at = legal_signatures(o->code, level); at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
        Matching m = {.f = f, .at = at};
        if (matches(&m, o)) return true;
    }
    return false;
}

/* ---- views and memory -------------------------------------------------------------------------------------------- */

bool ir_is_convolution(const Op *o) {
    return o->code == OP_conv || o->code == OP_conv_data || o->code == OP_conv_weight;
}

bool ir_is_product(const Op *o) {
    if (o->code == OP_batch_contract) return ir_attr(o, "packed")->b;
    if (!ir_is_convolution(o)) return o->code == OP_contract;
    return ir_attr(o, "groups")->i == 1 || ir_attr(o, "packed")->b;
}

bool ir_is_attention(const Op *o) {
    return o->code == OP_attend || o->code == OP_attend_drop || o->code == OP_attend_grad;
}

bool ir_is_row_assign(const Op *o) { return o->code == OP_assign && o->n_in == 3; }

static bool is_scatter(const Op *o) {
    return o->code == OP_scatter || o->code == OP_distinct_rows || ir_is_row_assign(o);
}

bool ir_is_batch_norm_grad(const Op *o) { return o->code == OP_batch_norm_grad || o->code == OP_batch_norm_eval_grad; }

bool ir_is_collective(const Op *o) { return ir_op_info[o->code].flags & COLLECTIVE; }

#define is_product ir_is_product
#define is_attention ir_is_attention
#define is_collective ir_is_collective
#define is_GENERAL NULL
const KernelInfo ir_kernel_info[KERNEL_KINDS] = {
#define KERNEL(id, word, of, walk, traits, ...) [KERNEL_##id] = {is_##of, traits},
#include "base/kernels.def"
#undef KERNEL
};

KernelKind ir_own_kind(const Op *o) {
    KernelKind kind = 0;
    while (kind < KERNEL_KINDS && !(ir_kernel_info[kind].is_own && ir_kernel_info[kind].is_own(o))) kind++;
    return kind;
}

Val ir_own_space(const Op *o) {
    if (!(ir_kernel_info[ir_own_kind(o)].traits & BY_INPUT)) return o->out[0];
    return o->in[o->code == OP_assign];
}

/* Others are counters, and bits of dropout. */
static bool is_mask(const Func *f, Val v) { return ir_dtype(f, v) != AMP_DT_I64 && ir_dtype(f, v) != AMP_DT_I32; }

AttentionOperands ir_attention_operands(const Func *f, const Op *o) {
    const bool grad = o->code == OP_attend_grad;
    AttentionOperands a = {grad ? 0 : -1, grad, grad + 1, grad + 2, grad ? 4 : -1, grad ? 5 : -1, -1, -1, -1};
    int next = grad ? 6 : 3;
    if (next < o->n_in && is_mask(f, o->in[next])) a.mask = next++;
    if (next < o->n_in) *(ir_dtype(f, o->in[next]) == AMP_DT_I64 ? &a.counters : &a.bits) = next;
    return a;
}

int64_t ir_dropout_words(int64_t keys) { return (keys + 63) / 64 * 2; }

static bool fits(Dim part, Dim whole) { return dim_is_one(part) || dim_equal(part, whole); }

bool ir_is_view(const Func *f, const Op *o) {
    Dim rows, cols, r, c;
    if (o->code != OP_reshape && o->code != OP_expand) return false;
    if (!shape_matrix(ir_shape(f, o->out[0]), &rows, &cols) || !shape_matrix(ir_shape(f, o->in[0]), &r, &c))
        return false;
    if (o->code == OP_reshape) return dim_equal(r, rows) && dim_equal(c, cols);
    return fits(r, rows) && fits(c, cols);
}

bool ir_operand_varies(const Op *o, int i) {
    const char *at = ir_op_info[o->code].graph;
    for (; at && i > 0 && at[1] != '+'; i--) at += at[1] == '?' ? 2 : 1;
    return at && (*at == 'F' || *at == 'P' || *at == 'T');
}

bool ir_reads_elements(const Op *o, int i) {
    switch (o->code) {
    case OP_iota:
    case OP_extent:
    case OP_random: return i != 0;
    case OP_barrier: return i == 0;
    case OP_distinct_rows: return i == 0;
    case OP_batch_norm_squares: return i != 0;
    case OP_broadcast:
    case OP_broadcast_to:
    case OP_sum_to:
    case OP_avg_pool2d_grad:
    case OP_adaptive_avg_pool2d_grad:
    case OP_upsample_grad:
    case OP_global_avg_pool_grad: return i != 1;
    case OP_conv2d_input_grad:
    case OP_conv2d_weight_grad:
    case OP_embedding_grad:
    case OP_top_k_grad:
    case OP_max_pool2d_grad: return i != 2;
    default: return true;
    }
}

bool ir_reads_memory(const Func *f, const Op *o, int i) {
    if (ir_is_row_assign(o)) return true;
    if (o->code == OP_distinct_rows) return i == 0;
    if (o->code == OP_scatter || ir_is_product(o)) return i < 2;
    if (ir_is_attention(o)) return ir_dtype(f, o->in[i]) != AMP_DT_I64;
    if (o->code == OP_sum_ranks) return true;
    bool indirect = ir_op_info[o->code].flags & INDIRECT || ir_is_convolution(o);
    return indirect && !ir_is_view(f, o);
}

bool ir_takes_inlined(const Func *f, const Op *o) {
    if (o->code != OP_window_max && o->code != OP_window_sum) return false;
    Windows g = ir_windows(f, o);
    return g.kh <= g.stride[0] && g.kw <= g.stride[1];
}

bool ir_is_segment_expand(const Func *f, const Op *o, Dim segment) {
    if (o->code != OP_expand || !segment.mul || dim_is_one(segment)) return false;
    const Shape *x = ir_shape(f, o->in[0]), *y = ir_shape(f, o->out[0]);
    int front = y->rank - x->rank, last = y->rank - 1;
    Dim inner = dim_const(1);
    for (int i = last - 1; i >= 0; i--) { /* from the inside: 1 until |segment| rows are met, then the result's own */
        const Dim d = i >= front ? x->d[i - front] : dim_const(1);
        if (dim_equal(inner, segment) ? !dim_equal(d, y->d[i]) : !dim_is_one(d)) return false;
        if (!dim_equal(inner, segment) && !dim_mul(inner, y->d[i], &inner)) return false;
    }
    return dim_equal(inner, segment) && x->rank > 0 && dim_equal(x->d[x->rank - 1], y->d[last]);
}

static bool is_wide_float(Dtype t) { return t == AMP_DT_F32 || t == AMP_DT_TF32; }
static bool is_short_float(Dtype t) { return t == AMP_DT_F16 || t == AMP_DT_BF16 || amp_is_f8(t); }

bool ir_is_seen_through(const Func *f, const Op *o) {
    if (o->code == OP_reshape) return ir_is_view(f, o);
    if (o->code != OP_cast) return false;
    Dtype from = ir_dtype(f, o->in[0]), to = ir_dtype(f, o->out[0]);
    return (is_wide_float(to) && is_short_float(from)) || (to == AMP_DT_F32 && from == AMP_DT_TF32);
}

Val ir_memory_source(const Func *f, Val v) {
    for (const Op *o = ir_def(f, v); o && ir_is_seen_through(f, o); o = ir_def(f, v)) v = o->in[0];
    return v;
}

/* ---- parts of sums ----------------------------------------------------------------------------------------------- */

int64_t ir_part_size(int64_t k, int64_t parts) {
    const int64_t least = (k + parts - 1) / parts;
    return (least + PART_STEP - 1) / PART_STEP * PART_STEP;
}

Dim ir_product_terms(const Func *f, const Op *o) {
    const Shape *a = ir_shape(f, o->in[0]);
    Dim rows = dim_const(1), cols;
    if (o->code == OP_batch_contract) return a->d[a->rank - (ir_attr(o, "ta")->b ? 2 : 1)];
    if (o->code == OP_conv || o->code == OP_conv_data) {
        const Windows g = ir_windows(f, o);
        return dim_const(g.kh * g.kw * (o->code == OP_conv ? g.c : g.oc) / g.groups);
    }
    if (o->code == OP_conv_weight) shape_matrix(ir_shape(f, o->in[1]), &rows, &cols);
    else if (shape_matrix(a, &rows, &cols) && !ir_attr(o, "ta")->b) return cols;
    return rows;
}

int64_t ir_parts(const Op *o) {
    const AttrValue *parts = ir_attr(o, "parts");
    return parts ? parts->i : 1;
}

/* ---- geometry of windows ----------------------------------------------------------------------------------------- */

static void get_pair(const Op *o, const char *name, int64_t initial, int64_t *out) {
    const AttrValue *a = ir_attr(o, name);
    out[0] = a && a->dims.count > 0 ? a->dims.at[0] : initial;
    out[1] = a && a->dims.count > 1 ? a->dims.at[1] : out[0];
}

/* |x|: [N, h, w, c]; |y|: [N, oh, ow, oc]. */
static void set_images(Windows *g, const Shape *x, const Shape *y) {
    g->h = x->d[1].mul, g->w = x->d[2].mul, g->c = x->d[3].mul;
    g->oh = y->d[1].mul, g->ow = y->d[2].mul, g->oc = y->d[3].mul;
}

Windows ir_windows(const Func *f, const Op *o) {
    Windows g = {.groups = 1};
    const Shape *a = ir_shape(f, o->in[0]), *out = ir_shape(f, o->out[0]);
    const Shape *b = o->n_in > 1 ? ir_shape(f, o->in[1]) : NULL;
    int64_t kernel[2];
    bool backward = o->code == OP_conv_data || o->code == OP_window_max_grad || o->code == OP_window_sum_grad;
    if (backward) set_images(&g, out, a);
    else set_images(&g, a, o->code == OP_conv_weight ? b : out);
    get_pair(o, "stride", 1, g.stride);
    get_pair(o, "padding", 0, g.padding);
    g.dilation[0] = g.dilation[1] = 1;
    if (ir_is_convolution(o)) {
        const Shape *weights = o->code == OP_conv_weight ? out : b;
        get_pair(o, "dilation", 1, g.dilation);
        const int first = weights->rank - 4; /* after the parts */
        kernel[0] = weights->d[first].mul, kernel[1] = weights->d[first + 1].mul;
        g.groups = ir_attr(o, "groups")->i;
    } else get_pair(o, "kernel", 1, kernel);
    g.kh = kernel[0], g.kw = kernel[1];
    return g;
}

int64_t ir_tap_step(const Windows *g, int axis) {
    return g->stride[axis] / greatest_common_divisor(g->stride[axis], g->dilation[axis]);
}

int64_t ir_meeting_taps(const Windows *g, int axis) {
    const int64_t size = axis ? g->w : g->h, taps = axis ? g->kw : g->kh, stride = g->stride[axis];
    int64_t count = 0;
    for (int64_t tap = 0; tap < taps; tap++) {
        const int64_t first = ((tap * g->dilation[axis] - g->padding[axis]) % stride + stride) % stride;
        count += first < size ? (size - first - 1) / stride + 1 : 0;
    }
    return count;
}

const char *ir_cast_path(const Func *f, const Op *cast) {
    const Reason *why = cast->reason;
    if (cast->region) return ir_region((Func *)(uintptr_t)f, cast->region)->path;
    return why && why->relation && !strcmp(why->relation, "for") ? why->neighbour : NULL;
}
