#!/usr/bin/env bash
# amprun on data of its own kinds: what training, evaluation and going on make of tokens and tables; wrong files and
# wrong words.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun
ampc=$bin/tools/ampc amprun=$bin/tools/amprun
quick_models

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
# Batches are filled on a thread where that takes time, as of a large file, and where there is a processor for it.
python3 -c 'import sys; sys.stdout.buffer.write(open(sys.argv[1], "rb").read() * 4000)' "$text" >"$work/large.txt"
run 0 "$amprun" train "$so" --data "tokens:$work/large.txt,held=0" --steps 40 --seed 3 --save "$work/b.st"
run 0 taskset -c 0 "$amprun" train "$so" --data "tokens:$work/large.txt,held=0" --steps 40 --seed 3 --save "$work/on.st"
holds 'the same bits on one processor, where no thread fills batches' cmp "$work/b.st" "$work/on.st"
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
expect 'the number of windows' 12 "$(samples_of "tokens:$text,held=12")"
run 0 "$amprun" train "$so" --data "tokens:$text" --eval-split 0.5 --epochs 1
says 'test loss'
run 0 "$amprun" train "$so" --data "tokens:$text" --eval-data "tokens:$work/other.txt" --epochs 1
says 'test loss'
run 0 "$amprun" train "$so" --data "tokens:$text,held=0" --epochs 1
expect 'held=0: nothing is evaluated' '' "$(grep 'test loss' "$work/.out")"
# A file that is cut while it is trained, with batches ahead: what was learnt until then is kept.
"$amprun" train "$so" --data "tokens:$work/large.txt,held=0" --steps 1000000 --quiet --save "$work/cut.st" \
    --log "$work/cut.log" 2>"$work/cut.err" &
for _ in {1..600}; do
    [[ ! -s $work/cut.log ]] || (($(wc -l <"$work/cut.log") < 5)) || break
    sleep 0.05
done
truncate -s 5000 "$work/large.txt"
wait $!
expect 'a file that is cut ends training' 1 $?
out='' err=$(<"$work/cut.err")
says 'the file has become shorter while it was read' 'training ended after step'
says "its parameters are in $work/cut.st"
holds 'what was learnt is there' test -s "$work/cut.st"
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

# ---- texts of different lengths -------------------------------------------------------------------

cat >"$work/lines.amp" <<'MODEL'
amp 1
size T = 64, unit = 4
model lines(ids: i32[N, T]) -> logits {
    x = embedding(ids; count = 128, dim = 16) as embed
    x = x + (self_attention(x; heads = 2, causal = true) as attention)
    logits = linear(x; out = 128) as head
}
train lines {
    input next: i32[N, T]
    loss = cross_entropy(logits, next; ignore = -100)
    optimizer = adamw(lr = 0.01)
}
MODEL
so=$work/lines.so lines=$work/lines.txt
run 0 "$ampc" "$work/lines.amp" --isa portable --target cpu -o "$so"
python3 - "$work" <<'DATA'
import json, random, struct, sys
random.seed(2)
words = "we the people of a more perfect union in order to form do and".split()
lines = [" ".join(random.choice(words) for _ in range(random.randint(1, 12))).encode() for _ in range(600)]
open(sys.argv[1] + "/lines.txt", "wb").write(b"".join(line + b"\n" for line in lines))
# The texts of evaluation once more, as arrays with lengths.
rows = [(b"\n" + line + b"\n")[:65] for line in lines[:40]]
padded = [list(row) + [9] * (65 - len(row)) for row in rows]
arrays = {"ids": [row[:64] for row in padded], "next": [row[1:] for row in padded],
          "lengths": [len(row) - 1 for row in rows]}
header, data = {}, b""
for name, v in arrays.items():
    flat = [x for r in v for x in r] if name != "lengths" else v
    header[name] = {"dtype": "I32", "shape": [40] + ([64] if name != "lengths" else []),
                    "data_offsets": [len(data), len(data) + 4 * len(flat)]}
    data += struct.pack(f"<{len(flat)}i", *flat)
