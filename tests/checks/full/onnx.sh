#!/usr/bin/env bash
# ONNX at length: a million random changes of a model under the sanitizers.
set -uo pipefail
source tests/checks/checks.bash

holds 'a million mutations' bazel test --config=asan --test_env=AMP_MUTATIONS=1000000 --test_timeout=14400 \
    --test_filter='OnnxDamage.*' //tests/onnx:onnx_test
finish
