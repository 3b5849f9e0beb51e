#!/usr/bin/env bash
# ampc --sums: whole models on the CPU and on the stand-in of a GPU of that architecture, whose products are mma.sync:
# every result and every gradient that comes from products and elementwise ops alone has the same bits. Then 60 steps of
# the perceptron and of a small GPT under each: they learn, apart by no more than roundings are.
set -uo pipefail
source tests/checks/cuda.bash
cuda_setup

cat >"$work/layers.amp" <<'MODEL'
amp 1
const K = 300, H = 130, O = 50
model layers(x: f32[N, K]) -> y {
    h = relu(linear(x; out = H) as fc1)
    y = linear(h; out = O) as fc2
}
train layers {
    input t: f32[N, O]
    loss = mean(y * t)
    optimizer = sgd(lr = 0.1)
}
MODEL
cat >"$work/images.amp" <<'MODEL'
amp 1
const C = 3
model images(x: f32[N, C, 11, 9]) -> y {
    h = relu(conv2d(x; out = 20, kernel = 3, padding = 1) as c1)
    h = conv2d(h; out = 10, kernel = 1) as c2
    y = conv2d(h; out = 6, kernel = (3, 2), stride = 2, dilation = 2) as c3
}
train images {
    input t: f32[N, 6, 4, 4]
    loss = mean(y * t)
    optimizer = sgd(lr = 0.1)
}
MODEL
cat >"$work/heads.amp" <<'MODEL'
amp 1
const T = 37, E = 24, H = 2
block split(x) -> y { y = permute(reshape(x; shape = [dim(x, 0), T, H, E]); dims = (0, 2, 1, 3)) }
model heads(x: f32[N, T, 48]) -> y {
    q = split(linear(x; out = 48) as q)
    k = split(linear(x; out = 48) as k)
    v = split(linear(x; out = 48) as v)
    s = 0.125 * matmul(q, transpose(k))
    y = reshape(permute(matmul(s, v); dims = (0, 2, 1, 3)); shape = [N, T, 48])
}
train heads {
    input t: f32[N, T, 48]
    loss = mean(y * t)
    optimizer = sgd(lr = 0.1)
}
MODEL
cuda_py data "$work/layers.in" 1 x=F32:70x300 t=F32:70x50
cuda_py data "$work/layers.start" 2 fc1.weight=F32:130x300:0.06 fc1.bias=F32:130 \
    fc2.weight=F32:50x130:0.09 fc2.bias=F32:50
cuda_py data "$work/images.in" 3 x=F32:20x3x11x9 t=F32:20x6x4x4
cuda_py data "$work/images.start" 4 c1.weight=F32:20x3x3x3:0.2 c1.bias=F32:20 \
    c2.weight=F32:10x20x1x1:0.2 c2.bias=F32:10 c3.weight=F32:6x10x3x2:0.1 c3.bias=F32:6
cuda_py data "$work/heads.in" 5 x=F32:5x37x48 t=F32:5x37x48
cuda_py data "$work/heads.start" 6 q.weight=F32:48x48:0.15 q.bias=F32:48:0.1 k.weight=F32:48x48:0.15 k.bias=F32:48:0.1 \
    v.weight=F32:48x48:0.15 v.bias=F32:48:0.1

# differ FILE OTHER: the names of f32 tensors but biases, whose gradients are sums over rows, that are not the same bits
differ() {
    python3 -B - "$1" "$2" <<'PYTHON'
import json, struct, sys

def tensors(path):
    with open(path, "rb") as file:
        data = file.read()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:end])
    return {name: data[end + at["data_offsets"][0]:end + at["data_offsets"][1]]
            for name, at in header.items() if name != "__metadata__" and not name.endswith(".bias")}

one, other = tensors(sys.argv[1]), tensors(sys.argv[2])
assert one.keys() == other.keys() and one, (one.keys(), other.keys())
print(" ".join(sorted(name for name in one if one[name] != other[name])))
PYTHON
}

