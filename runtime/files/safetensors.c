/* safetensors.c: see safetensors.h. */
#include "runtime/files/safetensors.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/rounding.h"

/* ---- the element types of the format ----------------------------------------------------------------------------- */

/* In the reference's order: the writer sorts by it, from the last to the first, which puts larger alignments first. */
static const struct TensorType {
    const char *name;
    unsigned bits;
    amp_dtype dtype; /* AMP_DT_NONE: not computed with here */
} types[] = {
    {"BOOL", 8, AMP_DT_BOOL},
    {"F4", 4, AMP_DT_NONE},
    {"F6_E2M3", 6, AMP_DT_NONE},
    {"F6_E3M2", 6, AMP_DT_NONE},
    {"U8", 8, AMP_DT_U8},
    {"I8", 8, AMP_DT_NONE},
    {"F8_E5M2", 8, AMP_DT_NONE},
    {"F8_E4M3", 8, AMP_DT_NONE},
    {"F8_E8M0", 8, AMP_DT_NONE},
    {"F8_E4M3FNUZ", 8, AMP_DT_NONE},
    {"F8_E5M2FNUZ", 8, AMP_DT_NONE},
    {"I16", 16, AMP_DT_NONE},
    {"U16", 16, AMP_DT_NONE},
    {"F16", 16, AMP_DT_F16},
    {"BF16", 16, AMP_DT_BF16},
    {"I32", 32, AMP_DT_I32},
    {"U32", 32, AMP_DT_NONE},
    {"F32", 32, AMP_DT_F32},
    {"C64", 64, AMP_DT_NONE},
    {"F64", 64, AMP_DT_F64},
    {"I64", 64, AMP_DT_I64},
    {"U64", 64, AMP_DT_NONE},
};

enum { TYPE_COUNT = sizeof types / sizeof *types };

/* The format's limit for the JSON text (safetensors, MAX_HEADER_SIZE). */
enum { MAX_HEADER = 100000000, LENGTH_BYTES = 8 /* bytes of the number in front */ };

#define METADATA "__metadata__"

/* ---- the strict reader ------------------------------------------------------------------------------------------- */

enum {
    TENSOR_LIMIT = 100000, /* a header of 100 MB with more is an attack on memory and time, not a model */
    VALUES_PER_TENSOR = 6 + AMP_SAFETENSORS_MAX_RANK,
    BYTES_PER_VALUE = 4 /* at least, of every sound header: [0,0,0,0,0,0,0,0] is the densest that a tensor can have */
};

struct amp_safetensors {
    amp_allocator allocator;
    const char *data; /* the whole file */
    char *owned;      /* the same, if it was read here; NULL: the caller's */
    size_t size;
    amp_json_document *header;
    amp_tensor_view *views; /* by name */
    int32_t count, allocated;
};

typedef struct TensorReader {
    const char *path;
    amp_safetensors *file;
    const char *buffer; /* after the header */
    size_t buffer_size;
    amp_error *err;
} TensorReader;

static amp_status bad(const TensorReader *r, const char *format, ...) AMP_PRINTF(2, 3);

static amp_status bad(const TensorReader *r, const char *format, ...) {
    amp_error what = {0};
    va_list args;
    va_start(args, format);
    amp_vfail(&what, AMP_BAD_FILE, format, args);
    va_end(args);
    return amp_fail(r->err, AMP_BAD_FILE, "%s: not a sound safetensors file: %s", r->path, what.message);
}

/* ---- the header -------------------------------------------------------------------------------------------------- */

static uint64_t read_le64(const char *at) {
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--) v = v << 8 | (unsigned char)at[i];
    return v;
}

/* The object is padded with spaces and nothing else. */
static amp_status check_padding(const TensorReader *r, const char *text, size_t length) {
    if (length < 2 || text[0] != '{') return bad(r, "byte %d: the header must begin with {", LENGTH_BYTES);
    while (text[length - 1] == ' ') length--;
    if (text[length - 1] != '}')
        return bad(r, "byte %zu: the header must end with } and spaces", LENGTH_BYTES + length - 1);
    return AMP_OK;
}

/* Parsed values take more memory than their text, so a header of nothing but commas must not get far. */
static size_t most_values(size_t header) {
    size_t dense = header / BYTES_PER_VALUE + 1, most = (size_t)TENSOR_LIMIT * VALUES_PER_TENSOR;
    return dense < most ? dense : most;
}

/* Its first bytes, in place of a number. */
static bool is_text(const char *data) {
    for (int i = 0; i < LENGTH_BYTES; i++)
        if (data[i] != '\t' && data[i] != '\r' && data[i] != '\n' && (data[i] < ' ' || data[i] > '~')) return false;
    return true;
}

