/* check.c: what is checked of each message when it has been read: tensors and their external data, attributes, sizes,
 * opsets. */
#include "onnx/reader.h"

#include <stdlib.h>

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static const char unsized[] = "its sizes multiply to more than 2^63";

static amp_status count_elements(const Reader *r, const Frame *frame, const OnnxTensor *t, uint64_t *elements) {
    uint64_t without_zeros = 1; /* so that no product of some of the sizes overflows later */
    *elements = 1;
    for (int i = 0; i < t->dims.len; i++) {
        const int64_t dim = t->dims.data[i];
        if (dim < 0)
            return onnx_reader_fail(r, frame, frame->at, "size %d is %lld; a tensor's sizes are from 0 on", i,
                                    (long long)dim);
        if (dim && without_zeros > INT64_MAX / (uint64_t)dim) return onnx_reader_fail(r, frame, frame->at, unsized);
        without_zeros *= dim ? (uint64_t)dim : 1;
        *elements *= (uint64_t)dim;
    }
    return AMP_OK;
}

/* Bytes as raw data; false: more than 2^63. */
static bool raw_bytes(uint64_t elements, int bits, uint64_t *bytes) {
    if (elements > (uint64_t)INT64_MAX / (unsigned)bits) return false;
    *bytes = (elements * (unsigned)bits + 7) / 8;
    return true;
}

static bool field_holds(int field, int32_t dtype) {
    switch (dtype) {
    case ONNX_FLOAT:
    case ONNX_COMPLEX64: return field == ONNX_FLOAT_DATA;
    case ONNX_DOUBLE:
    case ONNX_COMPLEX128: return field == ONNX_DOUBLE_DATA;
    case ONNX_INT64: return field == ONNX_INT64_DATA;
    case ONNX_UINT32:
    case ONNX_UINT64: return field == ONNX_UINT64_DATA;
    default: return field == ONNX_INT32_DATA;
    }
}

/* Numbers that a typed field has for |elements|. */
static uint64_t numbers_of(int32_t dtype, uint64_t elements) {
    const unsigned bits = (unsigned)onnx_dtype_bits(dtype), a_number = bits == 4 || bits == 2 ? 8 / bits : 1;
    if (dtype == ONNX_COMPLEX64 || dtype == ONNX_COMPLEX128) return elements * 2;
    return elements / a_number + (elements % a_number != 0);
}

static amp_status check_strings(const Reader *r, const Frame *frame, const OnnxTensor *t, uint64_t elements) {
    if (t->data.field) return onnx_reader_fail(r, frame, frame->at, "it is of strings, and has elements that are none");
    if ((uint64_t)t->strings.len == elements) return AMP_OK;
    return onnx_reader_fail(r, frame, frame->at, "it has %d strings, and by its sizes %llu", t->strings.len,
                            (unsigned long long)elements);
}

static amp_status check_typed(const Reader *r, const Frame *frame, const OnnxTensor *t, uint64_t elements) {
    const OnnxData *data = &t->data;
    const char *field = onnx_field(frame->type, data->field)->name;
    if (!field_holds(data->field, t->data_type))
        return onnx_reader_fail(r, frame, frame->at, "%s cannot have elements of type %s", field,
                                onnx_dtype_name(t->data_type));
    uint64_t numbers = data->numbers;
    if (data->field == ONNX_FLOAT_DATA) numbers = data->size / 4;
    if (data->field == ONNX_DOUBLE_DATA) numbers = data->size / 8;
    const uint64_t wanted = numbers_of(t->data_type, elements);
    if (numbers == wanted) return AMP_OK;
    return onnx_reader_fail(r, frame, frame->at, "%s has %llu numbers, and by its sizes and type %s %llu", field,
                            (unsigned long long)numbers, onnx_dtype_name(t->data_type), (unsigned long long)wanted);
}

static amp_status check_raw(const Reader *r, const Frame *frame, const OnnxTensor *t, uint64_t elements) {
    uint64_t bytes;
    if (!raw_bytes(elements, onnx_dtype_bits(t->data_type), &bytes))
        return onnx_reader_fail(r, frame, frame->at, unsized);
    if (bytes == t->data.size) return AMP_OK;
    return onnx_reader_fail(r, frame, frame->at, "it has %llu bytes of elements, and by its sizes and type %s %llu",
                            (unsigned long long)t->data.size, onnx_dtype_name(t->data_type), (unsigned long long)bytes);
}

/* ---- external data ----------------------------------------------------------------------------------------------- */

