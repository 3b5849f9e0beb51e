/* graph.h: programs as CUDA graphs: one for each program and number of samples, captured when it first runs. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_GRAPH_H
#define AMP_RUNTIME_DEVICE_CUDA_GRAPH_H

#include "runtime/device/cuda/launch.h"
#include "runtime/device/cuda/poison.h"

enum {
    AMP_CUDA_GRAPHS_OF_PROGRAM = 16, /* the one that was unused the longest is given up */
    AMP_CUDA_GRAPHS = 6 * AMP_CUDA_GRAPHS_OF_PROGRAM
};

typedef struct amp_cuda_graph {
    const amp_program *program; /* NULL: free */
    int64_t n;
    uint64_t used; /* when: runs are counted */
    CuGraphExec exec;
    amp_cuda_tables tables;
    amp_cuda_poison poison;
} amp_cuda_graph;

typedef struct amp_cuda_graphs {
    amp_cuda_launching launching;
    CuStream capturing; /* what is captured never runs there */
    uint64_t runs;
    amp_cuda_graph graphs[AMP_CUDA_GRAPHS];
} amp_cuda_graphs;

/* All of these inside the context. */
amp_status amp_cuda_graphs_make(amp_cuda_graphs *graphs, const amp_cuda_launching *launching, amp_error *err);
void amp_cuda_graphs_free(amp_cuda_graphs *graphs);

/* The graph of |run|'s program at its n; made, if this is its first time.  |compute|: where graphs run. */
amp_status amp_cuda_graphs_find(amp_cuda_graphs *graphs, const amp_run *run, CuStream compute,
                                const amp_allocator *allocator, CuGraphExec *out, amp_error *err);
size_t amp_cuda_graphs_bytes(const amp_cuda_graphs *graphs); /* of their tables */

#endif
