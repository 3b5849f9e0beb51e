#!/usr/bin/env bash
# The examples as their READMEs say to build and run them, with an installed ampc and pkg-config; and as Bazel builds
# them: embed_compile.
#
#     examples.sh --full     what Bazel builds of all of them, and the largest networks: full/examples.sh
# Takes long.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun //runtime:amp_static //compiler:ampc_static //examples/...
pkg_config_of_archives
export PATH=$bin/tools:$PATH
full=0
[[ ${1:-} != --full ]] || full=1

# built FOLDER NAME: the program that the README builds, and the one that Bazel does
built() {
    echo "$work/$2"
    ((!full)) || echo "$bin/examples/$1/$2"
}

# for models that are compiled and not run
quick=(--isa portable --cc "$PWD/tests/random/cc_unoptimised")

# The commands of README $1 that begin with $2, made to write in this run's folder.
command_of() { grep -E "^$2 " "examples/$1/README.md" | sed "s#-o \\([a-z_]*\\)\$#-o $work/\\1#"; }

run 0 "$bin/tools/ampc" examples/fashion_mnist/mlp.amp --target cpu --isa v3 -o "$work/mlp.so"

# the program that amp/amp.h begins with, on amp/amp.h alone
sed -n 's/^ \*     //p' runtime/include/amp/amp.h | sed -n '/^#include <stdio.h>/,/^}/p' >"$work/xor.c"
cat >"$work/xor.amp" <<'MODEL'
amp 1
model xor(x: f32[N, 2]) -> y { y = linear(tanh(linear(x; out = 8) as a); out = 2) as b }
train xor {
    input t: i32[N]
    loss = cross_entropy(y, t)
    optimizer = adamw(lr = 0.01)
}
MODEL
run 0 ampc "$work/xor.amp" -o "$work/xor.so"
run 0 cc -std=c99 -Wall -Wextra -Werror -pedantic -Iruntime/include -Ibase/include "$work/xor.c" \
    "$bin/runtime/libamp.a" -lpthread -ldl -lm -o "$work/xor"
run 0 env -C "$work" ./xor
expect 'the program of amp.h trains' trained "$out"
holds 'and saves' test -s "$work/xor.safetensors"

# embed_train: under 100 lines, on public headers alone
expect 'embed_train.c is short' 1 "$(($(wc -l <examples/embed_train/embed_train.c) < 100))"
expect 'embed_train.c includes public headers of ours alone' '#include "amp/amp.h"
#include "amp/inspect.h"' \
    "$(grep '#include "' examples/embed_train/embed_train.c)"
line=$(command_of embed_train cc)
expect 'the README has one cc line' 1 "$(wc -l <<<"$line")"
expect 'no README needs the source tree for its commands' '' "$(grep -lE 'bazel-bin|-I[a-z]+/include' examples/*/README.md)"
run 0 bash -c "$line -Wall -Wextra -Werror -pedantic"
for program in $(built embed_train embed_train); do
    (cd "$work" && rm -f trained.safetensors)
    run 0 bash -c 'cd "$1" && "$2" mlp.so' - "$work" "$program"
    says 'fc1.linear' 'because {lower, ' 'step   0  loss 2.' 'step 199  loss 0.0' 'saved trained.safetensors'
    holds 'the weights were saved' test -s "$work/trained.safetensors"
done
run 2 "$work/embed_train"
says 'usage: embed_train MODEL.so'
run 1 "$work/embed_train" "$work/none.so"
says 'embed_train: ' 'none.so'

# embed_infer: what amprun has trained, on the test pictures; the share of right classes is the accuracy that amprun
# prints
fashion=${FASHION_MNIST:-/usr/share/datasets/fashion-mnist}
line=$(command_of embed_infer cc)
run 0 bash -c "$line -Wall -Wextra -Werror -pedantic"
if [[ -d $fashion ]]; then
    run 0 "$bin/tools/amprun" train "$work/mlp.so" --data "idx:$fashion" --steps 100 --quiet --save "$work/mlp.safetensors"
    run 0 "$bin/tools/amprun" eval "$work/mlp.so" --data "idx:$fashion" --weights "$work/mlp.safetensors"
    told=$(python3 -c 'import json, sys; print("%.4f" % json.loads(sys.argv[1])["acc"])' "$out")
    run 0 bash -c 'zcat "$1/t10k-images-idx3-ubyte.gz" | "$2/embed_infer" "$2/mlp.so" "$2/mlp.safetensors" >"$2/classes"' - "$fashion" "$work"
    expect 'embed_infer finds the classes that amprun eval counts' "$told" "$(python3 - "$fashion" "$work/classes" <<'PYTHON'
