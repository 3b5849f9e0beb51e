/* vector.h: vectors of W lanes, W chosen by the instruction set that this file is compiled for, unless who includes it
 * has chosen; loads, stores and roundings.
 *
 * A float value of any type is an f32 lane: f16, bf16 and tf32 values have been rounded to their type.  A bool is a
 * lane mask (-1 or 0), in memory an int32 of 1 or 0.  Scalars have the same functions under the names *_f32, *_i32,
 * ...: lane 0 of the vector form where that is not one C expression, so that a value has the same bits wherever it is
 * computed.  Nothing here reorders, contracts or assumes finite numbers.
 */
#include <stddef.h>
#include <stdint.h>

#if defined(W)
#elif defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define W 16
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define W 8
#else
#define W 4
#endif

/* gcc names its processor instructions; with other compilers plain vector code does the same. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__SSE2__) && !defined(NO_X86)
#define GCC_X86 1
#else
#define GCC_X86 0
#endif

#define INLINE static inline __attribute__((always_inline, unused))
#define MAYBE_UNUSED __attribute__((unused))
#define UNROLL _Pragma("GCC unroll 4")

typedef float vf __attribute__((vector_size(4 * W)));
typedef int32_t vi __attribute__((vector_size(4 * W)));
typedef uint32_t vu __attribute__((vector_size(4 * W)));
typedef uint16_t vh __attribute__((vector_size(2 * W)));
typedef uint8_t vb __attribute__((vector_size(W)));
typedef uint64_t vq __attribute__((vector_size(4 * W))); /* W / 2 lanes */
typedef double vd __attribute__((vector_size(8 * W)));
typedef int64_t vl __attribute__((vector_size(8 * W)));
/* The same in memory: only as aligned as their elements. */
typedef float vf_mem __attribute__((vector_size(4 * W), aligned(4), may_alias));
typedef int32_t vi_mem __attribute__((vector_size(4 * W), aligned(4), may_alias));
typedef uint16_t vh_mem __attribute__((vector_size(2 * W), aligned(2), may_alias));
typedef uint8_t vb_mem __attribute__((vector_size(W), aligned(1), may_alias));

INLINE vf splat_f(float x) { return x - (vf){0}; }
INLINE vi splat_i(int32_t x) { return x + (vi){0}; }
INLINE vd splat_d(double x) { return x - (vd){0}; }

