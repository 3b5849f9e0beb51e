#!/usr/bin/env bash
# bindings/python/ampc.py: tests/bindings/python_test.py with a Python that has NumPy: python3, or that of .torch-env.
set -uo pipefail
source tests/checks/checks.bash
python=''
for candidate in python3 .torch-env/python; do
    if command -v $candidate >/dev/null && $candidate -c 'import numpy' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [[ -z $python ]]; then
    skipped 'no Python here has NumPy (python3-numpy, or tools/torch-env)'
    finish
fi
build //tools:amprun //runtime:amp_static //compiler:ampc_static

# Shared libraries of the archives that Bazel leaves; what make builds is tested by install.sh.
for library in runtime/libamp compiler/libampc; do
    holds "$library.so is linked" cc -shared -o "$work/${library#*/}.so" -Wl,--whole-archive "$bin/$library.a" \
        -Wl,--no-whole-archive -lpthread -ldl -lm
done
export AMPC_LIBRARY_PATH=$work PYTHONPATH=bindings/python AMPRUN=$bin/tools/amprun
run 0 "$python" -B tests/bindings/python_test.py
expect 'no test of Python failed' '' "$(grep -E '(FAIL|ERROR)$' <<<"$err")"
((good += $(grep -cE ' ok$' <<<"$err"))) # each is a case of its own
[[ $err == *$'\nOK'* ]] || printf '%s\n' "$err"
finish
