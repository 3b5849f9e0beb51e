#!/usr/bin/env bash
# clang takes every C file of the product without a warning, as gcc does in the build; full/clang.sh builds all of it,
# and the tests. A field that is left out is zero: what clang says of it is no fault.
set -uo pipefail
source tests/checks/checks.bash
if ! links clang stdio.h; then
    skipped "$lacking"
    finish
    exit
fi
build //compiler //runtime
includes="-I. -Ibazel-bin -Iruntime/include -Icompiler/include -Ibase/include"
files=$(git ls-files 'base/*.c' 'cuda_sdk/*.c' 'ir/*.c' 'targets/*.c' 'frontend/*.c' 'passes/*.c' 'codegen/*.c' \
    'onnx/*.c' 'precision/*.c' 'compiler/*.c' 'runtime/*.c' 'tools/*.c' | grep -v 'product_\(avx\|neon\)')
warnings="-Wall -Wextra -Wno-missing-field-initializers -Werror"
check() { clang -std=c11 -D_GNU_SOURCE= $warnings $includes -fsyntax-only "$@"; }
for avx in avx2:-mavx2:-mfma avx512:-mavx512f avx512_bf16:-mavx512f:-mavx512bf16; do
    [[ $(uname -m) == x86_64 ]] || break
    IFS=: read -ra words <<<"$avx"
    run 0 check "${words[@]:1}" "runtime/device/cpu/product/product_${words[0]}.c"
done
# The driver starts a process for each file; the compiler that it starts takes all of them.
eval "compiler=($(check "-###" base/alloc.c 2>&1 | tail -n 1))"
run 0 "${compiler[@]:0:${#compiler[@]}-1}" $files
echo 'int planted(void) { int unused; return 0; }' >"$work/planted.c"
run 1 "${compiler[@]:0:${#compiler[@]}-1}" base/alloc.c "$work/planted.c" base/diag.c
says 'unused variable'
finish