import gzip, sys
labels = gzip.open(sys.argv[1] + "/t10k-labels-idx1-ubyte.gz").read()[8:]
classes = [int(line) for line in open(sys.argv[2])]
print(f"{sum(a == b for a, b in zip(labels, classes, strict=True)) / len(labels):.4f}")
PYTHON
)"
else
    skipped 'no Fashion-MNIST here'
fi
run 1 bash -c 'printf wrong | "$1/embed_infer" "$1/mlp.so" "$1/mlp.safetensors"' - "$work"
says 'embed_infer: '

# embed_compile: compiles from a string and trains, in one process
line=$(command_of embed_compile cc)
expect 'the README has one cc line' 1 "$(wc -l <<<"$line")"
run 0 bash -c "$line -Wall -Wextra -Werror -pedantic"
for program in "$work/embed_compile" "$bin/examples/embed_compile/embed_compile"; do
    run 0 bash -c '"$2" "$1/xor.so"' - "$work" "$program"
    says 'xor after 500 steps: loss 0.0' 'accuracy 1.00'
done

# hand_over: one thread trains, two answer; each answer belongs to one version
line=$(command_of hand_over cc)
run 0 bash -c "$line -Wall -Wextra -Werror -pedantic"
run 0 "$work/hand_over" "$work/mlp.so"
says 'version 2: ' 'version 11: ' 'server 0: ' 'server 1: '
run 2 "$work/hand_over"
says 'usage: hand_over MODEL.so'
# own_data: a table in arrays, and the same arrays in files for amprun
line=$(command_of own_data cc)
run 0 bash -c "$line -Wall -Wextra -Werror -pedantic"
run 0 "$bin/tools/ampc" examples/own_data/flowers.amp --isa portable -o "$work/flowers.so"
for program in $(built own_data own_data); do
    (cd "$work" && rm -f train.safetensors test.safetensors flowers.safetensors)
    run 0 bash -c 'cd "$1" && "$2" flowers.so "$3"' - "$work" "$program" "$PWD/examples/own_data/flowers.csv"
    says 'epoch 60: loss 0.0' 'right on 30 of 30 lines'
done
while read -r words; do # what its README does with amprun
    run 0 bash -c "cd '$work' && $words"
done < <(grep -E '^amprun ' examples/own_data/README.md)
says '"samples": 30' '"acc": 1'
run 1 "$work/own_data" "$work/flowers.so" examples/own_data/README.md
says 'own_data: the table cannot be read'

# several_results: two results, two losses
line=$(command_of several_results cc)
run 0 bash -c "$line -Wall -Wextra -Werror -pedantic"
run 0 "$bin/tools/ampc" examples/several_results/points.amp --isa portable -o "$work/points.so"
for program in $(built several_results several_results); do
    run 0 "$program" "$work/points.so"
    says 'step 600: classes 0.0' 'distances 0.00' '(0.5, 0.5): quadrant 0, distance 0.7' \
        '(-0.6, 0.3): quadrant 1, distance 0.7' '(0.3, -0.8): quadrant 2, distance 0.9'
done
run 1 "$work/several_results" "$work/flowers.so"
says 'several_results: '

# gan: two networks, each trained by its own block
line=$(command_of gan cc)
run 0 bash -c "$line -Wall -Wextra -Werror -pedantic"
run 0 "$bin/tools/ampc" examples/gan/gan.amp --isa portable -o "$work/gan.so"
run 0 "$work/gan" "$work/gan.so"
holds 'what it makes has the mean and the deviation of what is real' python3 -c '
import re, sys
mean, deviation = map(float, re.search(r"step 3000: makes (\S+) \+- (\S+),", sys.argv[1]).groups())
assert abs(mean - 3) < 0.4 and 0.25 < deviation < 0.8' "$out"

# hot_reload: by itself (100 edits: full/hot_reload.sh), and beside a reader's editor
line=$(command_of hot_reload cc)
run 0 bash -c "$line -Wall -Wextra -Werror -pedantic"
for program in $(built hot_reload hot_reload); do
    run 0 bash -c 'cd "$1" && "$2" "$3" 2' - "$work" "$program" "$PWD/examples/hot_reload/scores.amp"
    says '2 edits, each served' ' 0 failed'
