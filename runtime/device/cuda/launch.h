/* launch.h: the kernels of a program as launches: tables of operands, parameters, blocks; as CUDA graphs; and, for
 * sanitizers, the end of temporaries. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_LAUNCH_H
#define AMP_RUNTIME_DEVICE_CUDA_LAUNCH_H

#include "runtime/device/cuda/context.h"
#include "runtime/device/cuda/exchange.h"
#include "runtime/device/cuda/functions.h"
#include "runtime/device/cuda/transfer.h"
#include "runtime/device/device.h"

typedef struct amp_cuda_launching { /* what all launches of a session have in common */
    amp_cuda_context *context;
    amp_cuda_functions *functions;
    const amp_cuda_upload *upload;
    const amp_cuda_exchange *exchange;  /* what begins inside programs */
    struct amp_cuda_products *products; /* what a library makes in place of launches; NULL: nothing */
    const CuPointer *addresses; /* by buffer of the program, of a launch that is measured; NULL: as |run| has them */
} amp_cuda_launching;

/* Where buffer |buffer| of |run|'s program is. */
CuPointer amp_cuda_address_of(const amp_cuda_launching *launching, const amp_run *run, uint32_t buffer);

/* Operand tables and elements of batches of all kernels of |run|'s program at its n, one after the other, and what
 * blocks of a launch keep for one another, which launches have in turn; bytes 0: there is nothing.  Inside the context.
 * |stream| fills them: it is not waited for, so what it copies is kept as long as they are. */
typedef struct amp_cuda_tables {
    CuPointer memory;
    size_t bytes;
    char *host; /* what |memory| begins with */
    size_t host_bytes;
    CuStream stream;
    const amp_allocator *allocator;
    CuPointer tickets, partials; /* of blocks (amp_model_cuda_waits); 0: no launch has any */
} amp_cuda_tables;
amp_status amp_cuda_tables_make(amp_cuda_tables *tables, const amp_cuda_launching *launching, const amp_run *run,
                                CuStream stream, const amp_allocator *allocator, amp_error *err);
void amp_cuda_tables_free(amp_cuda_tables *tables, amp_cuda_context *context);

/* Launches kernel |kernel| of |run| on |stream|.  |tables|->memory: where the tables of this kernel begin, then those
 * of the next.  |overlaps|: the last on |stream| was the kernel before it, whose end it may await by itself, where it
 * can. */
amp_status amp_cuda_launch(const amp_cuda_launching *launching, const amp_run *run, int32_t kernel,
                           amp_cuda_tables *tables, bool overlaps, CuStream stream, amp_error *err);

/* Loads the functions of the kernels of |run| that are not loaded: of all that |run| says, its program, n and needed
 * kernels are looked at.  |measured|: also functions that follow calls of a library, if they are to be measured. 
 * Inside the context, and in no capture. */
amp_status amp_cuda_need(const amp_cuda_launching *launching, const amp_run *run, bool measured, amp_error *err);

/* ---- the end of temporaries, for sanitizers ---------------------------------------------------------------------- */

/* After the last kernel that may use a temporary, its bytes are replaced by bytes of memory that was never written: a
 * kernel that reads it later, because a plan is wrong, reads what is uninitialised, which the stand-in driver and
 * compute-sanitizer report.  Sessions with separate buffers do this. */

typedef struct amp_cuda_poison {
    CuPointer memory; /* 0: temporaries are left alone */
    size_t bytes;
} amp_cuda_poison;

/* As long as the longest temporary of |run|, if its temporaries end at all.  All of these inside the context. */
amp_status amp_cuda_poison_make(amp_cuda_poison *poison, amp_cuda_context *context, const amp_run *run, amp_error *err);
void amp_cuda_poison_free(amp_cuda_poison *poison, amp_cuda_context *context);

/* Ends the temporaries of |run| whose last kernel is |kernel|. */
amp_status amp_cuda_poison_temporaries(const amp_cuda_poison *poison, amp_cuda_context *context, const amp_run *run,
                                       int32_t kernel, CuStream stream, amp_error *err);

/* ---- programs as CUDA graphs ------------------------------------------------------------------------------------- */

/* One for each program, number of samples and selection of kernels, captured when it first runs. */

enum {
    AMP_CUDA_GRAPHS_OF_PROGRAM = 16, /* the one that was unused the longest is given up */
    AMP_CUDA_GRAPHS = 6 * AMP_CUDA_GRAPHS_OF_PROGRAM
};

typedef struct amp_cuda_graph {
    const amp_program *program; /* NULL: free */
    amp_sizes sizes;
    uint64_t selection; /* amp_run's */
    bool apart;         /* of runs that are looked at, with own launches where others have a library's */
    uint64_t used;      /* when: runs are counted */
    CuGraphExec exec;
    amp_cuda_tables tables;
    amp_cuda_poison poison;
} amp_cuda_graph;

typedef struct amp_cuda_graphs {
    amp_cuda_launching launching;
    CuStream capturing; /* what is captured never runs there; tables of new graphs and measurements do */
    CuEvent filled;     /* the tables that were made last */
    uint64_t runs;
    ptrdiff_t last; /* that ran */
    amp_cuda_graph graphs[AMP_CUDA_GRAPHS];
} amp_cuda_graphs;

/* All of these inside the context. */
amp_status amp_cuda_graphs_make(amp_cuda_graphs *graphs, const amp_cuda_launching *launching, amp_error *err);
void amp_cuda_graphs_free(amp_cuda_graphs *graphs);
/* Those that were captured; they are made anew where they are needed. */
void amp_cuda_graphs_forget(amp_cuda_graphs *graphs);

/* The number of a micro-batch, for |run|'s program; nothing, where it reads none. */
amp_status amp_cuda_set_batch(amp_cuda_context *context, const amp_run *run, int64_t number, CuStream stream,
                              amp_error *err);

/* The graph of |run|'s program at its n; made, if this is its first time.  |compute|: where graphs run.  Of several
 * micro-batches all are in it, and the number of the first is set before it. */
amp_status amp_cuda_graphs_find(amp_cuda_graphs *graphs, const amp_run *run, CuStream compute,
                                const amp_allocator *allocator, CuGraphExec *out, amp_error *err);
size_t amp_cuda_graphs_bytes(const amp_cuda_graphs *graphs); /* of their tables */

/* ---- programs without a graph ------------------------------------------------------------------------------------ */

/* Whether the host has to do with single kernels of it: they are watched, or ranks add up in its memory. */
bool amp_cuda_runs_one_by_one(const amp_run *run);
/* Each kernel is launched, and waited for and told of (amp_run.after_kernel). */
amp_status amp_cuda_run_one_by_one(const amp_cuda_launching *launching, const amp_run *run, CuStream stream,
                                   const amp_allocator *allocator, amp_error *err);

#endif
