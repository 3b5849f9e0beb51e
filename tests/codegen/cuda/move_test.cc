// move_test.cc: the models of the CPU's test of movement, tables, batched products and scatter, for CUDA.
#include "tests/codegen/cuda/cuda_run.h"

#define CoreModelTest CudaRunTest
#include "tests/codegen/move_test.cc"
#undef CoreModelTest