INLINE vi lane_index(void) {
#if W == 16
    return (vi){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#elif W == 8
    return (vi){0, 1, 2, 3, 4, 5, 6, 7};
#else
    return (vi){0, 1, 2, 3};
#endif
}

/* The mask of the first |count| lanes; count may be negative or larger than W. */
INLINE vi first_lanes(int64_t count) { return lane_index() < splat_i(count > W ? W : count < 0 ? 0 : (int32_t)count); }

INLINE vf select_vf(vi mask, vf a, vf b) { return (vf)(((vi)a & mask) | ((vi)b & ~mask)); }
INLINE vi select_vi(vi mask, vi a, vi b) { return (a & mask) | (b & ~mask); }
INLINE vd select_vd(vl mask, vd a, vd b) { return (vd)(((vl)a & mask) | ((vl)b & ~mask)); }
INLINE vf keep_vf(vf v, vi mask) { return (vf)((vi)v & mask); }
INLINE vi keep_vi(vi v, vi mask) { return v & mask; }

INLINE int32_t any_vi(vi mask) {
    int32_t any = 0;
    for (int i = 0; i < W; i++) any |= mask[i];
    return any != 0;
}

/* ---- conversions between element types ---- */

INLINE vf float_vi(vi v) { return __builtin_convertvector(v, vf); }
INLINE vi int_vf(vf v) { return __builtin_convertvector(v, vi); }
INLINE vd double_vf(vf v) { return __builtin_convertvector(v, vd); }
INLINE vf float_vd(vd v) { return __builtin_convertvector(v, vf); }
INLINE vi int_vl(vl v) { return __builtin_convertvector(v, vi); } /* the low half */
INLINE vd double_vl(vl v) { return __builtin_convertvector(v, vd); }
INLINE vf float_mask(vi mask) { return (vf)(mask & (vi)splat_f(1.0f)); }
INLINE vi int_bits(vf v) { return (vi)v; }
INLINE vf float_bits(vi bits) { return (vf)bits; }
INLINE vl long_bits(vd v) { return (vl)v; }
INLINE vd double_bits(vl bits) { return (vd)bits; }
INLINE vi magnitude_bits(vf v) { return (vi)v & 0x7FFFFFFF; }
INLINE vi nan_vf(vf v) { return v != v; }

/* Rounds to nearest even at bit |drop|: adds half a unit less one, plus the bit that decides ties.  A carry into the
 * exponent is the right result. */
#define ROUND_BITS(u, drop) (((u) + ((1u << ((drop)-1)) - 1) + (((u) >> (drop)) & 1)) & ~((1u << (drop)) - 1))

INLINE vf round_tf32_vf(vf v) { return select_vf(nan_vf(v), v, (vf)ROUND_BITS((vu)v, 13)); }

INLINE vf round_bf16_vf(vf v) {
    const vi nan = nan_vf(v);
    const vu more = (vu)keep_vi((vi)(((vu)v >> 16 & 1) + 0x7FFF), ~nan), quiet = (vu)(nan & 0x00400000);
    return (vf)((((vu)v + more) | quiet) & 0xFFFF0000u); /* as ROUND_BITS; NaN is quiet, and not infinity */
}

#if GCC_X86 && W == 16
INLINE vh f16_of_vf(vf v) {
    return (vh)__builtin_ia32_vcvtps2ph512_mask(v, 0, (short __attribute__((vector_size(32)))){0}, -1);
}
INLINE vf vf_of_f16(vh h) {
    return __builtin_ia32_vcvtph2ps512_mask((short __attribute__((vector_size(32))))h, (vf){0}, -1, 4);
}
INLINE vf round_f16_vf(vf v) { return vf_of_f16(f16_of_vf(v)); }
#elif GCC_X86 && W == 8
INLINE vh f16_of_vf(vf v) { return (vh)__builtin_ia32_vcvtps2ph256(v, 0); }
INLINE vf vf_of_f16(vh h) { return __builtin_ia32_vcvtph2ps256((short __attribute__((vector_size(16))))h); }
INLINE vf round_f16_vf(vf v) { return vf_of_f16(f16_of_vf(v)); }
#else
/* binary16 in binary32: below 2^-14 the unit is 2^-24, which adding 0.5 rounds to; from 65520 on it is infinity. */
INLINE vf round_f16_vf(vf v) {
    const vi size = magnitude_bits(v), sign = (vi)v & (int32_t)0x80000000;
    const vi normal = (vi)ROUND_BITS((vu)size, 13);
    const vi small = (vi)(((vf)size + 0.5f) - 0.5f);
    vi r = select_vi(size < 0x38800000, small, normal);
    r = select_vi(r >= 0x47800000, splat_i(0x7F800000), r);
    r = select_vi(nan_vf(v), (size | 0x00400000) & ~0x1FFF, r);
    return (vf)(r | sign);
}
INLINE vh f16_of_vf(vf v) {
    const vi size = magnitude_bits(v), sign = ((vi)v >> 16) & 0x8000;
    const vi small = (vi)((vf)size + 0.5f) - 0x3F000000; /* in units of 2^-24 */
    vi r = select_vi(size < 0x38800000, small, (size - (112 << 23)) >> 13);
    r = select_vi(size >= 0x7F800000, 0x7C00 | ((size >> 13) & 0x3FF), r);
    return __builtin_convertvector(r | sign, vh);
}
INLINE vf vf_of_f16(vh h) {
    const vi bits = __builtin_convertvector(h, vi), size = bits & 0x7FFF;
    const vi small = (vi)(float_vi(size) * 0x1p-24f);
    vi r = select_vi(size < 0x400, small, (size << 13) + (112 << 23));
    r = select_vi(size >= 0x7C00, (size << 13) | 0x7F800000, r);
    return (vf)(r | ((bits & 0x8000) << 16));
}
#endif

/* Element bits in the low half of each lane, for layouts that pair elements.  As in stores, an f16 or bf16 value has
 * been rounded before. */
INLINE vi bits_bf16(vf v) { return (vi)((vu)v >> 16); }
INLINE vi bits_f16(vf v) { return __builtin_convertvector(f16_of_vf(v), vi); }
INLINE vi bits_f32(vf v) { return (vi)v; }

/* ---- loads and stores: whole vectors ---- */

INLINE vf load_f32(const float *p) { return *(const vf_mem *)p; }
INLINE vf load_f16(const uint16_t *p) { return vf_of_f16(*(const vh_mem *)p); }
#if GCC_X86 && W == 16
/* One instruction, where convertvector makes two halves. */
INLINE vf vf_of_bf16(vh h) {
    return (vf)((vi)__builtin_ia32_pmovzxwd512_mask((short __attribute__((vector_size(32))))h, (vi){0}, -1) << 16);
}
#else
INLINE vf vf_of_bf16(vh h) { return (vf)(__builtin_convertvector(h, vi) << 16); }
#endif
INLINE vf load_bf16(const uint16_t *p) { return vf_of_bf16(*(const vh_mem *)p); }
INLINE vi load_i32(const int32_t *p) { return *(const vi_mem *)p; }
INLINE vi load_bool(const int32_t *p) { return load_i32(p) != 0; }
INLINE vi load_u8(const uint8_t *p) { return __builtin_convertvector(*(const vb_mem *)p, vi); }

INLINE void store_f32(float *p, vf v) { *(vf_mem *)p = v; }
INLINE void store_f16(uint16_t *p, vf v) { *(vh_mem *)p = f16_of_vf(v); }
INLINE void store_bf16(uint16_t *p, vf v) { *(vh_mem *)p = __builtin_convertvector((vu)bits_bf16(v), vh); }
INLINE void store_i32(int32_t *p, vi v) { *(vi_mem *)p = v; }
INLINE void store_bool(int32_t *p, vi v) { store_i32(p, v & 1); }
INLINE void store_u8(uint8_t *p, vi v) { *(vb_mem *)p = __builtin_convertvector(v, vb); }

/* ---- the first |left| lanes only: nothing past them is touched, the others are zero ---- */

#define DEFINE_PARTS(name, element, vector)                                                                            \
    INLINE vector load_##name##_part(const element *p, int64_t left) {                                                 \
        if (left >= W) return load_##name(p);                                                                          \
        element part[W] = {0};                                                                                         \
        for (int64_t i = 0; i < left; i++) part[i] = p[i];                                                             \
        return load_##name(part);                                                                                      \
    }                                                                                                                  \
    INLINE void store_##name##_part(element *p, vector v, int64_t left) {                                              \
        element part[W];                                                                                               \
        if (left >= W) {                                                                                               \
            store_##name(p, v);                                                                                        \
            return;                                                                                                    \
        }                                                                                                              \
        store_##name(part, v);                                                                                         \
        for (int64_t i = 0; i < left; i++) p[i] = part[i];                                                             \
    }
