/* info.h: what the files of amprun info share. */
#ifndef AMP_TOOLS_AMPRUN_INFO_H
#define AMP_TOOLS_AMPRUN_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "amp/inspect.h"
#include "base/json.h"
#include "tools/amprun/amprun.h"

#ifdef __cplusplus
extern "C" {
#endif

int command_info_cuda(const Args *a);     /* with --kernels or --roofline */
int command_info_batch(const Args *a);    /* with --batch auto */
int command_info_timeline(const Args *a); /* with --timeline */
int command_info_ranks(const Args *a);    /* with --ranks */

/* These report and return 1 or NULL.  Whether |a->model|, whose tables are |t|, takes |batch|. */
int info_check_batch(const Args *a, const amp_tables *t, int64_t batch);
/* The tables for the device of --device. */
int info_tables(const Args *a, const amp_model *loaded, amp_tables *out);
/* The program of --program, else the one that trains, else the one that infers. */
const amp_program *info_program(const Args *a, const amp_tables *t);

/* The memory of a session by kind, as tables print it. */
typedef struct MemoryKind {
    const char *name;
    uint64_t bytes;
} MemoryKind;

enum { MEMORY_KINDS = 7 }; /* the last is the total */

void memory_kinds(const amp_memory_info *memory, MemoryKind out[MEMORY_KINDS]);
/* An object "memory". */
void memory_put(amp_json_writer *w, const amp_memory_info *memory);

/* ---- largest_batch.c: the largest batch whose session fits in so many bytes -------------------------------------- */

typedef struct LargestBatch {
    int64_t batch;          /* fits; 0: not even the smallest does, and |memory| is what that would take */
    amp_memory_info memory; /* of a session of that batch */
    int64_t next;           /* the next one, which does not fit; 0: a call takes no larger one */
    uint64_t next_total;    /* bytes that it would take; 0: more than memory can address, or than the device has */
    int64_t bound;          /* no larger batch fits, however its memory is planned; 0: not known (device memory) */
} LargestBatch;

/* Where temporaries are is found by a heuristic, so that a batch can take less than a smaller one.  A larger batch that
 * fits is looked for up to |bound|, but among no more than LARGEST_BATCH_LOOK. */
enum { LARGEST_BATCH_LOOK = 256 };

/* What is limited: a device's own memory where there is one, else all that the session and its params take. */
uint64_t largest_batch_bytes(const amp_memory_info *memory);

/* Of sessions with |options|, but for their capacity.n; if |options->tokens| is -1, but for tokens, which |out| then
 * has.  The errors of amp_session_plan. */
amp_status largest_batch(amp_model *model, const amp_session_options *options, uint64_t limit, LargestBatch *out,
                         amp_error *err);

/* ---- live_bytes.c: what is alive of a program's temporaries while each of its kernels runs ----------------------- */

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

/* At |sizes|.  AMP_OUT_OF_MEMORY; AMP_INVALID_ARGUMENT: more than memory can address.  Either way
 * live_bytes_free frees it. */
amp_status live_bytes_make(LiveBytes *out, const amp_program *program, amp_sizes sizes, amp_error *err);
void live_bytes_free(LiveBytes *live);

/* The buffer whose value is in the memory of |b| while kernel |kernel| runs. */
int32_t live_buffer_at(const LiveBytes *live, const LiveBuffer *b, int32_t kernel);

#ifdef __cplusplus
}
#endif
#endif
