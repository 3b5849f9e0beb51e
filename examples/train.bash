# train.bash: what the examples' `train` scripts share; sourced by them.
#
#     examples/NAME/train [PRECISION [SEED]]      PRECISION: fp32 (default), bf16, fp16; SEED: 1 by default
#
# A script is called in the root of the repository with the programs built, and the folder trained/NAME for all files.
# Its last line is `NAME PRECISION seed SEED: METRIC VALUE`. AMP_TRAIN_DIR is another place for trained/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

example=$(basename "$(dirname "$0")")
precision=${1:-fp32} seed=${2:-1}
if [[ $# -gt 2 || ! $precision =~ ^(fp32|bf16|fp16)$ || ! $seed =~ ^[0-9]+$ ]]; then
    echo "usage: examples/$example/train [fp32|bf16|fp16 [SEED]]" >&2
    exit 2
fi
folder=${AMP_TRAIN_DIR:-trained}/$example
mkdir -p "$folder"
ampc=bazel-bin/tools/ampc amprun=bazel-bin/tools/amprun
tools/setup
bazel build --ui_event_filters=-info --noshow_progress //tools:ampc //tools:amprun "//examples/$example/..."

# compile MODEL [OPTION...]: examples/NAME/MODEL.amp in the script's precision, as $model
compile() {
    model=$folder/$1-$precision.so
    "$ampc" "examples/$example/$1.amp" --precision "$precision" "${@:2}" -o "$model"
}

# train OPTION...: trains $model by the script's seed, with the parameters in $weights
train() {
    weights=$folder/$(basename "$model" .so)-$seed.safetensors
    "$amprun" train "$model" --seed "$seed" --save "$weights" --force "$@"
}

# evaluated METRIC OPTION...: the metric of $model with $weights
evaluated() {
    "$amprun" eval "$model" --weights "$weights" "${@:2}" |
        python3 -c 'import json, sys; print("%.4g" % json.load(sys.stdin)[sys.argv[1]])' "$1"
}

# find_text: $text is TEXT, or Debian's King James Bible, a file without chapter and verse in the script's folder
find_text() {
    text=${TEXT:-$folder/text.txt}
    [[ -e $text ]] && return
    if ! command -v bible >/dev/null; then
        echo "$example: install the packages bible-kjv and bible-kjv-text, or give TEXT=FILE" >&2
        exit 1
    fi
    bible -f 'gen1:1-rev22:21' | sed 's/^[^ ]* //' >"$text"
}

# find_fashion: $fashion is FASHION_MNIST, or the folder of Debian's dataset
find_fashion() {
    fashion=${FASHION_MNIST:-/usr/share/datasets/fashion-mnist}
    [[ -d $fashion ]] && return
    echo "$example: install the package dataset-fashion-mnist, or give FASHION_MNIST=FOLDER" >&2
    exit 1
}

# report METRIC VALUE: the last line
report() { echo "$example $precision seed $seed: $1 $2"; }
