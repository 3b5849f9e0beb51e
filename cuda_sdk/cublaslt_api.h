/* cublaslt_api.h: the calls of cuBLASLt that are made, declared here so that nothing of it is needed to build.  Types
 * and values follow NVIDIA's cuBLAS document and are the same in 11, 12 and 13; tests/cuda_sdk/cublaslt_numbers.c
 * compares them with NVIDIA's header where it is installed.
 *
 * Matrices are column-major: a row-major D = A B is D^T = B^T A^T, with our B as the first operand.  All calls want the
 * context current in which the handle was made. */
#ifndef AMP_CUDA_SDK_CUBLASLT_API_H
#define AMP_CUDA_SDK_CUBLASLT_API_H

#include <stddef.h>
#include <stdint.h>

typedef int CublasLtResult; /* cublasStatus_t */
typedef struct CublasLtContext *CublasLtHandle;
typedef struct CublasLtProduct *CublasLtDesc; /* cublasLtMatmulDesc_t */
typedef struct CublasLtMatrix *CublasLtLayout;
typedef struct CublasLtWish *CublasLtPreference;

typedef struct CublasLtAlgo { /* plain data: may be stored, and used again with the same version */
    uint64_t data[8];
} CublasLtAlgo;

typedef struct CublasLtFound { /* cublasLtMatmulHeuristicResult_t */
    CublasLtAlgo algo;
    size_t workspace;
    CublasLtResult state; /* other than OK: it cannot be used */
    float waves;
    int reserved[4];
} CublasLtFound;

enum {
    LT_OK = 0,
    LT_NOT_INITIALIZED = 1,
    LT_ALLOC_FAILED = 3,
    LT_INVALID_VALUE = 7,
    LT_ARCH_MISMATCH = 8,
    LT_EXECUTION_FAILED = 13,
    LT_INTERNAL_ERROR = 14,
    LT_NOT_SUPPORTED = 15
};
enum { LT_MAJOR = 0, LT_MINOR = 1, LT_PATCH = 2 };      /* libraryPropertyType */
enum { LT_F32 = 0, LT_F16 = 2, LT_BF16 = 14 };          /* cudaDataType */
enum { LT_COMPUTE_32F = 68, LT_COMPUTE_32F_TF32 = 77 }; /* cublasComputeType_t */
enum { LT_OP_N = 0, LT_OP_T = 1 };                      /* cublasOperation_t */
enum { LT_EPILOGUE_DEFAULT = 1, LT_EPILOGUE_BIAS = 4 };
enum { LT_DESC_TRANS_A = 3, LT_DESC_TRANS_B = 4, LT_DESC_EPILOGUE = 7, LT_DESC_BIAS = 8 };
enum { LT_LAYOUT_BATCH = 5, LT_LAYOUT_STRIDE = 6 }; /* int32, int64 in elements */
enum {                                              /* cublasLtMatmulPreferenceAttributes_t */
       LT_PREFER_WORKSPACE = 1,                     /* uint64; none unless it is set */
       LT_PREFER_REDUCTION = 3,                     /* uint32, a mask; 0: only what leaves k whole */
       LT_PREFER_ALIGN_A = 5,                       /* uint32, bytes; B, C and D follow */
       LT_PREFER_ALIGN_D = 8
};
enum { LT_REDUCTION_IN_F32 = 2 };                                    /* of the mask: no atomics, no sums in f16 */
enum { LT_ALGO_ID = 0, LT_ALGO_SPLIT_K = 2, LT_ALGO_REDUCTION = 3 }; /* int32, int32, uint32 */

/* X(name, symbol, parameters): `CublasLtResult name parameters`.  A stream is a CUstream.  cublasLtGetProperty and not
 * cublasLtGetVersion, whose number changed its base in the course of 11. */
#define CUBLASLT_CALLS(X)                                                                                              \
    X(get_property, cublasLtGetProperty, (int what, int *value))                                                       \
    X(create, cublasLtCreate, (CublasLtHandle * handle))                                                               \
    X(destroy, cublasLtDestroy, (CublasLtHandle handle))                                                               \
    X(desc_create, cublasLtMatmulDescCreate, (CublasLtDesc * desc, int compute, int scale))                            \
    X(desc_set, cublasLtMatmulDescSetAttribute, (CublasLtDesc desc, int attribute, const void *value, size_t size))    \
    X(desc_destroy, cublasLtMatmulDescDestroy, (CublasLtDesc desc))                                                    \
    X(layout_create, cublasLtMatrixLayoutCreate,                                                                       \
      (CublasLtLayout * layout, int type, uint64_t rows, uint64_t columns, int64_t ld))                                \
    X(layout_set, cublasLtMatrixLayoutSetAttribute,                                                                    \
      (CublasLtLayout layout, int attribute, const void *value, size_t size))                                          \
    X(layout_destroy, cublasLtMatrixLayoutDestroy, (CublasLtLayout layout))                                            \
    X(preference_create, cublasLtMatmulPreferenceCreate, (CublasLtPreference * preference))                            \
    X(preference_set, cublasLtMatmulPreferenceSetAttribute,                                                            \
      (CublasLtPreference preference, int attribute, const void *value, size_t size))                                  \
    X(preference_destroy, cublasLtMatmulPreferenceDestroy, (CublasLtPreference preference))                            \
    X(heuristic, cublasLtMatmulAlgoGetHeuristic,                                                                       \
      (CublasLtHandle handle, CublasLtDesc desc, CublasLtLayout a, CublasLtLayout b, CublasLtLayout c,                 \
       CublasLtLayout d, CublasLtPreference preference, int wanted, CublasLtFound found[], int *count))                \
    X(algo_check, cublasLtMatmulAlgoCheck,                                                                             \
      (CublasLtHandle handle, CublasLtDesc desc, CublasLtLayout a, CublasLtLayout b, CublasLtLayout c,                 \
       CublasLtLayout d, const CublasLtAlgo *algo, CublasLtFound *found))                                              \
    X(algo_config, cublasLtMatmulAlgoConfigGetAttribute,                                                               \
      (const CublasLtAlgo *algo, int attribute, void *value, size_t size, size_t *written))                            \
    X(matmul, cublasLtMatmul,                                                                                          \
      (CublasLtHandle handle, CublasLtDesc desc, const void *alpha, const void *a, CublasLtLayout a_layout,            \
       const void *b, CublasLtLayout b_layout, const void *beta, const void *c, CublasLtLayout c_layout, void *d,      \
       CublasLtLayout d_layout, const CublasLtAlgo *algo, void *workspace, size_t workspace_size, void *stream))

typedef struct CublasLtApi {
#define CUBLASLT_MEMBER(name, symbol, parameters) CublasLtResult(*name) parameters;
    CUBLASLT_CALLS(CUBLASLT_MEMBER)
#undef CUBLASLT_MEMBER
} CublasLtApi;

#endif
