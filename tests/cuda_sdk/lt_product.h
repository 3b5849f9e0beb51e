// lt_product.h: one product as cuBLASLt takes it, described as models have it: D[m][n] = A[m][k] B[k][n], row-major.
#ifndef AMP_TESTS_CUDA_SDK_LT_PRODUCT_H
#define AMP_TESTS_CUDA_SDK_LT_PRODUCT_H

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "cuda_sdk/cublaslt_api.h"

struct LtShape {
    int64_t m = 16, n = 8, k = 32;
    bool a_turned = false, b_turned = false; // A is stored as [k][m], B as [n][k]
    int type = LT_F16, out = LT_F32;
    bool tf32 = true; // of f32
    int32_t batch = 1;
    int64_t gap = 0;       // elements between the lines of each matrix
    bool beside = false;   // a line of each of the batch after the other, as heads are
    bool b_shared = false; // one B for all of the batch

    int64_t lines_a() const { return a_turned ? k : m; }
    int64_t lines_b() const { return b_turned ? n : k; }
    int64_t width_a() const { return a_turned ? m : k; }
    int64_t width_b() const { return b_turned ? k : n; }
    int64_t pitch_of(int64_t width) const { return (beside ? batch : 1) * width + gap; }
    int64_t pitch_a() const { return pitch_of(width_a()); }
    int64_t pitch_b() const { return b_shared ? width_b() + gap : pitch_of(width_b()); }
    int64_t pitch_d() const { return pitch_of(n); }
    int64_t stride_a() const { return beside ? width_a() : lines_a() * pitch_a(); }
    int64_t stride_b() const { return b_shared ? 0 : beside ? width_b() : lines_b() * pitch_b(); }
    int64_t stride_d() const { return beside ? n : m * pitch_d(); }
    int64_t size_a() const { return (beside ? 1 : batch) * lines_a() * pitch_a(); } // of all of the batch
    int64_t size_b() const { return (beside || b_shared ? 1 : batch) * lines_b() * pitch_b(); }
    int64_t size_d() const { return (beside ? 1 : batch) * m * pitch_d(); }
};

// Column-major: D^T = B^T A^T, so that B comes first.
class LtProduct {
  public:
    LtProduct(const CublasLtApi &lt, const LtShape &s, const void *bias = nullptr) : lt_(lt) {
        const int compute = s.type == LT_F32 && s.tf32 ? LT_COMPUTE_32F_TF32 : LT_COMPUTE_32F;
        EXPECT_EQ(LT_OK, lt.desc_create(&desc, compute, LT_F32));
        SetDesc(LT_DESC_TRANS_A, int32_t{s.b_turned ? LT_OP_T : LT_OP_N});
        SetDesc(LT_DESC_TRANS_B, int32_t{s.a_turned ? LT_OP_T : LT_OP_N});
        if (bias) SetDesc(LT_DESC_EPILOGUE, uint32_t{LT_EPILOGUE_BIAS}), SetDesc(LT_DESC_BIAS, bias);
        b = Layout(s, s.type, s.b_turned ? s.k : s.n, s.lines_b(), s.pitch_b(), s.stride_b());
        a = Layout(s, s.type, s.a_turned ? s.m : s.k, s.lines_a(), s.pitch_a(), s.stride_a());
        d = Layout(s, s.out, s.n, s.m, s.pitch_d(), s.stride_d());
        EXPECT_EQ(LT_OK, lt.preference_create(&preference));
        for (int i = LT_PREFER_ALIGN_A; i <= LT_PREFER_ALIGN_D; i++) SetPreference(i, uint32_t{16});
    }
    ~LtProduct() {
        for (CublasLtLayout layout : {a, b, d}) EXPECT_EQ(LT_OK, lt_.layout_destroy(layout));
        EXPECT_EQ(LT_OK, lt_.desc_destroy(desc));
        EXPECT_EQ(LT_OK, lt_.preference_destroy(preference));
    }
    LtProduct(const LtProduct &) = delete;

    template <class T> void SetDesc(int attribute, T value) {
        EXPECT_EQ(LT_OK, lt_.desc_set(desc, attribute, &value, sizeof value));
    }
    template <class T> void SetPreference(int attribute, T value) {
        EXPECT_EQ(LT_OK, lt_.preference_set(preference, attribute, &value, sizeof value));
    }
    // What the heuristic gives, with what it says itself does not work.
    CublasLtResult Ask(CublasLtHandle handle, std::vector<CublasLtFound> *found, uint64_t workspace = 0) {
        int count = 0;
        SetPreference(LT_PREFER_WORKSPACE, workspace);
        found->resize(16);
        const CublasLtResult result = lt_.heuristic(handle, desc, b, a, d, d, preference, 16, found->data(), &count);
        found->resize(static_cast<size_t>(count));
        return result;
    }
    // C is D.
    CublasLtResult Run(CublasLtHandle handle, const CublasLtAlgo &algo, uint64_t at_a, uint64_t at_b, uint64_t at_d,
                       void *stream, float beta = 0, uint64_t workspace = 0, size_t bytes = 0) {
        const float alpha = 1;
        return lt_.matmul(handle, desc, &alpha, At(at_b), b, At(at_a), a, &beta, At(at_d), d, At(at_d), d, &algo,
                          At(workspace), bytes, stream);
    }
    static void *At(uint64_t address) { return reinterpret_cast<void *>(static_cast<uintptr_t>(address)); }

    CublasLtDesc desc = nullptr;
    CublasLtLayout a = nullptr, b = nullptr, d = nullptr;
    CublasLtPreference preference = nullptr;

  private:
    CublasLtLayout Layout(const LtShape &s, int type, int64_t rows, int64_t columns, int64_t ld, int64_t stride) {
        CublasLtLayout layout = nullptr;
        EXPECT_EQ(LT_OK,
                  lt_.layout_create(&layout, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), ld));
        EXPECT_EQ(LT_OK, lt_.layout_set(layout, LT_LAYOUT_BATCH, &s.batch, sizeof s.batch));
        EXPECT_EQ(LT_OK, lt_.layout_set(layout, LT_LAYOUT_STRIDE, &stride, sizeof stride));
        return layout;
    }
    const CublasLtApi &lt_;
};

#endif
