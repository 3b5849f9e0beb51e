#!/usr/bin/env bash
# 30 models whose infinities or zeros in FP16 vanish again: `amprun train` names the op at fault within 200 steps. Of 20
# clean ones it says nothing in 1,000 steps, and of each example, at a small size, nothing in 300.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun //examples/bert:sentences //examples/tabular:loans //examples/unet:shapes
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

# ---- the examples -----------------------------------------------------------------------------

mkdir "$work/data"
"$bin/examples/bert/sentences" 1000 1 "$work/data/sentences" >/dev/null
"$bin/examples/tabular/loans" 2000 1 >"$work/data/loans.csv"
"$bin/examples/unet/shapes" "$work/data/shapes" 200 1 >/dev/null
# data_of NAME: what --data is for it
data_of() {
    case $1 in
    sentences | shapes) printf 'safetensors:%s' "$work/data/$1" ;;
    loans) printf 'csv:%s,schema=examples/tabular/loans.schema' "$work/data/loans.csv" ;;
    flowers) printf 'csv:examples/own_data/flowers.csv,target=species' ;;
    text) printf 'tokens:docs/language.md' ;;
    *) printf '%s' "$1" ;;
    esac
}
PYTHONPATH=tests/checks python3 -B tests/checks/silent_examples.py "$work/data" >"$work/list"
while read -r file data definitions; do
    name=$(basename "$file")
    run 0 "$ampc" "examples/$file.amp" --precision fp16 $definitions -o "$work/$name.so" --target cpu
    run 0 "$amprun" train "$work/$name.so" --data "$(data_of "$data")" --batch 32 --steps 300 --quiet
    expect "$file: nothing is said of its numbers" '' "$(grep ' in f16, whatever the loss is: ' <<<"$out$err")"
done <"$work/list"
expect 'every example that trains is tried' "$(grep -rl --include='*.amp' '^train ' examples | wc -l)" \
    "$(wc -l <"$work/list")"
finish
