/* tiny_cuda.h: the model of tests/runtime/tiny_model.h with CUDA code, written by hand: everything in rows, logits in
 * f16, a transposed copy of the weights as a derived state, and the update of all parameters as one launch over a
 * batch. */
#ifndef AMP_TESTS_RUNTIME_DEVICE_CUDA_TINY_CUDA_H
#define AMP_TESTS_RUNTIME_DEVICE_CUDA_TINY_CUDA_H

#include "amp/model_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

const amp_model_desc *tiny_cuda_desc(void);
const amp_model_cuda *tiny_cuda_code(void);

#ifdef __cplusplus
}
#endif
#endif
