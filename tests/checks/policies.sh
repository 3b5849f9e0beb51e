#!/usr/bin/env bash
# Every built-in policy compiles every model of examples/: up to the plan of buffers, without C.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc

models=$(grep -lE '^model ' -r examples --include='*.amp' | sort)
for policy in passes/precision/policies/*.policy; do
    name=$(basename "$policy" .policy)
    for model in $models; do
        holds "$model by $name" "$bin/tools/ampc" "$model" --policy "$name" --emit ir -o /dev/null
    done
done

run 1 "$bin/tools/ampc" examples/fashion_mnist/mlp.amp --policy torch-fp15 --emit ir -o /dev/null
says 'there is no policy torch-fp15'
finish
