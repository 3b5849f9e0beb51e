/* move.c: mov, and choices between two values. */
#include "fakecuda/alu/lanes.h"

ALU_FOR_UNSIGNED(ALU_UNARY, mov, a)

/* An immediate that is not 0 is true: NVRTC writes -1. */
static void mov_pred(ALU_ARGS) {
    ALU_BEGIN(u32)
    ALU_EACH_LANE(active, d[i] = x[i] != 0);
}

#define SELP(t)                                                                                                        \
    static void selp_##t(ALU_ARGS) {                                                                                   \
        ALU_BEGIN(t)                                                                                                   \
        const Lane *y = src[1];                                                                                        \
        const uint32_t *p = src[2];                                                                                    \
        ALU_EACH_LANE(active, d[i] = (Unsigned)(p[i] ? x[i] : y[i]));                                                  \
    }
SELP(u16)
SELP(u32)
SELP(u64)

/* The selector is at least zero; NaN is not. */
#define SLCT(t)                                                                                                        \
    static void slct_##t(ALU_ARGS) {                                                                                   \
        ALU_BEGIN(t)                                                                                                   \
        const Lane *y = src[1];                                                                                        \
        const uint32_t *z = src[2];                                                                                    \
        bool is_float = op->from == PTX_F32, ftz = op->mods & ALU_FTZ;                                                 \
        ALU_EACH_LANE(active, bool subnormal = !(z[i] & 0x7f800000);                                                   \
                      bool zero = subnormal && (ftz || !(z[i] & 0x7fffff));                                            \
                      bool first = is_float ? alu_bits_f32(z[i]) >= 0 || zero : (int32_t)z[i] >= 0;                    \
                      d[i] = (Unsigned)(first ? x[i] : y[i]));                                                         \
    }
SLCT(u16)
SLCT(u32)
SLCT(u64)

#define MOVE(type, run)                                                                                                \
    { "mov", type, PTX_NONE, 0, 0, 0, 0, 0, "T=T", "move", run }
#define CHOOSE(type, size)                                                                                             \
    {"selp", type, PTX_NONE, 0, 0, 0, 0, 0, "T=TTP", "move", selp_##size},                                             \
        {"slct", type, PTX_S32, 0, 0, 0, 0, 0, "T=TTI", "move", slct_##size}, {                                        \
        "slct", type, PTX_F32, 0, 0, 0, 0, ALU_FTZ, "T=TTF", "move", slct_##size                                       \
    }
#define BOTH(type, size) MOVE(type, mov_##size), CHOOSE(type, size)

static const AluForm forms[] = {
    {"mov", PTX_PRED, PTX_NONE, 0, 0, 0, 0, 0, "P=P", "pred", mov_pred},
    BOTH(PTX_B16, u16),
    BOTH(PTX_U16, u16),
    BOTH(PTX_S16, u16),
    BOTH(PTX_B32, u32),
    BOTH(PTX_U32, u32),
    BOTH(PTX_S32, u32),
    BOTH(PTX_F32, u32),
    BOTH(PTX_B64, u64),
    BOTH(PTX_U64, u64),
    BOTH(PTX_S64, u64),
    BOTH(PTX_F64, u64),
};
ALU_FORMS(alu_forms_move, forms);
