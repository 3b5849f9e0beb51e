/* shapes_nn.c: rules of products, convolutions, pooling, norms, recurrences and attention. */
#include <string.h>

#include "onnx/shapes.h"

static OnnxSizes *sizes(OnnxSolver *s) { return &s->out->sizes; }

/* ---- products ---------------------------------------------------------------------------------------------------- */

static void shape_matmul(OnnxSolver *s, int32_t node) {
    const char *op = s->index->nodes[node].node->op_type;
    OnnxValueShape a = onnx_input_shape(s, node, 0);
    OnnxValueShape b = onnx_input_shape(s, node, strcmp(op, "QLinearMatMul") == 0 ? 3 : 1), out;
    OnnxSize dims[ONNX_RANK];
    if (a.rank < 1 || b.rank < 1 || a.rank > ONNX_RANK || b.rank > ONNX_RANK) return;
    OnnxValueShape batch_a = {a.rank > 2 ? a.rank - 2 : 0, a.dims}, batch_b = {b.rank > 2 ? b.rank - 2 : 0, b.dims};
    if (!onnx_broadcast(s, batch_a, batch_b, &out)) return;
    int rank = out.rank;
    if (rank) memcpy(dims, out.dims, sizeof *dims * (size_t)rank);
    if (a.rank > 1) dims[rank++] = a.dims[a.rank - (onnx_int_of(s, node, "transA", 0) ? 1 : 2)];
    if (b.rank > 1) dims[rank++] = b.dims[b.rank - (onnx_int_of(s, node, "transB", 0) ? 2 : 1)];
    onnx_say_shape(s, node, 0, rank, dims);
}

static void shape_gemm(OnnxSolver *s, int32_t node) {
    OnnxValueShape a = onnx_input_shape(s, node, 0), b = onnx_input_shape(s, node, 1);
    OnnxSize dims[2] = {onnx_size_unknown(), onnx_size_unknown()};
    if (a.rank == 2) dims[0] = a.dims[onnx_int_of(s, node, "transA", 0) ? 1 : 0];
    if (b.rank == 2) dims[1] = b.dims[onnx_int_of(s, node, "transB", 0) ? 0 : 1];
    onnx_say_shape(s, node, 0, 2, dims);
}

typedef struct Letter {
    OnnxSize size;
    bool known;
} Letter;

/* The letters of one operand of an equation, without spaces; false with an ellipsis. */
static bool next_operand(const char **at, const char *end, char *out, int *count) {
    for (*count = 0; *at < end && **at != ',' && **at != '-'; (*at)++) {
        if (**at == ' ') continue;
        if (**at == '.' || *count == ONNX_RANK) return false;
        out[(*count)++] = **at;
    }
    if (*at < end && **at == ',') (*at)++;
    return true;
}

