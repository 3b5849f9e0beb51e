#!/usr/bin/env bash
# clang builds everything, tests included, without a warning, and what it built computes what gcc's does.
set -uo pipefail
source tests/checks/checks.bash
if ! links clang stdio.h || ! links clang++ vector; then
    skipped "$lacking"
    finish
    exit
fi
run 0 bazel build --config=clang //...
run 0 bazel test --config=clang //tests/base/... //tests/ir/... //tests/runtime/... //tests/codegen/... //tests/e2e/...
finish
