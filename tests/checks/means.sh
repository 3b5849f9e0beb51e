#!/usr/bin/env bash
# Losses, metrics and steps of 10 random models, by batches, micro-batches and ranks, have the figures that PyTorch has
# of all samples at once; and so has every call of C, C++, Python and amprun that gives a loss of several batches.
#
#     means.sh             two of them on the stand-in for a GPU, too, and by all calls
#     means.sh --full      20 models, all of them so
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun //runtime:amp_static //compiler:ampc_static //fakecuda:libcuda.so.1
export AMP_PROGRAMS=$bin AMPC_CACHE_DIR=$work/cache FAKECUDA_LIBRARY=$bin/fakecuda/libcuda.so.1
options=("$@")
quick_models

headers=(-Ibase/include -Iruntime/include -Icompiler/include)
libraries=("$bin/runtime/libamp.a" -lpthread -ldl -lm)
run 0 cc -std=c11 "${headers[@]}" tests/checks/mean_calls.c "${libraries[@]}" -o "$work/mean_calls_c"
run 0 c++ -std=c++17 "${headers[@]}" tests/checks/mean_calls.cc "${libraries[@]}" -o "$work/mean_calls_cc"
NUMPY_PYTHON=$(numpy_python)
if [[ -n $NUMPY_PYTHON ]]; then
    export NUMPY_PYTHON
    python_libraries
else
    skipped 'no Python here has NumPy (python3-numpy, or tools/torch-env)'
fi

printf 'amp 1\nmodel probe(x: f32[N, 8]) -> y { y = linear(x; out = 8) }\n' >"$work/probe.amp"
if "$bin/tools/ampc" "$work/probe.amp" --target cuda --gpu-arch sm_80 -o "$work/probe.so" 2>"$work/probe.err"; then
    options+=(--stand-in)
elif lacks_nvrtc "$work/probe.err"; then
    skipped "$lacking: nothing is compared on the stand-in"
else
    failed 'ampc --gpu-arch sm_80' "$(<"$work/probe.err")"
fi

run 0 env PYTHONPATH=tests/parity:bindings/python python3 -B tests/checks/means.py "$work" "${options[@]}"
read -r right _ wrong _ <<<"$(tail -n 1 <<<"$out")"
((good += ${right:-0}, bad += ${wrong:-1}))
grep -A 5 '^FAIL' <<<"$out"
finish
