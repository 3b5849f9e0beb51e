/* alu.h: what arithmetic instructions do to the lanes of a warp, as NVIDIA's PTX ISA document defines them.  Pure
 * functions: no memory, no control flow, no warp state beyond the operands.
 *
 * A register is an array of 32 lanes.  Predicates, 8-, 16- and 32-bit registers: uint32_t[32] (shorter values
 * zero-extended, predicates 0 or 1); 64-bit registers: uint64_t[32]; aligned to 32 bytes.  f32 and f64 are their
 * bits. */
#ifndef FAKECUDA_ALU_ALU_H
#define FAKECUDA_ALU_ALU_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ALU_LANES = 32 };

typedef struct AluContext {
    int arch; /* 75, 80, 86, 89, 90, 120: decides what exists, and how tensor cores add */
    /* Of the errors that approximate instructions make within their documented bound; the same operand always gives the
     * same result. */
    uint64_t seed;
    bool exact; /* products of matrices: exact sums over all of K and the accumulator, rounded once, to nearest */
} AluContext;

typedef struct AluOp AluOp;

/* Writes the lanes of |active| of dst[0] (and dst[1], of `setp p|q` and of a carry); dst[1] may be NULL.  Operands may
 * be the destination itself.  Sources wider than the instruction's type are chopped.  Bits above |dst_bits| of a lane
 * are 0. */
typedef void AluFn(const AluContext *c, const AluOp *op, void *const dst[2], const void *const src[4], uint32_t active);

struct AluOp {
    AluFn *run;
    int sources; /* operands, in the order of the instruction, with the predicates of setp.and and slct's selector */
    uint8_t source_bytes[4]; /* 4 or 8: lanes of each operand; immediates are made into lanes of this width */
    bool source_is_float[4]; /* a 0f.. or 0d.. immediate is meant as its bits */
    uint8_t dst_bytes[2];    /* 4 or 8; 0: no such result */
    /* Of the first result's type; a register that is wider gets it extended: by its sign where |dst_signed|, else by
     * zeros. */
    uint8_t dst_bits;
    bool dst_signed;
    /* The carry flag, lanes of 4 bytes, 0 or 1: read from src[3], written to dst[1]; no operand of the instruction and
     * not in |sources|. */
    bool carry_in, carry_out;
    uint8_t flops;    /* of each lane: f32, f64, f16 fma 2, add and mul 1; f16x2 twice that */
    const char *kind; /* for counting: "int", "f32", "f64", "f16", "cvt", "special", "pred", "move" */
    /* what |run| reads: types (PtxType), rounding and modifiers of this instruction */
    uint8_t type, from, rounding, compare, combine;
    uint32_t mods;
    uint32_t salt; /* of the errors of approximate instructions */
};

/* By opcode with modifiers ("cvt.rn.f16x2.f32", "setp.lt.and.f32", "mad.wide.s32", "selp.f32", "prmt.b32.f4e",
 * "mov.b32"): every one of ptx.md's list and what the document defines beside it.  0: found.  -1: not known.  -2:
 * known, but |c->arch| or PTX has no such form: |why| says what (static text). */
int alu_find(const AluContext *c, const char *full, AluOp *out, const char **why);

/* ---- tensor cores ------------------------------------------------------------------------------------------------ */

typedef struct AluMma {
    int m, n, k;
    uint8_t a_regs, b_regs, c_regs, d_regs; /* 32-bit registers per lane */
    void (*run)(const AluContext *c, const struct AluMma *mma, uint32_t *const d[], const uint32_t *const a[],
                const uint32_t *const b[],
                const uint32_t *const acc[]); /* arrays of registers, each of 32 lanes; all lanes take part */
    int a_type, b_type, c_type, d_type;       /* PtxType */
} AluMma;
/* "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"; results as alu_find. */
int alu_find_mma(const AluContext *c, const char *full, AluMma *out, const char **why);

/* ---- parts that others need -------------------------------------------------------------------------------------- */

float alu_f16_to_f32(uint16_t h);
uint16_t alu_f32_to_f16(float x); /* nearest, ties to even; NaN 0x7fff */
float alu_bf16_to_f32(uint16_t h);
uint16_t alu_f32_to_bf16(float x);

#ifdef __cplusplus
}
#endif
#endif
