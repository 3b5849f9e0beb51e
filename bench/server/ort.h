/* ort.h: as much of onnxruntime's C API as running one model takes, from the shared library of its PyPI wheel.
 *
 * The wheel has no headers.  The library's table of functions has a fixed order, which is part of its ABI; ort.c names
 * the places that it uses.  Only for comparisons: no part of the product.
 */
#ifndef AMP_BENCH_SERVER_ORT_H
#define AMP_BENCH_SERVER_ORT_H

#include <stdint.h>

typedef struct Ort Ort;             /* a loaded model, which any number of threads may run */
typedef struct OrtCaller OrtCaller; /* of one thread: arrays that the model reads and writes in place */

/* Runs |model| (ONNX: "x" [N, inputs] to "logits" [N, outputs]) with one thread a call.  Errors are printed; NULL. */
Ort *ort_open(const char *library, const char *model);
void ort_close(Ort *ort);
const char *ort_version(const Ort *ort);

OrtCaller *ort_caller(Ort *ort, float *x, int64_t inputs, float *y, int64_t outputs, int64_t n);
int ort_run(OrtCaller *caller); /* 0: y is written */
void ort_caller_free(OrtCaller *caller);

#endif
