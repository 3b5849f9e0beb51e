/* skeleton_device.h: a device with memory of its own, for the conformance suite and to copy. */
#ifndef AMP_TESTS_CONFORMANCE_SKELETON_DEVICE_H
#define AMP_TESTS_CONFORMANCE_SKELETON_DEVICE_H

#ifdef __cplusplus
extern "C" {
#endif

extern const struct amp_device_type amp_device_skeleton; /* runtime/device/device.h */

int skeleton_blocks(void); /* allocations that were not released */

#ifdef __cplusplus
}
#endif

#endif
