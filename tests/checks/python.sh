#!/usr/bin/env bash
# bindings/python/ampc.py: tests/bindings/python_test.py with a Python that has NumPy: python3, or the one of
# .torch-env.
set -uo pipefail
source tests/checks/checks.bash
python=$(numpy_python)
if [[ -z $python ]]; then
    skipped 'no Python here has NumPy (python3-numpy, or tools/torch-env)'
    finish
fi
build //tools:amprun //runtime:amp_static //compiler:ampc_static

python_libraries
export PYTHONPATH=bindings/python AMPRUN=$bin/tools/amprun
run 0 "$python" -B tests/bindings/python_test.py
expect 'no test of Python failed' '' "$(grep -E '(FAIL|ERROR)$' <<<"$err")"
((good += $(grep -cE ' ok$' <<<"$err"))) # each is a case of its own
[[ $err == *$'\nOK'* ]] || printf '%s\n' "$err"
finish
