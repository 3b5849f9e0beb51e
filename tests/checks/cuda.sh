#!/usr/bin/env bash
# The CUDA path from end to end, under the stand-in for the driver: training follows the CPU's, masks of dropout, loss
# scales and counters are its bits; what is refused says so; no binary needs a CUDA library. full/cuda.sh is longer.
# Takes long.
set -uo pipefail
source tests/checks/cuda.bash
cuda_setup

# ---- training follows the CPU -----------------------------------------------------------------------------------------------

# Other precisions: e2e/cuda_test; every model, precision and architecture: full/cuda.sh.
follows dropout fp16 90 10
dropout=$work/dropout
sed 's/"loss": /&1/' "$dropout-90.steps" >"$work/planted.steps"
sed 's/"faults": *\[/&"planted"/' "$work/report.json" >"$work/planted.json"
finds 'other losses' 'losses*beyond' asked steps steps "$dropout-cpu.steps" "$work/planted.steps" "${loss_bound[fp16]}"
finds 'weights that stay' 'apart after a way' asked params params "$dropout.start" "$dropout-cpu.params" "$dropout.start" \
    "${param_bound[fp16]}"
finds 'masks of another step' 'the masks differ' asked masks zeros "$work/cpu.values" "$work/cuda.values.2"
finds 'a long warp' 'instructions' asked warps report "$work/report.json" warps 1
finds 'a fault' 'planted' asked report report "$work/planted.json" clean
follows odd fp16 80 6
follows cnn fp16 90 2

# ---- overflow, backoff and growth ---------------------------------------------------------------------------------------------

# A scale at which every gradient overflows: skipped until it is small enough, then grows every 4 steps.
run 0 "$ampc" "$work/dropout.amp" --isa portable -o "$work/dropout.so"
run 0 steps_on cpu dropout 30 --weights "$work/dropout.start" --scale 1e9
run 0 steps_on 90 dropout 30 --weights "$work/dropout.start" --scale 1e9
asked 'overflow' steps "$work/dropout-cpu.steps" "$work/dropout-90.steps" "${loss_bound[fp16]}"
holds 'overflow: steps were skipped' grep -q '"skipped": true' "$work/dropout-90.steps"
holds 'overflow: steps were made' grep -q '"skipped": false' "$work/dropout-90.steps"

# ---- what amprun doctor foretells is what a session finds -----------------------------------------------------------------------

# doctor_says WHAT MODEL WANTED: kernels from the model, from the cache, and by NVRTC
doctor_says() {
    run 0 on 90 "$amprun" doctor "$work/$2" --device cuda --json
    expect "doctor: $1" "$3" "$(python3 -c '
import json, sys
found = json.load(open(sys.argv[1]))
checks = {check["about"]: check for check in found["checks"]}
k = checks["kernels"]
print(k["from_model"], "cache" if k["from_cache"] else "-", "nvrtc" if k["by_nvrtc"] else "-",
      "stand-in" if checks["device"]["stand_in"] else "GPU")' "$work/.out")"
}
export AMPC_CACHE_DIR=$work/doctors_cache
run 0 "$ampc" "$work/tiny.amp" --isa portable -o "$work/tiny.so"
doctor_says 'nothing is compiled yet' tiny.so '0 - nvrtc stand-in'
run 0 on 90 "$amprun" info "$work/tiny.so" --device cuda --batch 16
doctor_says 'what a session trains by is in the cache, and nothing else' tiny.so '0 cache nvrtc stand-in'
export AMPC_CACHE_DIR=$work/cache
run 1 on 90 env NVRTC_PATH=/nowhere "$amprun" doctor "$work/tiny.so" --device cuda
says 'driver    ok     CUDA ' '(fakecuda), sm_90' 'stand-in: it interprets PTX, and no GPU is used' 'nvrtc     note' \
    'kernels   FAILED the model has no code for sm_90' 'compile the model with `ampc --gpu-arch sm_90`' 'is missing'
build //fakecuda/cublaslt:libcublasLt.so.13
run 0 on 90 "$amprun" doctor
says 'cublaslt  ok     13.1, ' 'fakecuda/cublaslt/libcublasLt.so.13; for matrix products that it makes faster (--products)'
run 0 on 90 env FAKECUDA_DRIVER_VERSION=12040 CUBLASLT_PATH="$bin/fakecuda/cublaslt" "$amprun" doctor
says 'cublaslt  note   ' 'libcublasLt.so.13 cannot be used as NVIDIA' 'it is of CUDA 13, and one of CUDA 11 to 12 is needed'
run 1 on 90 "$amprun" doctor --device cuda:1
says 'device    FAILED no CUDA device 1: there is 1, numbered from 0'

# ---- the largest batch in so much of the device's memory ------------------------------------------------------------------------

