/* read_buffer.c: reads a buffer of a program that has run, wherever it is. */
#include "base/error.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/state.h"
#include "runtime/session/session.h"

static bool is_stored_as_read(const amp_model_buffer *b) {
    return !b->padding && b->dtype != AMP_DT_BOOL && b->storage == amp_readable_dtype(b->dtype);
}

/* Of a part row by row: the other parts may not be written yet. */
static amp_status read_stored(const amp_session *s, const amp_bound_program *bound, int32_t buffer, amp_sizes sizes,
                              char *to, size_t bytes, amp_error *err) {
    const amp_device_memory_calls *device = s->device->type->device_memory;
    const amp_model_buffer *b = &bound->program->buffers[buffer];
    const char *from = bound->buffers[buffer];
    if (!b->part) return device->read(s->device, to, from, bytes, err);
    const size_t size = amp_storage_size(b->storage),
                 row = size * (size_t)amp_model_dim_at(&b->dims[b->rank - 1], sizes);
    for (size_t at = size * (size_t)amp_buffer_begin(b); at < bytes; at += row)
        AMP_TRY(device->read(s->device, to + at, from + at, row - size * b->padding, err));
    return AMP_OK;
}

amp_status amp_session_read_buffer(const amp_session *s, const amp_bound_program *bound, int32_t buffer,
                                   amp_sizes sizes, void *to, amp_error *err) {
    const amp_device_memory_calls *device = s->device->type->device_memory;
    const amp_model_buffer *b = &bound->program->buffers[buffer];
    if (!device || b->kind == AMP_BUFFER_INPUT) {
        amp_bound_program_read(bound, buffer, sizes, to);
        return AMP_OK;
    }
    size_t bytes =
        (size_t)(amp_model_dim_at(&b->rows, sizes) * amp_model_dim_at(&b->cols, sizes)) * amp_storage_size(b->storage);
    if (is_stored_as_read(b)) return device->read(s->device, to, bound->buffers[buffer], bytes, err);
    void *copy = amp_alloc_aligned(&s->memory.allocator, bytes, AMP_MEMORY_ALIGN);
    if (!copy) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for %zu bytes of %s", bytes, b->name);
    amp_status status = read_stored(s, bound, buffer, sizes, copy, bytes, err);
    if (!status) amp_buffer_read(b, copy, sizes, to);
    amp_free_aligned(&s->memory.allocator, copy, bytes, AMP_MEMORY_ALIGN);
    return status;
}
