/* ort.h: as much of onnxruntime's C API as running one model takes, from the shared library of its PyPI wheel.
 *
 * The wheel has no headers.  The library's table of functions has a fixed order, which is part of its ABI; ort.c names
 * the places that it uses.  Only for comparisons: no part of the product.
 */
#ifndef AMP_BENCH_SERVER_ORT_H
#define AMP_BENCH_SERVER_ORT_H

#include <stddef.h>
#include <stdint.h>

typedef struct Ort Ort;             /* a loaded model, which any number of threads may run */
typedef struct OrtCaller OrtCaller; /* of one thread: arrays that the model reads and writes in place */

/* Loads |model| (ONNX) to run with one thread a call.  Errors are printed; NULL. */
Ort *ort_open(const char *library, const char *model);
void ort_close(Ort *ort);
const char *ort_version(const Ort *ort);

/* Of a model from "x" [N, inputs] to "logits" [N, outputs]. */
OrtCaller *ort_caller(Ort *ort, float *x, int64_t inputs, float *y, int64_t outputs, int64_t n);
typedef enum OrtType { ORT_F32 = 1, ORT_I32 = 6 } OrtType; /* ONNX's numbers */
typedef struct OrtTensor {
    const char *name;
    void *data;
    OrtType type;
    int64_t dims[2];
} OrtTensor;
enum { ORT_MOST_INPUTS = 4 };
/* The same for inputs and a result of any names; names and data stay alive. */
OrtCaller *ort_caller_of(Ort *ort, const OrtTensor *inputs, size_t count, const OrtTensor *output);
int ort_run(OrtCaller *caller); /* 0: y is written */
void ort_caller_free(OrtCaller *caller);

#endif