static void shape_einsum(OnnxSolver *s, int32_t node) {
    const OnnxNode *n = s->index->nodes[node].node;
    const OnnxAttribute *a = onnx_solver_attribute(s, n, "equation");
    Letter letters[256] = {{.known = false}};
    char operand[ONNX_RANK];
    OnnxSize dims[ONNX_RANK];
    int count;
    if (!a || a->type != ONNX_ATTR_STRING) return;
    const char *at = (const char *)a->s.data, *end = at + a->s.size;
    for (int i = 0; i < n->inputs.len; i++) {
        OnnxValueShape in = onnx_input_shape(s, node, i);
        if (!next_operand(&at, end, operand, &count) || in.rank != count) return;
        for (int k = 0; k < count; k++) letters[(uint8_t)operand[k]] = (Letter){in.dims[k], true};
    }
    if (end - at < 2 || at[0] != '-' || at[1] != '>') return; /* without an arrow: rare */
    at += 2;
    if (!next_operand(&at, end, operand, &count)) return;
    for (int k = 0; k < count; k++) {
        Letter letter = letters[(uint8_t)operand[k]];
        dims[k] = letter.known ? letter.size : onnx_size_unknown();
    }
    onnx_say_shape(s, node, 0, count, dims);
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

/* What convolution and pooling say of one spatial dimension. */
typedef struct Window {
    OnnxSize kernel;
    int64_t stride, dilation, before, after, more; /* more: output_padding of ConvTranspose */
    bool same, ceil, transposed;
} Window;

static int64_t number_of(OnnxKnownInts list, int i, int64_t otherwise) {
    int64_t n = otherwise;
    onnx_number(list, i, &n);
    return n > 1 << 30 || n < -(1 << 30) ? otherwise : n;
}

static Window window_of(OnnxSolver *s, int32_t node, int i, int spatial, OnnxValueShape weight) {
    const OnnxAttribute *pad = onnx_solver_attribute(s, s->index->nodes[node].node, "auto_pad");
    OnnxKnownInts kernel = onnx_ints_of(s, node, "kernel_shape", -1), pads = onnx_ints_of(s, node, "pads", -1);
    Window w = {.ceil = onnx_int_of(s, node, "ceil_mode", 0) != 0};
    w.kernel = i < kernel.count             ? kernel.data[i]
               : weight.rank == spatial + 2 ? weight.dims[i + 2]
                                            : onnx_size_unknown();
    w.stride = number_of(onnx_ints_of(s, node, "strides", -1), i, 1);
    w.dilation = number_of(onnx_ints_of(s, node, "dilations", -1), i, 1);
    w.more = number_of(onnx_ints_of(s, node, "output_padding", -1), i, 0);
    w.before = number_of(pads, i, 0);
    w.after = number_of(pads, spatial + i, 0);
    w.same = pad && pad->type == ONNX_ATTR_STRING && pad->s.size >= 4 && memcmp(pad->s.data, "SAME", 4) == 0;
    if (w.stride < 1) w.stride = 1;
    return w;
}

static OnnxSize window_result(OnnxSolver *s, OnnxSize in, const Window *w) {
    OnnxSizes *c = sizes(s);
    OnnxSize stride = onnx_size(w->stride), one = onnx_size(1);
    OnnxSize reach = onnx_size_mul(c, onnx_size_sub(c, w->kernel, one), onnx_size(w->dilation)); /* and one */
    OnnxSize pads = onnx_size(w->before + w->after);
    if (w->transposed) {
        if (w->same) return onnx_size_mul(c, in, stride);
        OnnxSize out = onnx_size_mul(c, onnx_size_sub(c, in, one), stride);
        out = onnx_size_add(c, onnx_size_add(c, out, reach), onnx_size(w->more + 1));
        return onnx_size_sub(c, out, pads);
    }
    if (w->same) return onnx_size_floor(c, onnx_size_add(c, in, onnx_size(w->stride - 1)), stride);
    OnnxSize room = onnx_size_sub(c, onnx_size_add(c, in, pads), onnx_size_add(c, reach, one));
    if (w->ceil) room = onnx_size_add(c, room, onnx_size(w->stride - 1));
    OnnxSize out = onnx_size_add(c, onnx_size_floor(c, room, stride), one);
    /* The last window begins in the input or in the padding before it. */
    if (w->ceil && onnx_size_is_number(out) && onnx_size_is_number(in) &&
        (out.add - 1) * w->stride >= in.add + w->before)
        out.add--;
    return out;
}

static void say_windows(OnnxSolver *s, int32_t node, OnnxValueShape weight, OnnxSize channels, bool transposed) {
    OnnxValueShape in = onnx_input_shape(s, node, 0);
    OnnxKnownInts stated = onnx_ints_of(s, node, "output_shape", -1);
    OnnxSize dims[ONNX_RANK];
    if (in.rank < 2 || in.rank > ONNX_RANK) return;
    int spatial = in.rank - 2;
    dims[0] = in.dims[0];
    dims[1] = channels;
    for (int i = 0; i < spatial; i++) {
        Window w = window_of(s, node, i, spatial, weight);
        w.transposed = transposed;
        dims[i + 2] = i < stated.count ? stated.data[i] : window_result(s, in.dims[i + 2], &w);
    }
    onnx_say_shape(s, node, 0, in.rank, dims);
    onnx_say_shape(s, node, 1, in.rank, dims); /* indices of MaxPool */
}

static void shape_conv(OnnxSolver *s, int32_t node) {
    const char *op = s->index->nodes[node].node->op_type;
    OnnxValueShape weight = onnx_input_shape(s, node, strcmp(op, "QLinearConv") == 0 ? 3 : 1);
    say_windows(s, node, weight, weight.rank > 0 ? weight.dims[0] : onnx_size_unknown(), false);
}

static void shape_conv_transpose(OnnxSolver *s, int32_t node) {
    OnnxValueShape weight = onnx_input_shape(s, node, 1);
    OnnxSize groups = onnx_size(onnx_int_of(s, node, "group", 1));
    OnnxSize channels = weight.rank > 1 ? onnx_size_mul(sizes(s), weight.dims[1], groups) : onnx_size_unknown();
    say_windows(s, node, weight, channels, true);
}

static void shape_pool(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0);
    if (in.rank > 1) say_windows(s, node, (OnnxValueShape){-1, NULL}, in.dims[1], false);
}

