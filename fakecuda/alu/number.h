/* number.h: exact arithmetic on floating-point numbers of any format, with one rounding at the end, in every
 * direction. */
#ifndef FAKECUDA_ALU_NUMBER_H
#define FAKECUDA_ALU_NUMBER_H

#include "fakecuda/alu/inside.h"

__extension__ typedef unsigned __int128 AluWide;

typedef struct AluFormat {
    int bits;     /* of a value */
    int digits;   /* binary, with the leading one */
    int emin;     /* exponent of the smallest normal number; the largest is 1 - emin */
    uint64_t nan; /* the canonical one */
} AluFormat;
extern const AluFormat alu_f16, alu_bf16, alu_f32, alu_f64;

/* The format of the elements of a type and how many a register holds; NULL: not a floating-point type. */
const AluFormat *alu_format(int type, int *parts);

typedef enum AluClass { ALU_ZERO, ALU_NUMBER_, ALU_INF, ALU_NOT_A_NUMBER } AluClass;

/* (-1)^negative * sig * 2^exp.  Where bits were lost below, the last bit of |sig| is 1 and is far below what any
 * format keeps ("sticky"). */
typedef struct AluValue {
    AluClass class_;
    bool negative;
    int exp;
    AluWide sig;
} AluValue;

AluValue alu_unpack(const AluFormat *f, uint64_t bits, uint32_t mods); /* ALU_FTZ: subnormal numbers are zeros */
uint64_t alu_pack(const AluFormat *f, AluValue v, AluRounding rounding,
                  uint32_t mods); /* ALU_FTZ, ALU_SAT, ALU_SATFINITE, ALU_RELU */
AluValue alu_from_integer(AluWide magnitude, bool negative);
AluValue alu_from_double(double x);
AluValue alu_to_integer(AluValue v, AluRounding rounding); /* rounded to a whole number: exp 0 where it fits 127 bits */

AluValue alu_add(AluValue a, AluValue b, AluRounding rounding); /* |rounding|: of the sign of x - x */
AluValue alu_mul(AluValue a, AluValue b);                       /* factors of at most 64 bits */
AluValue alu_div(AluValue a, AluValue b);
AluValue alu_sqrt(AluValue a);
AluValue alu_negate(AluValue a);

#endif
