/* data.c: elements of tensors, wherever they are (onnx.h). */
#include "base/protobuf.h"
#include "base/rounding.h"
#include "onnx/files.h"

uint64_t onnx_elements(const OnnxTensor *t) {
    uint64_t elements = 1;
    for (int i = 0; i < t->dims.len; i++) elements *= (uint64_t)t->dims.data[i];
    return elements;
}

uint64_t onnx_data_bytes(const OnnxTensor *t) {
    const int bits = onnx_dtype_bits(t->data_type);
    return bits ? (onnx_elements(t) * (unsigned)bits + 7) / 8 : t->data.size;
}

/* ---- by pieces --------------------------------------------------------------------------------------------------- */

static amp_status copy_data(const OnnxModel *model, const OnnxData *data, uint64_t at, void *to, size_t size,
                            amp_error *err) {
    if (data->location) return onnx_files_external(model->files, data->location, data->at + at, to, size, err);
    return onnx_files_copy(model->files, data->at + at, to, size, err);
}

/* What is stored as raw data, or as raw data would be. */
static amp_status each_plain(const OnnxModel *model, const OnnxData *data, OnnxDataPiece *piece, void *user,
                             amp_error *err) {
    uint8_t buffer[ONNX_PIECE];
    for (uint64_t at = 0; at < data->size;) {
        const size_t size = data->size - at < ONNX_PIECE ? (size_t)(data->size - at) : ONNX_PIECE;
        if (!data->memory) AMP_TRY(copy_data(model, data, at, buffer, size, err));
        AMP_TRY(piece(user, data->memory ? data->memory + at : buffer, size, err));
        at += size;
    }
    return AMP_OK;
}

/* Bytes that a number of a typed field is as raw data. */
static size_t number_size(int type) {
    const int bits = onnx_dtype_bits(type);
    return bits < 8 ? 1 : (size_t)bits / 8;
}

static amp_status look_at(const OnnxModel *model, const OnnxData *data, uint64_t at, const uint8_t **bytes,
                          size_t *size, amp_error *err) {
    if (!data->memory) return onnx_files_look(model->files, data->at + at, AMP_VARINT_MOST, bytes, size, err);
    *bytes = data->memory + at;
    *size = (size_t)(data->size - at);
    return AMP_OK;
}

static amp_status each_varint(const OnnxModel *model, const OnnxData *data, OnnxDataPiece *piece, void *user,
                              amp_error *err) {
    uint8_t out[ONNX_PIECE];
    const uint8_t *bytes;
    size_t size, held = 0;
    uint64_t value;
    const size_t step = number_size(data->type);
    for (uint64_t at = 0; at < data->size;) {
        AMP_TRY(look_at(model, data, at, &bytes, &size, err));
        const size_t n = amp_varint_get(bytes, size, &value);
        if (!n) return amp_fail(err, AMP_BAD_FILE, "%s: was changed while it was read; read it again", model->path);
        at += n;
        amp_little_endian_put(out + held, value, step);
        held += step;
        if (held < sizeof out && at < data->size) continue;
        AMP_TRY(piece(user, out, held, err));
        held = 0;
    }
    return AMP_OK;
}

amp_status onnx_data_each(const OnnxModel *model, const OnnxTensor *t, OnnxDataPiece *piece, void *user,
                          amp_error *err) {
    switch (t->data.field) {
    case ONNX_NO_DATA:
        if (!t->strings.len) return AMP_OK;
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: tensor '%s' is of strings", model->path, t->name);
    case ONNX_INT32_DATA:
    case ONNX_INT64_DATA:
    case ONNX_UINT64_DATA:
        if (onnx_dtype_bits(t->data.type) == 6)
            return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: tensor '%s' is of type %s, which is read as raw data only",
                            model->path, t->name, onnx_dtype_name(t->data.type));
        return each_varint(model, &t->data, piece, user, err);
    default: return each_plain(model, &t->data, piece, user, err);
    }
}

/* ---- as numbers -------------------------------------------------------------------------------------------------- */

