/* exec.h: runs PTX kernels on the host: 32 lanes in lockstep with reconvergence, warps in a seeded order, every access
 * checked and counted.
 *
 * Threads: a Device's memory calls and exec_launch may be called from one thread at a time. */
#ifndef FAKECUDA_EXEC_EXEC_H
#define FAKECUDA_EXEC_EXEC_H

#include "fakecuda/alu/alu.h"
#include "fakecuda/ptx/ptx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- device memory ----------------------------------------------------------------------------------------------- */

/* Addresses are in a range of their own that is mapped without access rights, so that a host access faults; each
 * allocation is alone between pages without anything.  The interpreter reaches the bytes through a second mapping.
 * Which bytes were written is known, bit by byte. */
typedef struct ExecMemory ExecMemory;
ExecMemory *exec_memory_new(uint64_t capacity); /* bytes that a device says it has; NULL: the system gives none */
void exec_memory_free(ExecMemory *m);
uint64_t exec_alloc(ExecMemory *m, uint64_t bytes); /* aligned to 512; 0: no memory left */
bool exec_release(ExecMemory *m,
                  uint64_t address); /* false: not the start of an allocation.  The range stays known as freed */
/* The allocation around |address|; false: none.  |freed|: it was one. */
bool exec_range(const ExecMemory *m, uint64_t address, uint64_t *start, uint64_t *bytes, bool *freed);
/* Host copies: false where [address, +bytes) is not inside one live allocation; |why| (256 bytes) says what is
 * wrong. */
bool exec_write(ExecMemory *m, uint64_t address, const void *from, uint64_t bytes, char *why);
bool exec_read(ExecMemory *m, uint64_t address, void *to, uint64_t bytes,
               char *why); /* uninitialised bytes are an error */
bool exec_fill(ExecMemory *m, uint64_t address, uint32_t value, int width, uint64_t count, char *why);
bool exec_copy(ExecMemory *m, uint64_t to, uint64_t from, uint64_t bytes,
               char *why); /* keeps what is uninitialised so */
uint64_t exec_bytes_in_use(const ExecMemory *m);
/* ---- code -------------------------------------------------------------------------------------------------------- */

typedef struct ExecModule ExecModule; /* a parsed module, decoded, with its variables in device memory */
ExecModule *exec_module_load(ExecMemory *memory, const AluContext *context, const char *ptx, size_t length,
                             char *message, size_t size);
void exec_module_free(ExecModule *m);
const PtxModule *exec_module_ptx(const ExecModule *m);
uint64_t exec_module_variable(const ExecModule *m, const char *name, uint64_t *bytes); /* 0: none */

typedef struct ExecKernelInfo {
    int max_threads, static_shared, param_bytes, local_bytes,
        registers; /* registers: 32-bit ones live at once, at most */
} ExecKernelInfo;
bool exec_kernel_info(const ExecModule *m, const char *entry, ExecKernelInfo *out);

/* ---- counters, exact and repeatable ------------------------------------------------------------------------------ */

typedef struct ExecCounters {
    uint64_t thread_instructions, warp_instructions;
    uint64_t by_kind[16];                           /* thread instructions: exec_kind_names */
    uint64_t global_loads, global_stores;           /* requests of warps */
    uint64_t global_load_bytes, global_store_bytes; /* asked for by active lanes */
    uint64_t sectors, ideal_sectors;                /* of 32 bytes, touched per request; as few as the bytes could be */
    uint64_t shared_accesses, bank_conflicts;       /* conflicts: passes beyond the first */
    uint64_t tensor_ops, tensor_flops;              /* mma instructions of warps; 2 * m * n * k of each */
    uint64_t other_flops;                           /* f32, f64, f16 fma (2), add and mul (1), of lanes */
    uint64_t barriers, atomics, async_bytes;
    uint64_t blocks, warps;
    uint64_t longest_warp; /* warp instructions of the warp that executed most: what a sum keeps is the largest */
} ExecCounters;
extern const char *const exec_kind_names[16]; /* "int", "f32", ..; NULL: no such */
void exec_counters_add(ExecCounters *to, const ExecCounters *from);

/* ---- running ----------------------------------------------------------------------------------------------------- */

typedef enum ExecFault { /* what a driver would call them */
                         EXEC_OK,
                         EXEC_ILLEGAL_ADDRESS,
                         EXEC_MISALIGNED,
                         EXEC_ILLEGAL_INSTRUCTION,
                         EXEC_LAUNCH_FAILED /* deadlock, race, uninitialised, barrier, trap */,
                         EXEC_INVALID_LAUNCH,
                         EXEC_OUT_OF_MEMORY,
                         EXEC_ASSERT
} ExecFault;

/* Blocks of a device by their numbers, in the order in which they began: first <= number < end. */
typedef struct ExecSpan {
    uint32_t first, end; /* both 0: none */
} ExecSpan;

/* Blocks of earlier launches that may run beside a launch, because none that came between waited for them.  What they
 * touch and a thread touches, too, is a race, if one of both writes. */
typedef struct ExecBeside {
    ExecSpan before, after; /* given: until a thread has executed griddepcontrol.wait; from then on */
    uint32_t start;         /* set: the number of the launch's first block */
    bool waited;            /* set: all its threads did */
} ExecBeside;

enum { EXEC_RESIDENT = 16, EXEC_MOST_RESIDENT = 1024 };

typedef struct ExecLaunch {
    const ExecModule *module;
    const char *entry;
    uint32_t grid[3], block[3], cluster[3]; /* cluster 0: none */
    uint32_t dynamic_shared;
    const void *params; /* packed as the entry's parameter block; param_bytes of ExecKernelInfo */
    uint64_t seed;
    int threads; /* host threads that blocks are spread over; 0 or 1: this one.  Counters do not depend on it */
    /* Blocks that are resident together, where a kernel orders blocks or waits for one; each runs for a while, in turns
     * that the seed chooses.  0: EXEC_RESIDENT.  Blocks of other kernels run one after another. */
    int resident;
    ExecBeside *beside;         /* NULL: all that was launched earlier has ended */
    uint64_t instruction_limit; /* of the launch, in warp instructions: beyond it is a deadlock; 0: 2^40 */
    /* Where not NULL: told of every access of a lane to global memory, as the counters count them.  One thread only. */
    void (*asked)(void *user, uint64_t address, uint32_t size, bool store);
    void *asked_user;
} ExecLaunch;

/* |message|: "kernel k03, ptx line 118 (st.global.v4.f32 [%rd4], {..}), block (1,0,0), thread (37,0,0): writes 16
 * bytes at 0x..., 8 past the end of an allocation of 4096 bytes; made from: %12 = relu". */
ExecFault exec_launch(const ExecLaunch *launch, ExecCounters *counters, char *message, size_t size);

#ifdef __cplusplus
}
#endif
#endif
