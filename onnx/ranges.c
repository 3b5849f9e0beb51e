/* ranges.c: see ranges.h. */
#include "onnx/ranges.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/rounding.h"

/* ---- weights ----------------------------------------------------------------------------------------------------- */

typedef struct Seen {
    OnnxMagnitude range;
    OnnxLoss loss;
    int dtype;
    double infinite, zero; /* from |infinite| on a number becomes infinite, up to |zero| it becomes zero */
} Seen;

static void see(Seen *s, double x) {
    const double size = fabs(x);
    if (!(size < INFINITY) || size == 0.0) return;
    if (size < s->range.smallest) s->range.smallest = size;
    if (size > s->range.largest) s->range.largest = size;
    s->loss.over += size >= s->infinite;
    s->loss.under += size <= s->zero;
}

static amp_status see_piece(void *user, const void *elements, size_t bytes, amp_error *err) {
    (void)err;
    Seen s = *(Seen *)user;
    const float *single = elements;
    const double *wide = elements;
    const uint16_t *half = elements;
    switch (s.dtype) {
    case ONNX_FLOAT:
        for (size_t i = 0; i < bytes / sizeof *single; i++) see(&s, single[i]);
        break;
    case ONNX_DOUBLE:
        for (size_t i = 0; i < bytes / sizeof *wide; i++) see(&s, wide[i]);
        break;
    default:
        for (size_t i = 0; i < bytes / sizeof *half; i++)
            see(&s, s.dtype == ONNX_FLOAT16 ? amp_f16_to_f32(half[i]) : amp_bf16_to_f32(half[i]));
    }
    *(Seen *)user = s;
    return AMP_OK;
}

static Seen nothing_seen(int low) {
    const bool is_half = low == ONNX_FLOAT16; /* halfway from the largest number to the next; half the smallest */
    return (Seen){.range = {.smallest = INFINITY},
                  .infinite = is_half ? 65520.0 : 0x1.ffp127,
                  .zero = is_half ? 0x1p-25 : 0x1p-134};
}

static void give(const Seen *s, OnnxMagnitude *range, OnnxLoss *loss) {
    *range = s->range;
    if (range->largest == 0.0) range->smallest = 0.0;
    *loss = s->loss;
}

typedef struct Ranges {
    const OnnxModel *model;
    const OnnxIndex *index;
    int low;
    OnnxMagnitude *ranges;
    OnnxLoss *losses;
} Ranges;

static amp_status take_tensor(const Ranges *r, int32_t value, const OnnxTensor *t, amp_error *err) {
    if (!onnx_is_float(t->data_type)) return AMP_OK;
    Seen s = nothing_seen(r->low);
    s.dtype = t->data.type;
    AMP_TRY(onnx_data_each(r->model, t, see_piece, &s, err));
    give(&s, &r->ranges[value], &r->losses[value]);
    return AMP_OK;
}

/* The number of a Constant, in whichever attribute it is. */
static amp_status take_constant(const Ranges *r, int32_t value, const OnnxNode *node, amp_error *err) {
    for (int i = 0; i < node->attributes.len; i++) {
        const OnnxAttribute *a = &node->attributes.data[i];
        Seen s = nothing_seen(r->low);
        if (a->type == ONNX_ATTR_TENSOR) return take_tensor(r, value, a->t, err);
        if (a->type == ONNX_ATTR_SPARSE_TENSOR) return take_tensor(r, value, a->sparse->values, err);
        if (a->type != ONNX_ATTR_FLOAT && a->type != ONNX_ATTR_FLOATS) continue;
        if (a->type == ONNX_ATTR_FLOAT) see(&s, a->f);
        else
            for (int k = 0; k < a->floats.len; k++) see(&s, a->floats.data[k]);
        give(&s, &r->ranges[value], &r->losses[value]);
    }
    return AMP_OK;
}

