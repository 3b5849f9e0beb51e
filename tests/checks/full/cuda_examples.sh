#!/usr/bin/env bash
# The models of examples/ at small sizes on CUDA, under the stand-in for the driver: losses, gradients and updates are
# the CPU's within the bounds of cuda.bash, a step is one launch of a graph, no kernel spills, and no warp executes more
# than 30,000 instructions. Some models amplify roundings: with batch norm over as few pixels as here, weights that are
# one unit in the last place off give gradients that are 1e-2 off. So the CPU takes the same steps from three starts
# that are off by as much, and twice what that changes is allowed where it is more than the bound.
#
#     cuda_examples.sh                    all of them
#     cuda_examples.sh NAME:PRECISION...  these
set -uo pipefail
source tests/checks/cuda.bash
cuda_setup

# trains NAME PRECISION FILE DATA -D ...: DATA are arrays as cuda.py makes them
trains() {
    local precision=$2 name=example-$1 model start what="$1 $2" arch draw
    local file=$3 arrays=$4 batch
    model=$work/$name start=$model.start
    shift 4
    batch=${arrays#*:} batch=${batch%%[x: ]*}
    [[ -s $model.in ]] || cuda_py data "$model.in" 1 $arrays
    run 0 "$ampc" "examples/$file.amp" --precision "$precision" --isa v3 --gpu-arch sm_80,sm_90 -o "$model.so" "$@"
    run 0 "$ampc" explain "$model.so" --json "$model.json"
    asked "$what" spills "$model.json"
    # Two steps first, so that the optimizer's moments are as in training.
    run 0 "$amprun" train "$model.so" --data "safetensors:$model.in" --batch "$batch" --steps 2 --seed 3 --quiet \
        --save "$start" --checkpoint "$start.checkpoint"
    run 0 example_steps cpu "$name" "$precision"
    for draw in $nudges; do
        run 0 cuda_py nudge "$start.checkpoint" "$start-$draw.checkpoint" "$draw"
        run 0 cuda_py nudge "$model.in" "$model-$draw.in" "$draw"
        run 0 example_steps "nudged-$draw" "$name" "$precision"
    done
    holds "$what: steps were made" grep -q '"skipped": false' "$model-cpu.steps"
    for arch in ${archs[$precision]}; do
        run 0 example_steps "$arch" "$name" "$precision"
        asked "$what sm_$arch" steps "$model-cpu.steps" "$model-$arch.steps" "${loss_bound[$precision]}" \
            "$model"-nudged-?.steps
        asked "$what sm_$arch" grads "$model-cpu.grads" "$model-$arch.grads" "${param_bound[$precision]}" \
            "$model"-nudged-?.grads
        asked "$what sm_$arch" update "$start" "$model-cpu.params" "$model-$arch.params" "$model-cpu.grads" \
            "${param_bound[$precision]}" "$model"-nudged-?.params
        asked "$what sm_$arch" report "$work/report.json" graphs $steps
        asked "$what sm_$arch" report "$work/report.json" warps "$longest_warp"
        asked "$what sm_$arch: the stand-in's report" report "$work/report.json" clean
    done
}

steps=2 nudges='1 2 3'
declare -A archs=([fp16]='90' [bf16]='80' [tf32]='80' [fp32]='90')

# example_steps DEVICE-ARCH|cpu|nudged-SEED NAME PRECISION: $work/NAME-DEVICE.{steps,params,grads}
example_steps() {
    local to=$work/$2-$1 on=() scale=() from=$work/$2.start inputs=$work/$2
    [[ $3 != fp16 ]] || scale=(--scale 1024)
    case $1 in
    cpu) ;;
    nudged-*) from+=-${1#*-} inputs+=-${1#*-} ;;
    *) on=(--device cuda) ;;
    esac
    local command=("$amprun" step "$work/$2.so" --resume "$from.checkpoint" --inputs "$inputs.in"
        --steps $steps --save "$to.params" --grads "$to.grads" --force "${scale[@]}" "${on[@]}")
    ((!${#on[@]})) || command=(on "$1" "${command[@]}")
    "${command[@]}" >"$to.steps"
}

tokens() { printf 'tokens=I32:3x%d:%d targets=I32:3x%d:%d' "$1" "$2" "$1" "$2"; }

# example NAME PRECISION
example() {
    local images='targets=I32:4:7'
    case $1 in
    autoencoder) trains "$@" autoencoder/autoencoder 'x=F32:4x1x12x12' -D SIZE=12 -D W=6 -D CODE=5 ;;
    bert)
        trains "$@" bert/bert "input_ids=I32:3x9:50 token_type_ids=I32:3x9:2 attention_mask=I32:3x9:2 targets=I32:3:2" \
            -D V=50 -D LONGEST=20 -D T=9 -D C=16 -D L=1 -D H=2
        ;;
    bytes) trains "$@" gpt/bytes "$(tokens 9 256)" -D T=9 -D C=16 -D L=1 -D H=2 -D P=0.1 ;;
    gpt2) trains "$@" gpt/gpt2 "$(tokens 9 50)" -D V=50 -D T=9 -D LONGEST=12 -D C=16 -D L=1 -D H=2 ;;
    cnn) trains "$@" cnn/cnn "x=F32:4x1x8x8 $images" -D C1=21 -D C2=50 -D CLASSES=7 -D SIZE=8 ;;
    gan) trains "$@" gan/gan 'noise=F32:16x4 real=F32:16x1' ;;
    llama) trains "$@" llama/llama "$(tokens 9 50)" -D V=50 -D T=9 -D C=16 -D L=1 -D HIDDEN=40 ;;
    lstm) trains "$@" lstm/lstm "$(tokens 3 256)" -D T=3 -D C=12 -D H=16 ;;
    tabular) # sums down its rows are made by two blocks
        trains "$@" tabular/tabular \
            'numbers=F32:300x4 trade=I32:300:17 region=I32:300:11 purpose=I32:300:9 targets=I32:300:2' -D WIDE=24
        ;;
    unet) trains "$@" unet/unet 'image=F32:4x1x32x32 targets=F32:4x1x32x32' -D S=32 -D C=8 ;;
    unet-bilinear)
        trains "$@" unet/unet 'image=F32:3x1x16x16 targets=F32:3x1x16x16' -D S=16 -D C=4 -D BILINEAR=true -D GROUPS=2
        ;;
    resnet18) trains "$@" resnet/resnet18 "x=F32:8x3x16x16 targets=I32:8:7" -D W=4 -D SIZE=16 -D CLASSES=7 ;;
    resnet50) trains "$@" resnet/resnet50 "x=F32:4x3x32x32 $images" -D W=4 -D SIZE=32 -D CLASSES=7 ;;
    resnet101) trains "$@" resnet/resnet101 "x=F32:4x3x8x8 $images" -D W=4 -D SIZE=8 -D IMAGENET=false -D CLASSES=7 ;;
    esac
}

if (($# == 0)); then
    for name in autoencoder bert bytes gpt2 cnn gan llama lstm tabular resnet18; do
        for precision in fp16 bf16 tf32 fp32; do set -- "$@" "$name:$precision"; done
    done
    for name in unet unet-bilinear resnet50 resnet101; do set -- "$@" "$name:fp32"; done
fi
for given in "$@"; do example "${given%:*}" "${given#*:}"; done
finish
