/* cuda_device.c: a CUDA device as a device (runtime/device/device.h): what a session holds of it, and one run. */
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/device/cuda/context.h"
#include "runtime/device/cuda/count.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/cuda/library_products.h"
#include "runtime/device/cuda/transfer.h"

typedef struct CudaDevice {
    amp_device base;
    amp_cuda_context *context;
    amp_cuda_memory *memory;
    const amp_model *model;
    CuStream compute;
    bool own_compute; /* else it is the application's */
    bool inside;      /* between cuda_enter and cuda_leave */
    amp_cuda_functions functions;
    amp_cuda_upload upload;
    amp_cuda_readback readback;
    amp_cuda_graphs graphs;
    amp_cuda_products products;
    amp_cuda_counting counting;
    amp_cuda_exchange exchange;
    amp_comm_user user;
} CudaDevice;

static CudaDevice *of(amp_device *device) { return (CudaDevice *)device; }

/* AMP_TRY_INSIDE, but a call between cuda_enter and cuda_leave need not enter. */
#define TRY_INSIDE(d, err, expr)                                                                                       \
    do {                                                                                                               \
        if ((d)->inside) AMP_TRY(expr);                                                                                \
        else AMP_TRY_INSIDE((d)->context, (err), (expr));                                                              \
    } while (0)

/* ---- making ------------------------------------------------------------------------------------------------------ */

static amp_status check_precision(const CudaDevice *d, amp_error *err) {
    static const amp_dtype lows[] = {AMP_DT_F16, AMP_DT_BF16, AMP_DT_TF32, AMP_DT_F32};
    for (size_t i = 0; d->model->desc.low && i < sizeof lows / sizeof *lows; i++)
        if (!strcmp(d->model->desc.low, amp_dtype_name(lows[i])))
            return amp_cuda_check_precision(&d->context->info, lows[i], err);
    return AMP_OK;
}

static amp_status fill_inside(CudaDevice *d, const amp_device_options *o, amp_error *err) {
    amp_cuda_context *c = d->context;
    AMP_TRY(amp_cuda_memory_make(c, &d->memory, err));
    if (d->own_compute) AMP_TRY(AMP_CUDA(c, err, stream_create, (&d->compute, CU_STREAM_NON_BLOCKING)));
    AMP_TRY(amp_cuda_functions_make(&d->functions, c, d->model, o->threads, o->log, &d->base.allocator, err));
    amp_cuda_launching launching = {.context = c,
                                    .functions = &d->functions,
                                    .upload = &d->upload,
                                    .exchange = &d->exchange,
                                    .products = &d->products};
    AMP_TRY(amp_cuda_graphs_make(&d->graphs, &launching, err));
    return amp_cuda_products_make(&d->products, o->cuda, c, d->model, d->graphs.capturing, o->log, &d->base.allocator,
                                  err);
}

static amp_status fill(CudaDevice *d, const amp_device_options *o, amp_error *err) {
    d->own_compute = !o->cuda->stream;
    /* Params may outlive the session, and their memory then the context: not from the session's allocator. */
    AMP_TRY(amp_cuda_context_open(&o->model->allocator, o->cuda->stream, o->cuda->index, &d->context, err));
    AMP_TRY(check_precision(d, err));
    d->compute = o->cuda->stream;
    AMP_TRY_INSIDE(d->context, err, fill_inside(d, o, err));
    return AMP_OK;
}

static void free_inside(CudaDevice *d) {
    amp_cuda_context *c = d->context;
    amp_cuda_counting_free(&d->counting, c, &d->base.allocator);
    amp_cuda_products_free(&d->products);
    amp_cuda_graphs_free(&d->graphs);
    amp_cuda_readback_free(&d->readback);
    amp_cuda_upload_free(&d->upload, &d->base.allocator);
    amp_cuda_functions_free(&d->functions);
    if (d->own_compute && d->compute) AMP_CUDA_FREE(c, stream_destroy, (d->compute));
}