text = json.dumps(header).encode()
open(sys.argv[1] + "/lines.st", "wb").write(struct.pack("<Q", len(text)) + text + data)
open(sys.argv[1] + "/first.txt", "wb").write(b"".join(line[:63] + b"\n" for line in lines[:40]))
DATA
buckets=(--data "tokens:$lines,split=10" --tokens 512 --seed 3)
run 0 "$amprun" train "$so" "${buckets[@]}" --epochs 2 --save "$work/l.st" --log "$work/l.log"
says 'test loss'
run 0 taskset -c 0 "$amprun" train "$so" "${buckets[@]}" --epochs 2 --threads 3 --save "$work/on.st"
holds 'the same bits on any number of threads' cmp "$work/l.st" "$work/on.st"
run 0 "$amprun" train "$so" "${buckets[@]}" --steps 30 --checkpoint "$work/l.ck" --log "$work/on.log"
run 0 "$amprun" train "$so" "${buckets[@]::2}" --epochs 2 --resume "$work/l.ck" --save "$work/on.st" \
    --log "$work/on.log"
holds 'going on gives the bits of the uninterrupted run' cmp "$work/l.st" "$work/on.st"
holds 'and its log' cmp <(grep '"iteration"' "$work/l.log") <(grep '"iteration"' "$work/on.log")
run 1 "$amprun" train "$so" "${buckets[@]::2}" --tokens 600 --epochs 2 --resume "$work/l.ck"
says "--tokens 600: $work/l.ck was written with --tokens 512" 'or give --allow other-batch'
run 1 "$amprun" train "$so" --data "tokens:$lines,split=10" --tokens 60
says '--tokens 60: a sample of' 'has 64; give as many'
# Two ranks, whose batches differ in n and t, take the steps of one process that accumulates.
sed 's/optimizer/accumulate = 2\n    &/' "$work/lines.amp" >"$work/twice.amp"
run 0 "$ampc" "$work/lines.amp" --isa portable --target cpu --distribute data -o "$work/ranks.so"
run 0 "$ampc" "$work/twice.amp" --isa portable --target cpu -o "$work/twice.so"
ranks=("${buckets[@]}" --steps 6 --threads 1 --dist files --dist-folder "$work/meet")
"$amprun" train "$work/ranks.so" "${ranks[@]}" --dist-rank 1/2 &
run 0 "$amprun" train "$work/ranks.so" "${ranks[@]}" --dist-rank 0/2 --save "$work/r.st"
wait
run 0 "$amprun" train "$work/twice.so" "${buckets[@]}" --steps 6 --save "$work/r1.st"
holds 'ranks with other lengths have the bits of one process' cmp "$work/r.st" "$work/r1.st"
# Evaluated in buckets, one by one, and from arrays: the loss is the same, which padding does not change.
losses() { sed 's/.*"loss": \([0-9.]\{6\}\).*/\1/' <("$amprun" eval "$so" --weights "$work/l.st" "$@"); }
first=tokens:$work/first.txt,split=10,held=0
loss=$(losses --data "$first")
expect 'the loss of one text after the other' "$loss" "$(losses --data "$first" --batch 1)"
expect 'the loss of arrays with lengths' "$loss" "$(losses --data "safetensors:$work/lines.st" --tokens 128)"
run 0 "$amprun" infer "$so" --weights "$work/l.st" --inputs "$work/lines.st" --outputs "$work/o.st" --tokens 200
run 0 "$amprun" infer "$so" --weights "$work/l.st" --inputs "$work/lines.st" --outputs "$work/o1.st" --batch 1
holds 'results of buckets are where their samples are' python3 - "$work" <<'CHECK'
import struct, sys
def floats(name):
    data = open(f"{sys.argv[1]}/{name}.st", "rb").read()
    data = data[8 + struct.unpack("<Q", data[:8])[0]:]
    return struct.unpack(f"<{len(data) // 4}f", data)
