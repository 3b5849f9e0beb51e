# What the checks of the CUDA path share; sourced by cuda.sh and full/cuda.sh in the repository root. Everything runs
# under the stand-in for the driver (fakecuda) with kernels that NVRTC compiles.
#
#     on ARCH COMMAND...      runs it on a stand-in of compute capability ARCH, which writes $work/report.json
#     asked WHAT COMMAND...   a question to cuda.py succeeds; what it found is printed
#     follows MODEL PRECISION ARCH STEPS [ampc option...]
#                             amprun step on CUDA follows the CPU: losses, scales, counters, masks, parameters
source tests/checks/checks.bash
export AMPC_CACHE_DIR=$work/cache
unset AMPC_CUDA_COMPILE # instructions are counted, of kernels as users get them

cuda_setup() {
    build //tools:ampc //tools:amprun //fakecuda:libcuda.so.1 //tests/parity:scaler_driver
    ampc=$bin/tools/ampc amprun=$bin/tools/amprun scaler_driver=$bin/tests/parity/scaler_driver
    export FAKECUDA_LIBRARY=$bin/fakecuda/libcuda.so.1
    quick_models
    write_models
    "$ampc" "$work/tiny.amp" --gpu-arch sm_80 -o "$work/images.so" 2>"$work/probe.err" && return
    if ! have_nvrtc; then
        printf '%s\n' "$lacking"
        skipped 'NVRTC IS NOT INSTALLED: NOTHING OF CUDA IS TESTED HERE (tools/setup --nvrtc installs it)'
    else
        failed "ampc --gpu-arch sm_80" "$(<"$work/probe.err")"
    fi
    finish
}

have_nvrtc() { ! lacks_nvrtc "$work/probe.err"; }

# dropout.amp: widths are multiples of 8; its hidden layers are never 0 but by dropout.  odd.amp: widths are multiples of
# nothing; sums of three micro-batches, clipped.  cnn.amp: four images, the weights of a step on them.  tiny.amp: one layer,
# for what is not about its steps.
write_models() {
    cat >"$work/tiny.amp" <<'AMP'
amp 1
model tiny(x: f32[N, 40]) -> logits {
    logits = linear(x; out = 10) as fc1
}
train tiny {
    input targets: i32[N]
    loss = cross_entropy(logits, targets)
    optimizer = adamw(lr = 0.002)
}
AMP
    cuda_py data "$work/tiny.start" 4 fc1.weight=F32:10x40:0.2 fc1.bias=F32:10:0.1
    layers 40 64 48 '' >"$work/dropout.amp"
    layers 37 61 43 $'clip_norm = 0.5\n    accumulate = 3' >"$work/odd.amp"
    cp examples/fashion_mnist/mlp.amp "$work/mlp.amp"
    cuda_py data "$work/dropout.in" 1 x=F32:16x40 targets=I32:16:10
    cuda_py data "$work/odd.in" 2 x=F32:16x37 targets=I32:16:10
    cuda_py data "$work/mlp.in" 3 x=F32:16x784 targets=I32:16:10
    cuda_py data "$work/dropout.start" 4 $(weights 40 64 48)
    cuda_py data "$work/odd.start" 5 $(weights 37 61 43)
    cuda_py data "$work/mlp.start" 6 $(weights 784 96 96)
    cp examples/fashion_mnist/cnn.amp "$work/cnn.amp"
    cuda_py data "$work/cnn.in" 7 x=F32:4x28x28x1 targets=I32:4:10
    "$ampc" "$work/cnn.amp" --target cpu --isa v3 -o "$work/cnn.so"
    "$amprun" train "$work/cnn.so" --data "safetensors:$work/cnn.in" --steps 1 --batch 4 --seed 3 --save "$work/cnn.start" --quiet
}

layers() {
    cat <<AMP
amp 1
model layers(x: f32[N, $1]) -> logits {
    h = dropout(sigmoid(linear(x; out = $2) as fc1); p = 0.25)
    h = dropout(sigmoid(linear(h; out = $3) as fc2); p = 0.5)
    logits = linear(h; out = 10) as fc3
}
train layers {
    input targets: i32[N]
    loss = cross_entropy(logits, targets)
    optimizer = adamw(lr = 0.002)
    $4
}
precision fp16 {
    loss_scale = dynamic(init = 1024.0, interval = 4)
}
AMP
}

