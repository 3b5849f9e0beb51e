#!/usr/bin/env bash
# Launches of a training step on CUDA, and functions of the whole model (NVRTC compiles each in 0.2 s): no
# more than there were when this was written. Fewer is better: then the numbers here go down. And the bytes that a step
# moves, beside the bytes that step_bytes.py says it has to move, and the bytes of kernels that only copy (copies.py);
# and kernels that leave multiprocessors of an H100 idle.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun

# bytes MODEL N PERCENT: of model.so at N samples, at most PERCENT of what is derived from the forward graph
bytes() {
    local has list
    run 0 "$bin/tools/ampc" "examples/$1.amp" --precision fp16 --emit ir --stop-after autocast -o "$work/model.ir"
    run 0 "$bin/tools/amprun" info "$work/model.so" --roofline H100 --batch "$2" --json
    roofline=$out
    has=$(sed -n 's/.*"flops":[^,]*,"bytes":\([0-9]*\)[^,]*,"microseconds":.*"verdict".*/\1/p' <<<"$out")
    run 0 python3 tests/checks/step_bytes.py "$work/model.ir" "$2"
    list=$(sed -n 's/^total *//p' <<<"$out")
    printf '%s at %s: %s bytes, %s in the list\n' "$1" "$2" "${has:-no}" "${list:-no}"
    holds "$1: at most $3 % of the list" test "$((${has:-0} * 100))" -le "$((${list:-0} * $3))"
    holds "$1: bytes are counted" test "${has:-0}" -gt 0
}

