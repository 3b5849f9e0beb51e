/* data_column.c: see data_column.h. */
#include "tools/amprun/data/data_column.h"

#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/random.h"
#include "base/rounding.h"

bool column_is_float(amp_dtype t) { return t == AMP_DT_F32 || t == AMP_DT_F16 || t == AMP_DT_BF16; }

bool column_reaches(amp_dtype t, double v) {
    return fabs(v) < (t == AMP_DT_F16 ? 65520 : t == AMP_DT_BF16 ? 0x1.ffp127 : 0x1.ffffffp127);
}

int64_t column_elements(const amp_tensor_info *info) {
    int64_t count = 1;
    for (int i = 1; i < info->rank; i++) count *= info->dims[i];
    return count;
}

int column_new(Dataset *d, const amp_tensor_info *info, int64_t samples, const char *from) {
    Column *c = &d->column[d->columns];
    *c = (Column){.name = info->name, .dtype = info->dtype, .elements = column_elements(info)};
    if (!column_is_float(c->dtype) && c->dtype != AMP_DT_I32 && c->dtype != AMP_DT_I64 && c->dtype != AMP_DT_U8)
        return report_text("%s: the model's input %s is %s, which is not fed from files", from, info->name,
                           amp_dtype_name(c->dtype));
    c->sample_bytes = (size_t)c->elements * amp_dtype_size(c->dtype);
    d->columns++;
    d->count = samples;
    return 0;
}

int column_allocate(const Dataset *d, Column *c, const char *from) {
    c->data = c->owned = malloc((size_t)c->elements * amp_dtype_size(c->dtype) * (size_t)d->count + 1);
    return c->data ? 0 : report_text("%s: no memory for %lld samples of %s", from, (long long)d->count, c->name);
}

bool column_store(Column *c, int64_t at, double v) {
    switch (c->dtype) {
    case AMP_DT_F32: ((float *)c->owned)[at] = (float)v; return true;
    case AMP_DT_F16: ((uint16_t *)c->owned)[at] = amp_f32_to_f16((float)v); return true;
    case AMP_DT_BF16: ((uint16_t *)c->owned)[at] = amp_f32_to_bf16((float)v); return true;
    case AMP_DT_I32:
        if (!(v >= -2147483648.0 && v <= 2147483647.0) || v != floor(v)) return false;
        ((int32_t *)c->owned)[at] = (int32_t)v;
        return true;
    case AMP_DT_I64:
        if (!(v >= -9007199254740992.0 && v <= 9007199254740992.0) || v != floor(v)) return false;
        ((int64_t *)c->owned)[at] = (int64_t)v;
        return true;
    case AMP_DT_U8:
        if (!(v >= 0 && v <= 255) || v != floor(v)) return false;
        ((uint8_t *)c->owned)[at] = (uint8_t)v;
        return true;
    default: return false;
    }
}

void shuffle_part(int64_t *order, int64_t from, int64_t to, uint64_t seed, int64_t epoch) {
    uint32_t path = amp_hash32("data.shuffle");
    for (int64_t i = to - 1; i > from; i--) {
        uint64_t word = amp_random_u32(seed, path, (uint32_t)epoch, 0, (uint64_t)i);
        int64_t j = from + (int64_t)((word * (uint64_t)(i - from + 1)) >>
                                     32); /* Lemire 2019, without the rejection: the bias is below 2^-16 */
        int64_t swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}

void shuffle(int64_t *order, int64_t count, uint64_t seed, int64_t epoch) {
    for (int64_t i = 0; i < count; i++) order[i] = i;
    shuffle_part(order, 0, count, seed, epoch);
}