static amp_status read_header(TensorReader *r) {
    amp_safetensors *f = r->file;
    const char *text = f->data + LENGTH_BYTES;
    if (f->size >= 4 && !memcmp(f->data, "PK\003\004", 4))
        return bad(r, "it is a zip archive, as torch.save and numpy.savez write them; write the tensors with "
                      "safetensors.torch.save_file");
    if (f->size < LENGTH_BYTES) return bad(r, "it has only %zu bytes", f->size);
    uint64_t length = read_le64(f->data);
    if (length > MAX_HEADER && is_text(f->data))
        return bad(r, "it begins with text, and not with the size of its header");
    if (length > MAX_HEADER)
        return bad(r, "its header would have %llu bytes; at most %d are allowed", (unsigned long long)length,
                   MAX_HEADER);
    if (length > f->size - LENGTH_BYTES)
        return bad(r, "its header of %llu bytes ends after the file of %zu bytes", (unsigned long long)length, f->size);
    AMP_TRY(check_padding(r, text, (size_t)length));
    r->buffer = text + length;
    r->buffer_size = f->size - LENGTH_BYTES - (size_t)length;
    amp_json_limits limits = {.depth = 3, .values = most_values((size_t)length)};
    amp_error why = {0};
    amp_status status = amp_json_parse(text, (size_t)length, &limits, &f->allocator, &f->header, &why);
    if (status == AMP_OUT_OF_MEMORY) return amp_fail(r->err, status, "%s: no memory to read its header", r->path);
    return status ? bad(r, "header, %s", why.message) : AMP_OK;
}

static amp_status check_metadata(const TensorReader *r, const amp_json *metadata) {
    if (metadata->kind != AMP_JSON_OBJECT) return bad(r, "%s is no object", METADATA);
    for (size_t i = 0; i < metadata->object.count; i++) {
        const amp_json_member *m = &metadata->object.members[i];
        if (m->value.kind != AMP_JSON_STRING)
            return bad(r, "%s %s is a %s; only strings are allowed", METADATA, m->key.data,
                       amp_json_kind_name(m->value.kind));
    }
    return AMP_OK;
}

/* ---- one tensor -------------------------------------------------------------------------------------------------- */

static const struct TensorType *find_type(const char *name) {
    for (int i = 0; i < TYPE_COUNT; i++)
        if (!strcmp(types[i].name, name)) return &types[i];
    return NULL;
}

static bool is_size(const amp_json *v) {
    return v->kind == AMP_JSON_NUMBER && v->number.is_integer && v->number.integer >= 0;
}

static amp_status read_shape(const TensorReader *r, const amp_json *shape, amp_tensor_view *view, size_t *elements) {
    if (!shape || shape->kind != AMP_JSON_ARRAY) return bad(r, "tensor %s has no shape", view->name);
    if (shape->array.count > AMP_SAFETENSORS_MAX_RANK)
        return bad(r, "tensor %s has %zu dimensions; at most %d are read", view->name, shape->array.count,
                   AMP_SAFETENSORS_MAX_RANK);
    size_t without_zeros = 1; /* so that no product of some of the dimensions overflows later */
    *elements = 1;
    for (size_t i = 0; i < shape->array.count; i++) {
        const amp_json *dim = &shape->array.items[i];
        if (!is_size(dim)) return bad(r, "tensor %s: a dimension is not a number from 0 on", view->name);
        size_t size = (size_t)dim->number.integer;
        if (!amp_size_mul(without_zeros, size ? size : 1, &without_zeros) || without_zeros > PTRDIFF_MAX)
            return bad(r, "tensor %s has more elements than memory can hold", view->name);
        view->dims[view->rank++] = dim->number.integer;
        *elements *= size;
    }
    return AMP_OK;
}

static amp_status read_offsets(const TensorReader *r, const amp_json *offsets, amp_tensor_view *view) {
    if (!offsets || offsets->kind != AMP_JSON_ARRAY || offsets->array.count != 2 ||
        !is_size(&offsets->array.items[0]) || !is_size(&offsets->array.items[1]))
        return bad(r, "tensor %s: data_offsets must be two numbers from 0 on", view->name);
    uint64_t begin = (uint64_t)offsets->array.items[0].number.integer;
    uint64_t end = (uint64_t)offsets->array.items[1].number.integer;
    if (begin > end || end > r->buffer_size)
        return bad(r, "tensor %s is at bytes %llu to %llu of %zu", view->name, (unsigned long long)begin,
                   (unsigned long long)end, r->buffer_size);
    view->data = r->buffer + begin;
    view->bytes = (size_t)(end - begin);
    return AMP_OK;
}