typedef struct Numbers {
    int type;
    uint64_t left; /* elements */
    int64_t *ints; /* one of the two */
    double *doubles;
} Numbers;

static int64_t int_of(int type, const uint8_t *data) {
    const size_t size = number_size(type);
    const uint64_t bits = amp_little_endian_get(data, size);
    const bool is_signed = type == ONNX_INT8 || type == ONNX_INT16 || type == ONNX_INT32;
    const uint64_t sign = (uint64_t)1 << (8 * size - 1);
    return (int64_t)(is_signed ? (bits ^ sign) - sign : bits);
}

static double double_of(int type, const uint8_t *data) {
    const uint64_t bits = amp_little_endian_get(data, number_size(type));
    const uint32_t low = (uint32_t)bits;
    float single;
    double value;
    if (type == ONNX_FLOAT16) return (double)amp_f16_to_f32((uint16_t)bits);
    if (type == ONNX_BFLOAT16) return (double)amp_bf16_to_f32((uint16_t)bits);
    memcpy(&single, &low, sizeof single);
    memcpy(&value, &bits, sizeof value);
    return type == ONNX_FLOAT ? (double)single : value;
}

/* Elements of less than a byte, the first in the lowest bits. */
static void take_parts(Numbers *n, uint8_t byte) {
    const int bits = onnx_dtype_bits(n->type);
    const int64_t sign = n->type == ONNX_INT4 || n->type == ONNX_INT2 ? (int64_t)1 << (bits - 1) : 0;
    for (int at = 0; at < 8 && n->left; at += bits, n->left--)
        *n->ints++ = ((byte >> at & ((1 << bits) - 1)) ^ sign) - sign;
}

static amp_status take_numbers(void *user, const void *elements, size_t bytes, amp_error *err) {
    Numbers *n = user;
    const uint8_t *data = elements;
    const size_t step = number_size(n->type);
    (void)err;
    for (size_t at = 0; at < bytes; at += step) {
        if (onnx_dtype_bits(n->type) < 8) take_parts(n, data[at]);
        else if (n->ints) *n->ints++ = int_of(n->type, data + at);
        else *n->doubles++ = double_of(n->type, data + at);
    }
    return AMP_OK;
}

static bool is_int(int type) {
    switch (type) {
    case ONNX_UINT8:
    case ONNX_INT8:
    case ONNX_UINT16:
    case ONNX_INT16:
    case ONNX_INT32:
    case ONNX_INT64:
    case ONNX_BOOL:
    case ONNX_UINT32:
    case ONNX_UINT64:
    case ONNX_UINT4:
    case ONNX_INT4:
    case ONNX_UINT2:
    case ONNX_INT2: return true;
    default: return false;
    }
}

static amp_status read_numbers(const OnnxModel *model, const OnnxTensor *t, Numbers numbers, bool fits, uint64_t most,
                               amp_error *err) {
    numbers.type = t->data.type;
    numbers.left = onnx_elements(t);
    if (!fits)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: tensor '%s' is of type %s, and not of %s", model->path, t->name,
                        onnx_dtype_name(t->data.type), numbers.ints ? "an integer type" : "a floating type");
    if (numbers.left > most)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: tensor '%s' has %llu elements; at most %llu are read here",
                        model->path, t->name, (unsigned long long)numbers.left, (unsigned long long)most);
    return onnx_data_each(model, t, take_numbers, &numbers, err);
}

amp_status onnx_data_ints(const OnnxModel *model, const OnnxTensor *t, int64_t *to, uint64_t most, amp_error *err) {
    return read_numbers(model, t, (Numbers){.ints = to}, is_int(t->data.type), most, err);
}

amp_status onnx_data_doubles(const OnnxModel *model, const OnnxTensor *t, double *to, uint64_t most, amp_error *err) {
    const int type = t->data.type;
    return read_numbers(model, t, (Numbers){.doubles = to},
                        type == ONNX_FLOAT || type == ONNX_DOUBLE || type == ONNX_FLOAT16 || type == ONNX_BFLOAT16,
                        most, err);
}