one, other = floats("o"), floats("o1")
assert len(one) == len(other) and max(map(abs, one)) > 1 and max(abs(a - b) for a, b in zip(one, other)) < 1e-4
CHECK
run 0 "$amprun" info "$so" --tokens auto --batch 64 --memory 3M --json
holds 'info --tokens auto: as many fit, no more do, and all would not' python3 - "$work/.out" <<'CHECK'
import json, sys
found = json.load(open(sys.argv[1]))["models"][0]
assert 512 < found["tokens"] < 64 * 64 and found["next_tokens"] == found["tokens"] + 4
assert found["memory"]["total"] <= 3e6 < found["next_total"]
CHECK
run 2 "$amprun" info "$so" --tokens auto
says 'and --memory BYTES together'
run 2 "$amprun" train "$so" --data "tokens:$lines,split=10" --tokens auto
says 'takes a number as --tokens'
run 1 "$amprun" info "$work/text.so" --tokens 512
says 'has no `size T`, which --tokens is for'
run 1 "$amprun" train "$so" --data "safetensors:$work/lines.st" --length 32
says "$work/lines.st: lengths[" 'T is from 1 to 32'

# ---- tables --------------------------------------------------------------------------------------

cat >"$work/buy.amp" <<'MODEL'
amp 1
model buy(numbers: f32[N, 2], job: i32[N]) -> logits {
    j = embedding(job; count = 4, dim = 4) as jobs
    h = relu(linear(concat(numbers, j; dim = 1); out = 16) as fc1)
    logits = linear(h; out = 2) as fc2
}
train buy {
    input bought: i32[N]
    loss = cross_entropy(logits, bought)
    metric acc = accuracy(logits, bought)
    optimizer = adamw(lr = 0.01)
}
MODEL
so=$work/buy.so csv=$work/buy.csv
run 0 "$ampc" "$work/buy.amp" --isa portable --target cpu -o "$so"
python3 - "$work" <<'DATA'
import random, sys
random.seed(1)
def table(name, rows, jobs, end="\r\n"):
    with open(f"{sys.argv[1]}/{name}.csv", "w", newline="") as f:
        f.write("\ufeffage,job,pay,bought" + end)
        for i in range(rows):
            age, job, pay = random.randint(18, 80), random.choice(jobs), random.randint(1000, 5000)
            yes = (age > 45) != (job == "cook, pastry")
            f.write(f"{age if i % 17 else ''},\"{job}\",{pay}.5,{'yes' if yes else 'no'}{end}")
table("buy", 1000, ["clerk", "cook, pastry", "driver"])
table("later", 60, ["clerk", "cook, pastry", "driver"], "\n")
table("unknown", 60, ["clerk", "pilot"])
DATA
run 0 "$amprun" schema "csv:$csv"
says 'number age mean' 'category job values clerk "cook, pastry" driver' 'category bought target values no yes'
says '# 1000 rows, of which 100 are held out'
run 0 "$amprun" train "$so" --data "csv:$csv" --epochs 8 --batch 32 --save "$work/t.st" --save-best acc "$work/best.st"
says 'test acc'
holds 'what was derived is beside the parameters' grep -q '^category job values clerk' "$work/t.st.schema"
holds 'beside the best ones too' cmp "$work/t.st.schema" "$work/best.st.schema"
run 0 "$amprun" eval "$so" --data "csv:$csv" --weights "$work/t.st"
says '"samples": 100,'
holds 'the rule has been learnt' python3 -c '
import json, sys
assert json.load(open(sys.argv[1]))["acc"] > 0.9' "$work/.out"
run 0 "$amprun" eval "$so" --data "csv:$work/later.csv" --weights "$work/t.st"
says '"samples": 60,'
run 0 "$amprun" train "$so" --data "csv:$csv" --eval-data "csv:$work/later.csv" --epochs 1
says 'test acc'
run 0 "$amprun" train "$so" --data "csv:$csv" --eval-split 250 --epochs 1 --save "$work/split.st"
run 0 "$amprun" eval "$so" --data "csv:$csv" --weights "$work/split.st"
says '"samples": 250,'
run 0 "$amprun" train "$so" --data "csv:$csv" --steps 40 --batch 32 --checkpoint "$work/t.ck"
run 0 "$amprun" train "$so" --data "csv:$csv" --epochs 8 --resume "$work/t.ck" --save "$work/on.st"
holds 'going on gives the bits of the uninterrupted run' cmp "$work/t.st" "$work/on.st"
holds 'and the same mapping' cmp "$work/t.st.schema" "$work/on.st.schema"
run 1 "$amprun" train "$so" --data "csv:$work/later.csv" --epochs 8 --resume "$work/t.ck"
says 'is another file than the one' 'give the same data'
sed 's/,[a-z]*$//' "$work/later.csv" >"$work/asked.csv"
run 0 "$amprun" infer "$so" --inputs "csv:$work/asked.csv" --weights "$work/t.st" --outputs "$work/o.st"
holds 'a row of logits for each row, without the target' grep -aq '"shape":\[60,2\]' "$work/o.st"
run 1 "$amprun" eval "$so" --data "csv:$work/unknown.csv" --weights "$work/t.st"
says "$work/unknown.csv:" "column 2 (job): 'pilot' is not one of the 3 values seen in training" '`unknown`'
sed 's/^category job/& unknown/' "$work/t.st.schema" >"$work/lenient"
cp "$work/t.st" "$work/moved.st"
run 0 "$amprun" eval "$so" --data "csv:$work/unknown.csv,schema=$work/lenient" --weights "$work/moved.st"
run 1 "$amprun" eval "$so" --data "csv:$csv" --weights "$work/moved.st"
says 'needs the schema fitted in training' 'F.schema'
# A column that is not used, and why: in the schema, in training, and in what takes its schema.
python3 - "$work" <<'DATA'
import sys
with open(sys.argv[1] + "/odd.csv", "w") as f:
    f.write("age;weight;job;pay;bought\n")
    for i in range(60):
        f.write(f"{i};{i},5;{'cook clerk driver'.split()[i % 3]};{i * 7};{'no yes'.split()[i % 2]}\n")