static amp_status read_tensor(const TensorReader *r, const amp_json_member *member, amp_tensor_view *view) {
    const amp_json *entry = &member->value, *dtype = amp_json_get(entry, "dtype");
    size_t elements = 0, bits;
    view->name = member->key.data;
    if (entry->kind != AMP_JSON_OBJECT || !dtype || dtype->kind != AMP_JSON_STRING)
        return bad(r, "tensor %s has no dtype", view->name);
    if (entry->object.count != 3) return bad(r, "tensor %s has keys that the format does not know", view->name);
    const struct TensorType *type = find_type(dtype->string.data);
    if (!type) return bad(r, "tensor %s: unknown dtype %s", view->name, dtype->string.data);
    view->dtype = type->dtype;
    view->dtype_name = type->name;
    AMP_TRY(read_shape(r, amp_json_get(entry, "shape"), view, &elements));
    AMP_TRY(read_offsets(r, amp_json_get(entry, "data_offsets"), view));
    if (!amp_size_mul(elements, type->bits, &bits) || bits % 8 || bits / 8 != view->bytes)
        return bad(r, "tensor %s: %zu elements of %s do not take %zu bytes", view->name, elements, type->name,
                   view->bytes);
    return AMP_OK;
}

/* ---- all tensors ------------------------------------------------------------------------------------------------- */

/* In order of name. */
static amp_status read_tensors(TensorReader *r) {
    amp_safetensors *f = r->file;
    const amp_json_object *root = &amp_json_root(f->header)->object;
    if (root->count > TENSOR_LIMIT) return bad(r, "it has %zu tensors; at most %d are read", root->count, TENSOR_LIMIT);
    f->allocated = (int32_t)root->count;
    f->views = amp_alloc_zeroed(&f->allocator, root->count * sizeof *f->views);
    if (!f->views) return amp_fail(r->err, AMP_OUT_OF_MEMORY, "%s: no memory for its table of tensors", r->path);
    for (size_t i = 0; i < root->count; i++) {
        const amp_json_member *m = root->sorted[i];
        if (!strcmp(m->key.data, METADATA)) AMP_TRY(check_metadata(r, &m->value));
        else AMP_TRY(read_tensor(r, m, &f->views[f->count++]));
    }
    return AMP_OK;
}