# peak BATCH: the device's memory that a training with batch BATCH took, less the tables that its CUDA graphs bring
peak() {
    run 0 on 90 "$amprun" train "$work/dropout.so" --data "safetensors:$work/dropout.many" --batch "$1" --steps 1 \
        --device cuda --quiet
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["totals"]["peak_bytes"] - 4096)' "$work/report.json"
}
cuda_py data "$work/dropout.many" 8 x=F32:1500x40 targets=I32:1500:10
run 0 on 90 "$amprun" info "$work/dropout.so" --batch auto --memory 1M --device cuda --json
read -r batch device <<<"$(python3 -c '
import json, sys
found = json.load(open(sys.argv[1]))["models"][0]
print(found["batch"], found["memory"]["device"])' "$work/.out")"
holds "the largest batch in 1 MB, $batch, takes $device bytes of the device" test "$device" -le 1000000
holds 'a training of that batch stays within' test "$(peak "$batch")" -le 1000000
holds 'a training of the next does not' test "$(peak $((batch + 1)))" -gt $((1000000 - 4096))
run 1 on 90 "$amprun" info "$work/dropout.so" --batch auto --memory 1K --device cuda
says 'a batch of the smallest size takes' 'bytes of the device'

# ---- a training does not wait for its steps -------------------------------------------------------------------------------------

export AMPC_CUDA_COMPILE=quick # no instructions are counted from here on
waits_not 1

# ---- statistics on the oldest architecture --------------------------------------------------------------------------------------

run 0 on 75 "$amprun" train "$work/dropout.so" --data "safetensors:$work/dropout.in" --batch 16 --steps 2 --device cuda \
    --log "$work/stats.jsonl" --stats 1 --quiet
expect 'both steps are told of' 2 "$(grep -c '^{"stats": ' "$work/stats.jsonl")"

# ---- loss scaling ---------------------------------------------------------------------------------------------------------------

scales_alike 80 6 2.0 0.5 1
scales_alike 90 6 1.5 0.75 3 '' # the default floor and ceiling

# ---- who makes products ---------------------------------------------------------------------------------------------------------

export AMPC_PRODUCTS_FROM=0 FAKECUDA_TIMES=cublasLt0=5,cublasLt1=300,cublasLt2=300,cublasLt3=300
for k in {00..20}; do FAKECUDA_TIMES+=,train_step_k$k=100; done # so algorithm 0 is the fastest
run 0 "$ampc" "$work/dropout.amp" --isa portable --no-pass supersteps -o "$work/apart.so"
tune() { tools/with-fakecuda "$amprun" tune "$work/apart.so" --batch 8,4 "$@"; }
# Two at once, and then one that measures nothing any more: all print the same.
tune >"$work/tuned.1" 2>&1 &
tune >"$work/tuned.2" 2>&1
wait $!
run 0 env FAKECUDA_CUBLASLT=fail:cublasLtMatmulAlgoGetHeuristic:1 tools/with-fakecuda "$amprun" tune "$work/apart.so" \
    --batch 8,4 -o "$work/choices.st"
says 'own us library us  by' 'cublasLt 0 ' ' launches of products that it could make'
bys() { awk '{ print $1, $2, $3, /cublasLt/ }' "$@"; }
alike() { expect "$1" "$(bys "$work/.out")" "$(bys "$2")"; }
alike 'two at once, the first' "$work/tuned.1"
alike 'two at once, the second' "$work/tuned.2"
sed 's/cublasLt 0 /own        /' "$work/tuned.1" >"$work/tuned.planted"
finds 'another choice' 'wanted' alike 'other choices' "$work/tuned.planted"
run 0 on 90 "$amprun" info "$work/apart.so" --kernels --batch 8 --device cuda --choices "$work/choices.st" --json
holds 'info names who makes products' python3 -c '
import json, sys
by = [k["by"] for k in json.load(open(sys.argv[1]))["kernels"]]
assert {"-", "cublasLt 0"} <= set(by) <= {"-", "own", "cublasLt 0"}, by
assert all(k["by"] == "-" for k in json.load(open(sys.argv[1]))["kernels"] if "no_call" in k)' "$work/.out"
run 0 on 90 "$amprun" info "$work/apart.so" --kernels --batch 8 --device cuda --program train_step
says '  by           title' ' cublasLt 0   ' '(no call: '
run 0 on 90 "$amprun" train "$work/apart.so" --data "safetensors:$work/dropout.in" --batch 8 --steps 2 --device cuda \
    --choices "$work/choices.st" --products same-bits --quiet
run 2 "$amprun" train "$work/apart.so" --data "safetensors:$work/dropout.in" --choices "$work/choices.st"
says 'takes --choices only with --device cuda'
run 2 on 90 "$amprun" step "$work/apart.so" --weights "$work/dropout.start" --inputs "$work/dropout.in" --device cuda \
    --choices "$work/choices.st" --products own
says 'nothing is chosen then'
run 1 on 90 "$amprun" step "$work/dropout.so" --weights "$work/dropout.start" --inputs "$work/dropout.in" --device cuda \
    --choices "$work/choices.st"