done
cp examples/hot_reload/scores.amp "$work/scores.amp"
# edit TEXT: an edit of the file that serves, and the time that compiling it takes
edit() { sleep 2 && sed -i "$1" "$work/scores.amp"; }
run 0 bash -c 'cd "$1" && ./hot_reload scores.amp' - "$work" < <(edit 's/= 8/= 9/' && edit 's/relu/rleu/' && edit 's/rleu/tanh/' && sleep 2)
expect 'each version that compiles serves' 3 "$(grep -c '^scores.amp serves$' <<<"$out")"
says "no block, layer or op 'rleu'"

# server: answers on a socket; other weights at SIGHUP while requests come; ends at SIGTERM
line=$(command_of server cc)
run 0 bash -c "$line -Wall -Wextra -Werror -pedantic"
if [[ -d $fashion ]]; then
    run 0 python3 tests/checks/server_client.py "$work/server" "$work/mlp.so" "$bin/tools/amprun" "$fashion" "$work"
    says 'version 1, then 2' 'wrong weights are refused, version 2 stays' 'ended by SIGTERM: 0'
else
    skipped 'no Fashion-MNIST here'
fi
run 2 "$work/server"
says 'usage: server MODEL.so'

# embed_cpp: two results, in C++; the headers are clean for both compilers and both standards
line=$(command_of embed_cpp 'c[+][+]')
expect 'the README has one c++ line' 1 "$(wc -l <<<"$line")"
run 0 bash -c "$line -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Werror"
for compiler in g++ clang++; do
    if links $compiler vector; then
        for standard in 17 20; do
            [[ $compiler$standard != g++17 ]] || continue # just now
            run 0 bash -c "${line/#c++ -std=c++17/$compiler -std=c++$standard} -fsyntax-only -Wall -Wextra -Wpedantic \
                -Wconversion -Wsign-conversion -Wshadow -Werror -Wno-unused-command-line-argument"
        done
    else
        skipped "$lacking"
    fi
done
for program in $(built embed_cpp embed_cpp); do
    run 0 "$program" "$work"
    says 'step 400: loss 0.0' 'features: 3 x 32' 'point 0 is in sector 0' 'point 1 is in sector 1' 'point 2 is in sector 2'
done
run 1 "$work/embed_cpp" "$work/none"
says 'embed_cpp: ' "$work/none/sectors.so"

# gpt: a sentence, learnt by heart
line=$(command_of gpt cc)
run 0 bash -c "$line -Wall -Wextra -Werror -pedantic"
python3 -c 'print("the quick brown fox jumps over the lazy dog. " * 200, end="")' >"$work/fox.txt"
run 0 "$bin/tools/ampc" examples/gpt/bytes.amp -D LONGEST=16 -D C=32 -D L=1 -D H=2 -D STEPS=200 --isa portable -o "$work/bytes.so"
run 0 "$bin/tools/amprun" train "$work/bytes.so" --data "tokens:$work/fox.txt" --batch 32 --steps 200 --quiet --save "$work/bytes.safetensors"
for program in $(built gpt sample); do
    run 0 bash -c 'printf "the quick" | "$1" "$2/bytes.so" "$2/bytes.safetensors" 60 0.1' - "$program" "$work"
    says 'the quick brown fox jumps over the lazy dog. the quick brown'
done
run 1 "$work/sample" "$work/mlp.so" "$work/bytes.safetensors"
says 'sample: mlp: input 0 is x: f32[N, 784]; the program was written for i32[N, 784]'
run 2 "$work/sample"
says 'usage: sample MODEL.so'
run 0 "$bin/tools/ampc" examples/gpt/gpt2.amp -D V=50 -D T=8 -D LONGEST=9 -D C=16 -D L=2 -D H=2 "${quick[@]}" -o "$work/gpt2.so"

# llama
run 0 "$bin/tools/ampc" examples/llama/llama.amp -D V=50 -D C=16 -D L=2 -D HIDDEN=40 -D TIED=true "${quick[@]}" -o "$work/llama.so"

