/* exchange.c: see exchange.h. */
#include "runtime/device/cuda/exchange.h"

#include "base/alloc.h"
#include "base/error.h"

static size_t list_bytes(const amp_cuda_exchange *x) { return (size_t)x->what.count * sizeof *x->begins; }

/* Whether collective |i| may begin inside the program, and later than the one before it. */
static bool has_event(const amp_device_exchange *what, int32_t i) {
    const int32_t after = what->list[i].after;
    return after != AMP_DEVICE_AT_END && (!i || what->list[i - 1].after != after);
}

static amp_status make(amp_cuda_exchange *x, amp_cuda_context *c, amp_error *err) {
    for (int32_t i = 0; i < x->what.count; i++)
        if (has_event(&x->what, i)) AMP_TRY(AMP_CUDA(c, err, event_create, (&x->begins[i], CU_EVENT_DISABLE_TIMING)));
    if (!x->what.count || x->what.list[0].after == AMP_DEVICE_AT_END) return AMP_OK;
    AMP_TRY(AMP_CUDA(c, err, event_create, (&x->end, CU_EVENT_DISABLE_TIMING)));
    return AMP_CUDA(c, err, stream_create, (&x->stream, CU_STREAM_NON_BLOCKING));
}

amp_status amp_cuda_exchange_make(amp_cuda_exchange *x, amp_cuda_context *c, amp_comm *comm,
                                  const amp_device_exchange *what, const amp_allocator *allocator, amp_error *err) {
    *x = (amp_cuda_exchange){.comm = comm, .what = *what};
    x->begins = amp_alloc_zeroed(allocator, list_bytes(x));
    if (!x->begins) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for the messages of a step");
    amp_status status = make(x, c, err);
    if (status) amp_cuda_exchange_free(x, c, allocator);
    return status;
}

void amp_cuda_exchange_free(amp_cuda_exchange *x, amp_cuda_context *c, const amp_allocator *allocator) {
    for (int32_t i = 0; x->begins && i < x->what.count; i++)
        if (x->begins[i]) AMP_CUDA_FREE(c, event_destroy, (x->begins[i]));
    if (x->end) AMP_CUDA_FREE(c, event_destroy, (x->end));
    if (x->stream) AMP_CUDA_FREE(c, stream_destroy, (x->stream));
    amp_free(allocator, x->begins, x->begins ? list_bytes(x) : 0);
    *x = (amp_cuda_exchange){0};
}

static bool begins_after(const amp_cuda_exchange *x, const amp_run *run, int32_t i, int32_t kernel) {
    return run->program == x->what.program && x->begins[i] && x->what.list[i].after == kernel;
}

bool amp_cuda_exchange_marks(const amp_cuda_exchange *x, const amp_run *run, int32_t kernel) {
    for (int32_t i = 0; i < x->what.count; i++)
        if (begins_after(x, run, i, kernel)) return true;
    return false;
}

amp_status amp_cuda_exchange_mark(const amp_cuda_exchange *x, amp_cuda_context *c, const amp_run *run, int32_t kernel,
                                  CuStream stream, bool captured, amp_error *err) {
    const unsigned flags = captured ? CU_EVENT_RECORD_EXTERNAL : CU_EVENT_RECORD_DEFAULT;
    for (int32_t i = 0; i < x->what.count; i++)
        if (begins_after(x, run, i, kernel))
            AMP_TRY(AMP_CUDA(c, err, event_record_flags, (x->begins[i], stream, flags)));
    return AMP_OK;
}

/* From collective |first| on, until another may begin later; how many. */
static int32_t group(const amp_device_exchange *what, int32_t first) {
    int32_t end = first + 1;
    while (end < what->count && what->list[end].after == what->list[first].after) end++;
    return end - first;
}

static amp_status wait_for_end(const amp_cuda_exchange *x, amp_cuda_context *c, CuStream of, CuStream waits,
                               amp_error *err) {
    AMP_TRY(AMP_CUDA(c, err, event_record, (x->end, of)));
    return AMP_CUDA(c, err, stream_wait, (waits, x->end, 0));
}

amp_status amp_cuda_exchange_enqueue(const amp_cuda_exchange *x, amp_cuda_context *c, CuStream compute,
                                     amp_error *err) {
    const amp_device_exchange *what = &x->what;
    const CuStream stream = x->stream ? x->stream : compute;
    for (int32_t i = 0, count; i < what->count; i += count) {
        count = group(what, i);
        if (x->begins[i]) AMP_TRY(AMP_CUDA(c, err, stream_wait, (stream, x->begins[i], 0)));
        else if (x->stream) AMP_TRY(wait_for_end(x, c, compute, stream, err));
        AMP_TRY(x->comm->calls->enqueue(x->comm, what->list + i, count, stream, err));
    }
    return x->stream ? wait_for_end(x, c, stream, compute, err) : AMP_OK;
}

/* ---- sums inside of programs ------------------------------------------------------------------------------------- */

static bool is_sum(const amp_run *run, int32_t kernel) {
    return run->program->cuda_kernels[kernel].parts.at->kind == AMP_KERNEL_COLLECTIVE;
}

bool amp_cuda_exchange_sums(const amp_cuda_exchange *x, const amp_run *run, int32_t kernel) {
    return x->comm && is_sum(run, kernel);
}

static size_t count_of(const amp_run *run, int32_t kernel) {
    return (size_t)run->program->buffers[run->program->cuda_kernels[kernel].operands.at[0]].cols.mul;
}

amp_status amp_cuda_exchange_sum(const amp_cuda_exchange *x, const amp_run *run, int32_t kernel, CuPointer from,
                                 CuPointer to, CuStream stream, amp_error *err) {
    const amp_device_collective sum = {.op = AMP_COLLECTIVE_ALL_REDUCE,
                                       .dtype = AMP_DT_F32,
                                       .from = amp_cuda_address(from),
                                       .data = amp_cuda_address(to),
                                       .count = count_of(run, kernel),
                                       .what = run->program->cuda_kernels[kernel].title};
    return x->comm->calls->put(x->comm, &sum, stream, err);
}

/* Elements of all sums of the program. */
static size_t count_all(const amp_cuda_exchange *x, const amp_run *run) {
    size_t count = 0;
    for (int32_t i = 0; x->comm && i < run->program->kernel_count; i++)
        if (is_sum(run, i)) count += count_of(run, i);
    return count;
}

amp_status amp_cuda_exchange_depart(const amp_cuda_exchange *x, const amp_run *run, CuStream stream, amp_error *err) {
    const size_t count = count_all(x, run);
    return count ? x->comm->calls->depart(x->comm, run->program->name, count, stream, err) : AMP_OK;
}

amp_status amp_cuda_exchange_arrive(const amp_cuda_exchange *x, const amp_run *run, CuStream stream, amp_error *err) {
    return count_all(x, run) ? x->comm->calls->arrive(x->comm, stream, err) : AMP_OK;
}
