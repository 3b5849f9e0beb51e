/* nvrtc.h: CUDA C to PTX or cubin by NVIDIA's runtime compiler, which is opened where it is installed
 * (library_search.h; NVRTC_PATH, PyPI's nvidia-cuda-nvrtc).  It needs no GPU and no driver.  CUDA 12 and 13.  Source:
 * NVIDIA's NVRTC document. */
#ifndef AMP_CUDA_SDK_NVRTC_H
#define AMP_CUDA_SDK_NVRTC_H

#include <stdbool.h>

#include "cuda_sdk/library_search.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct amp_nvrtc amp_nvrtc;
extern const amp_library_places amp_nvrtc_places;

/* AMP_NOT_FOUND names the places that were searched and what to install, AMP_BAD_FILE a library that was found and is
 * none.  May be called from any thread.  The library's code stays in the process after close. */
amp_status amp_nvrtc_open(const amp_allocator *allocator, amp_nvrtc **out, amp_error *err);
void amp_nvrtc_close(amp_nvrtc *nvrtc);             /* NULL is a no-op */
int amp_nvrtc_version(const amp_nvrtc *nvrtc);      /* 13000 for 13.0 */
const char *amp_nvrtc_path(const amp_nvrtc *nvrtc); /* of the library */
/* The file's size and build ID, by which releases of one version differ; for keys of caches. */
const char *amp_nvrtc_build(const amp_nvrtc *nvrtc);
/* Architectures it compiles for, ascending (75, 80, ..); returns how many, fills up to |size|. */
int amp_nvrtc_architectures(const amp_nvrtc *nvrtc, int *out, int size);

/* What every compilation asks for besides the architecture; for keys of caches. */
#define AMP_NVRTC_OPTIONS "--fmad=false"
/* Of generated kernels, for amp_nvrtc_compile_lean: what takes fewer registers, in place of what is faster. */
#define AMP_NVRTC_LEAN "--define-macro=LEAN=1"
/* An option for tests and debugging: compiles in two thirds of the time, to the same results.  "mid" takes less, but
 * keeps arrays in memory, which an interpreter reads several times more slowly.  From AMP_NVRTC_QUICK_VERSION on. */
#define AMP_NVRTC_QUICK "--Ofast-compile=min"
#define AMP_NVRTC_QUICK_VERSION 12080

typedef struct amp_nvrtc_job {
    const char *source, *name;  /* the name appears in messages */
    int arch;                   /* 80 for sm_80 */
    char suffix;                /* 'a' for sm_90a; 0 */
    bool cubin;                 /* machine code for exactly that architecture, by ptxas, besides PTX */
    const char *const *options; /* further ones; NULL */
    int option_count;
} amp_nvrtc_job;

typedef struct amp_nvrtc_kernel_use { /* of one entry, from ptxas's log (cubin only) */
    char name[96];
    int registers, shared_bytes, spill_stores, spill_loads, stack_bytes;
} amp_nvrtc_kernel_use;

typedef struct amp_nvrtc_result { /* from the allocator that nvrtc was opened with */
    char *ptx, *cubin, *log;
    size_t ptx_size, cubin_size, log_size;
    amp_nvrtc_kernel_use *uses;
    int use_count;
    double seconds;
} amp_nvrtc_result;

/* Without NVRTC's own cache, without FP contraction (--fmad=false).  AMP_BAD_SOURCE: err holds the first message of
 * the log, with its line of |source|.  AMP_UNSUPPORTED: an architecture or option that this version does not know.
 * Any thread. */
amp_status amp_nvrtc_compile(const amp_nvrtc *nvrtc, const amp_nvrtc_job *job, amp_nvrtc_result *out, amp_error *err);
/* The same; where an entry needs local memory, compiles it once more with |lean|, an option, and gives what needs less
 * of it.  Only with |job->cubin| is known what is needed. */
amp_status amp_nvrtc_compile_lean(const amp_nvrtc *nvrtc, const amp_nvrtc_job *job, const char *lean,
                                  amp_nvrtc_result *out, amp_error *err);
void amp_nvrtc_result_free(const amp_nvrtc *nvrtc, amp_nvrtc_result *result);

/* ---- what NVRTC and ptxas write into a log ----------------------------------------------------------------------- */

/* Entries that ptxas -v reports; fills up to |size|, returns how many there are. */
int amp_nvrtc_log_uses(const char *log, amp_nvrtc_kernel_use *uses, int size);

/* The first error of |log| in one line, up to |size| bytes: "name, line 2: identifier "y" is undefined: `x[0] = y;`".
 * Without one: the log's first line, or "". */
void amp_nvrtc_log_error(const char *log, const char *name, const char *source, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
