#!/usr/bin/env bash
# Every planted fault of tests/e2e/trace_test.cc on the stand-in for CUDA, of which an ordinary run takes a sixth.
set -uo pipefail
source tests/checks/checks.bash
holds 'trace_cuda_all_test' bazel test //tests/e2e:trace_cuda_all_test
finish