/* A decimal number of at most 63 bits. */
static bool read_number(const char *text, uint64_t *value) {
    *value = 0;
    if (!*text) return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9') return false;
        const uint64_t digit = (uint64_t)(*text - '0');
        if (*value > (INT64_MAX - digit) / 10) return false;
        *value = *value * 10 + digit;
    }
    return true;
}

typedef struct External {
    const char *location;
    uint64_t offset, length;
    bool has_length;
} External;

static amp_status read_external(const Reader *r, const Frame *frame, const OnnxTensor *t, External *e) {
    uint32_t seen = 0;
    for (int i = 0; i < t->external_data.len; i++) {
        static const char *const keys[] = {"location", "offset", "length", "checksum"};
        const OnnxProp *prop = &t->external_data.data[i];
        unsigned key = 0;
        while (key < 4 && strcmp(prop->key, keys[key])) key++;
        if (key == 4 || seen >> key & 1)
            return onnx_reader_fail(r, frame, frame->at,
                                    "external data has key '%s'%s; the keys are location, offset, length, checksum",
                                    prop->key, key < 4 ? " twice" : "");
        seen |= 1u << key;
        if (key == 0) e->location = prop->value;
        if ((key == 1 && !read_number(prop->value, &e->offset)) || (key == 2 && !read_number(prop->value, &e->length)))
            return onnx_reader_fail(r, frame, frame->at, "external data: %s '%s' is no number from 0 to 2^63 - 1",
                                    prop->key, prop->value);
    }
    e->has_length = seen >> 2 & 1;
    return e->location ? AMP_OK : onnx_reader_fail(r, frame, frame->at, "external data has no location");
}

static amp_status check_external(Reader *r, const Frame *frame, OnnxTensor *t, uint64_t elements) {
    External e = {0};
    uint64_t bytes;
    const int bits = onnx_dtype_bits(t->data_type);
    if (t->data.field || t->strings.len)
        return onnx_reader_fail(r, frame, frame->at, "it has elements here and in external data; a tensor has one");
    AMP_TRY(read_external(r, frame, t, &e));
    if (t->data_type == ONNX_STRING)
        return onnx_reader_fail(r, frame, frame->at, "it is of strings, which external data cannot have");
    if (bits && !raw_bytes(elements, bits, &bytes)) return onnx_reader_fail(r, frame, frame->at, unsized);
    if (!bits && !e.has_length)
        return onnx_reader_fail(r, frame, frame->at, "external data of type %d needs a length", t->data_type);
    if (!bits) bytes = e.length;
    if (e.has_length && e.length != bytes)
        return onnx_reader_fail(r, frame, frame->at,
                                "external data has length %llu, and by the tensor's sizes and type %s %llu",
                                (unsigned long long)e.length, onnx_dtype_name(t->data_type), (unsigned long long)bytes);
    AMP_TRY(onnx_external_open(r->files, e.location, r->err));
    const uint64_t there = r->files->external.size;
    if (e.offset > there || bytes > there - e.offset)
        return onnx_reader_fail(r, frame, frame->at,
                                "external data '%s' has %llu bytes; %llu from byte %llu on are not there", e.location,
                                (unsigned long long)there, (unsigned long long)bytes, (unsigned long long)e.offset);
    t->data = (OnnxData){.field = ONNX_EXTERNAL_DATA, .location = e.location, .at = e.offset, .size = bytes};
    return AMP_OK;
}