# bert
run 0 "$bin/tools/ampc" examples/bert/bert.amp -D V=50 -D LONGEST=20 -D T=8 -D C=16 -D L=2 -D H=2 "${quick[@]}" -o "$work/bert.so"
run 0 bash -c "$(command_of bert cc) -Wall -Wextra -Werror -pedantic"
run 0 "$work/sentences" 300 1 "$work/pairs"
says 'it watched / the princess heard the man -> 2'
run 0 "$bin/tools/ampc" examples/bert/small.amp -D C=16 -D L=1 --isa portable -o "$work/small.so"
run 0 "$bin/tools/amprun" train "$work/small.so" --data "safetensors:$work/pairs" --batch 100 --epochs 1 --quiet

# tabular: as its README describes, on a smaller table; the network sees what the baseline cannot
run 0 bash -c "$(command_of tabular cc) -Wall -Wextra -Werror -pedantic"
"$work/loans" 8000 1 >"$work/loans.csv"
while read -r words; do
    run 0 bash -c "cd '$work' && ${words/examples/$PWD/examples}"
done < <(grep -E '^(ampc|amprun) ' examples/tabular/README.md)
run 0 "$bin/tools/ampc" examples/tabular/linear.amp --isa portable -o "$work/linear.so"
run 0 "$bin/tools/amprun" train "$work/linear.so" --data "csv:$work/loans.csv,schema=examples/tabular/loans.schema" \
    --batch 256 --steps 500 --quiet --save "$work/linear.safetensors"
accuracy() { "$bin/tools/amprun" eval "$work/$1.so" --data "csv:$work/loans.csv" --weights "$work/$1.safetensors"; }
run 0 python3 -c 'import json, sys
network, baseline = (json.loads(line)["acc"] for line in sys.argv[1:])
assert network > 0.8 > 0.65 > baseline, (network, baseline)' "$(accuracy tabular)" "$(accuracy linear)"

# lstm: the same sentence; a bigram model of it needs 1.76 bits for each byte
run 0 "$bin/tools/ampc" examples/lstm/lstm.amp -D T=16 -D C=16 -D H=64 -D STEPS=600 --isa portable -o "$work/lstm.so"
run 0 "$bin/tools/amprun" train "$work/lstm.so" --data "tokens:$work/fox.txt" --batch 32 --steps 600 --quiet --save "$work/lstm.safetensors"
run 0 bash -c 'printf "the quick" | "$1" "$2/lstm.so" "$2/lstm.safetensors" 60 0.1' - "$bin/examples/gpt/sample" "$work"
says 'the quick brown fox jumps over the lazy dog. the quick brown'
run 0 python3 examples/lstm/bigram.py "$work/fox.txt" 0.1
says 'a bigram model: '
run 1 python3 examples/lstm/bigram.py "$work/fox.txt" 7.9

# unet: pictures, and a few steps on them
line=$(command_of unet cc)
run 0 bash -c "$line -Wall -Wextra -Werror -pedantic"
for program in $(built unet shapes); do
    run 0 "$program" "$work/shapes.safetensors" 64 1 16
done
run 0 "$bin/tools/ampc" examples/unet/unet.amp -D S=16 -D C=4 -D BILINEAR=true -D GROUPS=2 --isa portable -o "$work/unet.so"
run 0 "$bin/tools/amprun" train "$work/unet.so" --data "safetensors:$work/shapes.safetensors" --batch 16 --steps 8 --quiet --save "$work/unet.safetensors"
run 0 "$bin/tools/amprun" eval "$work/unet.so" --data "safetensors:$work/shapes.safetensors" --weights "$work/unet.safetensors"
says '"samples": 64' '"dice": 0.'
run 2 "$work/shapes" "$work/shapes.safetensors" 0 1
says 'usage: shapes FILE COUNT SEED'
run 1 "$work/shapes" "$work/none/shapes.safetensors" 1 1
says 'shapes: ' 'cannot be written'

# convolutional networks, at small sizes
small() { run 0 "$bin/tools/ampc" "examples/$1/$2.amp" "${@:3}" "${quick[@]}" -o "$work/$2.so"; }
small resnet resnet18 -D W=4 -D SIZE=12 -D MARGIN=2 -D ZERO_INIT=true
small resnet resnet50 -D W=4 -D SIZE=64
((!full)) || small resnet resnet101 -D W=4 -D SIZE=16 -D IMAGENET=false
small cnn cnn -D C1=21 -D C2=50
small autoencoder autoencoder -D W=4

# train: what all of these scripts share
for script in examples/*/train; do
    run 2 "$script" fp8
    says "usage: $script [fp32|bf16|fp16 [SEED]]"
done
finish
