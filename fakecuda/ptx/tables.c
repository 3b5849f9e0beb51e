/* tables.c: the words for types and special registers. */
#include <string.h>

#include "fakecuda/ptx/parser.h"

static const struct {
    const char *name;
    int bytes;
} types[PTX_TYPE_COUNT] = {
    [PTX_NONE] = {"", 0},       [PTX_PRED] = {"pred", 0}, [PTX_B8] = {"b8", 1},         [PTX_B16] = {"b16", 2},
    [PTX_B32] = {"b32", 4},     [PTX_B64] = {"b64", 8},   [PTX_B128] = {"b128", 16},    [PTX_U8] = {"u8", 1},
    [PTX_U16] = {"u16", 2},     [PTX_U32] = {"u32", 4},   [PTX_U64] = {"u64", 8},       [PTX_S8] = {"s8", 1},
    [PTX_S16] = {"s16", 2},     [PTX_S32] = {"s32", 4},   [PTX_S64] = {"s64", 8},       [PTX_F16] = {"f16", 2},
    [PTX_F16X2] = {"f16x2", 4}, [PTX_BF16] = {"bf16", 2}, [PTX_BF16X2] = {"bf16x2", 4}, [PTX_TF32] = {"tf32", 4},
    [PTX_F32] = {"f32", 4},     [PTX_F64] = {"f64", 8},
};

int ptx_type_bytes(PtxType t) { return types[t].bytes; }

const char *ptx_type_name(PtxType t) { return types[t].name; }

PtxType type_named(const char *word) {
    for (int t = PTX_NONE + 1; t < PTX_TYPE_COUNT; t++)
        if (!strcmp(types[t].name, word)) return (PtxType)t;
    return PTX_NONE;
}

static const char *const specials[PTX_SPECIAL_COUNT] = {
    [PTX_TID_X] = "%tid.x",
    [PTX_TID_Y] = "%tid.y",
    [PTX_TID_Z] = "%tid.z",
    [PTX_NTID_X] = "%ntid.x",
    [PTX_NTID_Y] = "%ntid.y",
    [PTX_NTID_Z] = "%ntid.z",
    [PTX_CTAID_X] = "%ctaid.x",
    [PTX_CTAID_Y] = "%ctaid.y",
    [PTX_CTAID_Z] = "%ctaid.z",
    [PTX_NCTAID_X] = "%nctaid.x",
    [PTX_NCTAID_Y] = "%nctaid.y",
    [PTX_NCTAID_Z] = "%nctaid.z",
    [PTX_LANEID] = "%laneid",
    [PTX_WARPID] = "%warpid",
    [PTX_NWARPID] = "%nwarpid",
    [PTX_SMID] = "%smid",
    [PTX_NSMID] = "%nsmid",
    [PTX_GRIDID] = "%gridid",
    [PTX_LANEMASK_EQ] = "%lanemask_eq",
    [PTX_LANEMASK_LE] = "%lanemask_le",
    [PTX_LANEMASK_LT] = "%lanemask_lt",
    [PTX_LANEMASK_GE] = "%lanemask_ge",
    [PTX_LANEMASK_GT] = "%lanemask_gt",
    [PTX_CLOCK] = "%clock",
    [PTX_CLOCK64] = "%clock64",
    [PTX_CLOCK_HI] = "%clock_hi",
    [PTX_GLOBALTIMER] = "%globaltimer",
    [PTX_DYNAMIC_SMEM_SIZE] = "%dynamic_smem_size",
    [PTX_TOTAL_SMEM_SIZE] = "%total_smem_size",
    [PTX_CLUSTER_CTARANK] = "%cluster_ctarank",
    [PTX_CLUSTER_NCTARANK] = "%cluster_nctarank",
    [PTX_CLUSTERID_X] = "%clusterid.x",
    [PTX_CLUSTER_CTAID_X] = "%cluster_ctaid.x",
};

int special_named(const char *word) {
    if (word[0] != '%') return -1;
    for (int s = 0; s < PTX_SPECIAL_COUNT; s++)
        if (!strcmp(specials[s], word)) return s;
    return -1;
}
