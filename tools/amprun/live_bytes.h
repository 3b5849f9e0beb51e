/* live_bytes.h: what is alive of a program's temporaries while each of its kernels runs. */
#ifndef AMP_TOOLS_AMPRUN_LIVE_BYTES_H
#define AMP_TOOLS_AMPRUN_LIVE_BYTES_H

#include "runtime/model/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A temporary, from the first kernel that uses its memory to the last. */
typedef struct LiveBuffer {
    int32_t buffer, first, last;
    uint64_t bytes;
} LiveBuffer;

typedef struct LiveBytes {
    const amp_program *program;
    LiveBuffer *buffers; /* those with memory of their own */
    int32_t count;
    uint64_t *alive;     /* by kernel */
    int32_t peak;        /* the first kernel with the most; -1: the program has none */
    uint64_t peak_bytes; /* no plan of memory takes less */
} LiveBytes;

/* For |batch| samples, each buffer of a multiple of |align| bytes.  AMP_OUT_OF_MEMORY; AMP_INVALID_ARGUMENT: more than
 * memory can address.  Either way live_bytes_free frees it. */
amp_status live_bytes_make(LiveBytes *out, const amp_program *program, int64_t batch, size_t align, amp_error *err);
void live_bytes_free(LiveBytes *live);

/* The buffer whose value is in the memory of |b| while kernel |kernel| runs. */
int32_t live_buffer_at(const LiveBytes *live, const LiveBuffer *b, int32_t kernel);

#ifdef __cplusplus
}
#endif
#endif
