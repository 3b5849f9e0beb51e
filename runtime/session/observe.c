/* observe.c: reports to an application what each kernel of a run has read and written (amp/observe.h). */
#include "runtime/session/session.h"

#include "base/dtypes.h"
#include "base/error.h"
#include "runtime/model/matrix_layout.h"

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static const amp_observed_run *run_of(const amp_observed_kernel *kernel) { return kernel->run; }

static amp_operand_kind kind_of(const amp_model_buffer *b) {
    switch (b->kind) {
    case AMP_BUFFER_INPUT: return AMP_OPERAND_INPUT;
    case AMP_BUFFER_STATE: return AMP_OPERAND_STATE;
    default: return AMP_OPERAND_VALUE;
    }
}

static bool is_there(const amp_observed_run *run, uint32_t buffer) {
    const uint32_t kind = run->bound->program->buffers[buffer].kind;
    return kind == AMP_BUFFER_WATCH ? run->bound->options.watch : kind != AMP_BUFFER_LOOK;
}

/* A launch of several kernels may have an operand more than once: what it wrote is told of the first. */
static bool is_first(const amp_program *p, int32_t kernel, int32_t operand) {
    for (int32_t i = 0; i < operand; i++)
        if (amp_operand_buffer(p, kernel, (uint32_t)i) == amp_operand_buffer(p, kernel, (uint32_t)operand))
            return false;
    return true;
}

static int32_t describe(const amp_observed_kernel *kernel, int32_t index, amp_operand *out) {
    const amp_observed_run *run = run_of(kernel);
    if (!out || index < 0 || index >= kernel->operand_count) return 0;
    const uint32_t buffer = amp_operand_buffer(run->bound->program, kernel->index, (uint32_t)index);
    const amp_model_buffer *b = &run->bound->program->buffers[buffer];
    const amp_operand_kind kind = kind_of(b);
    *out = (amp_operand){
        .name = kind == AMP_OPERAND_STATE ? run->session->model->states[b->index].name : b->name,
        .kind = kind,
        .dtype = (amp_dtype)b->dtype,
        .written = kind == AMP_OPERAND_VALUE && b->first_kernel == kernel->index &&
                   is_first(run->bound->program, kernel->index, index),
        .buffer = (int32_t)buffer,
        .count = is_there(run, buffer) ? amp_buffer_elements(b, run->sizes) : 0,
    };
    return 1;
}

static amp_status no_operand(const amp_observed_kernel *kernel, int32_t index, amp_error *err) {
    return amp_fail(err, AMP_INVALID_ARGUMENT, "kernel %s has %d operands, and no number %d", kernel->name,
                    kernel->operand_count, index);
}

static amp_status read(const amp_observed_kernel *kernel, int32_t index, void *data, size_t bytes, amp_error *err) {
    const amp_observed_run *run = run_of(kernel);
    amp_operand operand;
    if (!describe(kernel, index, &operand)) return no_operand(kernel, index, err);
    const size_t needed = (size_t)operand.count * amp_dtype_size(amp_readable_dtype(operand.dtype));
    if (bytes != needed || (!data && needed))
        return amp_fail(err, AMP_INVALID_ARGUMENT, "operand %s takes %zu bytes, not %zu", operand.name, needed, bytes);
    if (!needed) return AMP_OK;
    return amp_session_read_buffer(run->session, run->bound, operand.buffer, run->sizes, data, err);
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static bool is_counted(uint32_t storage) { return amp_class_of(storage) == AMP_CLASS_FLOAT; }

amp_status amp_session_count(const amp_session *s, const char *name, const amp_counted *what, amp_number_bins *to,
                             amp_error *err) {
    if (!s->device->type->count_numbers)
        return amp_fail(err, AMP_UNSUPPORTED, "%s: device %s computes nothing to count", name, s->device->type->name);
    if (!is_counted(what->storage)) return amp_fail(err, AMP_INVALID_ARGUMENT, "%s is not of a float dtype", name);
    return s->device->type->count_numbers(s->device, what, to, err);
}

static amp_status check_share(const amp_observed_run *run, const amp_operand *operand, amp_error *err) {
    const amp_model_buffer *b = &run->bound->program->buffers[operand->buffer];
    const amp_share *shares = run->session->ranks ? run->session->ranks->shares : NULL;
    if (b->kind != AMP_BUFFER_STATE || !shares || shares[b->index].end < 0) return AMP_OK;
    return amp_fail(err, AMP_UNSUPPORTED,
                    "%s: this rank has a share of it alone (zero1); train with --distribute data to see all of it",
                    operand->name);
}

static amp_status count_operand(const amp_observed_kernel *kernel, int32_t index, amp_number_bins *to, amp_error *err) {
    const amp_observed_run *run = run_of(kernel);
    amp_operand operand;
    if (!describe(kernel, index, &operand)) return no_operand(kernel, index, err);
    if (!to) return amp_fail(err, AMP_INVALID_ARGUMENT, "count_numbers: to is NULL");
    if (operand.kind == AMP_OPERAND_INPUT)
        return amp_fail(err, AMP_UNSUPPORTED, "%s is an input: it is the caller's", operand.name);
    if (!operand.count) return AMP_OK;
    AMP_TRY(check_share(run, &operand, err));
    const amp_model_buffer *b = &run->bound->program->buffers[operand.buffer];
    amp_counted what = {.memory = run->bound->buffers[operand.buffer],
                        .layout = b->layout,
                        .storage = b->storage,
                        .rows = amp_model_dim_at(&b->rows, run->sizes),
                        .cols = amp_model_dim_at(&b->cols, run->sizes)};
    if (b->padding) {
        what.memory = (const char *)what.memory + (size_t)amp_buffer_begin(b) * amp_storage_size(b->storage);
        what.cols = amp_model_dim_at(&b->dims[b->rank - 1], run->sizes) - b->padding;
        what.rows = operand.count / what.cols;
        what.gap = b->padding;
    }
    return amp_session_count(run->session, operand.name, &what, to, err);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

amp_status amp_session_observe_kernel(const void *watcher, int32_t kernel, amp_error *err) {
    const amp_observed_run *run = watcher;
    const amp_program *p = run->bound->program;
    const amp_observer *observer = &run->session->observer;
    if (amp_session_looks_at_kernels(run->session)) amp_session_look(run->session, run->bound, kernel, run->sizes);
    if (!observer->kernel) return AMP_OK;
    const amp_observed_kernel seen = {
        .struct_size = sizeof seen,
        .program = p->name,
        .name = p->cuda_kernels ? p->cuda_kernels[kernel].name : p->kernels[kernel].name,
        .title = p->cuda_kernels ? p->cuda_kernels[kernel].title : p->kernels[kernel].title,
        .index = kernel,
        .count = p->kernel_count,
        .line = (int32_t)(p->cuda_kernels ? p->cuda_kernels[kernel].line : p->kernels[kernel].line),
        .operand_count = (int32_t)amp_operand_count(p, kernel),
        .operand = describe,
        .read = read,
        .run = run,
        .count_numbers = count_operand,
    };
    return observer->kernel(observer->user, &seen, err);
}

amp_status amp_session_observe(amp_session *session, const amp_observer *observer, amp_error *err) {
    amp_observer o = {0};
    if (!session) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_observe: session is NULL");
    if (observer) AMP_TRY(amp_options_read(&o, sizeof o, observer, "amp_observer", err));
    if (observer && !o.kernel)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_observe: the observer has no function 'kernel'");
    session->observer = o;
    const amp_device_type *device = session->device->type;
    return device->finish_counts ? device->finish_counts(session->device, err) : AMP_OK;
}
