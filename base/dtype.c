/* dtype.c: names and sizes of the element types; the precisions built on them. */
#include "base/dtype.h"

#include <string.h>

static const struct Dtype {
    const char *name;
    size_t size;
} dtypes[] = {
    [AMP_DT_NONE] = {"none", 0}, [AMP_DT_F32] = {"f32", 4},   [AMP_DT_F16] = {"f16", 2}, [AMP_DT_BF16] = {"bf16", 2},
    [AMP_DT_TF32] = {"tf32", 4}, [AMP_DT_F64] = {"f64", 8},   [AMP_DT_I32] = {"i32", 4}, [AMP_DT_I64] = {"i64", 8},
    [AMP_DT_U8] = {"u8", 1},     [AMP_DT_BOOL] = {"bool", 1},
};

static const struct Dtype *dtype_entry(amp_dtype dtype) {
    size_t i = (size_t)dtype;
    return &dtypes[i < sizeof dtypes / sizeof *dtypes ? i : AMP_DT_NONE];
}

const char *amp_dtype_name(amp_dtype dtype) { return dtype_entry(dtype)->name; }

size_t amp_dtype_size(amp_dtype dtype) { return dtype_entry(dtype)->size; }

const amp_precision amp_precisions[AMP_PRECISION_COUNT] = {
    {"fp16", AMP_DT_F16},
    {"bf16", AMP_DT_BF16},
    {"tf32", AMP_DT_TF32},
    {AMP_FULL_PRECISION, AMP_DT_F32},
};

const amp_precision *amp_precision_find(const char *word) {
    for (int i = 0; i < AMP_PRECISION_COUNT; i++)
        if (!strcmp(amp_precisions[i].word, word)) return &amp_precisions[i];
    return NULL;
}

const char *amp_precision_word(amp_dtype low) {
    for (int i = 0; i < AMP_PRECISION_COUNT; i++)
        if (amp_precisions[i].low == low) return amp_precisions[i].word;
    return AMP_FULL_PRECISION;
}

bool amp_low_type_of(const char *name, amp_dtype *low) {
    for (int i = 0; i < AMP_PRECISION_COUNT; i++) {
        if (strcmp(amp_dtype_name(amp_precisions[i].low), name)) continue;
        if (low) *low = amp_precisions[i].low;
        return true;
    }
    return false;
}
