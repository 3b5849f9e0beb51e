// image_test.cc: the models of the CPU's test of images, for CUDA.
#include "tests/codegen/cuda/cuda_run.h"

#define CoreModelTest CudaRunTest
#include "tests/codegen/image_test.cc"
#undef CoreModelTest
