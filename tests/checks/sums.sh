#!/usr/bin/env bash
# ampc --sums as a person meets it: what is refused and what is said; where a model says it; what goes on from a
# checkpoint; and that each word gives other weights, whatever the threads and the instruction set.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun
ampc=$bin/tools/ampc amprun=$bin/tools/amprun

cat >"$work/small.amp" <<'MODEL'
amp 1
model small(x: f32[N, 40]) -> logits {
    h = relu(linear(x; out = 64) as fc1)
    logits = linear(h; out = 3) as fc2
}
train small {
    input targets: i32[N]
    loss = cross_entropy(logits, targets)
    optimizer = adamw(lr = 0.01)
}
precision fp16 {
    "fc2": f32
}
MODEL
cat >"$work/attends.amp" <<'MODEL'
amp 1
model attends(x: f32[N, 9, 16]) -> y {
    a = linear(x; out = 16)
    q = reshape(a; shape = [N, 1, 9, 16])
    y = attention(q, q, q)
}
precision bf16 { }
MODEL
cat >"$work/groups.amp" <<'MODEL'
amp 1
model groups(x: f32[N, 8, 6, 6]) -> y { y = conv2d(x; out = 8, kernel = 3, groups = 2) as c }
precision fp16 { }
MODEL
python3 -B tests/checks/cuda.py data "$work/small.in" 1 x=F32:70x40 targets=I32:70:3

# ---- what is refused, and what is said -----------------------------------------------------------

small=$work/small.amp
run 2 "$ampc" "$small" --sums sm_70 -o "$work/x.so"
says "unknown sums 'sm_70'; use ieee, sm_80 or sm_90"
run 2 "$ampc" "$small" --sums sm_90 --emit cu -o "$work/x.cu"
says "sums sm_90: these are sums of the CPU's kernels, but the output is CUDA code"
run 2 "$ampc" "$small" --sums sm_90 --target cuda --emit ir -o "$work/x.ir"
says "sums sm_90: these are sums of the CPU's kernels"
run 0 "$ampc" "$small" --sums sm_80 --precision fp32 --isa portable -o "$work/fp32.so"
says 'warning: sums sm_80 change nothing: tensor cores multiply f16, bf16 and tf32' \
    'and no product of the model has such operands' 'compile with --precision fp16, bf16 or tf32'
run 0 "$ampc" "$work/groups.amp" --sums sm_80 --isa portable -o "$work/groups.so"
says 'warning: sums sm_80 change nothing'
run 0 "$ampc" "$small" --precision fp32 --isa portable -o "$work/fp32_ieee.so"
expect 'ieee is silent' '' "$err"

# ---- where a model says it -----------------------------------------------------------------------

run 0 "$ampc" "$small" --isa v3 -o "$work/plain.so"
run 0 "$ampc" "$small" --sums ieee --isa v3 -o "$work/ieee.so"
holds 'ieee is what there is without the option' cmp "$work/plain.so" "$work/ieee.so"
for sums in sm_80 sm_90; do
    run 0 "$ampc" "$small" --sums $sums --dump-dir "$work/$sums" --isa v3 -o "$work/$sums.so"
    dumps=$(ls "$work/$sums" | wc -l)
    expect "every dump says $sums" "$dumps" "$(grep -l "^  sums $sums\$" "$work/$sums"/*.ir | wc -l)"
    run 0 "$ampc" "$small" --sums $sums --target cpu --isa portable -o "$work/at_once.so"
    for stage in 00-elaborate 09-lower "$(basename "$work/$sums"/*-plan.ir .ir)"; do
        run 0 "$ampc" "$work/$sums/$stage.ir" --target cpu --isa portable -o "$work/from_ir.so"
        holds "IR of $stage goes on with its sums" cmp "$work/at_once.so" "$work/from_ir.so"
    done
    run 0 "$amprun" info "$work/$sums.so"
    says "sums     $sums"
    run 0 "$amprun" info "$work/$sums.so" --json
    says "\"sums\":\"$sums\""
    run 0 "$ampc" explain "$work/$sums.so"
    says "sums of the CPU as $sums" "fc1.linear                  f16 x f16 x f16 -> f16, accumulates in f32 as $sums"
    expect 'products of f32 are as before' '' "$(grep '^fc2.linear.* as sm_' <<<"$out")"
    run 0 "$ampc" explain "$small" --sums $sums --json -
    says "\"sums\":\"$sums\""
