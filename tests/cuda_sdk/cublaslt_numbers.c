/* cublaslt_numbers.c: our declarations of cuBLASLt against NVIDIA's header; compiled where that is installed. */
#include <cublasLt.h>

#include "cuda_sdk/cublaslt_api.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME(LT_OK, CUBLAS_STATUS_SUCCESS);
SAME(LT_NOT_INITIALIZED, CUBLAS_STATUS_NOT_INITIALIZED);
SAME(LT_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED);
SAME(LT_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE);
SAME(LT_ARCH_MISMATCH, CUBLAS_STATUS_ARCH_MISMATCH);
SAME(LT_EXECUTION_FAILED, CUBLAS_STATUS_EXECUTION_FAILED);
SAME(LT_INTERNAL_ERROR, CUBLAS_STATUS_INTERNAL_ERROR);
SAME(LT_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(LT_MAJOR, MAJOR_VERSION);
SAME(LT_MINOR, MINOR_VERSION);
SAME(LT_F32, CUDA_R_32F);
SAME(LT_F16, CUDA_R_16F);
SAME(LT_BF16, CUDA_R_16BF);
SAME(LT_COMPUTE_32F, CUBLAS_COMPUTE_32F);
SAME(LT_COMPUTE_32F_TF32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(LT_OP_N, CUBLAS_OP_N);
SAME(LT_OP_T, CUBLAS_OP_T);
SAME(LT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_DEFAULT);
SAME(LT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BIAS);
SAME(LT_DESC_TRANS_A, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(LT_DESC_TRANS_B, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(LT_DESC_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(LT_DESC_BIAS, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(LT_LAYOUT_BATCH, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(LT_LAYOUT_STRIDE, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(LT_PREFER_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(LT_PREFER_REDUCTION, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(LT_PREFER_ALIGN_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(LT_PREFER_ALIGN_D, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(LT_REDUCTION_IN_F32, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME(LT_ALGO_ID, CUBLASLT_ALGO_CONFIG_ID);
SAME(LT_ALGO_SPLIT_K, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
SAME(LT_ALGO_REDUCTION, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
SAME(sizeof(CublasLtAlgo), sizeof(cublasLtMatmulAlgo_t));
SAME(sizeof(CublasLtFound), sizeof(cublasLtMatmulHeuristicResult_t));
SAME(sizeof(int), sizeof(cublasStatus_t));
SAME(sizeof(int), sizeof(cudaDataType));
SAME(sizeof(int), sizeof(cublasComputeType_t));

#define FIELD(ours, theirs) SAME(offsetof(CublasLtFound, ours), offsetof(cublasLtMatmulHeuristicResult_t, theirs))
FIELD(workspace, workspaceSize);
FIELD(state, state);
FIELD(waves, wavesCount);

/* Each call with our parameters: no conversion but of what replaces the library's own types. */
static int describe(int type, int compute, int attribute, const void *value, size_t size, int64_t ld) {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t layout;
    cublasLtMatmulPreference_t preference;
    int failed = cublasLtMatmulDescCreate(&desc, (cublasComputeType_t)compute, (cudaDataType)type);
    failed |= cublasLtMatmulDescSetAttribute(desc, (cublasLtMatmulDescAttributes_t)attribute, value, size);
    failed |= cublasLtMatrixLayoutCreate(&layout, (cudaDataType)type, (uint64_t)1, (uint64_t)1, ld);
    failed |= cublasLtMatrixLayoutSetAttribute(layout, (cublasLtMatrixLayoutAttribute_t)attribute, value, size);
    failed |= cublasLtMatmulPreferenceCreate(&preference);
    failed |=
        cublasLtMatmulPreferenceSetAttribute(preference, (cublasLtMatmulPreferenceAttributes_t)attribute, value, size);
    failed |= cublasLtMatmulDescDestroy(desc) | cublasLtMatrixLayoutDestroy(layout);
    return failed | cublasLtMatmulPreferenceDestroy(preference);
}

int cublaslt_numbers(CublasLtHandle, CublasLtDesc, CublasLtLayout, CublasLtPreference, const float *, void *, size_t);
int cublaslt_numbers(CublasLtHandle handle, CublasLtDesc desc, CublasLtLayout layout, CublasLtPreference preference,
                     const float *scalar, void *memory, size_t bytes) {
    cublasLtHandle_t h = (cublasLtHandle_t)handle;
    cublasLtMatmulDesc_t d = (cublasLtMatmulDesc_t)desc;
    cublasLtMatrixLayout_t l = (cublasLtMatrixLayout_t)layout;
    cublasLtMatmulHeuristicResult_t found[4];
    int count, failed = describe(LT_F32, LT_COMPUTE_32F, LT_DESC_TRANS_A, scalar, sizeof(int), 1);
    failed |= cublasLtGetProperty((libraryPropertyType)LT_MAJOR, &count) | cublasLtCreate(&h) | cublasLtDestroy(h);
    failed |=
        cublasLtMatmulAlgoGetHeuristic(h, d, l, l, l, l, (cublasLtMatmulPreference_t)preference, 4, found, &count);
    failed |= cublasLtMatmulAlgoConfigGetAttribute(&found->algo, (cublasLtMatmulAlgoConfigAttributes_t)LT_ALGO_ID,
                                                   &count, sizeof count, &bytes);
    failed |= cublasLtMatmulAlgoCheck(h, d, l, l, l, l, &found->algo, found);
    return failed | cublasLtMatmul(h, d, scalar, memory, l, memory, l, scalar, memory, l, memory, l, &found->algo,
                                   memory, bytes, (cudaStream_t)memory);
}
