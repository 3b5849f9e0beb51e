/* upload_twice.h: runs with inputs in device memory, by the session's own code for them. */
#ifndef AMP_TESTS_RUNTIME_DEVICE_CUDA_UPLOAD_TWICE_H
#define AMP_TESTS_RUNTIME_DEVICE_CUDA_UPLOAD_TWICE_H

#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Does the following twice: sends an input, the float at |array| in device memory, with |header|, the number of a
 * micro-batch; then enqueues what a program without inputs does to set the number on the device to |between|.  |seen|:
 * the number on the device after each input was sent. */
amp_status upload_twice(const void *array, int64_t header, int64_t between, int64_t seen[2], amp_error *err);

#ifdef __cplusplus
}
#endif

#endif
