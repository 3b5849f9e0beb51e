#!/usr/bin/env bash
# clang builds everything, tests included, without a warning, and what it built computes what gcc's does.
set -uo pipefail
source tests/checks/checks.bash
if ! command -v clang >/dev/null; then
    skipped 'clang is not installed'
    finish
    exit
fi
run 0 bazel build --config=clang //...
run 0 bazel test --config=clang //tests/base/... //tests/ir/... //tests/runtime/... //tests/codegen/... //tests/e2e/...
finish
