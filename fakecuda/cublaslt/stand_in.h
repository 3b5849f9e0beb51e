/* stand_in.h: what the files of cuBLASLt's stand-in share.
 *
 * Wrong use is an error of the call, and a line of the driver's report (misuse). Its algorithms:
 *
 *     0  k in one ascending chain of the steps that tensor cores make, or of multiply-adds in f32: the bits of
 *        generated kernels
 *     1  two chains over halves of k, added in f32; needs workspace
 *     2  as 0, with a wrong first element
 *     3  as 0, and asks for a workspace of 1 MiB
 *     4  fails when it is run
 */
#ifndef FAKECUDA_CUBLASLT_STAND_IN_H
#define FAKECUDA_CUBLASLT_STAND_IN_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_sdk/cublaslt_api.h"
#include "fakecuda/driver/fakecuda.h"
#include "runtime/device/cuda/driver_api.h"

#define DECLARE(name, symbol, parameters) CuResult symbol parameters;
CUDA_DRIVER_CALLS(DECLARE)
#undef DECLARE
#define DECLARE(name, symbol, parameters) __attribute__((visibility("default"))) CublasLtResult symbol parameters;
CUBLASLT_CALLS(DECLARE)
#undef DECLARE

enum { ORDERED, SPLIT, WRONG, GREEDY, FAILING, ALGORITHMS };
enum { REDUCTION_NONE = 0, REDUCTION_COMPUTE_TYPE = 2, GREEDY_WORKSPACE = 1 << 20 };

/* ---- objects.c ---- */

typedef enum Kind { HANDLE, DESC, LAYOUT, PREFERENCE } Kind;
typedef struct Object { /* never freed, so that a destroyed one is known */
    struct Object *next;
    Kind kind;
    bool dead;
} Object;

struct CublasLtContext {
    Object object;
    CuContext context;
    int arch;
};
struct CublasLtProduct {
    Object object;
    int32_t compute, scale, trans_a, trans_b;
    uint32_t epilogue;
    const void *bias;
};
struct CublasLtMatrix {
    Object object;
    int32_t type, batch;
    uint64_t rows, columns;
    int64_t ld, stride;
};
struct CublasLtWish {
    Object object;
    uint64_t workspace;
    uint32_t reduction, align[4]; /* of A, B, C, D */
};

/* LT_INVALID_VALUE; the text comes into the report. */
CublasLtResult wrong(const char *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* LT_OK, or it is misuse: destroyed, or none of ours. */
CublasLtResult alive(const char *call, const void *object, Kind kind);

/* ---- faults.c: FAKECUDA_CUBLASLT ---- */

typedef enum PlantKind {
    PLANT_NONE,
    PLANT_VALUE,
    PLANT_ULP,
    PLANT_TIE,
    PLANT_LATER,
    PLANT_ROWS,
    PLANT_ORDER
} PlantKind;
typedef struct Plant { /* what is wrong with an algorithm */
    PlantKind kind;
    uint64_t number;
} Plant;

bool fault_call(const char *call); /* whether this call of that name fails */
int fault_version(int otherwise);
Plant fault_plant(int algorithm);
uint64_t fault_run(int algorithm); /* the number of the run that begins, from 1; 0: it is not counted */

/* ---- product.c: one product as work of a stream ---- */

typedef struct Operand {
    struct CublasLtMatrix layout;
    uint64_t address;
    bool transposed;
} Operand;

typedef struct Product {
    Operand a, b, c, d;
    uint64_t m, n, k, bias; /* an address; 0: none */
    float alpha, beta;
    int arch, compute, algorithm;
    Plant plant;
} Product;

size_t type_bytes(int type);                    /* 0: not known */
bool product_run(void *product, void *context); /* FakecudaOutside */
void product_drop(void *product);

#endif
