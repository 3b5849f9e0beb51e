/* write_tensor.c: where the elements of a tensor are written, and in which type (writer.h). */
#define _XOPEN_SOURCE 700 /* stat, fstat */
#include <stdio.h>
#include <sys/stat.h>

#include "onnx/convert.h"
#include "onnx/writer.h"

/* As onnx.save_model: smaller ones stay in the model.  Large ones begin at pages, so that readers can map them. */
enum { EXTERNAL_LEAST = 1 << 10, ALIGN_LEAST = 64, LARGE = 1 << 20, ALIGN_LARGE = 4096 };

static bool is_converted(const OnnxTensor *t) { return t->data.size && t->data_type != t->data.type; }

static bool can_be_external(const OnnxTensor *t) {
    if (!t->data.size || !onnx_dtype_bits(t->data_type)) return false;
    return onnx_dtype_bits(t->data.type) != 6 || t->data.field != ONNX_INT32_DATA;
}

/* A large file of weights is not to be replaced while another model, from which they are read, needs it. */
static amp_status check_source(const Writer *w, const OnnxTensor *t) {
    struct stat now;
    OnnxFiles *f = w->model->files;
    if (stat(w->data_path, &now)) return AMP_OK;
    AMP_TRY(onnx_external_open(f, t->data.location, w->err));
    struct stat from;
    if (fstat(f->external.fd, &from) || from.st_ino != now.st_ino || from.st_dev != now.st_dev) return AMP_OK;
    return amp_fail(w->err, AMP_INVALID_ARGUMENT,
                    "%s: has external data of %s, which would lose it; write the model to another path", w->data_path,
                    w->model->path);
}

static void add_prop(TensorPlan *plan, const char *key, const char *value) {
    OnnxProp *prop = &plan->props[plan->tensor.external_data.len++];
    *prop = (OnnxProp){.key = key, .value = value, .has = 6};
}

static void plan_external(Writer *w, TensorPlan *plan, uint64_t bytes) {
    OnnxTensor *t = &plan->tensor;
    const uint64_t align = bytes >= LARGE ? ALIGN_LARGE : ALIGN_LEAST;
    const uint64_t offset = (w->data.at + align - 1) / align * align;
    snprintf(plan->texts[0], sizeof plan->texts[0], "%llu", (unsigned long long)offset);
    snprintf(plan->texts[1], sizeof plan->texts[1], "%llu", (unsigned long long)bytes);
    t->external_data.data = plan->props;
    t->external_data.len = 0;
    add_prop(plan, "location", w->location);
    add_prop(plan, "offset", plan->texts[0]);
    add_prop(plan, "length", plan->texts[1]);
    t->data_location = 1;
    t->data = (OnnxData){.field = ONNX_EXTERNAL_DATA, .at = offset, .size = bytes};
}

amp_status onnx_plan_tensor(Writer *w, const OnnxTensor *from, bool is_initializer, TensorPlan *plan) {
    OnnxTensor *t = &plan->tensor;
    const bool was_external = from->data.location != NULL;
    plan->tensor = *from;
    plan->from = from;
    if (is_converted(from) && !onnx_can_convert(from->data.type, from->data_type))
        return amp_fail(w->err, AMP_INVALID_ARGUMENT, "%s: tensor '%s' cannot be converted from %s to %s",
                        w->model->path, from->name, onnx_dtype_name(from->data.type), onnx_dtype_name(from->data_type));
    if (was_external && w->is_counting && w->data_path) AMP_TRY(check_source(w, from));
    if (was_external) w->had_external = true;
    const uint64_t bytes = onnx_data_bytes(from);
    if (w->location && can_be_external(from) && (was_external || (is_initializer && bytes >= EXTERNAL_LEAST))) {
        plan_external(w, plan, bytes);
        return AMP_OK;
    }
    if (was_external) {
        t->external_data.len = t->data_location = 0;
        t->has &= ~(1u << 13 | 1u << 14);
        t->has |= 1u << ONNX_RAW_DATA;
    }
    if (was_external || is_converted(from)) {
        t->data.field = ONNX_RAW_DATA;
        t->data.size = bytes;
    }
    return AMP_OK;
}

/* ---- elements ---------------------------------------------------------------------------------------------------- */

typedef struct Pieces {
    Out *out;
    int32_t from, to;
    size_t step; /* bytes of an element of |from| */
} Pieces;

static amp_status put_piece(void *user, const void *elements, size_t bytes, amp_error *err) {
    Pieces *p = user;
    char out[ONNX_PIECE];
    if (p->from == p->to) return onnx_put(p->out, elements, bytes, err);
    for (size_t at = 0, size; at < bytes; at += size) {
        size = bytes - at < ONNX_PIECE / 4 ? bytes - at : ONNX_PIECE / 4; /* f16 becomes f64 */
        const size_t converted = onnx_convert(p->from, p->to, (const char *)elements + at, size / p->step, out);
        AMP_TRY(onnx_put(p->out, out, converted, err));
    }
    return AMP_OK;
}

/* The field as it is stored, typed or not. */
static amp_status put_stored(Writer *w, const OnnxTensor *t) {
    OnnxTensor raw = {.name = t->name, .data = t->data};
    Pieces pieces = {.out = &w->out};
    raw.data.field = ONNX_RAW_DATA;
    return onnx_data_each(w->model, &raw, put_piece, &pieces, w->err);
}

static amp_status put_padding(Out *out, uint64_t until, amp_error *err) {
    static const char zeros[ALIGN_LEAST];
    while (out->at < until) {
        const uint64_t left = until - out->at;
        AMP_TRY(onnx_put(out, zeros, left < sizeof zeros ? (size_t)left : sizeof zeros, err));
    }
    return AMP_OK;
}

amp_status onnx_put_elements(Writer *w, const TensorPlan *plan) {
    const OnnxTensor *from = plan->from, *t = &plan->tensor;
    const bool external = t->data.field == ONNX_EXTERNAL_DATA;
    Out *out = external ? &w->data : &w->out;
    if (external && w->is_counting) out->at = t->data.at;
    if (external) AMP_TRY(put_padding(out, t->data.at, w->err));
    const uint64_t end = out->at + t->data.size;
    if (w->is_counting) {
        out->at = end;
        return AMP_OK;
    }
    if (t->data.field == from->data.field && t->data_type == from->data.type && !from->data.location)
        AMP_TRY(put_stored(w, from));
    else {
        Pieces pieces = {.out = out, .from = from->data.type, .to = t->data_type};
        pieces.step = pieces.from == pieces.to ? 1 : (size_t)onnx_dtype_bits(pieces.from) / 8;
        AMP_TRY(onnx_data_each(w->model, from, put_piece, &pieces, w->err));
    }
    if (out->at == end) return AMP_OK;
    return amp_fail(w->err, AMP_INTERNAL, "%s: tensor '%s' has other elements than its sizes say", w->model->path,
                    from->name);
}
