#!/usr/bin/env bash
# 30 models whose infinities or zeros in FP16 vanish again: `amprun train` names the op at fault within 200 steps.  20
# clean ones, and each example that trains on numbers alone: it says nothing in 1,000 steps.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun
ampc=$bin/tools/ampc amprun=$bin/tools/amprun

PYTHONPATH=tests/checks python3 -B tests/checks/silent_models.py "$work" >"$work/list"
expect 'models' 50 "$(wc -l <"$work/list")"
while read -r name data op; do
    steps=200 options=()
    [[ $op == - ]] && steps=1000
    [[ $name == planted_evaluation ]] && options=(--eval-data "safetensors:$work/large.st")
    run 0 "$ampc" "$work/$name.amp" -o "$work/$name.so" --isa portable --target cpu
    "$amprun" train "$work/$name.so" --data "safetensors:$work/$data.st" --batch 64 --steps "$steps" --quiet \
        "${options[@]}" >"$work/said" 2>&1
    named=$(grep -c " in f16, whatever the loss is: " "$work/said")
    if [[ $op == - ]]; then
        expect "$name: nothing is said" 0 "$named"
    else
        holds "$name: $op is named" grep -q "[0-9]: $op ([a-z0-9_]*, [^ ]*) .* in f16, whatever" "$work/said"
    fi
done <"$work/list"
finish
