// dtype_test.cc: names and sizes of the element types.
#include <gtest/gtest.h>

#include <iterator>

#include "amp/base.h"
#include "base/dtypes.h"

TEST(Dtype, NamesAndSizes) {
    const struct {
        amp_dtype dtype;
        const char *name;
        size_t size;
    } table[] = {
        {AMP_DT_NONE, "none", 0}, {AMP_DT_F32, "f32", 4},   {AMP_DT_F16, "f16", 2}, {AMP_DT_BF16, "bf16", 2},
        {AMP_DT_TF32, "tf32", 4}, {AMP_DT_F64, "f64", 8},   {AMP_DT_I32, "i32", 4}, {AMP_DT_I64, "i64", 8},
        {AMP_DT_U8, "u8", 1},     {AMP_DT_BOOL, "bool", 1}, {AMP_DT_F8M, "f8m", 1}, {AMP_DT_F8V, "f8v", 1},
    };
    EXPECT_EQ(std::size(table), size_t(AMP_DTYPES));
    for (const auto &row : table) {
        EXPECT_STREQ(amp_dtype_name(row.dtype), row.name);
        EXPECT_EQ(amp_dtype_size(row.dtype), row.size);
    }
}

TEST(Dtype, UnknownNumbers) {
    for (int number : {-1, int(AMP_DTYPES), 15}) {
        EXPECT_STREQ(amp_dtype_name(static_cast<amp_dtype>(number)), "none");
        EXPECT_EQ(amp_dtype_size(static_cast<amp_dtype>(number)), 0u);
        EXPECT_EQ(amp_storage_size(uint32_t(number)), 0u);
        EXPECT_EQ(amp_class_of(uint32_t(number)), AMP_CLASS_NONE);
    }
}

TEST(Dtype, WhatIsStoredAndHandedOut) {
    EXPECT_EQ(amp_storage_size(AMP_DT_BOOL), 4u);
    EXPECT_EQ(amp_storage_size(AMP_DT_F8V), 1u);
    for (uint32_t t : {AMP_DT_F32, AMP_DT_F16, AMP_DT_BF16, AMP_DT_TF32, AMP_DT_F8M, AMP_DT_F8V})
        EXPECT_EQ(amp_readable_dtype(t), AMP_DT_F32) << t;
    for (uint32_t t : {AMP_DT_F64, AMP_DT_I32, AMP_DT_I64, AMP_DT_U8, AMP_DT_BOOL}) EXPECT_EQ(amp_readable_dtype(t), t);
}
