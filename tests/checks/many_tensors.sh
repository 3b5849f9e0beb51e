#!/usr/bin/env bash
# Models of 480 to 520 and of 1,000 to 1,030 trained tensors pass every pass for both targets, and one is trained.
#
#     many_tensors.sh --full       every count; full/parity_many_tensors.sh trains eight
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun
AMP_PROGRAMS=$bin PYTHONPATH=tests/parity python3 -B tests/checks/many_tensors.py "$work" "$@"
exit
