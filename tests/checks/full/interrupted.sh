#!/usr/bin/env bash
# Training that is interrupted at 200 random moments: without and with steps of several micro-batches, which do not end
# with the epochs.
set -uo pipefail
source tests/checks/checks.bash
source tests/checks/interrupted.bash
build //tools:ampc //tools:amprun

interrupted_inputs
for parts in 1 3; do
    run 0 interrupted $parts 100
    printf 'micro-batches %d: %s\n' $parts "$out"
done
finish
