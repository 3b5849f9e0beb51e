/* types.cuh: names of types and constants.  No header is included: NVRTC has none.
 *
 * A thread computes single elements: a float of any type is an f32 that has been rounded to its type, a bool is 0 or
 * 1.  Functions have the names of the CPU's and give the same bits: compiled with --fmad=false, every
 * operation is one IEEE operation, and there is a fused multiply-add only if it is written.
 */
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;

/* 1: a function that needs local memory otherwise is compiled once more.  As the least number of blocks of a
 * multiprocessor it lets one have all registers, where else ptxas leaves room for more. */
#ifndef LEAN
#define LEAN 0
#endif
#if LEAN
#define UNROLL_UNLESS_LEAN NO_UNROLL
#else
#define UNROLL_UNLESS_LEAN UNROLL
#endif

#define INLINE __device__ __forceinline__
#define MAYBE_UNUSED [[maybe_unused]]
#define UNROLL _Pragma("unroll")
#define UNROLL_TWICE _Pragma("unroll 2")
#define NO_UNROLL _Pragma("unroll 1")
#define INT64_C(x) x##LL
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define INF __int_as_float(0x7F800000)
#define NOT_A_NUMBER __int_as_float(0x7FC00000)
#define INF_F64 __longlong_as_double(0x7FF0000000000000LL)
#define NOT_A_NUMBER_F64 __longlong_as_double(0x7FF8000000000000LL)

INLINE uint32_t bits_of(float x) { return __float_as_uint(x); }
INLINE float float_of(uint32_t bits) { return __uint_as_float(bits); }
