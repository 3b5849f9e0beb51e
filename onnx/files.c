/* files.c: see files.h. */
#include "onnx/files.h"

/* ---- the model's file -------------------------------------------------------------------------------------------- */

static OnnxFiles *new_files(const char *path, Arena *arena, OnnxModel *model) {
    OnnxFiles *f = arena_new(arena, OnnxFiles);
    f->path = path;
    f->model.fd = f->external.fd = -1;
    model->path = path;
    return model->files = f;
}

amp_status onnx_files_open(const char *path, Arena *arena, OnnxModel *model, amp_error *err) {
    OnnxFiles *f = new_files(path, arena, model);
    AMP_TRY(amp_file_reader_open(path, &f->model, err));
    f->size = f->model.size;
    f->window = arena_alloc(arena, ONNX_WINDOW);
    return AMP_OK;
}

void onnx_files_memory(const void *bytes, size_t size, const char *path, Arena *arena, OnnxModel *model) {
    OnnxFiles *f = new_files(path, arena, model);
    f->memory = bytes;
    f->size = size;
}

void onnx_close(OnnxModel *model) {
    OnnxFiles *f = model->files;
    if (!f) return;
    amp_file_reader_close(&f->model);
    amp_file_reader_close(&f->external);
    model->files = NULL;
}

amp_status onnx_files_look(OnnxFiles *f, uint64_t at, size_t wanted, const uint8_t **data, size_t *size,
                           amp_error *err) {
    const uint64_t left = f->size - at;
    if (f->memory) {
        *data = f->memory + at;
        *size = (size_t)left;
        return AMP_OK;
    }
    if (wanted > left) wanted = (size_t)left;
    if (at < f->window_at || at + wanted > f->window_at + f->window_size) {
        const size_t most = left < ONNX_WINDOW ? (size_t)left : ONNX_WINDOW;
        f->window_size = 0;
        AMP_TRY(amp_file_reader_read(&f->model, f->path, at, f->window, most, err));
        f->window_at = at;
        f->window_size = most;
    }
    *data = f->window + (at - f->window_at);
    *size = (size_t)(f->window_at + f->window_size - at);
    return AMP_OK;
}

amp_status onnx_files_copy(OnnxFiles *f, uint64_t at, void *to, size_t size, amp_error *err) {
    const uint8_t *data;
    size_t there;
    if (size > ONNX_WINDOW && !f->memory) return amp_file_reader_read(&f->model, f->path, at, to, size, err);
    if (!size) return AMP_OK;
    AMP_TRY(onnx_files_look(f, at, size, &data, &there, err));
    memcpy(to, data, size);
    return AMP_OK;
}

/* ---- external files ---------------------------------------------------------------------------------------------- */

amp_status onnx_files_external(OnnxFiles *f, const char *location, uint64_t at, void *to, size_t size, amp_error *err) {
    AMP_TRY(onnx_external_open(f, location, err));
    return amp_file_reader_read(&f->external, location, at, to, size, err);
}
