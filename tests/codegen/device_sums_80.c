/* device_sums_80.c: as sm_80 adds: blocks of 8 elements of 16 bits, 24 places. */
enum { DEVICE_BLOCK = 8, DEVICE_BITS = 24 };
#define SUMS_FUNCTION sums_as_sm_80
#include "tests/codegen/device_sums.inc"
