/* types.c: see types.h. */
#include "precision/types.h"

/* torch.promote_types: f16 and bf16 promote to f32. */
static Dtype wider(Dtype a, Dtype b) { return a == AMP_DT_NONE || a == b ? b : AMP_DT_F32; }

/* The widest dtype of the float operands.  |by_rank|: a tensor of rank 0 does not raise one that has dimensions. */
static OpTypes widest_of(const Operand *operands, int count, bool by_rank) {
    Dtype t = AMP_DT_NONE;
    int forced_by = -1;
    bool has_dims = false;
    for (int i = 0; i < count; i++) has_dims = has_dims || (operands[i].is_castable && operands[i].has_dims);
    for (int i = 0; i < count; i++) {
        if (!operands[i].is_castable || (by_rank && has_dims && !operands[i].has_dims)) continue;
        Dtype before = t;
        t = wider(t, operands[i].dtype);
        if (t != before) forced_by = i;
    }
    if (t == AMP_DT_NONE) t = AMP_DT_F32;
    return (OpTypes){t, t, t, forced_by};
}

static OpTypes all_in(Dtype t) { return (OpTypes){t, t, t, -1}; }

/* A product needs equal factors: mixed ones are read in the widest type. */
static OpTypes as_it_is(const Operand *operands, int factors) {
    bool mixed = false;
    for (int i = 1; i < factors; i++) mixed = mixed || operands[i].dtype != operands[0].dtype;
    return (OpTypes){AMP_DT_NONE, mixed ? AMP_DT_F32 : AMP_DT_NONE, AMP_DT_F32, -1};
}

/* The dtype of the first float operand. */
static OpTypes first_of(const Operand *operands, int count, int factors) {
    OpTypes types = as_it_is(operands, factors);
    for (int i = 0; i < count && types.forced_by < 0; i++) {
        if (!operands[i].is_castable) continue;
        types.out = operands[i].dtype;
        types.forced_by = i;
    }
    return types;
}

OpTypes op_types(PolicyClass op_class, Dtype low, const Operand *operands, int count, int factors) {
    switch (op_class) {
    case POLICY_LOWER: return low == AMP_DT_TF32 ? (OpTypes){AMP_DT_F32, AMP_DT_TF32, AMP_DT_F32, -1} : all_in(low);
    case POLICY_F32_OUT: return as_it_is(operands, factors);
    case POLICY_WIDEST: return widest_of(operands, count, false);
    case POLICY_FIRST: return first_of(operands, count, factors);
    case POLICY_FOLLOW: return widest_of(operands, count, true);
    default: return all_in(AMP_DT_F32);
    }
}
