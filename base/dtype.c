/* dtype.c: names and sizes of the element types. */
#include "amp/base.h"

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
