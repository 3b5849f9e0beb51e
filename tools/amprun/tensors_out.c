/* tensors_out.c: see tensors_out.h. */
#include "tools/amprun/tensors_out.h"

#include <stdlib.h>
#include <string.h>

static amp_dtype written_dtype(amp_dtype t) {
    return t == AMP_DT_F16 || t == AMP_DT_BF16 || t == AMP_DT_TF32 ? AMP_DT_F32 : t;
}

static size_t element_count(const amp_tensor_info *info) {
    size_t count = 1;
    for (int i = 0; i < info->rank; i++) count *= (size_t)info->dims[i];
    return count;
}

size_t tensor_bytes(const amp_tensor_info *info) {
    return element_count(info) * amp_dtype_size(written_dtype(info->dtype));
}

void *tensors_out_add(TensorsOut *out, const char *name, const amp_tensor_info *info, const char *note) {
    amp_tensor_view *view = realloc(out->view, sizeof *view * (size_t)(out->count + 1));
    if (view) out->view = view;
    amp_metadata *metadata = realloc(out->metadata, sizeof *metadata * (size_t)(out->metadata_count + 1));
    if (metadata) out->metadata = metadata;
    size_t bytes = tensor_bytes(info);
    char *copy = strdup(name);
    void *data = calloc(bytes + 1, 1);
    if (!view || !metadata || !copy || !data) {
        free(copy);
        free(data);
        report_text("no memory for %s", name);
        return NULL;
    }
    amp_tensor_view *v = &out->view[out->count++];
    *v = (amp_tensor_view){
        .name = copy, .dtype = written_dtype(info->dtype), .rank = info->rank, .data = data, .bytes = bytes};
    memcpy(v->dims, info->dims, sizeof info->dims);
    if (note) out->metadata[out->metadata_count++] = (amp_metadata){copy, note};
    return data;
}

int tensors_out_write(TensorsOut *out, const char *path) {
    amp_error err = {0};
    return amp_safetensors_write(path, out->view, out->count, out->metadata, out->metadata_count, NULL, &err)
               ? report(&err)
               : 0;
}

void tensors_out_free(TensorsOut *out) {
    for (int i = 0; i < out->count; i++) {
        free((void *)out->view[i].name);
        free((void *)out->view[i].data);
    }
    free(out->view);
    free(out->metadata);
}
