/* opset.c: see opset.h. */
#include "onnx/opset.h"

#include <string.h>

#include "base/error.h"
#include "onnx/schema.h"

/* From which opset on an op reads its inputs or attributes in another way than before, since ONNX_OLDEST_OPSET. */
static const struct Change {
    const char *op;
    int opset;
} changes[] = {
    {"Dropout", 12},         {"Softmax", 13},      {"LogSoftmax", 13}, {"Hardmax", 13},    {"Split", 13},
    {"Squeeze", 13},         {"Unsqueeze", 13},    {"ReduceSum", 13},  {"RoiAlign", 16},   {"ReduceL1", 18},
    {"ReduceL2", 18},        {"ReduceLogSum", 18}, {"ReduceMax", 18},  {"ReduceMean", 18}, {"ReduceMin", 18},
    {"ReduceLogSumExp", 18}, {"ReduceProd", 18},   {"GridSample", 20}, {"DFT", 20},        {"GroupNormalization", 21},
    {"ReduceSumSquare", 18},
};

/* Changes that only some of its nodes meet. */
static int special_change(const OnnxNode *node) {
    if (!strcmp(node->op_type, "BatchNormalization") && node->outputs.len > 1) return 14;
    if (!strcmp(node->op_type, "Split") && node->inputs.len < 2)
        return 18; /* in equal parts, which has to be said there */
    return 0;
}

static int change_between(const OnnxNode *node, int64_t from, int64_t to) {
    const int special = special_change(node);
    if (!onnx_is_default_domain(node->domain)) return 0;
    if (special > from && special <= to) return special;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (changes[i].opset > from && changes[i].opset <= to && !strcmp(changes[i].op, node->op_type))
            return changes[i].opset;
    return 0;
}

bool onnx_means_the_same(const OnnxNodes *nodes, int64_t from, int64_t to) {
    for (int i = 0; i < nodes->len; i++) {
        const OnnxNode *n = &nodes->data[i];
        if (change_between(n, from, to)) return false;
        for (int k = 0; k < n->attributes.len; k++) {
            const OnnxAttribute *a = &n->attributes.data[k];
            if (a->type == ONNX_ATTR_GRAPH && a->g && !onnx_means_the_same(&a->g->nodes, from, to)) return false;
            for (int j = 0; a->type == ONNX_ATTR_GRAPHS && j < a->graphs.len; j++)
                if (!onnx_means_the_same(&a->graphs.data[j].nodes, from, to)) return false;
        }
    }
    return true;
}

static void state(OnnxOpsets *opsets, int64_t to) {
    for (int i = 0; i < opsets->len; i++)
        if (onnx_is_default_domain(opsets->data[i].domain)) opsets->data[i].version = to;
}

static int64_t ir_version_of(int64_t opset) {
    static const int since[] = {19, 21, 23, 24, 25, 28}; /* of IR versions 9 to 14 */
    int64_t version = 8;
    for (size_t i = 0; i < sizeof since / sizeof *since; i++) version += opset >= since[i];
    return version;
}

amp_status onnx_raise_opset(OnnxModel *model, const OnnxIndex *index, int64_t to, Arena *arena, amp_error *err) {
    const int64_t from = onnx_opset(&model->opsets, "");
    if (to < from || to > ONNX_NEWEST_OPSET)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: opset %lld: the model has %lld; from that to %d can be written",
                        model->path, (long long)to, (long long)from, ONNX_NEWEST_OPSET);
    for (int32_t i = 0; i < index->node_count; i++) {
        const int change = change_between(index->nodes[i].node, from, to);
        if (change)
            return amp_fail(err, AMP_UNSUPPORTED,
                            "%s: %s: means something else from opset %d on, so it cannot be written in opset %lld; "
                            "export the model with that opset",
                            model->path, onnx_node_text(index, arena, i), change, (long long)to);
    }
    if (to == from) return AMP_OK;
    state(&model->opsets, to);
    for (int i = 0; i < model->functions.len; i++) state(&model->functions.data[i].opsets, to);
    if (model->ir_version < ir_version_of(to)) model->ir_version = ir_version_of(to);
    return AMP_OK;
}