amp_status onnx_weight_ranges(const OnnxModel *model, const OnnxIndex *index, int low, OnnxMagnitude *ranges,
                              OnnxLoss *losses, amp_error *err) {
    const Ranges r = {model, index, low, ranges, losses};
    for (int32_t i = 0; i < index->value_count; i++) {
        const OnnxValue *v = &index->values[i];
        const OnnxNode *node = v->producer == ONNX_NONE ? NULL : index->nodes[v->producer].node;
        if (v->initializer) AMP_TRY(take_tensor(&r, i, v->initializer, err));
        else if (v->sparse) AMP_TRY(take_tensor(&r, i, v->sparse->values, err));
        else if (node && !strcmp(node->op_type, "Constant") && onnx_is_default_domain(node->domain))
            AMP_TRY(take_constant(&r, i, node, err));
    }
    return AMP_OK;
}

/* ---- what the user has measured ---------------------------------------------------------------------------------- */

static amp_status read_range(const amp_json_member *m, const char *name, OnnxMagnitude *out, amp_error *err) {
    const amp_json_array *a = &m->value.array;
    if (m->value.kind != AMP_JSON_ARRAY || a->count != 2 || a->items[0].kind != AMP_JSON_NUMBER ||
        a->items[1].kind != AMP_JSON_NUMBER)
        return amp_fail(err, AMP_BAD_FILE, "%s: byte %zu: \"%s\" is to be [SMALLEST, LARGEST], two numbers", name,
                        m->value.offset, m->key.data);
    const double least = a->items[0].number.value, greatest = a->items[1].number.value;
    if (least > greatest)
        return amp_fail(err, AMP_BAD_FILE,
                        "%s: byte %zu: the smallest number of \"%s\", %g, is larger than the largest, %g", name,
                        m->value.offset, m->key.data, least, greatest);
    out->largest = fmax(fabs(least), fabs(greatest));
    out->smallest = least > 0.0 || greatest < 0.0 ? fmin(fabs(least), fabs(greatest)) : 0.0;
    return AMP_OK;
}

/* A name may be there in several graphs.  How many there are. */
static int find_all(const OnnxIndex *index, const char *name, OnnxMagnitude range, OnnxMagnitude *ranges) {
    int found = 0;
    for (int32_t g = 0; g < index->graph_count; g++) {
        const int32_t value = onnx_find(index, g, name);
        if (value == ONNX_NONE || index->values[value].graph != g) continue;
        if (ranges[value].largest == 0.0) ranges[value] = range;
        found++;
    }
    return found;
}

static amp_status read_all(const amp_json *root, const char *name, const OnnxIndex *index, OnnxMagnitude *ranges,
                           int64_t *unknown, amp_error *err) {
    if (root->kind != AMP_JSON_OBJECT)
        return amp_fail(err, AMP_BAD_FILE, "%s: is %s; an object is wanted: {\"VALUE\": [SMALLEST, LARGEST], ...}",
                        name, amp_json_kind_name(root->kind));
    *unknown = 0;
    for (size_t i = 0; i < root->object.count; i++) {
        OnnxMagnitude range = {0};
        AMP_TRY(read_range(&root->object.members[i], name, &range, err));
        *unknown += !find_all(index, root->object.members[i].key.data, range, ranges);
    }
    if (root->object.count && (size_t)*unknown == root->object.count)
        return amp_fail(err, AMP_BAD_FILE, "%s: no name in it is of a value of the model: the first is \"%s\"", name,
                        root->object.members[0].key.data);
    return AMP_OK;
}

amp_status onnx_read_ranges(const char *text, size_t size, const char *name, const OnnxIndex *index,
                            OnnxMagnitude *ranges, int64_t *unknown, amp_error *err) {
    const amp_json_limits limits = {.values = 30000000};
    amp_json_document *document = NULL;
    amp_error why = {0};
    int64_t count;
    amp_status status = amp_json_parse(text, size, &limits, NULL, &document, &why);
    if (status) return amp_fail(err, status, "%s: %s", name, why.message);
    status = read_all(amp_json_root(document), name, index, ranges, unknown ? unknown : &count, err);
    amp_json_free(document);
    return status;
}