# blocks MOST [WAVES]: of the model whose bytes were asked for last, kernels of more than 20 modelled microseconds that
# have fewer blocks than an H100 has multiprocessors; and those whose waves are filled to less than WAVES percent (85):
# none if no other tiles of the kernel are faster
blocks() {
    local few
    few=$(python3 -c '
import json, sys
for k in json.load(sys.stdin)["roofline"]["kernels"]:
    us, other = k["microseconds"], k["microseconds_in_other_tiles"]
    if us > 20 and k["blocks"] < 132 and (not other or other < us):
        print(k["name"], k["title"], k["blocks"], "blocks")
    elif us > 20 and other and other < us and 100 * k["waves"] < float(sys.argv[1]):
        print("waves:", k["name"], k["title"], k["blocks"], "blocks take", us, "and in other tiles", other)' \
        "${2:-85}" <<<"$roofline")
    printf '%s' "${few:+$few$'\n'}"
    holds "at most $1 long kernels of few blocks" test "$(grep -vc ^waves <<<"${few:-waves}")" -le "$1"
    holds 'long kernels have the tiles that are fastest' test "${few//waves:/}" = "$few"
}

# distance PERCENT: of the runs that the model of time was not fitted to, at least PERCENT are within 1.5 times
distance() {
    local within
    within=$(sed -n 's/^[0-9]* runs: \([0-9]*\) % within 1.5;.*/\1/p' <<<"$far")
    holds "a model of time: $1 % of runs within 1.5 times" test "${within:-0}" -ge "$1"
}

# sums MODEL N BYTES LEAST: at N samples each kernel of sums down columns that moves BYTES bytes has LEAST blocks
sums() {
    local few
    run 0 "$bin/tools/amprun" info "$work/model.so" --roofline H100 --batch "$2" --json
    few=$(python3 -c '
import json, sys
columns = [k for k in json.load(sys.stdin)["roofline"]["kernels"] if k["kind"] == "column"]
large = [k for k in columns if k["bytes"] >= int(sys.argv[1])]
print("\n".join(str(k) for k in large if k["blocks"] < int(sys.argv[2])) if large else "none is so large")' \
        "$3" "$4" <<<"$out")
    printf '%s' "${few:+$few$'\n'}"
    holds "$1 at $2: sums of $3 bytes have $4 blocks" test -z "$few"
}

# launches MODEL MOST_LAUNCHES MOST_FUNCTIONS [OPTION...]
launches() {
    local so=$work/model.so count
    run 0 "$bin/tools/ampc" "examples/$1.amp" --precision fp16 --target both --isa portable \
        --cc "$PWD/tests/random/cc_unoptimised" -o "$so" "${@:4}"
    run 0 "$bin/tools/amprun" info "$so" --kernels --program train_step
    count=$(sed -n 's/^train_step at batch .*: \([0-9]*\) kernels$/\1/p' <<<"$out")
    printf '%s: %s launches in a training step\n' "$1" "${count:-no}"
    holds "$1: at most $2 launches" test "${count:-$(($2 + 1))}" -le "$2"
    run 0 "$bin/tools/ampc" "examples/$1.amp" --precision fp16 --target cuda --emit cu -o "$work/model.cu" "${@:4}"
    # without those that a session needs only after products of a library (docs/design/library-products.md)
    count=$(grep '^extern "C" __global__' "$work/model.cu" | grep -cv '_then\(_[0-9]*\)\?(')
    printf '%s: %s functions\n' "$1" "$count"
    holds "$1: at most $3 functions" test "$count" -le "$3"
}

# copies MODEL N MOST [OPTION...]: at N samples, bytes of kernels that only move what others have made
copies() {
    local total
    run 0 "$bin/tools/ampc" "examples/$1.amp" --precision fp16 --target cuda --emit ir -o "$work/model.cuda.ir" "${@:4}"
    run 0 python3 tests/checks/copies.py "$work/model.cuda.ir" "$2"
    printf '%s\n' "$out"
    total=$(sed -n 's/^total *//p' <<<"$out")
    holds "$1: at most $3 bytes are copied" test "${total:-$(($3 + 1))}" -le "$3"
}

# Every op a kernel of its own.
planted() {
    launches fashion_mnist/mlp 12 20 --no-pass fuse
    copies fashion_mnist/mlp 128 0 --no-pass fuse
    bytes fashion_mnist/mlp 128 101
}
finds 'no fusion' 'at most 12 launches*at most 20 functions*at most 0 bytes*at most 101 % of the list' planted

launches fashion_mnist/mlp 12 20
copies fashion_mnist/mlp 128 0
bytes fashion_mnist/mlp 128 101
blocks 0
launches own_data/flowers 1 5 # small matrices: all kernels in one
launches gan/gan 1 4
launches several_results/points 1 5
launches fashion_mnist/cnn 23 33
copies fashion_mnist/cnn 128 0
bytes fashion_mnist/cnn 128 108
blocks 0
sums fashion_mnist/cnn 128 1000000 256
finds 'sums of few blocks' 'sums of 1000000 bytes have 100000 blocks' sums fashion_mnist/cnn 128 1000000 100000
launches resnet/resnet50 330 100
copies resnet/resnet50 64 0
bytes resnet/resnet50 64 102
blocks 1 # 128 blocks of a weight gradient
finds 'a kernel of few blocks' 'at most 0 long kernels' blocks 0
roofline='{"roofline": {"kernels": [{"name": "k00", "title": "a product", "microseconds": 30, "blocks": 192,
    "waves": 0.73, "microseconds_in_other_tiles": 29}]}}'
finds 'tiles that are not the fastest' 'long kernels have the tiles' blocks 0
sums resnet/resnet50 64 1000000 512
sums resnet/resnet50 16 1000000 128
launches gpt/gpt2 208 63
copies gpt/gpt2 16 0
bytes gpt/gpt2 16 104
blocks 0
launches bert/bert 221 79
copies bert/bert 32 600000 # the gradient of positions is rounded
bytes bert/bert 32 103
blocks 0
launches tabular/tabular 30 32
copies tabular/tabular 1024 280000 # columns of 8, 6, 5 and 4 are no vectors
bytes tabular/tabular 1024 97
blocks 0
sums tabular/tabular 65536 8000000 132
launches unet/unet 162 120
copies unet/unet 64 132000 # one number is repeated
bytes unet/unet 64 114
blocks 0
copies llama/llama 16 50000 # tables of angles
run 0 bench/gpu/distance
far=${out##*$'\n'}
printf '%s\n' "$far"
distance 76
finds 'a model of time that is far off' '101 % of runs' distance 101
finish