# Of three layers, as cuda.py makes them.
weights() {
    printf 'fc1.weight=F32:%dx%d:%s fc1.bias=F32:%d:0.1 ' "$2" "$1" "$(deviation "$1")" "$2"
    printf 'fc2.weight=F32:%dx%d:%s fc2.bias=F32:%d:0.1 ' "$3" "$2" "$(deviation "$2")" "$3"
    printf 'fc3.weight=F32:10x%d:%s fc3.bias=F32:10:0.1 ' "$3" "$(deviation "$3")"
}
deviation() { awk -v n="$1" 'BEGIN { printf "%.4f", 1.7 / sqrt(n) }'; }

cuda_py() { python3 -B tests/checks/cuda.py "$@"; }

on() {
    local arch=$1
    shift
    tools/with-fakecuda --arch "$arch" --report "$work/report.json" "$@"
}

asked() {
    local what=$1 said
    shift
    if said=$(cuda_py "$@" 2>&1); then
        passed
        printf '%s: %s\n' "$what" "$said"
    else
        failed "$what" "$said"
    fi
}

# How far losses may be apart, relatively, and parameters, over the way that they went.
declare -A loss_bound=([fp32]=1e-6 [tf32]=1e-5 [bf16]=1e-3 [fp16]=1e-3)
declare -A param_bound=([fp32]=1e-3 [tf32]=1e-3 [bf16]=2e-2 [fp16]=2e-2)
# Instructions that a warp executes in a launch, at most. In FP32 a thread of a full-size model has 32 chains of
# multiply-adds over all of k, as the CPU has: cnn.amp's k of 3136 alone makes 100,000.
longest_warp=30000 longest_warp_in_fp32=140000

# steps_on DEVICE-ARCH|cpu MODEL STEPS [amprun option...]: $work/MODEL-DEVICE.{steps,params,values,checkpoint}
steps_on() {
    local device=$1 model=$2 steps=$3 to=$work/$2-$1
    shift 3
    local command=("$amprun" step "$work/$model.so" --inputs "$work/$model.in" --steps "$steps" --seed 7 --save "$to.params" "$@")
    if [[ $device == cpu ]]; then
        "${command[@]}" --checkpoint "$to.checkpoint" >"$to.steps" 2>"$to.err"
    else
        on "$device" "${command[@]}" --device cuda --checkpoint "$to.checkpoint" >"$to.steps" 2>"$to.err"
    fi
}

follows() {
    local model=$1 precision=$2 arch=$3 steps=$4 what="$1 $2 sm_$3" bound=${param_bound[$2]} most=$longest_warp
    shift 4
    # Norms over four images make more of a rounding than perceptrons do: TF32 rounds as FP16 does, BF16 four times as coarsely.
    case $model/$precision in
    cnn/tf32) bound=2e-2 ;;
    cnn/bf16) bound=8e-2 ;;
    esac
    run 0 "$ampc" "$work/$model.amp" --precision "$precision" --isa portable -o "$work/$model.so" "$@"
    run 0 steps_on cpu "$model" "$steps" --weights "$work/$model.start"
    run 0 steps_on "$arch" "$model" "$steps" --weights "$work/$model.start"
    asked "$what" steps "$work/$model-cpu.steps" "$work/$model-$arch.steps" "${loss_bound[$precision]}"
    asked "$what" params "$work/$model.start" "$work/$model-cpu.params" "$work/$model-$arch.params" "$bound"
    [[ $precision != fp32 ]] || most=$longest_warp_in_fp32
    asked "$what" report "$work/report.json" warps "$most"
    asked "$what: the stand-in's report" report "$work/report.json" clean
    cp "$work/$model-cpu.checkpoint" "$work/from.checkpoint"
    [[ $model == dropout || $model == odd ]] || return 0
    # Masks, of the first step and of one that goes on from a checkpoint, where counters are not 0.
    run 0 steps_on cpu "$model" 1 --weights "$work/$model.start" --values 'h*' "$work/cpu.values"
    run 0 steps_on "$arch" "$model" 1 --weights "$work/$model.start" --values 'h*' "$work/cuda.values"
    asked "$what, iteration 1" zeros "$work/cpu.values" "$work/cuda.values"
    run 0 steps_on cpu "$model" 1 --resume "$work/from.checkpoint" --values 'h*' "$work/cpu.values.2"
    run 0 steps_on "$arch" "$model" 1 --resume "$work/from.checkpoint" --values 'h*' "$work/cuda.values.2"
    asked "$what, going on from the CPU's checkpoint" zeros "$work/cpu.values.2" "$work/cuda.values.2"
    asked "$what, going on from the CPU's checkpoint" steps "$work/$model-cpu.steps" "$work/$model-$arch.steps" "${loss_bound[$precision]}"
}