DATA
odd="column 'weight' is not used: its 60 cells that are not numbers look like numbers with a decimal comma, such as"
odd+=" '0,5' in line 2"
run 0 "$amprun" schema "csv:$work/odd.csv"
says 'ignore weight because' "such as '0,5' in line 2" 'write `decimal ,` and `number` in the schema'
run 0 "$amprun" train "$so" --data "csv:$work/odd.csv" --epochs 1 --save "$work/odd.st"
says "$work/odd.csv: $odd" "to change that, keep what amprun schema csv:$work/odd.csv prints in a file"
run 0 "$amprun" eval "$so" --data "csv:$work/odd.csv" --weights "$work/odd.st"
says "$work/odd.csv: ${odd/used/used, as in training}"
run 0 "$amprun" infer "$so" --inputs "csv:$work/odd.csv" --weights "$work/odd.st" --outputs "$work/o.st"
says "$work/odd.csv: ${odd/used/used, as in training}"
run 0 "$amprun" train "$so" --data "csv:$work/odd.csv" --epochs 1 --quiet
expect 'nothing is said with --quiet' '' "$err"
sed -e 's/^delimiter.*/&\ndecimal ","/' -e 's/^ignore weight.*/number weight/' -e 's/^number age.*/ignore age/' \
    "$work/odd.st.schema" >"$work/odd.schema"
run 0 "$amprun" train "$so" --data "csv:$work/odd.csv,schema=$work/odd.schema" --epochs 1
expect 'nothing is said once a schema says what the columns are' '' "$err"
printf '1,2\n' >>"$work/later.csv"
run 1 "$amprun" eval "$so" --data "csv:$work/later.csv" --weights "$work/t.st"
says "$work/later.csv:62: has 2 cells, and the first line 4 names"
run 2 "$amprun" train "$so" --data "csv:$csv,schema=$work/t.st.schema" --epochs 1 --save "$work/t.st"
says '--save' 't.st.schema'
printf 'amp csv 1\nnumber age\n' >"$work/mine.st.schema"
run 1 "$amprun" train "$so" --data "csv:$csv" --epochs 1 --save "$work/mine.st"
says "--save $work/mine.st.schema: is there already and is not a schema that amprun wrote"
run 1 "$amprun" schema "$csv"
says 'write csv:FILE'
run 2 "$amprun" schema
says 'schema: no table was given'
run 1 "$amprun" train "$so" --data "csv:$csv,held=-1" --epochs 1
says "--data csv:$csv,held=-1: held=-1: a part such as 0.1, a number of samples, or 0 is wanted"
run 1 "$amprun" schema "csv:$work/none"
says "$work/none: cannot open: No such file"
finish
