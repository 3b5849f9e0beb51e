/* safetensors_write.c: the writer of safetensors.h. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "runtime/files/safetensors.h"
#include "runtime/files/safetensors_types.h"

enum { DATA_START = 64 /* the data begins at a multiple of so many bytes */ };

typedef struct WrittenTensor {
    const amp_tensor_view *view;
    int type; /* of amp_tensor_types */
} WrittenTensor;

/* As the reference writer: types from the last of the table to the first, then names. */
static int by_alignment(const void *a, const void *b) {
    const WrittenTensor *x = a, *y = b;
    return x->type != y->type ? y->type - x->type : strcmp(x->view->name, y->view->name);
}

static int type_of(const amp_tensor_view *v) {
    return v->dtype == AMP_DT_NONE && v->dtype_name ? amp_tensor_type_named(v->dtype_name)
                                                    : amp_tensor_type_of(v->dtype);
}

/* False: more than memory can hold. */
static bool bytes_of(const amp_tensor_view *v, size_t *bytes) {
    *bytes = amp_tensor_types[type_of(v)].bits;
    for (int i = 0; i < v->rank; i++)
        if (v->dims[i] < 0 || !amp_size_mul(*bytes, (size_t)v->dims[i], bytes)) return false;
    bool whole = *bytes % 8 == 0;
    *bytes /= 8;
    return whole;
}

static amp_status check_tensor(const char *path, const amp_tensor_view *v, amp_error *err) {
    size_t bytes = 0;
    if (type_of(v) < 0 || v->rank < 0 || v->rank > AMP_SAFETENSORS_MAX_RANK || !strcmp(v->name, AMP_TENSORS_METADATA))
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: tensor %s (%s) cannot stand in a safetensors file", path,
                        v->name, amp_dtype_name(v->dtype));
    if (!bytes_of(v, &bytes) || bytes != v->bytes)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: tensor %s has %zu bytes, its shape says %zu", path, v->name,
                        v->bytes, bytes);
    return AMP_OK;
}

/* ---- the header -------------------------------------------------------------------------------------------------- */

static void put_metadata(amp_json_writer *w, const amp_metadata *metadata, int32_t count) {
    if (count == 0) return;
    amp_json_begin_object(w, AMP_TENSORS_METADATA);
    for (int32_t i = 0; i < count; i++) amp_json_put_string(w, metadata[i].key, metadata[i].value);
    amp_json_end_object(w);
}

static void put_tensor(amp_json_writer *w, const WrittenTensor *item, size_t begin) {
    amp_json_begin_object(w, item->view->name);
    amp_json_put_string(w, "dtype", amp_tensor_types[item->type].name);
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
    size_t end = AMP_TENSORS_LENGTH + header->size, padding = (DATA_START - end % DATA_START) % DATA_START;
    unsigned char length[AMP_TENSORS_LENGTH];
    for (int i = 0; i < AMP_TENSORS_LENGTH; i++) length[i] = (unsigned char)((header->size + padding) >> 8 * i);
    AMP_TRY(amp_file_writer_write(file, length, sizeof length, err));
    AMP_TRY(amp_file_writer_write(file, header->data, header->size, err));
    return amp_file_writer_write(file, spaces, padding, err);
}

typedef struct TensorSource {
    const amp_tensor_view *tensors;
    amp_tensor_data *data; /* NULL: |data| of the tensors */
    void *user;
} TensorSource;

static amp_status write_tensor(const TensorSource *from, const amp_tensor_view *v, amp_file_writer *file,
                               amp_error *err) {
    if (from->data) return from->data(from->user, (int32_t)(v - from->tensors), file, err);
    return amp_file_writer_write(file, v->data, v->bytes, err);
}

static amp_status write_file(const char *path, const amp_json_writer *header, const WrittenTensor *items, int32_t count,
                             const TensorSource *from, const amp_allocator *allocator, amp_error *err) {
    amp_file_writer *file;
    AMP_TRY(amp_file_writer_open(path, allocator, &file, err));
    amp_status status = write_header(file, header, err);
    for (int32_t i = 0; !status && i < count; i++) status = write_tensor(from, items[i].view, file, err);
    if (!status) return amp_file_writer_commit(file, err);
    amp_file_writer_abandon(file);
    return status;
}

amp_status amp_safetensors_write_from(const char *path, const amp_tensor_view *tensors, int32_t count,
                                      const amp_metadata *metadata, int32_t metadata_count, amp_tensor_data *data,
                                      void *user, const amp_allocator *allocator, amp_error *err) {
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
    TensorSource from = {.tensors = tensors, .data = data, .user = user};
    if (!status) status = write_file(path, &header, items, count, &from, allocator, err);
    amp_json_writer_free(&header);
    amp_free(allocator, items, bytes);
    return status;
}

amp_status amp_safetensors_write(const char *path, const amp_tensor_view *tensors, int32_t count,
                                 const amp_metadata *metadata, int32_t metadata_count, const amp_allocator *allocator,
                                 amp_error *err) {
    return amp_safetensors_write_from(path, tensors, count, metadata, metadata_count, NULL, NULL, allocator, err);
}