DEFINE_PARTS(u8, uint8_t, vi)
#if GCC_X86 && W == 16
INLINE uint16_t lane_bits(int64_t left) { return (uint16_t)(left <= 0 ? 0 : left >= 16 ? 0xFFFF : (1 << left) - 1); }
INLINE vf load_f32_part(const float *p, int64_t left) {
    return __builtin_ia32_loadups512_mask((const float *)p, (vf){0}, lane_bits(left));
}
INLINE void store_f32_part(float *p, vf v, int64_t left) { __builtin_ia32_storeups512_mask(p, v, lane_bits(left)); }
INLINE vh load_half_part(const uint16_t *p, int64_t left) {
    typedef short part __attribute__((vector_size(32)));
    return (vh)__builtin_ia32_loaddquhi256_mask((const short *)p, (part){0}, lane_bits(left));
}
INLINE void store_half_part(uint16_t *p, vh v, int64_t left) {
    typedef short part __attribute__((vector_size(32)));
    __builtin_ia32_storedquhi256_mask((short *)p, (part)v, lane_bits(left));
}
INLINE vf load_f16_part(const uint16_t *p, int64_t left) { return vf_of_f16(load_half_part(p, left)); }
INLINE vf load_bf16_part(const uint16_t *p, int64_t left) { return vf_of_bf16(load_half_part(p, left)); }
INLINE void store_f16_part(uint16_t *p, vf v, int64_t left) { store_half_part(p, f16_of_vf(v), left); }
INLINE void store_bf16_part(uint16_t *p, vf v, int64_t left) {
    store_half_part(p, __builtin_convertvector((vu)bits_bf16(v), vh), left);
}
INLINE vi load_i32_part(const int32_t *p, int64_t left) { return (vi)load_f32_part((const float *)p, left); }
INLINE void store_i32_part(int32_t *p, vi v, int64_t left) { store_f32_part((float *)p, (vf)v, left); }
#elif GCC_X86 && W == 8
INLINE vf load_f32_part(const float *p, int64_t left) {
    return __builtin_ia32_maskloadps256((const vf *)p, first_lanes(left));
}
INLINE void store_f32_part(float *p, vf v, int64_t left) {
    __builtin_ia32_maskstoreps256((vf *)p, first_lanes(left), v);
}
INLINE vi load_i32_part(const int32_t *p, int64_t left) { return (vi)load_f32_part((const float *)p, left); }
INLINE void store_i32_part(int32_t *p, vi v, int64_t left) { store_f32_part((float *)p, (vf)v, left); }
#else
DEFINE_PARTS(f32, float, vf)
DEFINE_PARTS(i32, int32_t, vi)
#endif
#if !(GCC_X86 && W == 16)
DEFINE_PARTS(f16, uint16_t, vf)
DEFINE_PARTS(bf16, uint16_t, vf)
#endif
INLINE vi load_bool_part(const int32_t *p, int64_t left) { return load_i32_part(p, left) != 0; }
INLINE void store_bool_part(int32_t *p, vi v, int64_t left) { store_i32_part(p, v & 1, left); }

