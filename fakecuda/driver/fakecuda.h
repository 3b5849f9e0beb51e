/* fakecuda.h: what tests may ask of the stand-in beside the driver's own calls.  Find the functions with dlsym; the
 * product knows none of them.
 *
 * All may be called from any thread, before cuInit too. */
#ifndef FAKECUDA_DRIVER_FAKECUDA_H
#define FAKECUDA_DRIVER_FAKECUDA_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FAKECUDA_API __attribute__((visibility("default")))

/* The report as it would be written now, from malloc; the caller frees it.  Lists the leaks of contexts that were
 * given back; those still held are listed at exit only. Returns 0. */
FAKECUDA_API int fakecuda_report_json(char **text);

/* Counters, kernels, faults, misuse, leaks and injected failures start anew; objects and memory stay. */
FAKECUDA_API void fakecuda_reset_counters(void);

/* Of everything that is decided by chance from now on; kernels of modules that are loaded keep their approximate
 * results. */
FAKECUDA_API void fakecuda_set_seed(uint64_t seed);

/* A plan as FAKECUDA_FAIL has it, counted from now; NULL or "": none.  Returns 0, or 1 where it cannot be read (then
 * there is none).
 *
 *     CALL:K[:ERROR][,...]      the Kth call of that name fails; `*`: any, but for names and texts of errors
 *
 * CALL may leave `_v2` out.  Without ERROR an allocation is refused with 2, anything else fails with 999.  The call
 * does nothing, except that one that gives something back (frees, destroys, unloads, releases, ends a capture) does
 * so and then returns the error, as the driver does with errors of work before it. */
FAKECUDA_API int fakecuda_set_fail(const char *plan);

/* As if the process had just begun: gives up all contexts (their handles are dead), reads the environment again;
 * cuInit must be called again. */
FAKECUDA_API void fakecuda_restart(void);

/* ---- for other stand-ins, fakecuda/nccl and cublaslt, whose work runs in streams --------------------------------- */

/* Work of somebody else: |run| is called when its turn has come, and again until it gives true.  Meanwhile the stream
 * stops, as after a kernel that waits, and no host is held that does not wait for it.  In a capture it becomes
 * a node of the graph, whose launches each call |run| so.  |drop| follows in any case, when the last of these is gone.
 * Both are called under the driver's lock, and may call nothing of it but fakecuda_read and fakecuda_write. */
typedef struct FakecudaOutside {
    bool (*run)(void *user, void *context);
    void (*drop)(void *user);
    void *user;
} FakecudaOutside;

/* A CUresult.  |stream| is a CUstream of the current context; where it fails nothing was enqueued.  |name| is counted
 * in the report, under "outside", with |bytes|, and is not copied.  |*captured|: it is in a graph. */
FAKECUDA_API int fakecuda_enqueue(void *stream, const FakecudaOutside *work, const char *name, uint64_t bytes,
                                  bool *captured);

/* Whether a stream of the current context is being captured. */
FAKECUDA_API bool fakecuda_is_capturing(void);

/* Into the report, as a call of the driver that was wrong. */
FAKECUDA_API void fakecuda_misuse(const char *what);

/* Inside |run|, with its |context|: device memory; false: no such memory, which has ended the context and dropped the
 * work: give false. */
FAKECUDA_API bool fakecuda_read(void *context, uint64_t from, void *to, uint64_t bytes);
FAKECUDA_API bool fakecuda_write(void *context, uint64_t to, const void *from, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
