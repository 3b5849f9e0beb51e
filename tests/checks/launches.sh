#!/usr/bin/env bash
# Launches of a training step on CUDA, and functions of the whole model, each of which NVRTC takes 0.2 s to compile: no
# more than there were when this was written. Fewer is better: then the numbers here go down.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun

# launches MODEL MOST_LAUNCHES MOST_FUNCTIONS
launches() {
    local so=$work/model.so count
    run 0 "$bin/tools/ampc" "examples/$1.amp" --precision fp16 --target both --isa native -o "$so"
    run 0 "$bin/tools/amprun" info "$so" --kernels --program train_step
    count=$(sed -n 's/^train_step at batch .*: \([0-9]*\) kernels$/\1/p' <<<"$out")
    printf '%s: %s launches in a training step\n' "$1" "${count:-no}"
    holds "$1: at most $2 launches" test "${count:-$(($2 + 1))}" -le "$2"
    run 0 "$bin/tools/ampc" "examples/$1.amp" --precision fp16 --target cuda --emit cu -o "$work/model.cu"
    count=$(grep -c '^extern "C" __global__' "$work/model.cu")
    printf '%s: %s functions\n' "$1" "$count"
    holds "$1: at most $3 functions" test "$count" -le "$3"
}

launches fashion_mnist/mlp 12 19
launches fashion_mnist/cnn 25 34
launches resnet/resnet50 330 100
launches gpt/gpt2 215 64
launches bert/bert 221 84
finish
