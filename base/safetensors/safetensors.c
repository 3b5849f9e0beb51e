/* safetensors.c: see safetensors.h. */
#include "base/safetensors/safetensors.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/file_reader.h"
#include "base/json.h"
#include "base/rounding.h"
#include "base/safetensors/safetensors_sums.h"
#include "base/safetensors/safetensors_types.h"

/* The format's limit for the JSON text (safetensors, MAX_HEADER_SIZE). */
enum { MAX_HEADER = 100000000, LENGTH_BYTES = AMP_TENSORS_LENGTH };

/* ---- the strict reader ------------------------------------------------------------------------------------------- */

enum {
    TENSOR_LIMIT = 100000, /* a header of 100 MB with more is an attack on memory and time, not a model */
    VALUES_PER_TENSOR = 7 + AMP_SAFETENSORS_MAX_RANK, /* its sum too */
    BYTES_PER_VALUE = 4 /* at least, of every sound header: [0,0,0,0,0,0,0,0] is the densest that a tensor can have */
};

struct amp_safetensors {
    amp_allocator allocator;
    char *owned; /* what was read here: the whole file, or its header while that is parsed; NULL: bytes of the caller */
    size_t owned_bytes;
    amp_file_reader reader; /* of a file whose data is not in memory; else fd -1 */
    uint64_t data_start;    /* byte of the file that follows its header */
    uint64_t data_bytes;
    char *path;
    size_t path_bytes;
    amp_json_document *header;
    amp_tensor_view *views; /* by name */
    int32_t count, allocated;
    bool has_sums;
};

typedef struct TensorReader {
    const char *path;
    amp_safetensors *file;
    const char *head;   /* the file, as far as it is in memory: its header at least */
    uint64_t size;      /* of the whole file */
    const char *buffer; /* after the header; NULL: not in memory */
    uint64_t buffer_size;
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
    const char *text = r->head + LENGTH_BYTES;
    if (r->size >= 4 && !memcmp(r->head, "PK\003\004", 4))
        return bad(r, "it is a zip archive, as torch.save and numpy.savez write them; write the tensors with "
                      "safetensors.torch.save_file");
    if (r->size < LENGTH_BYTES) return bad(r, "it has only %llu bytes", (unsigned long long)r->size);
    uint64_t length = read_le64(r->head);
    if (length > MAX_HEADER && is_text(r->head))
        return bad(r, "it begins with text, and not with the size of its header%s",
                   r->head[0] == '{' ? "; the index of several files is read where its name ends in .json" : "");
    if (length > MAX_HEADER)
        return bad(r, "its header would have %llu bytes; at most %d are allowed", (unsigned long long)length,
                   MAX_HEADER);
    if (length > r->size - LENGTH_BYTES)
        return bad(r, "its header of %llu bytes ends after the file of %llu bytes", (unsigned long long)length,
                   (unsigned long long)r->size);
    AMP_TRY(check_padding(r, text, (size_t)length));
    f->data_start = LENGTH_BYTES + length;
    r->buffer = f->reader.fd < 0 ? text + length : NULL;
    r->buffer_size = f->data_bytes = r->size - f->data_start;
    amp_json_limits limits = {.depth = 3, .values = most_values((size_t)length)};
    amp_error why = {0};
    amp_status status = amp_json_parse(text, (size_t)length, &limits, &f->allocator, &f->header, &why);
    if (status == AMP_OUT_OF_MEMORY) return amp_fail(r->err, status, "%s: no memory to read its header", r->path);
    return status ? bad(r, "header, %s", why.message) : AMP_OK;
}

static amp_status check_metadata(const TensorReader *r, const amp_json *metadata) {
    if (metadata->kind != AMP_JSON_OBJECT) return bad(r, "%s is no object", AMP_TENSORS_METADATA);
    for (size_t i = 0; i < metadata->object.count; i++) {
        const amp_json_member *m = &metadata->object.members[i];
        if (m->value.kind != AMP_JSON_STRING)
            return bad(r, "%s %s is a %s; only strings are allowed", AMP_TENSORS_METADATA, m->key.data,
                       amp_json_kind_name(m->value.kind));
    }
    return AMP_OK;
}