static amp_status check_tensor(Reader *r, const Frame *frame, OnnxTensor *t) {
    uint64_t elements;
    const int bits = onnx_dtype_bits(t->data_type);
    AMP_TRY(count_elements(r, frame, t, &elements));
    if (t->data_location < 0 || t->data_location > 1)
        return onnx_reader_fail(r, frame, frame->at, "data_location is %d; it is 0 or 1", t->data_location);
    if (t->data_type < 0) return onnx_reader_fail(r, frame, frame->at, "data_type is %d", t->data_type);
    if (t->data_location) AMP_TRY(check_external(r, frame, t, elements));
    else if (t->data_type == ONNX_STRING) AMP_TRY(check_strings(r, frame, t, elements));
    else if (t->strings.len)
        return onnx_reader_fail(r, frame, frame->at, "it has strings, and type %s", onnx_dtype_name(t->data_type));
    else if (bits && t->data.field && t->data.field != ONNX_RAW_DATA) AMP_TRY(check_typed(r, frame, t, elements));
    else if (bits) AMP_TRY(check_raw(r, frame, t, elements));
    else if (t->data_type == ONNX_UNDEFINED && t->data.field)
        return onnx_reader_fail(r, frame, frame->at, "it has elements, and no type of them (data_type)");
    t->data.type = t->data_type;
    return AMP_OK;
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

/* Of IR version 1 they have no type. */
static void find_type(OnnxAttribute *a) {
    for (int32_t type = 1; type <= ONNX_ATTR_TYPES && !a->type; type++)
        if (a->has >> onnx_attribute_field(type) & 1) a->type = type;
}

static amp_status check_attribute(const Reader *r, const Frame *frame, OnnxAttribute *a) {
    if (!a->type) find_type(a);
    const int wanted = onnx_attribute_field(a->type);
    for (int i = 0; i < frame->type->field_count; i++) {
        const Field *field = &frame->type->fields[i];
        if (field->choice && field->number != wanted && a->has >> field->number & 1)
            return onnx_reader_fail(r, frame, frame->at, "it is of type %d, and has its value in %s", a->type,
                                    field->name);
        if (field->choice && field->number == wanted && field->kind == FIELD_MESSAGE && !a->t && !*a->ref_name)
            return onnx_reader_fail(r, frame, frame->at, "it has no value: %s is not there", field->name);
    }
    return AMP_OK;
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Which of two would hold depends on who reads them. */
static amp_status check_names(const Reader *r, const Frame *frame, const OnnxAttributes *list) {
    const char **names = arena_array(r->arena, const char *, list->len);
    for (int i = 0; i < list->len; i++) names[i] = list->data[i].name;
    if (list->len) qsort(names, (size_t)list->len, sizeof *names, by_text);
    for (int i = 1; i < list->len; i++)
        if (!strcmp(names[i - 1], names[i]))
            return onnx_reader_fail(r, frame, frame->at, "two attributes have the name '%s'; a name has one value",
                                    names[i]);
    return AMP_OK;
}

/* ---- models and functions ---------------------------------------------------------------------------------------- */

static int by_domain(const void *a, const void *b) {
    const char *x = (*(const OnnxOpset *const *)a)->domain, *y = (*(const OnnxOpset *const *)b)->domain;
    return strcmp(onnx_is_default_domain(x) ? "" : x, onnx_is_default_domain(y) ? "" : y);
}

static amp_status check_opsets(const Reader *r, const Frame *frame, const OnnxOpsets *list) {
    const OnnxOpset **sorted = arena_array(r->arena, const OnnxOpset *, list->len);
    for (int i = 0; i < list->len; i++) sorted[i] = &list->data[i];
    if (list->len) qsort(sorted, (size_t)list->len, sizeof *sorted, by_domain);
    for (int i = 1; i < list->len; i++)
        if (!by_domain(&sorted[i - 1], &sorted[i]) && sorted[i - 1]->version != sorted[i]->version)
            return onnx_reader_fail(r, frame, frame->at,
                                    "domain '%s' is imported in versions %lld and %lld; state the one that its nodes "
                                    "are of",
                                    sorted[i]->domain, (long long)sorted[i - 1]->version,
                                    (long long)sorted[i]->version);
    return AMP_OK;
}

static amp_status check_function(const Reader *r, const Frame *frame, const OnnxFunction *f) {
    AMP_TRY(check_names(r, frame, &f->defaults));
    return check_opsets(r, frame, &f->opsets);
}

static amp_status check_model(const Reader *r, const Frame *frame, const OnnxModel *model) {
    AMP_TRY(check_opsets(r, frame, &model->opsets));
    if (!model->graph)
        return onnx_reader_fail(r, frame, 0, "has no graph; it is no ONNX model, or is empty: export it again");
    if (model->ir_version < 1)
        return onnx_reader_fail(r, frame, 0, "ir_version is %lld; it is from 1 on: export it again",
                                (long long)model->ir_version);
    return AMP_OK;
}

static amp_status check_dim(const Reader *r, const Frame *frame, const OnnxDim *dim) {
    if (dim->kind != ONNX_DIM_VALUE || dim->value >= 0) return AMP_OK;
    return onnx_reader_fail(r, frame, frame->at,
                            "a size is %lld; sizes are from 0 on, and one that is not known has a name or nothing",
                            (long long)dim->value);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

amp_status onnx_check_message(Reader *r, const Frame *frame) {
    if (frame->type == &onnx_tensor_message) return check_tensor(r, frame, frame->message);
    if (frame->type == &onnx_attribute_message) return check_attribute(r, frame, frame->message);
    if (frame->type == &onnx_node_message)
        return check_names(r, frame, &((const OnnxNode *)frame->message)->attributes);
    if (frame->type == &onnx_function_message) return check_function(r, frame, frame->message);
    if (frame->type == &onnx_dim_message) return check_dim(r, frame, frame->message);
    if (frame->type == &onnx_model_message) return check_model(r, frame, frame->message);
    return AMP_OK;
}
