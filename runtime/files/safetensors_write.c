/* safetensors_write.c: the writer of safetensors.h. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "runtime/files/safetensors.h"
#include "runtime/files/safetensors_types.h"

enum { DATA_START = 64 /* the data begins at a multiple of so many bytes */ };

typedef struct Item {
    const amp_tensor_view *view;
    int type; /* of amp_safetensors_types */
} Item;

/* As the reference writer: types from the last of the table to the first, then names. */
static int by_alignment(const void *a, const void *b) {
    const Item *x = a, *y = b;
    return x->type != y->type ? y->type - x->type : strcmp(x->view->name, y->view->name);
}

static int type_of(const amp_tensor_view *v) {
    for (int i = 0; i < AMP_SAFETENSORS_TYPES; i++)
        if (v->dtype != AMP_DT_NONE && amp_safetensors_types[i].dtype == v->dtype) return i;
    return -1;
}

static amp_status check_tensor(const char *path, const amp_tensor_view *v, amp_error *err) {
    size_t bytes = amp_dtype_size(v->dtype);
    bool fits = v->rank >= 0 && v->rank <= AMP_SAFETENSORS_MAX_RANK;
    for (int i = 0; fits && i < v->rank; i++) fits = v->dims[i] >= 0 && amp_size_mul(bytes, (size_t)v->dims[i], &bytes);
    if (type_of(v) < 0 || !strcmp(v->name, AMP_SAFETENSORS_METADATA))
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
    amp_json_begin_object(w, AMP_SAFETENSORS_METADATA);
    for (int32_t i = 0; i < count; i++) amp_json_put_string(w, metadata[i].key, metadata[i].value);
    amp_json_end_object(w);
}

static void put_tensor(amp_json_writer *w, const Item *item, size_t begin) {
    amp_json_begin_object(w, item->view->name);
    amp_json_put_string(w, "dtype", amp_safetensors_types[item->type].name);
    amp_json_begin_array(w, "shape");
    for (int i = 0; i < item->view->rank; i++) amp_json_put_int(w, NULL, item->view->dims[i]);
    amp_json_end_array(w);
    amp_json_begin_array(w, "data_offsets");
    amp_json_put_int(w, NULL, (int64_t)begin);
    amp_json_put_int(w, NULL, (int64_t)(begin + item->view->bytes));
    amp_json_end_array(w);
    amp_json_end_object(w);
}

static void put_header(amp_json_writer *w, const Item *items, int32_t count, const amp_metadata *metadata,
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
    size_t end = AMP_SAFETENSORS_LENGTH + header->size, padding = (DATA_START - end % DATA_START) % DATA_START;
    unsigned char length[AMP_SAFETENSORS_LENGTH];
    for (int i = 0; i < AMP_SAFETENSORS_LENGTH; i++) length[i] = (unsigned char)((header->size + padding) >> 8 * i);
    AMP_TRY(amp_file_writer_write(file, length, sizeof length, err));
    AMP_TRY(amp_file_writer_write(file, header->data, header->size, err));
    return amp_file_writer_write(file, spaces, padding, err);
}

static amp_status write_file(const char *path, const amp_json_writer *header, const Item *items, int32_t count,
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
    size_t bytes = (size_t)count * sizeof(Item);
    Item *items = amp_alloc(allocator, bytes);
    if (!items) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to write it", path);
    for (int32_t i = 0; i < count; i++) items[i] = (Item){&tensors[i], type_of(&tensors[i])};
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