# alike MODEL PRECISION ARCH BATCH: of the CPU and of the stand-in
alike() {
    local what="$1 $2 sm_$3" so=$work/$1.so
    local step=(step "$so" --weights "$work/$1.start" --inputs "$work/$1.in")
    local infer=(infer "$so" --weights "$work/$1.start" --inputs "$work/$1.in" --batch "$4")
    run 0 "$ampc" "$work/$1.amp" --precision "$2" --sums "sm_$3" --isa v3 -o "$so"
    run 0 "$amprun" "${infer[@]}" --outputs "$work/cpu.out"
    run 0 on "$3" "$amprun" "${infer[@]}" --device cuda --outputs "$work/cuda.out"
    expect "$what: results" '' "$(differ "$work/cpu.out" "$work/cuda.out" 2>&1)"
    run 0 "$amprun" "${step[@]}" --grads "$work/cpu.grads"
    run 0 on "$3" "$amprun" "${step[@]}" --grads "$work/cuda.grads" --device cuda
    expect "$what: gradients of weights" '' "$(differ "$work/cpu.grads" "$work/cuda.grads" 2>&1)"
    rm -f "$work"/*.out "$work"/*.grads
}
for arch in 80 90; do
    for precision in fp16 bf16 tf32; do
        alike layers $precision $arch 70
        alike images $precision $arch 20
        alike heads $precision $arch 5
    done
done

# The test can fail: other sums are other bits.
run 0 "$ampc" "$work/layers.amp" --precision tf32 --sums sm_80 --isa v3 -o "$work/layers.so"
infer=(infer "$work/layers.so" --weights "$work/layers.start" --inputs "$work/layers.in")
run 0 "$amprun" "${infer[@]}" --outputs "$work/80.out"
run 0 "$ampc" "$work/layers.amp" --precision tf32 --sums sm_90 --isa v3 -o "$work/layers.so"
run 0 "$amprun" "${infer[@]}" --outputs "$work/90.out"
expect 'sm_80 is not sm_90' y "$(differ "$work/80.out" "$work/90.out" 2>&1)"

# learns MODEL DATA STEPS BATCH AMP [ampc option...]: losses fall, and are near each other at the end
learns() {
    local model=$1 data=$2 steps=$3 batch=$4 amp=$5 sums
    for sums in ieee sm_80 sm_90; do
        run 0 "$ampc" "$amp" --precision fp16 --target cpu --sums $sums -o "$work/$model.so" "${@:6}"
        run 0 "$amprun" train "$work/$model.so" --data "$data" --batch "$batch" --steps "$steps" --quiet \
            --log "$work/$model-$sums.log"
    done
    expect "$model: learns under each, with much the same loss" ok "$(
        python3 -B - "$work/$model" <<'PYTHON'
import json, sys
logs = {}
for sums in ("ieee", "sm_80", "sm_90"):
    with open(f"{sys.argv[1]}-{sums}.log") as file:
        rows = [json.loads(line) for line in file]
    logs[sums] = [row["loss"] for row in rows if "iteration" in row]
plain = logs["ieee"]
for sums, losses in logs.items():
    assert losses[-1] < 0.9 * losses[0], (sums, losses[0], losses[-1])
    assert abs(losses[-1] / plain[-1] - 1) < 0.02, (sums, losses[-1], plain[-1])
assert logs["sm_80"] != plain and logs["sm_90"] != plain and logs["sm_80"] != logs["sm_90"]
print("ok")
PYTHON
    )"
}
cat docs/*.md docs/design/*.md >"$work/text.txt"
learns gpt "tokens:$work/text.txt,held=0" 60 8 examples/gpt/bytes.amp -D L=2 -D T=32 -D C=64
cuda_py data "$work/digits.in" 7 x=F32:256x784 targets=I32:256:10
learns perceptron "safetensors:$work/digits.in" 60 64 examples/fashion_mnist/mlp.amp
finish
