/* moments.h: loads and stores of moments of 8 bits, with the codes of functions.h. */
#define DEFINE_F8(name)                                                                                                \
    INLINE vf load_##name(const uint8_t *p) { return number_##name##_vi(load_u8(p)); }                                 \
    INLINE void store_##name(uint8_t *p, vf v) { store_u8(p, code_##name##_vf(v)); }                                   \
    INLINE float get_##name(const uint8_t *p) { return number_##name##_vi(splat_i(*p))[0]; }                           \
    INLINE void put_##name(uint8_t *p, float x) { *p = (uint8_t)code_##name##_vf(splat_f(x))[0]; }                     \
    DEFINE_PARTS(name, uint8_t, vf)

DEFINE_F8(f8m)
DEFINE_F8(f8v)