static void shape_global_pool(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0);
    OnnxSize dims[ONNX_RANK];
    if (in.rank < 2 || in.rank > ONNX_RANK) return;
    for (int i = 0; i < in.rank; i++) dims[i] = i < 2 ? in.dims[i] : onnx_size(1);
    onnx_say_shape(s, node, 0, in.rank, dims);
}

static void shape_roi_align(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0), rois = onnx_input_shape(s, node, 1);
    if (in.rank != 4 || rois.rank != 2) return;
    OnnxSize dims[4] = {rois.dims[0], in.dims[1], onnx_size(onnx_int_of(s, node, "output_height", 1)),
                        onnx_size(onnx_int_of(s, node, "output_width", 1))};
    onnx_say_shape(s, node, 0, 4, dims);
}

static void shape_grid_sample(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0), grid = onnx_input_shape(s, node, 1);
    OnnxSize dims[ONNX_RANK];
    if (in.rank < 3 || in.rank > ONNX_RANK || grid.rank != in.rank) return;
    dims[0] = in.dims[0];
    dims[1] = in.dims[1];
    for (int i = 2; i < in.rank; i++) dims[i] = grid.dims[i - 1];
    onnx_say_shape(s, node, 0, in.rank, dims);
}

/* ---- norms, recurrences, attention ------------------------------------------------------------------------------- */

static void shape_layer_norm(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0);
    OnnxSize dims[ONNX_RANK];
    int axis = onnx_axis(onnx_int_of(s, node, "axis", -1), in.rank);
    onnx_say_same(s, node, 0, in);
    if (in.rank < 0 || in.rank > ONNX_RANK || axis < 0) return;
    for (int i = 0; i < in.rank; i++) dims[i] = i < axis ? in.dims[i] : onnx_size(1);
    onnx_say_shape(s, node, 1, in.rank, dims);
    onnx_say_shape(s, node, 2, in.rank, dims);
}

static void shape_batch_norm(OnnxSolver *s, int32_t node) {
    onnx_say_same(s, node, 0, onnx_input_shape(s, node, 0));
    for (int i = 1; i < 5; i++) onnx_say_same(s, node, i, onnx_input_shape(s, node, 3));
}