static int by_place(const void *a, const void *b) {
    const amp_tensor_view *x = *(const amp_tensor_view *const *)a, *y = *(const amp_tensor_view *const *)b;
    if (x->data != y->data) return (const char *)x->data < (const char *)y->data ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* Every byte of the buffer belongs to exactly one tensor.  Two empty tensors at one place would be two names for the
 * same bytes. */
static amp_status check_cover(const TensorReader *r, const amp_tensor_view *const *sorted) {
    const char *at = r->buffer;
    for (int32_t i = 0; i < r->file->count; i++) {
        const amp_tensor_view *v = sorted[i];
        if (v->data != at)
            return bad(r, "tensor %s begins at byte %td, but the one before it ends at %td (no holes, no overlap)",
                       v->name, (const char *)v->data - r->buffer, at - r->buffer);
        if (i > 0 && v->bytes == 0 && sorted[i - 1]->bytes == 0)
            return bad(r, "the empty tensors %s and %s are at the same place", sorted[i - 1]->name, v->name);
        at += v->bytes;
    }
    if (at != r->buffer + r->buffer_size)
        return bad(r, "%td bytes follow the last tensor", r->buffer + r->buffer_size - at);
    return AMP_OK;
}

static amp_status check_places(const TensorReader *r) {
    amp_safetensors *f = r->file;
    size_t bytes = (size_t)f->count * sizeof(amp_tensor_view *);
    const amp_tensor_view **sorted = amp_alloc(&f->allocator, bytes);
    if (!sorted) return amp_fail(r->err, AMP_OUT_OF_MEMORY, "%s: no memory to check it", r->path);
    for (int32_t i = 0; i < f->count; i++) sorted[i] = &f->views[i];
    qsort(sorted, (size_t)f->count, sizeof *sorted, by_place);
    amp_status status = check_cover(r, sorted);
    amp_free(&f->allocator, sorted, bytes);
    return status;
}

static amp_status parse(TensorReader *r) {
    AMP_TRY(read_header(r));
    AMP_TRY(read_tensors(r));
    return check_places(r);
}

static amp_status read_file(TensorReader *r) {
    amp_safetensors *f = r->file;
    AMP_TRY(amp_file_read(r->path, 0, &f->allocator, &f->owned, &f->size, r->err));
    f->data = f->owned;
    return parse(r);
}

/* |bytes| NULL: the file |path|. */
static amp_status open_either(const void *bytes, size_t size, const char *path, const amp_allocator *allocator,
                              amp_safetensors **out, amp_error *err) {
    *out = NULL;
    amp_safetensors *f = amp_alloc_zeroed(allocator, sizeof *f);
    if (!f) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to read it", path);
    f->allocator = amp_allocator_or_default(allocator);
    f->data = bytes;
    f->size = size;
    TensorReader r = {.path = path, .file = f, .err = err};
    amp_status status = bytes ? parse(&r) : read_file(&r);
    if (status) amp_safetensors_close(f);
    else *out = f;
    return status;
}

amp_status amp_safetensors_open(const char *path, const amp_allocator *allocator, amp_safetensors **out,
                                amp_error *err) {
    return open_either(NULL, 0, path, allocator, out, err);
}

amp_status amp_safetensors_parse(const void *bytes, size_t size, const char *name, const amp_allocator *allocator,
                                 amp_safetensors **out, amp_error *err) {
    return open_either(bytes, size, name, allocator, out, err);
}

void amp_safetensors_close(amp_safetensors *f) {
    if (!f) return;
    amp_allocator a = f->allocator;
    amp_json_free(f->header);
    if (f->views) amp_free(&a, f->views, (size_t)f->allocated * sizeof *f->views);
    if (f->owned) amp_free(&a, f->owned, f->size + 1);
    amp_free(&a, f, sizeof *f);
}

/* ---- looking at it ----------------------------------------------------------------------------------------------- */

int32_t amp_safetensors_count(const amp_safetensors *file) { return file->count; }

const amp_tensor_view *amp_safetensors_at(const amp_safetensors *file, int32_t index) {
    return index >= 0 && index < file->count ? &file->views[index] : NULL;
}

const amp_tensor_view *amp_safetensors_find(const amp_safetensors *file, const char *name) {
    for (int32_t low = 0, high = file->count; low < high;) {
        int32_t middle = low + (high - low) / 2, order = strcmp(name, file->views[middle].name);
        if (order == 0) return &file->views[middle];
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return NULL;
}

const char *amp_safetensors_metadata(const amp_safetensors *file, const char *key) {
    const amp_json *metadata = amp_json_get(amp_json_root(file->header), METADATA);
    const amp_json *value = metadata ? amp_json_get(metadata, key) : NULL;
    return value ? value->string.data : NULL;
}

/* ---- converting -------------------------------------------------------------------------------------------------- */

static float load_f32(amp_dtype dtype, const char *at) {
    union {
        float f;
        double d;
        uint16_t h;
        int32_t i;
        int64_t l;
    } x;
    memcpy(&x, at, amp_dtype_size(dtype));
    switch (dtype) {
    case AMP_DT_F16: return amp_f16_to_f32(x.h);
    case AMP_DT_BF16: return amp_bf16_to_f32(x.h);
    case AMP_DT_F64: return (float)x.d;
    case AMP_DT_I32: return (float)x.i;
    case AMP_DT_I64: return (float)x.l;
    case AMP_DT_U8:
    case AMP_DT_BOOL: return (float)(unsigned char)*at;
    default: return x.f;
    }
}

bool amp_tensor_to_f32(const amp_tensor_view *from, float *to, size_t count) {
    size_t size = amp_dtype_size(from->dtype), bytes;
    if (size == 0 || !amp_size_mul(count, size, &bytes) || bytes > from->bytes) return false;
    if (from->dtype == AMP_DT_F32) {
        if (bytes) memcpy(to, from->data, bytes);
        return true;
    }
    for (size_t i = 0; i < count; i++) to[i] = load_f32(from->dtype, (const char *)from->data + i * size);
    return true;
}

/* ---- the writer -------------------------------------------------------------------------------------------------- */

enum { DATA_START = 64 /* the data begins at a multiple of so many bytes */ };

typedef struct WrittenTensor {
    const amp_tensor_view *view;
    int type; /* of types */
} WrittenTensor;

/* As the reference writer: types from the last of the table to the first, then names. */
static int by_alignment(const void *a, const void *b) {
    const WrittenTensor *x = a, *y = b;
    return x->type != y->type ? y->type - x->type : strcmp(x->view->name, y->view->name);
}

static int type_of(const amp_tensor_view *v) {
    for (int i = 0; i < TYPE_COUNT; i++)
        if (v->dtype != AMP_DT_NONE && types[i].dtype == v->dtype) return i;
    return -1;
}

static amp_status check_tensor(const char *path, const amp_tensor_view *v, amp_error *err) {
    size_t bytes = amp_dtype_size(v->dtype);
    bool fits = v->rank >= 0 && v->rank <= AMP_SAFETENSORS_MAX_RANK;
    for (int i = 0; fits && i < v->rank; i++) fits = v->dims[i] >= 0 && amp_size_mul(bytes, (size_t)v->dims[i], &bytes);
    if (type_of(v) < 0 || !strcmp(v->name, METADATA))
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: tensor %s (%s) cannot stand in a safetensors file", path,
                        v->name, amp_dtype_name(v->dtype));
    if (!fits || bytes != v->bytes)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: tensor %s has %zu bytes, its shape says %zu", path, v->name,
                        v->bytes, bytes);
    return AMP_OK;
}

