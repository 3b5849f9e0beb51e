/* files_engine.h: the engine "files": what ranks tell each other are files in a folder that all of them see.
 *
 * It needs no MPI and no network but the file system, and is slow: each message is written once and read by all ranks.
 */
#ifndef AMP_RUNTIME_COMM_FILES_FILES_ENGINE_H
#define AMP_RUNTIME_COMM_FILES_FILES_ENGINE_H

#include "runtime/comm/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct amp_files_options {
    const char *folder;
    int32_t rank, ranks; /* 0 <= rank < ranks */
    double seconds;      /* that ranks have to come together */
} amp_files_options;

/* Touches no file: connect does. */
amp_status amp_files_engine_open(const amp_files_options *options, const amp_allocator *allocator, amp_engine **out,
                                 amp_error *err);

#ifdef __cplusplus
}
#endif

#endif