/* After a fatal error the context and all device memory are gone: only host memory is freed. */
static void cuda_destroy(amp_device *device) {
    if (!device) return;
    CudaDevice *d = of(device);
    amp_allocator a = d->base.allocator;
    bool inside = d->context && amp_cuda_enter_to_free(d->context);
    if (d->context) free_inside(d);
    if (inside) amp_cuda_leave(d->context);
    if (d->memory) amp_device_memory_release(&d->memory->base);
    amp_cuda_context_release(d->context);
    amp_free(&a, d, sizeof *d);
}

static amp_status cuda_create(const amp_device_options *options, const amp_allocator *allocator, amp_device **out,
                              amp_error *err) {
    *out = NULL;
    CudaDevice *d = amp_alloc_zeroed(allocator, sizeof *d);
    if (!d) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for the CUDA device");
    d->base = (amp_device){.type = &amp_device_cuda, .allocator = *allocator};
    d->model = options->model;
    amp_status status = fill(d, options, err);
    if (status) cuda_destroy(&d->base);
    else *out = &d->base;
    return status;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static amp_device_memory *cuda_memory(amp_device *device) { return &of(device)->memory->base; }

static amp_status cuda_reserve_inputs(amp_device *device, const amp_input_room *room, void **out, amp_error *err) {
    CudaDevice *d = of(device);
    TRY_INSIDE(d, err, amp_cuda_upload_make(&d->upload, d->context, room, &d->base.allocator, err));
    *out = amp_cuda_address(d->upload.block);
    return AMP_OK;
}

static amp_status cuda_check_array(amp_device *device, amp_input_memory memory, const char *name, const void *array,
                                   size_t bytes, amp_error *err) {
    CudaDevice *d = of(device);
    TRY_INSIDE(d, err, amp_cuda_check_array(d->context, memory, name, array, bytes, err));
    return AMP_OK;
}

static amp_status cuda_alloc_pinned(amp_device *device, size_t bytes, void **out, amp_error *err) {
    CudaDevice *d = of(device);
    TRY_INSIDE(d, err, AMP_CUDA(d->context, err, host_alloc, (out, bytes, CU_HOST_PORTABLE)));
    return AMP_OK;
}

static void cuda_free_pinned(amp_device *device, void *memory) {
    CudaDevice *d = of(device);
    if (!amp_cuda_enter_to_free(d->context)) return;
    if (d->upload.stream) AMP_CUDA_FREE(d->context, stream_sync, (d->upload.stream));
    AMP_CUDA_FREE(d->context, host_free, (memory));
    amp_cuda_leave(d->context);
}

static amp_status cuda_reserve_readback(amp_device *device, void *block, size_t bytes, amp_error *err) {
    CudaDevice *d = of(device);
    TRY_INSIDE(d, err, amp_cuda_readback_make(&d->readback, d->context, amp_cuda_pointer(block), bytes, err));
    return AMP_OK;
}

static amp_status reserve_inside(CudaDevice *d, const amp_run *run, amp_error *err) {
    AMP_TRY(amp_cuda_products_choose(&d->graphs.launching, run, true, err));
    return amp_cuda_need(&d->graphs.launching, run, false, err);
}

static amp_status cuda_reserve(amp_device *device, const amp_program *program, amp_sizes sizes, amp_error *err) {
    CudaDevice *d = of(device);
    const amp_run run = {.program = program, .sizes = sizes};
    TRY_INSIDE(d, err, reserve_inside(d, &run, err));
    return AMP_OK;
}

/* ---- choices of products ----------------------------------------------------------------------------------------- */

static amp_status prepare_inside(CudaDevice *d, amp_error *err) {
    AMP_TRY(amp_cuda_products_check(&d->products, err));
    AMP_TRY(AMP_CUDA(d->context, err, stream_sync, (d->compute)));
    amp_cuda_graphs_forget(&d->graphs);
    amp_cuda_products_forget_graphs(&d->products);
    return AMP_OK;
}

static amp_status cuda_prepare_choices(amp_device *device, amp_error *err) {
    CudaDevice *d = of(device);
    TRY_INSIDE(d, err, prepare_inside(d, err));
    return AMP_OK;
}

static bool cuda_choice_at(const amp_device *device, int32_t index, amp_product_choice *out) {
    return amp_cuda_choice_at(&((const CudaDevice *)device)->products, index, out);
}

static amp_status cuda_save_choices(amp_device *device, const char *path, amp_error *err) {
    CudaDevice *d = of(device);
    TRY_INSIDE(d, err, amp_cuda_products_check(&d->products, err));
    return amp_cuda_choices_save(&d->products, path, err);
}

static amp_status cuda_share_choices(amp_device *device, amp_comm *comm, amp_error *err) {
    CudaDevice *d = of(device);
    TRY_INSIDE(d, err, amp_cuda_choices_share(&d->graphs.launching, comm, err));
    return AMP_OK;
}

static void cuda_name_choices(const amp_device *device, char name[AMP_CHOICES_NAME]) {
    amp_cuda_choices_name(&((const CudaDevice *)device)->products, name);
}

static const amp_device_choice_calls choice_calls = {.prepare = cuda_prepare_choices,
                                                     .at = cuda_choice_at,
                                                     .save = cuda_save_choices,
                                                     .share = cuda_share_choices,
                                                     .name = cuda_name_choices};

static size_t cuda_bytes(const amp_device *device, bool on_device) {
    const CudaDevice *d = (const CudaDevice *)device;
    if (!on_device) return amp_cuda_upload_pinned(&d->upload) + amp_cuda_readback_bytes(&d->readback);
    return amp_cuda_upload_bytes(&d->upload) + amp_cuda_graphs_bytes(&d->graphs) +
           amp_cuda_counting_bytes(&d->counting) + d->products.workspace_bytes;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static amp_status cuda_enter(amp_device *device, amp_error *err) {
    CudaDevice *d = of(device);
    AMP_TRY(amp_cuda_enter(d->context, err));
    d->inside = true;
    return AMP_OK;
}

static void cuda_leave(amp_device *device) {
    CudaDevice *d = of(device);
    d->inside = false;
    amp_cuda_leave(d->context);
}

/* Up to the kernels.  |*exec|: NULL: they run without a graph.  Another session over the same params may have written
 * them on a stream of its own. */
static amp_status prepare_run(CudaDevice *d, const amp_run *run, CuGraphExec *exec, amp_error *err) {
    if (!amp_cuda_runs_one_by_one(run))
        AMP_TRY(amp_cuda_graphs_find(&d->graphs, run, d->compute, &d->base.allocator, exec, err));
    AMP_TRY(amp_cuda_upload_send(&d->upload, run, d->compute, err));
    AMP_TRY(amp_cuda_set_batch(d->context, run, run->batches.first, d->compute, err));
    AMP_TRY(amp_cuda_memory_await((amp_cuda_memory *)run->params, d, d->compute, err));
    return amp_cuda_exchange_depart(&d->exchange, run, d->compute, err);
}

static amp_status run_inside(CudaDevice *d, const amp_run *run, amp_error *err) {
    CuGraphExec exec = NULL;
    amp_status status = prepare_run(d, run, &exec, err);
    if (!status && exec) status = AMP_CUDA(d->context, err, graph_launch, (exec, d->compute));
    if (status) {
        if (run->began) *run->began = false;
        return status;
    }
    if (!exec) AMP_TRY(amp_cuda_run_one_by_one(&d->graphs.launching, run, d->compute, &d->base.allocator, err));
    AMP_TRY(amp_cuda_exchange_arrive(&d->exchange, run, d->compute, err));
    return run->writes_params ? amp_cuda_memory_wrote((amp_cuda_memory *)run->params, d, d->compute, err) : AMP_OK;
}

static amp_status cuda_run(amp_device *device, const amp_run *run, amp_error *err) {
    CudaDevice *d = of(device);
    TRY_INSIDE(d, err, run_inside(d, run, err));
    return AMP_OK;
}

static amp_status cuda_start_readback(amp_device *device, amp_error *err) {
    CudaDevice *d = of(device);
    TRY_INSIDE(d, err, amp_cuda_readback_start(&d->readback, d->compute, err));
    return AMP_OK;
}

static amp_status cuda_finish_readback(amp_device *device, bool wait, const void **out, amp_error *err) {
    CudaDevice *d = of(device);
    *out = NULL;
    TRY_INSIDE(d, err, amp_cuda_readback_finish(&d->readback, wait, out, err));
    return AMP_OK;
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static amp_status cuda_count_numbers(amp_device *device, const amp_counted *what, amp_number_bins *to, amp_error *err) {
    CudaDevice *d = of(device);
    TRY_INSIDE(d, err, amp_cuda_count(&d->counting, d->context, what, to, d->compute, &d->base.allocator, err));
    return AMP_OK;
}

static amp_status cuda_finish_counts(amp_device *device, amp_error *err) {
    CudaDevice *d = of(device);
    TRY_INSIDE(d, err, amp_cuda_finish_counts(&d->counting, d->context, d->compute, &d->base.allocator, err));
    return AMP_OK;
}

/* ---- reading and writing after all runs ---------------------------------------------------------------------------
 */

static amp_status finish(CudaDevice *d, amp_status started, amp_error *err) {
    return started ? started : AMP_CUDA(d->context, err, stream_sync, (d->compute));
}

static amp_status cuda_read(amp_device *device, void *to, const void *from, size_t bytes, amp_error *err) {
    CudaDevice *d = of(device);
    if (!bytes) return AMP_OK;
    TRY_INSIDE(d, err,
               finish(d, AMP_CUDA(d->context, err, copy_out, (to, amp_cuda_pointer(from), bytes, d->compute)), err));
    return AMP_OK;
}

static amp_status cuda_write(amp_device *device, void *to, const void *from, size_t bytes, amp_error *err) {
    CudaDevice *d = of(device);
    if (!bytes) return AMP_OK;
    TRY_INSIDE(d, err,
               finish(d, AMP_CUDA(d->context, err, copy_in, (amp_cuda_pointer(to), from, bytes, d->compute)), err));
    return AMP_OK;
}

/* The application's stream may have work that is none of ours: it is waited for all the same. */
static void cuda_settle(amp_device *device) {
    CudaDevice *d = of(device);
    if (!amp_cuda_enter_to_free(d->context)) return;
    if (d->upload.stream) (void)AMP_CUDA(d->context, NULL, stream_sync, (d->upload.stream));
    (void)AMP_CUDA(d->context, NULL, stream_sync, (d->compute));
    amp_cuda_leave(d->context);
}

static amp_status cuda_copy(amp_device *device, void *to, const void *from, size_t bytes, amp_error *err) {
    CudaDevice *d = of(device);
    if (!bytes) return AMP_OK;
    TRY_INSIDE(d, err,
               AMP_CUDA(d->context, err, copy, (amp_cuda_pointer(to), amp_cuda_pointer(from), bytes, d->compute)));
    return AMP_OK;
}

/* ---- collectives of ranks ---------------------------------------------------------------------------------------- */

static void note_failure(amp_comm_user *user, const amp_error *why) {
    CudaDevice *d = (CudaDevice *)((char *)user - offsetof(CudaDevice, user));
    amp_cuda_latch_set(&d->context->latch, why);
}

static amp_status attach_inside(CudaDevice *d, amp_comm *comm, const amp_device_exchange *what, amp_error *err) {
    AMP_TRY(amp_cuda_exchange_make(&d->exchange, d->context, comm, what, &d->base.allocator, err));
    amp_status status = comm->calls->attach(comm, &d->user, err);
    if (status) amp_cuda_exchange_free(&d->exchange, d->context, &d->base.allocator);
    return status;
}

static amp_status cuda_attach(amp_device *device, amp_comm *comm, const amp_device_exchange *what, amp_error *err) {
    CudaDevice *d = of(device);
    d->user.failed = note_failure;
    TRY_INSIDE(d, err, attach_inside(d, comm, what, err));
    return AMP_OK;
}

/* After a failure the comm has to forget it all the same. */
static void cuda_detach(amp_device *device) {
    CudaDevice *d = of(device);
    amp_comm *comm = d->exchange.comm;
    if (!comm) return;
    bool inside = amp_cuda_enter_to_free(d->context);
    comm->calls->detach(comm, &d->user);
    (void)AMP_CUDA(d->context, NULL, stream_sync, (d->compute));
    amp_cuda_graphs_forget(&d->graphs); /* those with collectives of the comm go before it does */
    amp_cuda_exchange_free(&d->exchange, d->context, &d->base.allocator);
    if (inside) amp_cuda_leave(d->context);
}

static amp_status cuda_enqueue(amp_device *device, amp_error *err) {
    CudaDevice *d = of(device);
    TRY_INSIDE(d, err, amp_cuda_exchange_enqueue(&d->exchange, d->context, d->compute, err));
    return AMP_OK;
}

static amp_status cuda_enqueue_list(amp_device *device, const amp_device_collective *list, int32_t count,
                                    amp_error *err) {
    CudaDevice *d = of(device);
    amp_comm *comm = d->exchange.comm;
    TRY_INSIDE(d, err, comm->calls->enqueue(comm, list, count, d->compute, err));
    return AMP_OK;
}

static amp_status cuda_clear(amp_device *device, void *to, size_t bytes, amp_error *err) {
    CudaDevice *d = of(device);
    const size_t words = bytes / sizeof(uint32_t);
    if (words) TRY_INSIDE(d, err, AMP_CUDA(d->context, err, fill32, (amp_cuda_pointer(to), 0, words, d->compute)));
    return AMP_OK;
}

static amp_status cuda_wrote_params(amp_device *device, amp_device_memory *params, amp_error *err) {
    CudaDevice *d = of(device);
    TRY_INSIDE(d, err, amp_cuda_memory_wrote((amp_cuda_memory *)params, d, d->compute, err));
    return AMP_OK;
}

static const amp_device_memory_calls device_memory = {.memory = cuda_memory,
                                                      .enter = cuda_enter,
                                                      .leave = cuda_leave,
                                                      .reserve_inputs = cuda_reserve_inputs,
                                                      .reserve_readback = cuda_reserve_readback,
                                                      .start_readback = cuda_start_readback,
                                                      .finish_readback = cuda_finish_readback,
                                                      .read = cuda_read,
                                                      .write = cuda_write,
                                                      .settle = cuda_settle,
                                                      .bytes = cuda_bytes,
                                                      .check_array = cuda_check_array,
                                                      .alloc_pinned = cuda_alloc_pinned,
                                                      .free_pinned = cuda_free_pinned,
                                                      .copy = cuda_copy,
                                                      .attach = cuda_attach,
                                                      .detach = cuda_detach,
                                                      .enqueue = cuda_enqueue,
                                                      .enqueue_list = cuda_enqueue_list,
                                                      .choices = &choice_calls,
                                                      .clear = cuda_clear,
                                                      .wrote_params = cuda_wrote_params};

const amp_device_type amp_device_cuda = {.name = "cuda",
                                         .create = cuda_create,
                                         .destroy = cuda_destroy,
                                         .reserve = cuda_reserve,
                                         .run = cuda_run,
                                         .computes = true,
                                         .count_numbers = cuda_count_numbers,
                                         .finish_counts = cuda_finish_counts,
                                         .device_memory = &device_memory};
