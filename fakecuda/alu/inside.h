/* inside.h: what the files of alu/ share: modifiers, the table of forms, lanes, and numbers of any floating-point
 * format. */
#ifndef FAKECUDA_ALU_INSIDE_H
#define FAKECUDA_ALU_INSIDE_H

#include "fakecuda/alu/alu.h"
#include "fakecuda/ptx/ptx.h"

#include <string.h>

/* ---- modifiers --------------------------------------------------------------------------------------------------- */

/* Types of a few instructions only, which ptx.h does not name. */
enum { ALU_U16X2 = PTX_TYPE_COUNT, ALU_S16X2, ALU_F32X2, ALU_TYPE_COUNT };

typedef enum AluRounding { /* to an integer .rni .. .rpi is nearest .. up too: |type| says which is meant */
                           ALU_NO_ROUNDING,
                           ALU_NEAREST,
                           ALU_TO_ZERO,
                           ALU_DOWN,
                           ALU_UP,
                           ALU_NEAREST_AWAY,
                           ALU_INT_NEAREST,
                           ALU_INT_TO_ZERO,
                           ALU_INT_DOWN,
                           ALU_INT_UP,
} AluRounding;

enum { /* sets of roundings that a form allows: bit r is rounding r */
       ALU_R_NONE = 1 << ALU_NO_ROUNDING,
       ALU_R_NEAREST = 1 << ALU_NEAREST,
       ALU_R_FLOAT = 1 << ALU_NEAREST | 1 << ALU_TO_ZERO | 1 << ALU_DOWN | 1 << ALU_UP,
       ALU_R_FLOAT2 = 1 << ALU_NEAREST | 1 << ALU_TO_ZERO,
       ALU_R_AWAY = 1 << ALU_NEAREST_AWAY,
       ALU_R_INTEGER = 1 << ALU_INT_NEAREST | 1 << ALU_INT_TO_ZERO | 1 << ALU_INT_DOWN | 1 << ALU_INT_UP,
};

enum { /* AluOp.mods */
       ALU_FTZ = 1 << 0,
       ALU_SAT = 1 << 1,
       ALU_SATFINITE = 1 << 2,
       ALU_RELU = 1 << 3,
       ALU_APPROX = 1 << 4,
       ALU_FULL = 1 << 5,
       ALU_LO = 1 << 6,
       ALU_HI = 1 << 7,
       ALU_WIDE = 1 << 8,
       ALU_CC = 1 << 9,
       ALU_SHIFTAMT = 1 << 10,
       ALU_WRAP = 1 << 11,
       ALU_CLAMP = 1 << 12,
       ALU_LEFT = 1 << 13,
       ALU_RIGHT = 1 << 14,
       ALU_NAN = 1 << 15,
       ALU_XORSIGN = 1 << 16,
       ALU_ABS = 1 << 17,
       ALU_PACK = 1 << 18,
       ALU_COMPARE = 1 << 19,   /* any of AluCompare is there */
       ALU_COMBINE = 1 << 20,   /* .and .or .xor */
       ALU_MODE = 1 << 21,      /* any of AluMode is there */
       ALU_ORDER = 1 << 24,     /* .lt .le .gt .ge: not of bits */
       ALU_FLOATS = 1 << 22,    /* .equ .. .nan: comparisons of floating-point numbers only */
       ALU_UNSIGNEDS = 1 << 23, /* .ls .hs */
};

typedef enum AluCompare {
    ALU_EQ,
    ALU_NE,
    ALU_LT,
    ALU_LE,
    ALU_GT,
    ALU_GE,
    ALU_LS,
    ALU_HS, /* .lo and .hi are the modifiers of mul too */
    ALU_EQU,
    ALU_NEU,
    ALU_LTU,
    ALU_LEU,
    ALU_GTU,
    ALU_GEU,
    ALU_NUM,
    ALU_ISNAN,
} AluCompare;

typedef enum AluCombine { ALU_AND = 1, ALU_OR, ALU_XOR } AluCombine;

typedef enum AluMode { /* of prmt and of testp; in AluOp.compare */
                       ALU_F4E = 1,
                       ALU_B4E,
                       ALU_RC8,
                       ALU_ECL,
                       ALU_ECR,
                       ALU_RC16,
                       ALU_FINITE,
                       ALU_INFINITE,
                       ALU_NUMBER,
                       ALU_NOTANUMBER,
                       ALU_NORMAL,
                       ALU_SUBNORMAL,
} AluMode;

/* ---- the table of forms ------------------------------------------------------------------------------------------ */

/* One form of an instruction.  Several may share the opcode; the first that fits is taken. */
typedef struct AluForm {
    const char *opcode;
    uint8_t type, from;     /* the types at the end of the name: first, second (PTX_NONE: only one) */
    uint8_t arch;           /* lowest; 0: all */
    uint8_t flops;          /* per element */
    uint16_t roundings;     /* ALU_R_..; 0: as ALU_R_NONE */
    uint32_t needs, allows; /* modifiers that must be there; that may be there beside those */
    /* "result=operands": T of |type|, F of |from|, W twice as wide as |type|, I 32 bits, P a predicate, C the 32 bits
     * that cvt.pack adds to; "T|P=": a predicate is a second result; "=TT+": the carry flag comes in */
    const char *operands;
    const char *kind;
    AluFn *run;
} AluForm;

typedef struct AluForms {
    const AluForm *forms;
    int count;
} AluForms;
#define ALU_FORMS(name, table) const AluForms name = {table, (int)(sizeof(table) / sizeof((table)[0]))}

extern const AluForms alu_forms_integer, alu_forms_multiply, alu_forms_bits, alu_forms_float, alu_forms_minmax,
    alu_forms_compare, alu_forms_convert, alu_forms_approx, alu_forms_move;

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

/* Runs the body for each active lane |i|.  The loop over all lanes is one that the compiler can vectorise: an operand
 * is either apart from the result or is the result. */
#define ALU_EACH_LANE(active, ...)                                                                                     \
    do {                                                                                                               \
        if ((active) == 0xffffffffu) {                                                                                 \
            _Pragma("GCC ivdep") for (int i = 0; i < ALU_LANES; ++i) { __VA_ARGS__; }                                  \
        } else {                                                                                                       \
            for (uint32_t rest_ = (active); rest_; rest_ &= rest_ - 1) {                                               \
                int i = __builtin_ctz(rest_);                                                                          \
                __VA_ARGS__;                                                                                           \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

#define ALU_ARGS const AluContext *c, const AluOp *op, void *const dst[2], const void *const src[4], uint32_t active
#define ALU_UNUSED ((void)c, (void)op)

static inline float alu_bits_f32(uint32_t x) {
    float f;
    memcpy(&f, &x, sizeof f);
    return f;
}
static inline uint32_t alu_f32_bits(float f) {
    uint32_t x;
    memcpy(&x, &f, sizeof x);
    return x;
}
static inline double alu_bits_f64(uint64_t x) {
    double f;
    memcpy(&f, &x, sizeof f);
    return f;
}
static inline uint64_t alu_f64_bits(double f) {
    uint64_t x;
    memcpy(&x, &f, sizeof x);
    return x;
}

#define ALU_NAN_F32 0x7fffffffu
#define ALU_NAN_F64 0xfff8000000000000ull

int alu_type_bits(int type); /* 32 for f16x2 */
bool alu_type_is_signed(int type);
bool alu_type_is_float(int type);

#endif
