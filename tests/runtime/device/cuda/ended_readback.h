/* ended_readback.h: a copy of scalars that is done because a comm ended what it waited for; in C, as the device is. */
#ifndef AMP_TESTS_RUNTIME_DEVICE_CUDA_ENDED_READBACK_H
#define AMP_TESTS_RUNTIME_DEVICE_CUDA_ENDED_READBACK_H

#include <stdbool.h>

#include "amp/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The comm's thread sets the latch, and ends it, while the driver is asked.  |*given|: the copy was given out. */
amp_status ended_readback(bool wait, bool *given, amp_error *err);

#ifdef __cplusplus
}
#endif

#endif