/* ---- one element ---- */

INLINE float round_f16_f32(float x) { return round_f16_vf(splat_f(x))[0]; }
INLINE float round_bf16_f32(float x) { return round_bf16_vf(splat_f(x))[0]; }
INLINE float round_tf32_f32(float x) { return round_tf32_vf(splat_f(x))[0]; }

INLINE float get_f32(const float *p) { return *p; }
INLINE float get_f16(const uint16_t *p) { return vf_of_f16((vh){*p})[0]; }
INLINE float get_bf16(const uint16_t *p) { return ((vf)((vi){*p} << 16))[0]; }
INLINE int32_t get_i32(const int32_t *p) { return *p; }
INLINE int32_t get_bool(const int32_t *p) { return *p != 0; }
INLINE int32_t get_u8(const uint8_t *p) { return *p; }
INLINE int64_t get_i64(const int64_t *p) { return *p; }
INLINE double get_f64(const double *p) { return *p; }

INLINE void put_f32(float *p, float x) { *p = x; }
INLINE void put_f16(uint16_t *p, float x) { *p = f16_of_vf(splat_f(x))[0]; }
INLINE void put_bf16(uint16_t *p, float x) { *p = (uint16_t)bits_bf16(splat_f(x))[0]; }
INLINE void put_i32(int32_t *p, int32_t x) { *p = x; }
INLINE void put_bool(int32_t *p, int32_t x) { *p = x != 0; }
INLINE void put_u8(uint8_t *p, int32_t x) { *p = (uint8_t)x; }
INLINE void put_i64(int64_t *p, int64_t x) { *p = x; }
INLINE void put_f64(double *p, double x) { *p = x; }
