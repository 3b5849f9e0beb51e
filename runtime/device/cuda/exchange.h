/* exchange.h: collectives of ranks beside the kernels of a program, on a stream of their own.
 *
 *   compute   graph of the program: k0 .. k5, event, k6 .. k9                           | wait | what is run next
 *   own       wait for the event | collectives after k5 | wait for the end | the others, event
 *
 * The event inside the graph is a node of it, which each launch records anew (CUDA 11.1): who waits after the launch
 * waits for that launch.  The host waits for nothing.
 *
 * Sums inside of a program (kernels of the kind COLLECTIVE) are captured with its kernels. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_EXCHANGE_H
#define AMP_RUNTIME_DEVICE_CUDA_EXCHANGE_H

#include "runtime/device/comm_calls.h"
#include "runtime/device/cuda/context.h"
#include "runtime/device/device.h"

typedef struct amp_cuda_exchange {
    amp_comm *comm;           /* NULL: it is not attached */
    amp_device_exchange what; /* count 0: nothing is exchanged */
    CuEvent *begins;          /* by collective: where it may begin; NULL: where the one before it may, or at the end */
    CuStream stream;          /* NULL: none may begin before the end, and they are enqueued on compute */
    CuEvent end;              /* of the program, and then of the collectives */
} amp_cuda_exchange;

/* All of these inside the context.  |what|: as of amp_device_memory_calls.attach. */
amp_status amp_cuda_exchange_make(amp_cuda_exchange *exchange, amp_cuda_context *context, amp_comm *comm,
                                  const amp_device_exchange *what, const amp_allocator *allocator, amp_error *err);
void amp_cuda_exchange_free(amp_cuda_exchange *exchange, amp_cuda_context *context, const amp_allocator *allocator);

/* Whether a collective may begin after kernel |kernel| of |run|: amp_cuda_exchange_mark then puts something there. */
bool amp_cuda_exchange_marks(const amp_cuda_exchange *exchange, const amp_run *run, int32_t kernel);

/* After kernel |kernel| of |run| on |stream|, which is in a capture or not. */
amp_status amp_cuda_exchange_mark(const amp_cuda_exchange *exchange, amp_cuda_context *context, const amp_run *run,
                                  int32_t kernel, CuStream stream, bool captured, amp_error *err);

/* All of them, after a run of the program on |compute|, which then waits for them. */
amp_status amp_cuda_exchange_enqueue(const amp_cuda_exchange *exchange, amp_cuda_context *context, CuStream compute,
                                     amp_error *err);

/* Whether |kernel| of |run| is a sum over ranks, which the comm makes and not a launch. */
bool amp_cuda_exchange_sums(const amp_cuda_exchange *exchange, const amp_run *run, int32_t kernel);
/* Makes it, or captures it: |from| and |to| are its operands. */
amp_status amp_cuda_exchange_sum(const amp_cuda_exchange *exchange, const amp_run *run, int32_t kernel, CuPointer from,
                                 CuPointer to, CuStream stream, amp_error *err);
/* Around kernels of |run| that are started on |stream|. */
amp_status amp_cuda_exchange_depart(const amp_cuda_exchange *exchange, const amp_run *run, CuStream stream,
                                    amp_error *err);
amp_status amp_cuda_exchange_arrive(const amp_cuda_exchange *exchange, const amp_run *run, CuStream stream,
                                    amp_error *err);

#endif
