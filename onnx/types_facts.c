/* types_facts.c: what others ask of a solution: how many elements, how long sums are, a type as text. */
#include <string.h>

#include "onnx/types.h"

static double count_of(const OnnxSolution *s, OnnxValueShape shape, int from) {
    double count = 1;
    if (shape.rank < 0 || from < 0) return -1;
    for (int i = from; i < shape.rank; i++) count *= onnx_size_typical(&s->sizes, shape.dims[i]);
    return count;
}

double onnx_typical_elements(const OnnxSolution *s, int32_t value) { return count_of(s, s->shapes[value], 0); }

const char *onnx_value_text(const OnnxSolution *s, Arena *arena, int32_t value) {
    Text t;
    text_init(&t, arena);
    onnx_type_print(&t, s->types[value]);
    OnnxValueShape shape = s->shapes[value];
    if (s->types[value].kind != ONNX_KIND_TENSOR || shape.rank < 0) return text_str(&t);
    text_putc(&t, '[');
    for (int i = 0; i < shape.rank; i++) {
        if (i) text_puts(&t, ", ");
        onnx_size_print(&s->sizes, &t, shape.dims[i]);
    }
    text_putc(&t, ']');
    return text_str(&t);
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

typedef struct Asked {
    const OnnxIndex *index;
    const OnnxSolution *s;
    const OnnxNodeEntry *e;
} Asked;

static OnnxValueShape input_shape(const Asked *a, int i) {
    int32_t v = i < a->e->node->inputs.len ? a->index->operands[a->e->first_input + i] : ONNX_NONE;
    return v == ONNX_NONE ? (OnnxValueShape){-1, NULL} : a->s->shapes[v];
}

/* Dimension |i| of input |input|, from the end if negative; 0: unknown. */
static double dim_of(const Asked *a, int input, int i) {
    OnnxValueShape shape = input_shape(a, input);
    if (shape.rank < 0) return 0;
    if (i < 0) i += shape.rank;
    return i >= 0 && i < shape.rank ? onnx_size_typical(&a->s->sizes, shape.dims[i]) : 0;
}

static double summed_matmul(const Asked *a) {
    return dim_of(a, 0, onnx_attribute_int(a->e->node, "transA", 0) ? -2 : -1);
}

static double summed_conv(const Asked *a) {
    int weight = strcmp(a->e->node->op_type, "QLinearConv") == 0 ? 3 : 1;
    double count = count_of(a->s, input_shape(a, weight), 1);
    return count < 0 ? 0 : count;
}

static double summed_conv_transpose(const Asked *a) {
    double count = count_of(a->s, input_shape(a, 1), 2), groups = (double)onnx_attribute_int(a->e->node, "group", 1);
    return count < 0 || groups < 1 ? 0 : count * dim_of(a, 1, 0) / groups;
}

/* Of a result that is smaller: what is lost of each element's. */
static double summed_ratio(const Asked *a) {
    int32_t v = a->index->operands[a->e->first_output];
    double in = count_of(a->s, input_shape(a, 0), 0), out = v == ONNX_NONE ? 0 : onnx_typical_elements(a->s, v);
    return in > 0 && out > 0 ? in / out : 0;
}

static double summed_pool(const Asked *a) {
    const OnnxAttribute *kernel = onnx_attribute(a->e->node, "kernel_shape");
    double count = 1;
    if (!kernel || kernel->type != ONNX_ATTR_INTS) return 0;
    for (int i = 0; i < kernel->ints.len; i++) count *= (double)kernel->ints.data[i];
    return count;
}

static double summed_from_axis(const Asked *a) {
    OnnxValueShape shape = input_shape(a, 0);
    int64_t axis = onnx_attribute_int(a->e->node, "axis", -1);
    if (axis < 0) axis += shape.rank;
    return axis < 0 || axis >= shape.rank ? 0 : count_of(a->s, shape, (int)axis);
}

static double summed_axis(const Asked *a) {
    int64_t axis = onnx_attribute_int(a->e->node, "axis", -1);
    return axis < -64 || axis > 64 ? 0 : dim_of(a, 0, (int)axis);
}

static double summed_image(const Asked *a) {
    OnnxValueShape shape = input_shape(a, 0);
    return shape.rank < 3 ? 0 : count_of(a->s, shape, 2);
}

static double summed_recurrent(const Asked *a) { return dim_of(a, 1, -1) + dim_of(a, 2, -1); }

static double summed_attention(const Asked *a) {
    double keys = dim_of(a, 1, -2), features = dim_of(a, 0, -1);
    int64_t heads = onnx_attribute_int(a->e->node, "q_num_heads", 1);
    if (input_shape(a, 0).rank == 3 && heads > 0) features /= (double)heads;
    return keys > features ? keys : features;
}

double onnx_summed(const OnnxIndex *index, const OnnxSolution *s, int32_t node) {
    static const struct {
        const char *ops; /* with a space before and after each */
        double (*summed)(const Asked *a);
    } rows[] = {
        {" MatMul MatMulInteger Gemm FusedMatMul ", summed_matmul},
        {" Conv ConvInteger QLinearConv FusedConv DeformConv ", summed_conv},
        {" ConvTranspose ", summed_conv_transpose},
        {" ReduceSum ReduceMean ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum ReduceLogSumExp ReduceProd ",
         summed_ratio},
        {" GlobalAveragePool GlobalLpPool ", summed_image},
        {" InstanceNormalization ", summed_image},
        {" AveragePool LpPool ", summed_pool},
        {" LayerNormalization RMSNormalization ", summed_from_axis},
        {" Softmax LogSoftmax LpNormalization ", summed_axis},
        {" LSTM GRU RNN ", summed_recurrent},
        {" Attention ", summed_attention},
    };
    Asked a = {index, s, &index->nodes[node]};
    char wanted[64];
    size_t n = strlen(a.e->node->op_type);
    if (n + 3 > sizeof wanted || !s->schemas[node] || !a.e->node->outputs.len) return 0;
    wanted[0] = ' ';
    memcpy(wanted + 1, a.e->node->op_type, n);
    memcpy(wanted + 1 + n, " ", 2);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strstr(rows[i].ops, wanted)) return rows[i].summed(&a);
    return 0;
}