# Sequences for scaler_driver: SCALE TRACKER PATTERN, a 1 for each step whose gradients overflow.
#     sequences SEED COUNT INTERVAL
sequences() {
    python3 -B - "$@" <<'PYTHON'
import random, struct, sys
seed, count, interval = map(int, sys.argv[1:])
draw = random.Random(seed)
line = lambda scale, tracker, pattern: print(struct.pack(">f", scale).hex(), tracker, pattern)
for _ in range(count):
    rate = draw.choice((0.02, 0.2, 0.6))
    line(2.0 ** draw.uniform(-20, 120), draw.randint(max(0, interval - 30), interval - 1),
         "".join("01"[draw.random() < rate] for _ in range(draw.randint(5, 40))))
line(2.0 ** -20, 0, "1" * 140 + "0" * 5)         # down to the smallest scale
line(2.0 ** 120, interval - 1, "0" * 40)         # up to the largest float
PYTHON
}

# The loss scaler on the stand-in has the CPU's bits: scale, tracker, what was skipped, that a skipped step left no trace,
# and the status.     scales_alike ARCH COUNT GROWTH BACKOFF INTERVAL [min and max]
scales_alike() {
    local arch=$1 count=$2 growth=$3 backoff=$4 interval=$5 limits=${6-, min = 1.1754944e-38, max = inf} what
    what="scaler sm_$arch growth $growth backoff $backoff interval $interval$limits"
    sed "s/dynamic(.*)/dynamic(init = 65536.0, growth = $growth, backoff = $backoff, interval = $interval$limits)/" \
        tests/parity/models/scaler.amp >"$work/scaler.amp"
    run 0 "$ampc" "$work/scaler.amp" --isa portable -o "$work/scaler.so"
    sequences "$interval" "$count" "$interval" >"$work/sequences"
    "$scaler_driver" "$work/scaler.so" cpu <"$work/sequences" >"$work/scaler.cpu"
    on "$arch" "$scaler_driver" "$work/scaler.so" cuda <"$work/sequences" >"$work/scaler.cuda"
    holds "$what: steps were made" test -s "$work/scaler.cpu"
    if cmp -s "$work/scaler.cpu" "$work/scaler.cuda"; then
        passed
        printf '%s: %d sequences, %d steps, %d skipped, the same bits\n' "$what" "$(wc -l <"$work/sequences")" \
            "$(wc -l <"$work/scaler.cpu")" "$(awk '$3 == 1' "$work/scaler.cpu" | wc -l)"
    else
        failed "$what" "$(diff "$work/scaler.cpu" "$work/scaler.cuda" | head -n 6)"
    fi
}

# logged NAME [OPTION...]: trains $work/net.so, 24 steps, many with an overflow; prints how often the host waited
logged() {
    run 0 on 90 "$amprun" train "$work/net.so" --data "safetensors:$work/net.in" --batch 16 --steps 24 --seed 3 --quiet \
        --device cuda --log "$work/$1.log" --checkpoint "$work/$1.state" "${@:2}"
    waits=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["totals"]["host_synchronisations"])' \
        "$work/report.json")
}

# waits_not PARTS: steps of PARTS micro-batches, whose numbers are read after the next step has begun
waits_not() {
    local parts=$1 asked_waits few_waits
    cuda_py data "$work/net.in" 9 x=F32:960x40 targets=I32:960:10
    layers 40 64 48 "accumulate = $parts" | sed 's/    optimizer/    metric ppl = exp(loss)\n&/; s/init = 1024.0/init = 16777216.0/' \
        >"$work/net.amp"
    run 0 "$ampc" "$work/net.amp" --isa portable -o "$work/net.so"
    logged asked --profile "$work/asked.trace" # which needs the numbers of each step before the next
    asked_waits=$waits
    logged few --steps 8
    few_waits=$waits
    logged late
    expect "a log of steps that were not waited for, in $parts parts" "$(tail -n +2 "$work/asked.log")" \
        "$(tail -n +2 "$work/late.log")"
    holds "its checkpoint, in $parts parts" cmp "$work/asked.state" "$work/late.state"
    expect 'a line for each step' 24 "$(grep -c '"iteration"' "$work/late.log")"
    holds 'steps were skipped' grep -q '"skipped": true' "$work/late.log"
    holds "the host waited $waits times, $few_waits times for a third of the steps" test $((waits - few_waits)) -lt 6
    holds "where it waits for each step $asked_waits times" test $((asked_waits - waits)) -ge 24
}