/* ---- one tensor -------------------------------------------------------------------------------------------------- */

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
        return bad(r, "tensor %s is at bytes %llu to %llu of %llu", view->name, (unsigned long long)begin,
                   (unsigned long long)end, (unsigned long long)r->buffer_size);
    view->begin = begin;
    view->data = r->buffer ? r->buffer + begin : NULL;
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
    int known = amp_tensor_type_named(dtype->string.data);
    if (known < 0) return bad(r, "tensor %s: unknown dtype %s", view->name, dtype->string.data);
    const amp_tensor_type *type = &amp_tensor_types[known];
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
        if (!strcmp(m->key.data, AMP_TENSORS_METADATA)) AMP_TRY(check_metadata(r, &m->value));
        else AMP_TRY(read_tensor(r, m, &f->views[f->count++]));
    }
    return AMP_OK;
}

static int by_place(const void *a, const void *b) {
    const amp_tensor_view *x = *(const amp_tensor_view *const *)a, *y = *(const amp_tensor_view *const *)b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* Every byte of the buffer belongs to exactly one tensor.  Two empty tensors at one place would be two names for the
 * same bytes. */
static amp_status check_cover(const TensorReader *r, const amp_tensor_view *const *sorted) {
    uint64_t at = 0;
    for (int32_t i = 0; i < r->file->count; i++) {
        const amp_tensor_view *v = sorted[i];
        if (v->begin != at)
            return bad(r, "tensor %s begins at byte %llu, but the one before it ends at %llu (no holes, no overlap)",
                       v->name, (unsigned long long)v->begin, (unsigned long long)at);
        if (i > 0 && v->bytes == 0 && sorted[i - 1]->bytes == 0)
            return bad(r, "the empty tensors %s and %s are at the same place", sorted[i - 1]->name, v->name);
        at += v->bytes;
    }
    if (at != r->buffer_size)
        return bad(r, "%llu bytes follow the last tensor", (unsigned long long)(r->buffer_size - at));
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

/* ---- sums -------------------------------------------------------------------------------------------------------- */

#define EDITED                                                                                                         \
    "the file is damaged, or a program has edited it and kept its sums.  Take another copy; if it is as it should "    \
    "be, save it without the entries of " AMP_TENSORS_METADATA " that begin with " AMP_SUM_KEY

static amp_status compare(const char *path, const char *what, const char *name, uint64_t is, uint64_t was,
                          amp_error *err) {
    char texts[2][AMP_SUM_TEXT];
    if (is == was) return AMP_OK;
    return amp_fail(err, AMP_BAD_FILE, "%s: %s%s is not as it was saved (its XXH64 is %s, was %s): " EDITED, path, what,
                    name, amp_sum_write(texts[0], is), amp_sum_write(texts[1], was));
}

static amp_status compare_tensor(const char *path, const amp_tensor_view *v, const amp_xxh64 *sum, amp_error *err) {
    return compare(path, "tensor ", v->name, amp_xxh64_final(sum), v->sum, err);
}

/* The sum that each tensor should have, and the sum of the metadata itself. */
static amp_status read_sums(TensorReader *r) {
    amp_safetensors *f = r->file;
    const amp_json *metadata = amp_json_get(amp_json_root(f->header), AMP_TENSORS_METADATA);
    const char *saved = amp_safetensors_metadata(f, AMP_SUM_KEY);
    uint64_t all = 0, was = 0;
    int32_t tensors = 0;
    for (size_t i = 0; metadata && i < metadata->object.count; i++) {
        const amp_json_member *m = &metadata->object.members[i];
        const char *key = m->key.data, *value = m->value.string.data;
        all += amp_metadata_sum(key, value);
        if (strncmp(key, AMP_SUM_OF_TENSOR, strlen(AMP_SUM_OF_TENSOR))) continue;
        const amp_tensor_view *v = amp_safetensors_find(f, key + strlen(AMP_SUM_OF_TENSOR));
        if (!v || !amp_sum_read(value, &f->views[v - f->views].sum))
            return amp_fail(r->err, AMP_BAD_FILE, "%s: %s = %s is the sum of no tensor: " EDITED, r->path, key, value);
        tensors++;
    }
    f->has_sums = saved || tensors;
    if (!f->has_sums) return AMP_OK;
    if (!saved || !amp_sum_read(saved, &was) || tensors != f->count)
        return amp_fail(r->err, AMP_BAD_FILE, "%s: it has sums of %d of %d tensors, and %s of its metadata: " EDITED,
                        r->path, tensors, f->count, saved ? "one" : "none");
    return compare(r->path, "its metadata", "", all, was, r->err);
}

/* Of what is in memory, so that no reader of it has to. */
static amp_status check_data(const amp_safetensors *f, const char *data, amp_error *err) {
    amp_xxh64 sum;
    for (int32_t i = 0; f->has_sums && i < f->count; i++) {
        const amp_tensor_view *v = &f->views[i];
        amp_tensor_sum_begin(&sum, v->dtype_name, v);
        amp_xxh64_update(&sum, data + v->begin, v->bytes);
        AMP_TRY(compare_tensor(f->path, v, &sum, err));
    }
    return AMP_OK;
}

static amp_status parse(TensorReader *r) {
    AMP_TRY(read_header(r));
    AMP_TRY(read_tensors(r));
    AMP_TRY(check_places(r));
    AMP_TRY(read_sums(r));
    return r->buffer ? check_data(r->file, r->buffer, r->err) : AMP_OK;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static void free_owned(amp_safetensors *f) {
    amp_free(&f->allocator, f->owned, f->owned_bytes);
    f->owned = NULL;
}

static amp_status read_whole(TensorReader *r) {
    amp_safetensors *f = r->file;
    size_t size;
    AMP_TRY(amp_file_read(r->path, 0, &f->allocator, &f->owned, &size, r->err));
    f->owned_bytes = size + 1;
    r->head = f->owned;
    r->size = size;
    return parse(r);
}

/* The header alone, and of what cannot have one its first bytes. */
static amp_status read_head(TensorReader *r) {
    amp_safetensors *f = r->file;
    char length[LENGTH_BYTES] = {0};
    size_t first = r->size < LENGTH_BYTES ? (size_t)r->size : LENGTH_BYTES;
    AMP_TRY(amp_file_reader_read(&f->reader, r->path, 0, length, first, r->err));
    uint64_t header = first == LENGTH_BYTES ? read_le64(length) : 0;
    if (header > MAX_HEADER || header > r->size - first) header = 0;
    f->owned_bytes = LENGTH_BYTES + (size_t)header;
    f->owned = amp_alloc_zeroed(&f->allocator, f->owned_bytes);
    if (!f->owned) return amp_fail(r->err, AMP_OUT_OF_MEMORY, "%s: no memory to read its header", r->path);
    r->head = f->owned;
    return amp_file_reader_read(&f->reader, r->path, 0, f->owned, first + (size_t)header, r->err);
}

static amp_status read_header_only(TensorReader *r) {
    amp_safetensors *f = r->file;
    AMP_TRY(amp_file_reader_open(r->path, &f->reader, r->err));
    r->size = f->reader.size;
    AMP_TRY(read_head(r));
    AMP_TRY(parse(r));
    free_owned(f);
    return AMP_OK;
}

static amp_status make(TensorReader *r, const amp_allocator *allocator) {
    amp_safetensors *f = amp_alloc_zeroed(allocator, sizeof *f);
    if (!f) return amp_fail(r->err, AMP_OUT_OF_MEMORY, "%s: no memory to read it", r->path);
    f->allocator = amp_allocator_or_default(allocator);
    f->reader.fd = -1;
    f->path_bytes = strlen(r->path) + 1;
    f->path = amp_alloc(allocator, f->path_bytes);
    if (f->path) memcpy(f->path, r->path, f->path_bytes);
    r->file = f;
    return f->path ? AMP_OK : amp_fail(r->err, AMP_OUT_OF_MEMORY, "%s: no memory to read it", r->path);
}

static amp_status open_by(TensorReader *r, amp_status (*read)(TensorReader *), const amp_allocator *allocator,
                          amp_safetensors **out) {
    *out = NULL;
    amp_status status = make(r, allocator);
    if (!status) status = read(r);
    if (status) amp_safetensors_close(r->file);
    else *out = r->file;
    return status;
}

amp_status amp_safetensors_open(const char *path, const amp_allocator *allocator, amp_safetensors **out,
                                amp_error *err) {
    TensorReader r = {.path = path, .err = err};
    return open_by(&r, read_whole, allocator, out);
}

amp_status amp_safetensors_open_header(const char *path, amp_file_kinds kinds, const amp_allocator *allocator,
                                       amp_safetensors **out, amp_error *err) {
    TensorReader r = {.path = path, .err = err};
    return open_by(&r, kinds == AMP_FILE_REGULAR || amp_file_is_regular(path) ? read_header_only : read_whole,
                   allocator, out);
}

amp_status amp_safetensors_parse(const void *bytes, size_t size, const char *name, const amp_allocator *allocator,
                                 amp_safetensors **out, amp_error *err) {
    TensorReader r = {.path = name, .head = bytes, .size = size, .err = err};
    return open_by(&r, parse, allocator, out);
}

void amp_safetensors_close(amp_safetensors *f) {
    if (!f) return;
    amp_allocator a = f->allocator;
    amp_file_reader_close(&f->reader);
    amp_json_free(f->header);
    if (f->views) amp_free(&a, f->views, (size_t)f->allocated * sizeof *f->views);
    free_owned(f);
    amp_free(&a, f->path, f->path_bytes);
    amp_free(&a, f, sizeof *f);
}

static amp_status read_piece(const amp_safetensors *f, const amp_tensor_view *v, size_t from, void *to, size_t bytes,
                             amp_error *err) {
    if (from > v->bytes || bytes > v->bytes - from)
        return amp_fail(err, AMP_INTERNAL, "%s: tensor %s has no byte %zu", f->path, v->name, from + bytes);
    if (f->reader.fd >= 0)
        return amp_file_reader_read(&f->reader, f->path, f->data_start + v->begin + from, to, bytes, err);
    if (bytes) memcpy(to, (const char *)v->data + from, bytes);
    return AMP_OK;
}

amp_status amp_safetensors_read_next(const amp_safetensors *f, const amp_tensor_view *v, size_t from, void *to,
                                     size_t bytes, amp_xxh64 *sum, amp_error *err) {
    AMP_TRY(read_piece(f, v, from, to, bytes, err));
    if (f->reader.fd < 0 || !f->has_sums) return AMP_OK;
    if (!from) amp_tensor_sum_begin(sum, v->dtype_name, v);
    amp_xxh64_update(sum, to, bytes);
    return from + bytes == v->bytes ? compare_tensor(f->path, v, sum, err) : AMP_OK;
}

amp_status amp_safetensors_read(const amp_safetensors *f, const amp_tensor_view *v, size_t from, void *to, size_t bytes,
                                amp_error *err) {
    amp_xxh64 sum;
    if (from || bytes != v->bytes) return read_piece(f, v, from, to, bytes, err);
    return amp_safetensors_read_next(f, v, from, to, bytes, &sum, err);
}

amp_status amp_safetensors_hold(amp_safetensors *f, amp_error *err) {
    size_t bytes = (size_t)f->data_bytes;
    if (f->reader.fd < 0) return AMP_OK;
    char *data = amp_alloc(&f->allocator, bytes);
    if (!data && bytes) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for its %zu bytes", f->path, bytes);
    amp_status status = amp_file_reader_read(&f->reader, f->path, f->data_start, data, bytes, err);
    if (!status) status = amp_safetensors_check_unchanged(f, err);
    if (!status) status = check_data(f, data, err);
    if (status) {
        amp_free(&f->allocator, data, bytes);
        return status;
    }
    f->owned = data;
    f->owned_bytes = bytes;
    for (int32_t i = 0; i < f->count; i++) f->views[i].data = data + f->views[i].begin;
    amp_file_reader_close(&f->reader);
    return AMP_OK;
}

amp_status amp_safetensors_check_unchanged(const amp_safetensors *f, amp_error *err) {
    return f->reader.fd < 0 ? AMP_OK : amp_file_reader_check_unchanged(&f->reader, f->path, err);
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
    const amp_json *metadata = amp_json_get(amp_json_root(file->header), AMP_TENSORS_METADATA);
    const amp_json *value = metadata ? amp_json_get(metadata, key) : NULL;
    return value ? value->string.data : NULL;
}

/* ---- converting -------------------------------------------------------------------------------------------------- */

static float load_f32(amp_dtype dtype, const char *at) {
    switch (dtype) {
#define ELEMENT(id, file, to_f32)                                                                                      \
    case AMP_DT_##id: {                                                                                                \
        file element;                                                                                                  \
        memcpy(&element, at, sizeof element);                                                                          \
        return to_f32(element);                                                                                        \
    }
#define DTYPE(id, name, class, kind, stored, file, memory) ELEMENT(id, file, (float))
#define CODED_DTYPE(id, name, class, kind, stored, file, memory) ELEMENT(id, file, amp_##name##_to_f32)
#include "base/dtypes.def"
    default: return 0.0f;
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
