#!/usr/bin/env bash
# amprun on data of its own kinds: what training, evaluation and going on make of tokens; wrong files and wrong words.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun
ampc=$bin/tools/ampc amprun=$bin/tools/amprun

# ---- tokens --------------------------------------------------------------------------------------

cat >"$work/text.amp" <<'MODEL'
amp 1
model text(ids: i32[N, 16]) -> logits {
    x = embedding(ids; count = 128, dim = 16) as embed
    logits = linear(x; out = 128) as head
}
train text {
    input next: i32[N, 16]
    loss = cross_entropy(reshape(logits; shape = [16 * N, 128]), reshape(next; shape = [16 * N]))
    optimizer = adamw(lr = 0.01)
}
MODEL
so=$work/text.so text=$work/text.txt
run 0 "$ampc" "$work/text.amp" --isa portable --target cpu -o "$so"
python3 - "$work" <<'DATA'
import random, struct, sys
random.seed(1)
words = "we the people of a more perfect union in order to form do and".split()
text = " ".join(random.choice(words) for _ in range(4000)).encode()
open(sys.argv[1] + "/text.txt", "wb").write(text)
open(sys.argv[1] + "/text.u16", "wb").write(struct.pack(f"<{len(text)}H", *text))
open(sys.argv[1] + "/other.txt", "wb").write(text[:900])
open(sys.argv[1] + "/utf8.txt", "wb").write(text[:500] + "é".encode() + text[500:])
DATA
run 0 "$amprun" train "$so" --data "tokens:$text" --epochs 2 --batch 16 --seed 3 --save "$work/a.st"
says 'test loss'
holds 'two epochs have learnt which letters follow' awk '/^epoch 2/ { exit !($8 < 2.6) }' "$work/.out"
run 0 "$amprun" train "$so" --data "tokens:$work/text.u16,type=u16" --epochs 2 --batch 16 --seed 3 --save "$work/b.st"
holds 'ids of 16 bits are the same text' cmp "$work/a.st" "$work/b.st"
run 0 "$amprun" train "$so" --data "tokens:$text" --epochs 2 --batch 16 --seed 4 --save "$work/b.st"
holds 'another seed draws other windows' bash -c '! cmp -s "$1" "$2"' - "$work/a.st" "$work/b.st"
# Batches are filled on a thread where there is a processor for it.
run 0 taskset -c 0 "$amprun" train "$so" --data "tokens:$text" --epochs 2 --batch 16 --seed 3 --save "$work/b.st"
holds 'the same bits on one processor, where no thread fills batches' cmp "$work/a.st" "$work/b.st"
run 0 "$amprun" train "$so" --data "tokens:$text" --steps 61 --batch 16 --seed 3 --checkpoint "$work/c.ck"
run 0 "$amprun" train "$so" --data "tokens:$text" --epochs 2 --resume "$work/c.ck" --save "$work/b.st"
holds 'going on gives the bits of the uninterrupted run' cmp "$work/a.st" "$work/b.st"
run 1 "$amprun" train "$so" --data "tokens:$text,held=0.3" --epochs 2 --resume "$work/c.ck"
says 'samples' 'give the same data'

# samples_of SPEC: how many eval takes
samples_of() { "$amprun" eval "$so" --weights "$work/a.st" --data "$1" | sed 's/.*"samples": \([0-9]*\).*/\1/'; }
size=$(stat -c %s "$text")
expect 'eval takes the tail' $(((size - (9 * size + 5) / 10 - 1) / 16)) "$(samples_of "tokens:$text")"
expect 'held=0: eval takes all' $(((size - 1) / 16)) "$(samples_of "tokens:$text,held=0")"
expect 'so many windows' 12 "$(samples_of "tokens:$text,held=12")"
run 0 "$amprun" train "$so" --data "tokens:$text" --eval-split 0.5 --epochs 1
says 'test loss'
run 0 "$amprun" train "$so" --data "tokens:$text" --eval-data "tokens:$work/other.txt" --epochs 1
says 'test loss'
run 0 "$amprun" train "$so" --data "tokens:$text,held=0" --epochs 1
expect 'held=0: nothing is evaluated' '' "$(grep 'test loss' "$work/.out")"
run 1 "$amprun" train "$so" --data "tokens:$text,held=0.1" --eval-split 0.1
says 'held= and --eval-split both say what is held out'
run 1 "$amprun" train "$so" --data "tokens:$work/utf8.txt"
says "$work/utf8.txt: token 500 (byte 500) is 195, but the model's input ids takes ids from 0 to 127"
says 'a vocabulary of 196'
run 1 "$amprun" train "$so" --data "tokens:$work/none"
says "$work/none: cannot open: No such file"
run 1 "$amprun" train "$so" --data "tokens:$work"
says "$work: cannot read: Is a directory"
run 1 "$amprun" train "$so" --data "tokens:$text,type=float"
says 'type=float: u8 (bytes), u16 or u32 are read'
run 1 "$amprun" train "$so" --data "tokens:$text,windows=7"
says 'there is no option windows; there are type=, held='
head -c 16 "$text" >"$work/short"
run 1 "$amprun" train "$so" --data "tokens:$work/short,held=0"
says 'holds 16 tokens; one window takes 17'
: >"$work/empty"
run 1 "$amprun" train "$so" --data "tokens:$work/empty"
says "$work/empty: is empty"
run 2 "$amprun" train "$so" --data "tokens:$text" --steps 1 --save "$text"
says '--save' "$text"
finish
