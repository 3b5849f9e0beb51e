/* safetensors_write.c: the writer of safetensors.h. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/safetensors/safetensors_sums.h"
#include "base/safetensors/safetensors_types.h"

enum { DATA_START = 64 /* the data begins at a multiple of this many bytes */ };

typedef struct WrittenTensor {
    const amp_tensor_view *view;
    int type; /* of amp_tensor_types */
    uint64_t sum;
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
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: safetensors has no type for tensor %s (%s)", path, v->name,
                        amp_dtype_name(v->dtype));
    if (!bytes_of(v, &bytes) || bytes != v->bytes)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: tensor %s has %zu bytes, its shape says %zu", path, v->name,
                        v->bytes, bytes);
    return AMP_OK;
}

/* ---- the header -------------------------------------------------------------------------------------------------- */

typedef struct Contents {
    const amp_allocator *allocator;
    WrittenTensor *items;
    int32_t count;
    const amp_metadata *metadata;
    int32_t metadata_count;
    char *key; /* for AMP_SUM_OF_TENSOR and the longest name */
    size_t key_bytes;
} Contents;

static void put_sums(amp_json_writer *w, const Contents *c) {
    char text[AMP_SUM_TEXT];
    uint64_t all = 0;
    for (int32_t i = 0; i < c->metadata_count; i++) all += amp_metadata_sum(c->metadata[i].key, c->metadata[i].value);
    for (int32_t i = 0; i < c->count; i++) {
        strcpy(c->key + strlen(AMP_SUM_OF_TENSOR), c->items[i].view->name);
        amp_sum_write(text, c->items[i].sum);
        all += amp_metadata_sum(c->key, text);
        amp_json_put_string(w, c->key, text);
    }
    amp_json_put_string(w, AMP_SUM_KEY, amp_sum_write(text, all));
}

static void put_metadata(amp_json_writer *w, const Contents *c, bool sums) {
    if (c->metadata_count == 0 && !sums) return;
    amp_json_begin_object(w, AMP_TENSORS_METADATA);
    for (int32_t i = 0; i < c->metadata_count; i++) amp_json_put_string(w, c->metadata[i].key, c->metadata[i].value);
    if (sums) put_sums(w, c);
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

static void put_header(amp_json_writer *w, const Contents *c, bool sums) {
    size_t at = 0;
    amp_json_begin_object(w, NULL);
    put_metadata(w, c, sums);
    for (int32_t i = 0; i < c->count; i++) {
        put_tensor(w, &c->items[i], at);
        at += c->items[i].view->bytes;
    }
    amp_json_end_object(w);
}

static amp_status write_json(amp_file_writer *file, const amp_json_writer *header, amp_error *err) {
    static const char spaces[DATA_START + 1] = "                                                                ";
    size_t end = AMP_TENSORS_LENGTH + header->size, padding = (DATA_START - end % DATA_START) % DATA_START;
    unsigned char length[AMP_TENSORS_LENGTH];
    for (int i = 0; i < AMP_TENSORS_LENGTH; i++) length[i] = (unsigned char)((header->size + padding) >> 8 * i);
    AMP_TRY(amp_file_writer_write(file, length, sizeof length, err));
    AMP_TRY(amp_file_writer_write(file, header->data, header->size, err));
    return amp_file_writer_write(file, spaces, padding, err);
}

static amp_status write_header(amp_file_writer *file, const Contents *c, bool sums, amp_error *err) {
    amp_json_writer header;
    amp_json_writer_init(&header, c->allocator);
    put_header(&header, c, sums);
    amp_status status = amp_json_writer_status(&header, err);
    if (!status) status = write_json(file, &header, err);
    amp_json_writer_free(&header);
    return status;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

typedef struct TensorSource {
    const amp_tensor_view *tensors;
    amp_tensor_data *data; /* NULL: |data| of the tensors */
    void *user;
} TensorSource;

static amp_status write_data(const TensorSource *from, const amp_tensor_view *v, amp_file_writer *file,
                             amp_error *err) {
    if (from->data) return from->data(from->user, (int32_t)(v - from->tensors), file, err);
    return amp_file_writer_write(file, v->data, v->bytes, err);
}

static amp_status write_tensor(const TensorSource *from, WrittenTensor *item, amp_file_writer *file, amp_error *err) {
    amp_xxh64 sum;
    amp_tensor_sum_begin(&sum, amp_tensor_types[item->type].name, item->view);
    amp_file_writer_sum(file, &sum);
    amp_status status = write_data(from, item->view, file, err);
    amp_file_writer_sum(file, NULL);
    item->sum = amp_xxh64_final(&sum);
    return status;
}

/* The header a second time, with the sums that are known then; it takes as many bytes as the first. */
static amp_status write_contents(amp_file_writer *file, const Contents *c, const TensorSource *from, amp_error *err) {
    const bool sums = amp_file_writer_can_go_back(file);
    AMP_TRY(write_header(file, c, sums, err));
    for (int32_t i = 0; i < c->count; i++) AMP_TRY(write_tensor(from, &c->items[i], file, err));
    if (!sums) return AMP_OK;
    AMP_TRY(amp_file_writer_go_back(file, err));
    return write_header(file, c, sums, err);
}

static amp_status write_file(const char *path, const Contents *c, const TensorSource *from, amp_error *err) {
    amp_file_writer *file;
    AMP_TRY(amp_file_writer_open(path, c->allocator, &file, err));
    amp_status status = write_contents(file, c, from, err);
    if (!status) return amp_file_writer_commit(file, err);
    amp_file_writer_abandon(file);
    return status;
}

static void list_items(Contents *c, const amp_tensor_view *tensors) {
    for (int32_t i = 0; i < c->count; i++) c->items[i] = (WrittenTensor){&tensors[i], type_of(&tensors[i]), 0};
    qsort(c->items, (size_t)c->count, sizeof *c->items, by_alignment);
    strcpy(c->key, AMP_SUM_OF_TENSOR);
}

amp_status amp_safetensors_write_from(const char *path, const amp_tensor_view *tensors, int32_t count,
                                      const amp_metadata *metadata, int32_t metadata_count, amp_tensor_data *data,
                                      void *user, const amp_allocator *allocator, amp_error *err) {
    const TensorSource from = {.tensors = tensors, .data = data, .user = user};
    Contents c = {allocator, NULL, count, metadata, metadata_count, NULL, sizeof AMP_SUM_OF_TENSOR};
    size_t longest = 0, bytes = (size_t)count * sizeof *c.items;
    for (int32_t i = 0; i < count; i++) {
        AMP_TRY(check_tensor(path, &tensors[i], err));
        if (strlen(tensors[i].name) > longest) longest = strlen(tensors[i].name);
    }
    c.key_bytes += longest;
    c.key = amp_alloc(allocator, c.key_bytes);
    c.items = amp_alloc(allocator, bytes);
    amp_status status = c.key && c.items ? AMP_OK : amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to write it", path);
    if (!status) {
        list_items(&c, tensors);
        status = write_file(path, &c, &from, err);
    }
    amp_free(allocator, c.items, bytes);
    amp_free(allocator, c.key, c.key_bytes);
    return status;
}

amp_status amp_safetensors_write(const char *path, const amp_tensor_view *tensors, int32_t count,
                                 const amp_metadata *metadata, int32_t metadata_count, const amp_allocator *allocator,
                                 amp_error *err) {
    return amp_safetensors_write_from(path, tensors, count, metadata, metadata_count, NULL, NULL, allocator, err);
}