static void shape_recurrent(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0), weight = onnx_input_shape(s, node, 2);
    bool batch_first = onnx_int_of(s, node, "layout", 0) != 0;
    if (in.rank != 3) return;
    OnnxSize hidden = onnx_size(onnx_int_of(s, node, "hidden_size", -1));
    if (onnx_size_is(hidden, -1)) hidden = weight.rank == 3 ? weight.dims[2] : onnx_size_unknown();
    OnnxSize ways = weight.rank == 3 ? weight.dims[0] : onnx_size_unknown();
    OnnxSize y[4] = {in.dims[0], ways, in.dims[1], hidden}, h[3] = {ways, in.dims[1], hidden};
    if (batch_first) {
        y[1] = in.dims[1], y[2] = ways;
        h[0] = in.dims[0], h[1] = ways;
    }
    onnx_say_shape(s, node, 0, 4, y);
    onnx_say_shape(s, node, 1, 3, h);
    onnx_say_shape(s, node, 2, 3, h);
}

/* What a cache has after a call: input |past| and |fresh|, in heads. */
static void say_cache(OnnxSolver *s, int32_t node, int output, int past, OnnxValueShape fresh, OnnxSize heads) {
    OnnxValueShape before = onnx_input_shape(s, node, past);
    OnnxSize dims[4], length;
    if (onnx_output(s, node, output) == ONNX_NONE || fresh.rank < 3 || fresh.rank > 4) return;
    dims[0] = fresh.dims[0];
    dims[1] = fresh.rank == 4 ? fresh.dims[1] : heads;
    length = fresh.dims[fresh.rank - 2];
    if (onnx_input(s, node, past) != ONNX_NONE)
        length = before.rank == 4 ? onnx_size_add(sizes(s), before.dims[2], length) : onnx_size_unknown();
    dims[2] = length;
    dims[3] = fresh.rank == 4 ? fresh.dims[3] : onnx_size_divide(sizes(s), fresh.dims[2], heads);
    onnx_say_shape(s, node, output, 4, dims);
}

/* Of com.microsoft, with the projections inside. */
static void shape_projected_attention(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0), weights = onnx_input_shape(s, node, 1);
    if (in.rank != 3) return;
    OnnxSize dims[3] = {in.dims[0], in.dims[1], onnx_size_unknown()};
    if (weights.rank == 2 && !onnx_attribute(s->index->nodes[node].node, "qkv_hidden_sizes"))
        dims[2] = onnx_size_divide(sizes(s), weights.dims[1], onnx_size(3));
    onnx_say_shape(s, node, 0, 3, dims);
}

/* The same without them: what is made of values, or with all three in one operand, is not known. */
static void shape_heads(OnnxSolver *s, int32_t node) {
    OnnxValueShape q = onnx_input_shape(s, node, 0), v = onnx_input_shape(s, node, 2);
    const bool shares_heads = strcmp(s->index->nodes[node].node->op_type, "MultiHeadAttention") != 0;
    if (q.rank != 3) return;
    OnnxSize dims[3] = {q.dims[0], q.dims[1], onnx_size_unknown()};
    if (v.rank == 3) dims[2] = shares_heads ? q.dims[2] : v.dims[2];
    if (v.rank == 4) dims[2] = onnx_size_mul(sizes(s), v.dims[1], v.dims[3]);
    onnx_say_shape(s, node, 0, 3, dims);
}

static void shape_attention(OnnxSolver *s, int32_t node) {
    if (!onnx_is_default_domain(s->index->nodes[node].node->domain)) {
        shape_projected_attention(s, node);
        return;
    }
    OnnxValueShape q = onnx_input_shape(s, node, 0), k = onnx_input_shape(s, node, 1), v = onnx_input_shape(s, node, 2);
    OnnxSize heads = onnx_size(onnx_int_of(s, node, "q_num_heads", 1));
    OnnxSize shared = onnx_size(onnx_int_of(s, node, "kv_num_heads", 1));
    OnnxSize dims[4];
    if (q.rank < 3 || q.rank > 4) return;
    memcpy(dims, q.dims, sizeof *dims * (size_t)q.rank);
    OnnxSize last = v.rank == q.rank ? v.dims[v.rank - 1] : onnx_size_unknown();
    dims[q.rank - 1] = q.rank == 4 ? last : onnx_size_mul(sizes(s), onnx_size_divide(sizes(s), last, shared), heads);
    onnx_say_shape(s, node, 0, q.rank, dims);
    say_cache(s, node, 1, 4, k, shared);
    say_cache(s, node, 2, 5, v, shared);
}