done
run 0 "$ampc" explain "$work/plain.so"
expect 'explain does not speak of ieee' '' "$(grep 'sums of the CPU\|accumulates in f32 as' <<<"$out")"
run 2 "$ampc" explain "$work/plain.so" --sums sm_80
says 'sums: ' 'is compiled already'
run 2 "$ampc" "$work/sm_80"/*-fuse.ir --sums sm_90 -o "$work/x.so"
says 'sums sm_90: ' 'is at stage fuse and has its target already; give the model, or IR of an earlier stage'
run 0 "$ampc" "$work/sm_80/08-simplify.ir" --sums sm_90 --target cpu --isa portable -o "$work/changed.so"
expect 'IR of an earlier stage takes others' 'sums     sm_90' "$("$amprun" info "$work/changed.so" | grep ^sums)"
sed 's/^  sums sm_80$/  sums sm_70/' "$work/sm_80/00-elaborate.ir" >"$work/wrong.ir"
run 1 "$ampc" "$work/wrong.ir" -o "$work/x.so"
says 'sums (ieee, sm_80, sm_90)'

# ---- attention is products -----------------------------------------------------------------------

run 0 "$ampc" "$work/attends.amp" --sums sm_90 --target cpu --isa portable --dump-ir=lower -o "$work/attends.so"
expect 'attention is two batched products' 2 "$(grep -c '= batch_contract(' <<<"$out")"
run 0 "$ampc" "$work/attends.amp" --target cpu --isa portable --dump-ir=lower -o "$work/x.so"
expect 'and one kernel under ieee' 1 "$(grep -c '= attend(' <<<"$out")"
run 0 "$ampc" explain "$work/attends.so"
says 'accumulates in f32 as sm_90'

# ---- training ------------------------------------------------------------------------------------

train() { # MODEL TO [option...]
    run 0 "$amprun" train "$work/$1.so" --data "safetensors:$work/small.in" --batch 35 --steps 6 --seed 2 --quiet \
        --save "$work/$2.st" "${@:3}"
}
train ieee ieee --checkpoint "$work/ieee.ck"
train sm_80 sm_80 --checkpoint "$work/sm_80.ck"
train sm_90 sm_90
train sm_90 again --threads 1
for isa in portable v3; do train sm_90 $isa --isa $isa; done
holds 'one thread: the same bits' cmp "$work/sm_90.st" "$work/again.st"
for pair in 'ieee sm_80' 'ieee sm_90' 'sm_80 sm_90'; do
    read -r one other <<<"$pair"
    if cmp -s "$work/$one.st" "$work/$other.st"; then failed "$pair: other sums are other weights"; else passed; fi
done

go_on() { # MODEL CHECKPOINT
    run 0 "$amprun" train "$work/$1.so" --data "safetensors:$work/small.in" --steps 8 --quiet --resume "$work/$2.ck"
}
go_on sm_80 sm_80
expect 'its own checkpoint: nothing is said' '' "$err"
go_on ieee sm_80
says 'sm_80.ck: was trained with the sums sm_80, and goes on with those of the model, ieee (ampc --sums)'
go_on sm_80 ieee
says 'ieee.ck: was trained with the sums ieee, and goes on with those of the model, sm_80 (ampc --sums)'
run 0 "$amprun" step "$work/sm_90.so" --inputs "$work/small.in" --resume "$work/sm_80.ck"
says 'was trained with the sums sm_80'
finish