/* ---- the header -------------------------------------------------------------------------------------------------- */

static void put_metadata(amp_json_writer *w, const amp_metadata *metadata, int32_t count) {
    if (count == 0) return;
    amp_json_begin_object(w, METADATA);
    for (int32_t i = 0; i < count; i++) amp_json_put_string(w, metadata[i].key, metadata[i].value);
    amp_json_end_object(w);
}

static void put_tensor(amp_json_writer *w, const WrittenTensor *item, size_t begin) {
    amp_json_begin_object(w, item->view->name);
    amp_json_put_string(w, "dtype", types[item->type].name);
    amp_json_begin_array(w, "shape");
    for (int i = 0; i < item->view->rank; i++) amp_json_put_int(w, NULL, item->view->dims[i]);
    amp_json_end_array(w);
    amp_json_begin_array(w, "data_offsets");
    amp_json_put_int(w, NULL, (int64_t)begin);
    amp_json_put_int(w, NULL, (int64_t)(begin + item->view->bytes));
    amp_json_end_array(w);
    amp_json_end_object(w);
}

static void put_header(amp_json_writer *w, const WrittenTensor *items, int32_t count, const amp_metadata *metadata,
                       int32_t metadata_count) {
    size_t at = 0;
    amp_json_begin_object(w, NULL);
    put_metadata(w, metadata, metadata_count);
    for (int32_t i = 0; i < count; i++) {
        put_tensor(w, &items[i], at);
        at += items[i].view->bytes;
    }
    amp_json_end_object(w);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static amp_status write_header(amp_file_writer *file, const amp_json_writer *header, amp_error *err) {
    static const char spaces[DATA_START + 1] = "                                                                ";
    size_t end = LENGTH_BYTES + header->size, padding = (DATA_START - end % DATA_START) % DATA_START;
    unsigned char length[LENGTH_BYTES];
    for (int i = 0; i < LENGTH_BYTES; i++) length[i] = (unsigned char)((header->size + padding) >> 8 * i);
    AMP_TRY(amp_file_writer_write(file, length, sizeof length, err));
    AMP_TRY(amp_file_writer_write(file, header->data, header->size, err));
    return amp_file_writer_write(file, spaces, padding, err);
}

static amp_status write_file(const char *path, const amp_json_writer *header, const WrittenTensor *items, int32_t count,
                             const amp_allocator *allocator, amp_error *err) {
    amp_file_writer *file;
    AMP_TRY(amp_file_writer_open(path, allocator, &file, err));
    amp_status status = write_header(file, header, err);
    for (int32_t i = 0; !status && i < count; i++)
        status = amp_file_writer_write(file, items[i].view->data, items[i].view->bytes, err);
    if (!status) return amp_file_writer_commit(file, err);
    amp_file_writer_abandon(file);
    return status;
}

amp_status amp_safetensors_write(const char *path, const amp_tensor_view *tensors, int32_t count,
                                 const amp_metadata *metadata, int32_t metadata_count, const amp_allocator *allocator,
                                 amp_error *err) {
    for (int32_t i = 0; i < count; i++) AMP_TRY(check_tensor(path, &tensors[i], err));
    size_t bytes = (size_t)count * sizeof(WrittenTensor);
    WrittenTensor *items = amp_alloc(allocator, bytes);
    if (!items) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to write it", path);
    for (int32_t i = 0; i < count; i++) items[i] = (WrittenTensor){&tensors[i], type_of(&tensors[i])};
    qsort(items, (size_t)count, sizeof *items, by_alignment);
    amp_json_writer header;
    amp_json_writer_init(&header, allocator);
    put_header(&header, items, count, metadata, metadata_count);
    amp_status status = amp_json_writer_status(&header, err);
    if (!status) status = write_file(path, &header, items, count, allocator, err);
    amp_json_writer_free(&header);
    amp_free(allocator, items, bytes);
    return status;
}