/* Numbers of words, a row of a table for each. */
static void shape_embed(OnnxSolver *s, int32_t node) {
    OnnxValueShape words = onnx_input_shape(s, node, 0), table = onnx_input_shape(s, node, 2);
    if (words.rank != 2 || table.rank != 2) return;
    const OnnxSize dims[3] = {words.dims[0], words.dims[1], table.dims[1]};
    onnx_say_shape(s, node, 0, 3, dims);
    onnx_say_shape(s, node, 2, 3, dims);
}

static void shape_skip_norm(OnnxSolver *s, int32_t node) {
    onnx_say_same(s, node, 0, onnx_input_shape(s, node, 0));
    onnx_say_same(s, node, 3, onnx_input_shape(s, node, 0));
}

/* Of a loss: nothing is left, unless it is not reduced. */
static void shape_loss(OnnxSolver *s, int32_t node) {
    const OnnxAttribute *a = onnx_solver_attribute(s, s->index->nodes[node].node, "reduction");
    bool none = a && a->type == ONNX_ATTR_STRING && a->s.size == 4 && memcmp(a->s.data, "none", 4) == 0;
    if (none) onnx_say_same(s, node, 0, onnx_input_shape(s, node, 1));
    else onnx_say_shape(s, node, 0, 0, NULL);
    onnx_say_same(s, node, 1, onnx_input_shape(s, node, 0));
}

/* ---- ai.onnx.ml -------------------------------------------------------------------------------------------------- */

/* A label for each row, and a score for each class; or a number for each row and target. */
static void shape_classic(OnnxSolver *s, int32_t node) {
    OnnxValueShape in = onnx_input_shape(s, node, 0);
    bool classifier = strstr(s->index->nodes[node].node->op_type, "Classifier") != NULL;
    OnnxSize targets = onnx_size(onnx_int_of(s, node, "n_targets", onnx_int_of(s, node, "targets", 1)));
    OnnxSize dims[2] = {in.rank == 2 ? in.dims[0] : onnx_size_unknown(), classifier ? onnx_size_unknown() : targets};
    onnx_say_shape(s, node, classifier ? 1 : 0, 2, dims);
    if (classifier) onnx_say_shape(s, node, 0, 1, dims);
}

const OnnxRule onnx_rules_nn[] = {
    {"MatMul MatMulInteger QLinearMatMul FusedMatMul GemmFastGelu", shape_matmul},
    {"Gemm FusedGemm", shape_gemm},
    {"Einsum", shape_einsum},
    {"Conv ConvInteger QLinearConv FusedConv DeformConv", shape_conv},
    {"ConvTranspose", shape_conv_transpose},
    {"AveragePool MaxPool LpPool", shape_pool},
    {"GlobalAveragePool GlobalMaxPool GlobalLpPool", shape_global_pool},
    {"RoiAlign", shape_roi_align},
    {"GridSample", shape_grid_sample},
    {"LayerNormalization SimplifiedLayerNormalization", shape_layer_norm},
    {"BatchNormalization", shape_batch_norm},
    {"GRU LSTM RNN", shape_recurrent},
    {"LinearClassifier LinearRegressor SVMClassifier SVMRegressor TreeEnsembleClassifier TreeEnsembleRegressor",
     shape_classic},
    {"Attention", shape_attention},
    {"MultiHeadAttention GroupQueryAttention", shape_heads},
    {"EmbedLayerNormalization", shape_embed},
    {"SkipLayerNormalization SkipSimplifiedLayerNormalization", shape_skip_norm},
    {"NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", shape_loss},
    {NULL, NULL},
};
