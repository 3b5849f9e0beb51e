#!/usr/bin/env bash
# One model of a BERT of four layers, and one of the small GPT, at eight lengths: five steps print the losses, and write
# the gradients and weights, of models that are compiled for each length, with 1, 2 and 8 threads, and to 64 on the
# stand-in for a GPU.
#
#     length_models.sh          FP32, and FP16 and BF16 with one thread
#     length_models.sh --all    also FP32 at all multiples of 16
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun //fakecuda:libcuda.so.1
export AMPC_CACHE_DIR=$work/cache FAKECUDA_LIBRARY=$bin/fakecuda/libcuda.so.1
export AMPC_CUDA_COMPILE=${AMPC_CUDA_COMPILE:-quick}
lengths=(16 40 64 128 200 256 384 512)
[[ ${1:-} != --all ]] || lengths=(16 32 40 48 {64..512..16})
readonly samples=2

# write_inputs: $work/gpt.T.st and $work/bert.T.st, of random tokens; some are padding in BERT's masks
write_inputs() {
    PYTHONPATH=tests/checks python3 -B - "$work" "$samples" "${lengths[@]}" <<'PYTHON'
import random
import struct
import sys

import safetensors_write

work, n, lengths = sys.argv[1], int(sys.argv[2]), [int(t) for t in sys.argv[3:]]


def ints(shape, numbers):
    return "I32", shape, struct.pack(f"<{len(numbers)}i", *numbers)


for t in lengths:
    draw = random.Random(t)
    tokens = [draw.randrange(256) for _ in range(n * t)]
    safetensors_write.write(f"{work}/gpt.{t}.st", {
        "tokens": ints([n, t], tokens), "targets": ints([n, t], tokens[1:] + tokens[:1])})
    safetensors_write.write(f"{work}/bert.{t}.st", {
        "input_ids": ints([n, t], tokens), "token_type_ids": ints([n, t], [int(x > 99) for x in tokens]),
        "attention_mask": ints([n, t], [int(i % t < t - i // t * 5) for i in range(n * t)]),
        "targets": ints([n], [i % 2 for i in range(n)])})
PYTHON
}

# text MODEL: makes $work/MODEL.amp
text() {
    cp examples/bert/layer.amp "$work/bert_layer.amp"
    cp examples/gpt/layer.amp "$work/layer.amp"
    cp examples/gpt/bytes.amp "$work/gpt.amp"
    sed -e 's/^const T = 128 .*/size T = LONGEST/' -e 's/"layer.amp"/"bert_layer.amp"/' \
        examples/bert/bert.amp >"$work/bert.amp"
}

options_of() {
    case $1 in
    gpt) options=(-D LONGEST=512) ;;
    bert) options=(-D V=1000 -D C=512 -D L=4 -D H=8) ;;
    esac
}

# steps NAME MODEL T [OPTION...]: $work/NAME.log, .grads and .weights of five steps
steps() {
    local name=$1 model=$2 t=$3
    shift 3
    run 0 "${under[@]}" "$bin/tools/amprun" step "$work/$model.so" --weights "$work/${model%%.*}.first" --seed 3 \
        --inputs "$work/${model%%.*}.$t.st" --steps 5 --grads "$work/$name.grads" --save "$work/$name.weights" "$@"
    printf '%s\n' "$out" >"$work/$name.log"
}

# same A B: what five steps gave
same() {
    local what
    for what in log grads weights; do
        holds "$what of $1 and $2 are the same" cmp "$work/$1.$what" "$work/$2.$what"
    done
}

# compare MODEL PRECISION TARGET T...
compare() {
    local model=$1 precision=$2 target=$3 t threads place=()
    shift 3
    local compile=("$bin/tools/ampc" "$work/$model.amp" "${options[@]}" --precision "$precision" --target "$target")
    [[ $target != cuda ]] || { compile+=(--gpu-arch sm_80) place=(--device cuda); }
    [[ $target != cpu ]] || compile+=(--isa native)
    run 0 "${compile[@]}" -o "$work/$model.any.so"
    for t in "$@"; do
        run 0 "${compile[@]}" -D T="$t" -o "$work/$model.one.so"
        steps one "$model.one" "$t" "${place[@]}" --threads 1
        for threads in 1 2 8; do
            [[ $threads == 1 || $precision == fp32 && $target == cpu ]] || continue
            steps any "$model.any" "$t" "${place[@]}" --threads $threads --length "$t"
            same any one
        done
    done
}

write_inputs
for model in gpt bert; do
    options_of $model
    text
    under=()
    run 0 "$bin/tools/ampc" "$work/$model.amp" "${options[@]}" --precision fp32 -o "$work/$model.any.so"
    run 0 "$bin/tools/amprun" train "$work/$model.any.so" --data "safetensors:$work/$model.16.st" --length 16 \
        --batch $samples --steps 1 --seed 1 --save "$work/$model.first"
    compare $model fp32 cpu "${lengths[@]}"
    printf x >>"$work/any.weights"
    finds 'a byte more' 'weights of any and one' same any one
    compare $model fp16 cpu 16 200 512
    compare $model bf16 cpu 40 128
    under=(tools/with-fakecuda --arch 80)
    compile=("$bin/tools/ampc" "$work/$model.amp" "${options[@]}" --target cuda --gpu-arch sm_80)
    if "${compile[@]}" -o "$work/x.so" 2>"$work/x.err"; then
        compare $model fp16 cuda 16 40 64
    elif lacks_nvrtc "$work/x.err"; then
        skipped "$lacking: nothing is compared on the stand-in"
    else
        failed 'ampc --gpu-arch sm_80' "$(<"$work/x.err")"
    fi
done
finish
