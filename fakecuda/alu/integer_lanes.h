/* integer_lanes.h: makes one function over all lanes for each integer type.  An expression sees its operands as a, b
 * and c_ of the type |Type| and may use |Unsigned|, of the same width, and |Wide|, of twice the width. */
#ifndef FAKECUDA_ALU_INTEGER_LANES_H
#define FAKECUDA_ALU_INTEGER_LANES_H

#include "fakecuda/alu/inside.h"

__extension__ typedef __int128 AluS128;
__extension__ typedef unsigned __int128 AluU128;

#define ALU_LANE_u16 uint32_t
#define ALU_LANE_s16 uint32_t
#define ALU_LANE_u32 uint32_t
#define ALU_LANE_s32 uint32_t
#define ALU_LANE_u64 uint64_t
#define ALU_LANE_s64 uint64_t
#define ALU_TYPE_u16                                                                                                   \
    typedef uint16_t Type, Unsigned;                                                                                   \
    typedef uint32_t Wide
#define ALU_TYPE_s16                                                                                                   \
    typedef int16_t Type;                                                                                              \
    typedef uint16_t Unsigned;                                                                                         \
    typedef int32_t Wide
#define ALU_TYPE_u32                                                                                                   \
    typedef uint32_t Type, Unsigned;                                                                                   \
    typedef uint64_t Wide
#define ALU_TYPE_s32                                                                                                   \
    typedef int32_t Type;                                                                                              \
    typedef uint32_t Unsigned;                                                                                         \
    typedef int64_t Wide
#define ALU_TYPE_u64                                                                                                   \
    typedef uint64_t Type, Unsigned;                                                                                   \
    typedef AluU128 Wide
#define ALU_TYPE_s64                                                                                                   \
    typedef int64_t Type;                                                                                              \
    typedef uint64_t Unsigned;                                                                                         \
    typedef AluS128 Wide
#define ALU_PTX_u16 PTX_U16
#define ALU_PTX_s16 PTX_S16
#define ALU_PTX_u32 PTX_U32
#define ALU_PTX_s32 PTX_S32
#define ALU_PTX_u64 PTX_U64
#define ALU_PTX_s64 PTX_S64

#define ALU_BEGIN(t)                                                                                                   \
    ALU_TYPE_##t;                                                                                                      \
    typedef ALU_LANE_##t Lane;                                                                                         \
    enum { BITS = sizeof(Type) * 8 };                                                                                  \
    (void)sizeof(Wide), (void)sizeof(Unsigned), (void)BITS, ALU_UNUSED;                                                \
    Lane *d = (Lane *)dst[0];                                                                                          \
    const Lane *x = (const Lane *)src[0];

#define ALU_UNARY(name, t, ...)                                                                                        \
    static void name##_##t(ALU_ARGS) {                                                                                 \
        ALU_BEGIN(t)                                                                                                   \
        ALU_EACH_LANE(active, Type a = (Type)x[i]; d[i] = (Unsigned)(__VA_ARGS__));                                    \
    }
#define ALU_BINARY(name, t, ...)                                                                                       \
    static void name##_##t(ALU_ARGS) {                                                                                 \
        ALU_BEGIN(t)                                                                                                   \
        const Lane *y = (const Lane *)src[1];                                                                          \
        ALU_EACH_LANE(active, Type a = (Type)x[i]; Type b = (Type)y[i]; d[i] = (Unsigned)(__VA_ARGS__));               \
    }
#define ALU_TERNARY(name, t, ...)                                                                                      \
    static void name##_##t(ALU_ARGS) {                                                                                 \
        ALU_BEGIN(t)                                                                                                   \
        const Lane *y = (const Lane *)src[1], *z = (const Lane *)src[2];                                               \
        ALU_EACH_LANE(active, Type a = (Type)x[i]; Type b = (Type)y[i]; Type c_ = (Type)z[i];                          \
                      d[i] = (Unsigned)(__VA_ARGS__));                                                                 \
    }
/* The second operand is a .u32, whatever the type. */
#define ALU_SHIFT(name, t, ...)                                                                                        \
    static void name##_##t(ALU_ARGS) {                                                                                 \
        ALU_BEGIN(t)                                                                                                   \
        const uint32_t *y = (const uint32_t *)src[1];                                                                  \
        ALU_EACH_LANE(active, Type a = (Type)x[i]; uint32_t b = y[i]; d[i] = (Unsigned)(__VA_ARGS__));                 \
    }

#define ALU_FOR_SIGNED(M, name, ...) M(name, s16, __VA_ARGS__) M(name, s32, __VA_ARGS__) M(name, s64, __VA_ARGS__)
#define ALU_FOR_UNSIGNED(M, name, ...) M(name, u16, __VA_ARGS__) M(name, u32, __VA_ARGS__) M(name, u64, __VA_ARGS__)
#define ALU_FOR_INTEGERS(M, name, ...) ALU_FOR_SIGNED(M, name, __VA_ARGS__) ALU_FOR_UNSIGNED(M, name, __VA_ARGS__)

#endif