says 'its choices were made for other kernels than this model has' 'make it anew with amprun tune'
run 2 "$amprun" tune "$work/apart.so" --device cpu
says '--device cpu: products are chosen on cuda alone'
run 2 "$amprun" tune "$work/apart.so" --batch 8,
run 2 "$amprun" tune "$work/apart.so" --batch 8,none
run 1 on 90 "$amprun" tune "$work/apart.so" --products own
says "products are ampc's own, and nothing is chosen"
run 1 tune -o "$work/dropout.start"
says 'choices of products'
# A checkpoint of other choices
for products in fastest own; do
    resume=(--weights "$work/dropout.start")
    [[ $products == fastest ]] || resume=(--resume "$work/chosen.ck")
    run 0 on 90 "$amprun" step "$work/apart.so" "${resume[@]}" --inputs "$work/dropout.in" --device cuda \
        --products "$products" --checkpoint "$work/chosen.ck"
done
says 'chosen.ck: was trained with other products: fastest ' "and goes on with ampc's own"
unset AMPC_PRODUCTS_FROM FAKECUDA_TIMES

# ---- what is refused ------------------------------------------------------------------------------------------------------------

for precision in bf16 tf32; do
    run 0 "$ampc" "$work/dropout.amp" --precision $precision --isa portable -o "$work/new.so"
    run 1 on 75 "$amprun" step "$work/new.so" --weights "$work/dropout.start" --inputs "$work/dropout.in" --device cuda
    says "compute capability 7.5, which has no $precision; compile the model with --precision fp16"
done

# ---- the numbers of cuBLASLt, against its header --------------------------------------------------------------------------------

header=''
for folder in "${CUDA_HOME:-/none}/include" /usr/local/cuda/include .torch-env/lib/python3*/site-packages/nvidia/cu*/include; do
    [[ -n $header || ! -f $folder/cublasLt.h ]] || header=$folder
done
if [[ -n $header ]]; then
    run 0 cc -std=c11 -Wall -Wextra -Werror -I. -isystem "$header" -c tests/cuda_sdk/cublaslt_numbers.c -o "$work/numbers.o"
else
    skipped 'no cublasLt.h is installed: our declarations are not compared with it'
fi

# ---- without CUDA ---------------------------------------------------------------------------------------------------------------

# What a file asks the loader for, and what it would find.
for file in "$ampc" "$amprun" "$work/dropout.so"; do
    needed=$(readelf -d "$file" | grep NEEDED)
    expect "$(basename "$file") needs no CUDA library" '' "$(grep -iE 'cuda|nvrtc|cublas|nvidia' <<<"$needed")"
    expect "ldd $(basename "$file")" '' "$(ldd "$file" 2>/dev/null | grep -iE 'cuda|nvrtc|cublas|nvidia')"
done
mkdir "$work/empty"
without_cuda() { env -u LD_LIBRARY_PATH NVRTC_PATH="$work/empty" PATH="$PATH" "$@"; }
run 0 without_cuda "$amprun" step "$work/dropout.so" --weights "$work/dropout.start" --inputs "$work/dropout.in" --steps 3
says '"step": 3'
if [[ -z $(ldconfig -p 2>/dev/null | grep libcuda.so.1) ]]; then
    run 1 without_cuda "$amprun" step "$work/dropout.so" --weights "$work/dropout.start" --inputs "$work/dropout.in" --device cuda
    says 'libcuda.so.1' 'driver'
else
    skipped 'this machine has a driver: what is said without one is not tested'
fi
# A driver but no NVRTC: kernels that are compiled already run, others cannot be made.
run 1 on 90 env AMPC_CACHE_DIR="$work/empty" NVRTC_PATH="$work/empty" "$amprun" step "$work/dropout.so" \
    --weights "$work/dropout.start" --inputs "$work/dropout.in" --device cuda
says 'NVRTC' "$work/empty"
run 0 on 90 env AMPC_CACHE_DIR="$work/empty" NVRTC_PATH="$work/empty" "$amprun" step "$work/images.so" \
    --weights "$work/tiny.start" --inputs "$work/dropout.in" --device cuda --steps 2
says '"step": 2'
# What its machine code needs is told of the file and of the source alike.
run 0 "$ampc" explain "$work/images.so"
says 'on CUDA' 'sm_80: ' ' registers, ' 'no spills'
told=$out
run 0 "$ampc" explain "$work/tiny.amp" --gpu-arch sm_80
expect 'explain of the source' "$told" "$out"
run 0 "$ampc" explain "$work/images.so" --json "$work/images.json"
holds 'JSON has registers' python3 - "$work/images.json" <<'CHECK'
import json, sys
kernels = [k for d in json.load(open(sys.argv[1]))["decisions"] for k in d["cuda_kernels"]]
assert kernels and all(k["arch"] == "sm_80" and 0 < k["registers"] <= 255 and k["spill_bytes"] == 0 for k in kernels)
CHECK
run 2 "$ampc" explain "$work/images.so" --gpu-arch sm_80
says 'is compiled already' 'source'
finish
