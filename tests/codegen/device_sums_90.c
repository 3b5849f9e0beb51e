/* device_sums_90.c: as sm_90 adds: blocks of 16 elements of 16 bits, 25 places. */
enum { DEVICE_BLOCK = 16, DEVICE_BITS = 25 };
#define SUMS_FUNCTION sums_as_sm_90
#include "tests/codegen/device_sums.inc"
