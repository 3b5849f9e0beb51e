/* null_device.c: plans and checks everything and computes nothing: results are zeros.  It reports what a model takes
 * before a real device is there, and measures what the runtime itself costs.  It is also the skeleton to copy for a new
 * device. */
#include "base/alloc.h"
#include "base/error.h"
#include "runtime/device/device.h"
#include "runtime/model/matrix_layout.h"

static void null_destroy(amp_device *device) {
    if (!device) return;
    amp_allocator a = device->allocator;
    amp_free(&a, device, sizeof *device);
}

static amp_status null_create(const amp_device_options *options, const amp_allocator *allocator, amp_device **out,
                              amp_error *err) {
    (void)options;
    *out = amp_alloc_zeroed(allocator, sizeof **out);
    if (!*out) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for the null device");
    **out = (amp_device){.type = &amp_device_null, .allocator = *allocator};
    return AMP_OK;
}

static amp_status null_reserve(amp_device *device, const amp_program *program, amp_sizes sizes, amp_error *err) {
    (void)device, (void)program, (void)sizes, (void)err;
    return AMP_OK;
}

/* Touches the results, as a device would. */
static amp_status null_run(amp_device *device, const amp_run *run, amp_error *err) {
    (void)device;
    for (int32_t i = 0; i < run->program->buffer_count; i++) {
        const amp_model_buffer *b = &run->program->buffers[i];
        int64_t rows = amp_model_dim_at(&b->rows, run->sizes), cols = amp_model_dim_at(&b->cols, run->sizes);
        if (b->kind != AMP_BUFFER_OUTPUT || !amp_run_needs(run, b->first_kernel)) continue;
        if (!run->buffers[i])
            return amp_fail(err, AMP_INTERNAL, "%s: buffer %s was not planned", run->program->name, b->name);
        for (int64_t e = 0; e < rows * cols; e++) amp_store_element(run->buffers[i], b->storage, e, 0);
    }
    return AMP_OK;
}

const amp_device_type amp_device_null = {
    .name = "null", .create = null_create, .destroy = null_destroy, .reserve = null_reserve, .run = null_run};
