#!/usr/bin/env bash
# Runs ampc and amprun as a person would: every option, wrong arguments, missing and damaged files. What is checked:
# exit status (0 success, 1 refused, 2 wrong arguments), a message that names the file and the remedy, and that nothing
# meant for a terminal reaches a file.
# Takes long.
set -uo pipefail
source tests/checks/checks.bash
source tests/checks/interrupted.bash
build //tools:ampc //tools:amprun
ampc=$bin/tools/ampc amprun=$bin/tools/amprun
quick_models

# ---- inputs: a small model, and data for it ------------------------------------------------------

cat >"$work/small.amp" <<'MODEL'
amp 1
const HIDDEN = 16
model small(x: f32[N, 8]) -> logits {
    h = relu(linear(x; out = HIDDEN) as fc1)
    logits = linear(h; out = 3) as fc2
}
train small {
    input targets: i32[N]
    loss = cross_entropy(logits, targets)
    metric acc = accuracy(logits, targets)
    optimizer = adamw(lr = 0.01)
}
precision fp16 {
    loss_scale = dynamic(init = 1024.0)
}
MODEL
sed '/^train/,/^}/d; /^precision/,/^}/d; s/small/plain/' "$work/small.amp" >"$work/plain.amp"
sed 's/out = 3/out = 4/' "$work/small.amp" >"$work/other.amp"
sed 's/linear(h;/linear(hh;/' "$work/small.amp" >"$work/wrong.amp"

PYTHONPATH=tests/checks python3 - "$work" <<'DATA'
import os, random, struct, sys

import safetensors_write

work = sys.argv[1]
random.seed(1)


def safetensors(name, arrays):
    safetensors_write.write(os.path.join(work, name), arrays)


def idx(name, sizes, data):
    with open(os.path.join(work, "idx", name), "wb") as f:
        f.write(bytes([0, 0, 8, len(sizes)]) + b"".join(struct.pack(">I", s) for s in sizes) + bytes(data))


# Three classes of 8 numbers, told apart by which of the first three is large.
labels = [i % 3 for i in range(60)]
rows = [[random.random() + 2.0 * (k == y) for k in range(8)] for y in labels]
x = ("F32", [60, 8], b"".join(struct.pack("<8f", *r) for r in rows))
safetensors("data.st", {"x": x, "targets": ("I32", [60], struct.pack("<60i", *labels))})
large = b"".join(struct.pack("<8f", *([3e9] * 8 if i % 20 == 0 else r)) for i, r in enumerate(rows))
safetensors("large.st", {"x": ("F32", [60, 8], large), "targets": ("I32", [60], struct.pack("<60i", *labels))})
safetensors("no_targets.st", {"x": x})
safetensors("bad_label.st", {"x": x, "targets": ("I32", [60], struct.pack("<60i", 9, *labels[1:]))})
os.mkdir(os.path.join(work, "idx"))
for part, count in ("train", 60), ("t10k", 30):
    idx(f"{part}-images-idx3-ubyte", [count, 2, 4], [int(80 * v) for r in rows[:count] for v in r])
    idx(f"{part}-labels-idx1-ubyte", [count], labels[:count])
DATA

# ---- ampc: what it writes ------------------------------------------------------------------------

so=$work/small.so st=$work/small.st
portable=(--isa portable) # a third of the C compiler's time
run 0 "$ampc" "$work/small.amp"
expect 'compiling is silent' '' "$out$err"
holds 'the default output is beside the model' test -s "$so"
run 0 "$ampc" "$work/plain.amp" --isa portable -o "$work/plain.so"
run 0 "$ampc" "$work/other.amp" --isa portable -o "$work/other.so"
for word in fp16 bf16 tf32 fp32; do
    run 0 "$ampc" "$work/small.amp" --precision "$word" --isa portable -o "$work/$word.so"
done
run 0 "$ampc" "$work/small.amp" --policy torch-bf16 --precision bf16 --emit c -o "$work/small.c"
holds '--emit c writes C' grep -q amp_model_query "$work/small.c"
run 0 "$ampc" "$work/small.amp" -D HIDDEN=32 --emit ir -o "$work/wide.ir"
holds '-D changes the const' grep -q 'fc1.weight.*f32\[32, 8\]' "$work/wide.ir"
run 0 "$ampc" "$work/small.amp" --time-passes --isa portable -o "$work/timed.so"
says 'elaborate' 'plan' 'codegen' 'cc' ' ms'
expect '--time-passes: each pass has a row, and the rows sum up to the total' 'ok' \
    "$(python3 - "$work/.err" "$("$ampc" --help | sed -n 's/^PASS: //p')" <<'PYTHON'
import re, sys
rows = re.findall(r"^(.*?) +(-?[\d.]+) ms", open(sys.argv[1]).read(), re.M)
names = [name for name, _ in rows]
assert {"elaborate"} <= set(sys.argv[2].split()) <= set(names) and names[-2:] == ["other", "total"], names
times = [float(time) for _, time in rows]
assert all(time >= 0 for time in times) and times[0] > 0, rows
assert abs(sum(times[:-1]) - times[-1]) < 0.001 * len(rows), rows
print("ok")
PYTHON
)"
run 0 "$ampc" "$work/small.amp" --precision fp32 --time-passes --isa portable -o "$work/timed.so"
unchanged=$(awk '/^lower / { exit } / ms \(unchanged\)$/ { print $1 }' "$work/.err" | paste -sd ' ')
expect 'FP32: nothing is painted, no gradient is scaled, no rounding removed' 'paint distribute scale simplify' "$unchanged"
for pass in fuse layout simplify; do
    run 0 "$ampc" "$work/small.amp" --no-pass=$pass "${portable[@]}" --target cpu -o "$work/no-$pass.so"
done
run 0 "$ampc" "$work/small.amp" "${portable[@]}" -o "$work/small_portable.so"
run 0 "$ampc" "$work/small.amp" "${portable[@]}" --cc gcc --max-ops 1000 -o "$work/gcc.so"
holds 'the same compiler under another name: the same bytes' cmp "$work/small_portable.so" "$work/gcc.so"
cp "$work/small.amp" "$work/copy.amp"
(cd "$work" && mkdir sub && cp small.amp sub/small.amp)
run 0 "$ampc" "$work/sub/small.amp" "${portable[@]}" -o "$work/sub.so"
holds 'the bytes do not depend on the folder' cmp "$work/small_portable.so" "$work/sub.so"

# ---- ampc: the files read, for build systems -----------------------------------------------------

mkdir "$work/with space"
printf 'amp 1\ninclude "part $1.amp"\nmodel m(x: f32[N, 4]) -> y { y = double(x) }\n' >"$work/with space/m.amp"
printf 'amp 1\nblock double(x) -> y { y = x + x }\n' >"$work/with space/part \$1.amp"
cp precision/policies/fp32.policy "$work/own.policy"
printf 'all: model.so\nmodel.so: with\\ space/m.amp\n\t@echo rebuilt\n-include model.so.d\n' >"$work/rules.mk"
dependencies() { (cd "$work" && "$ampc" 'with space/m.amp' --policy own.policy --isa portable -o model.so "$@"); }
# does_make WHAT WANTED: what make would do now
does_make() { expect "make, $1" "$2" "$(make -C "$work" -s -f rules.mk 2>&1)"; }
run 0 dependencies -MD
expect '-MD names the model, what it includes and the policy' \
    'model.so: \   with\ space/m.amp \   with\ space/part\ $$1.amp \   own.policy' \
    "$(head -4 "$work/model.so.d" | paste -sd ' ')"
touch -d '2001-01-01' "$work"/with\ space/*.amp "$work/own.policy"
does_make 'nothing has changed' ''
touch "$work/with space/part \$1.amp"
does_make 'an include has changed' rebuilt
touch -d '2001-01-01' "$work"/with\ space/*.amp
touch "$work/own.policy"
does_make 'the policy has changed' rebuilt
rm "$work/own.policy"
does_make 'a file that is gone is no error' rebuilt
cp precision/policies/fp32.policy "$work/own.policy"
run 0 dependencies -MF named.d
holds '-MF FILE names the file' cmp "$work/model.so.d" "$work/named.d"
run 1 dependencies -MF no/such/folder.d
says '-MF no/such/folder.d' 'No such file or directory'
run 2 dependencies -MX
says '-MX: there is no such option'

# ---- ampc: what it never overwrites --------------------------------------------------------------

# keeps FILE STATUS COMMAND...: the command is refused, and the file is as it was
keeps() {
    local file=$1
    shift
    cp "$file" "$work/kept"
    run "$@"
    holds "$command_line: keeps ${file#"$work/"}" cmp "$file" "$work/kept"
}
(cd "$work" && cp small.amp guard.amp && ln -s guard.amp link.amp && ln guard.amp hard.amp && cp own.policy guard.policy)
printf 'amp 1\ninclude "part.amp"\nmodel m(x: f32[N, 4]) -> y { y = double(x) }\n' >"$work/whole.amp"
cp "$work/with space/part \$1.amp" "$work/part.amp"
quick=(--isa portable --target cpu)
for target in "$work/guard.amp" "$work/./guard.amp" "$work/sub/../guard.amp" "$work/link.amp" "$work/hard.amp"; do
    keeps "$work/guard.amp" 2 "$ampc" "$work/guard.amp" -o "$target" --force
    says "-o $target: is the same file as the model $work/guard.amp" 'would be overwritten'
done
keeps "$work/guard.amp" 2 env -C "$work" "$ampc" guard.amp -o "$work/guard.amp"
keeps "$work/guard.policy" 2 env -C "$work" "$ampc" guard.amp --policy guard.policy -o ./guard.policy
says 'is the same file as --policy guard.policy'
keeps "$work/part.amp" 1 "$ampc" "$work/whole.amp" "${quick[@]}" -o "$work/part.amp"
keeps "$work/part.amp" 2 "$ampc" "$work/whole.amp" "${quick[@]}" -o "$work/part.amp" --force
says 'is the same file as the file'
keeps "$work/part.amp" 2 "$ampc" "$work/whole.amp" "${quick[@]}" -o "$work/x.so" -MF "$work/part.amp" --force
keeps "$work/guard.amp" 2 "$ampc" explain "$work/guard.amp" --json "$work/guard.amp"
keeps "$so" 2 "$ampc" explain "$so" --json "$so"
run 2 "$ampc" "$work/guard.amp" -o "$work/x.so" -MF "$work/./x.so"
says 'is the same file as -o' 'which is written too'
holds 'nothing was written' test ! -e "$work/x.so"

# What ampc did not write stays, unless --force is given; what it did is replaced.
printf 'int main(void) { return 0; }\n' >"$work/guard.c"
keeps "$work/guard.c" 1 "$ampc" "$work/guard.amp" --emit c
says "-o $work/guard.c: is there already and is not C that ampc wrote" '--force'
for output in "-o $work/own.txt" "-o $work/own.txt --emit c" "-o $work/own.txt --emit ir" "-o $work/own.txt --emit cu" \
    "-o $work/own.so -MF $work/own.txt" "-o $work/own.so -MF $work/data.st" "-o $work/own.c --emit ir"; do
    printf 'my notes: all \\ of them\n' >"$work/own.txt"
    [[ -e $work/own.c ]] || "$ampc" "$work/guard.amp" --emit c -o "$work/own.c"
    file=${output##* $work/}
    file=$work/${file%% *}
    [[ $output != -o\ *own.txt* ]] || file=$work/own.txt
    [[ $output != -o\ *own.c* ]] || file=$work/own.c
    # shellcheck disable=SC2086
    keeps "$file" 1 "$ampc" "$work/guard.amp" "${quick[@]/cpu/both}" $output
done
keeps "$work/own.txt" 1 "$ampc" explain "$so" --json "$work/own.txt"
run 0 "$ampc" "$work/guard.amp" "${quick[@]}" -o "$work/own.txt" --force
holds '--force replaces it' "$amprun" info "$work/own.txt"
for kind in so c ir cu; do
    run 0 "$ampc" "$work/guard.amp" --isa portable --emit $kind -o "$work/twice.$kind" --force
    run 0 "$ampc" "$work/guard.amp" --isa portable --emit $kind -o "$work/twice.$kind"
done
for _ in 1 2; do
    run 0 "$ampc" explain "$so" --json "$work/twice.json"
    run 0 "$ampc" "$work/guard.amp" "${quick[@]}" -o "$work/twice.so" -MD
    run 0 "$ampc" "$work/guard.amp" --dump-dir "$work/twice" --emit ir -o "$work/twice.ir"
    rm -rf "$work/twice"
done
: >"$work/empty"
run 0 "$ampc" "$work/guard.amp" "${quick[@]}" -o "$work/empty"
ln -s "$work/new.so" "$work/link.so"
run 0 "$ampc" "$work/guard.amp" "${quick[@]}" -o "$work/link.so"
holds 'a link to nothing is followed' test -L "$work/link.so" -a -s "$work/new.so"
chmod 0444 "$work/new.so"
keeps "$work/new.so" 1 "$ampc" "$work/guard.amp" "${quick[@]}" -o "$work/link.so"
says 'is write-protected (mode 0444)'
mkdir "$work/dumped"
printf 'mine\n' >"$work/dumped/00-elaborate.ir"
keeps "$work/dumped/00-elaborate.ir" 1 "$ampc" "$work/guard.amp" --dump-dir "$work/dumped" -o "$work/x.so"
holds 'nothing else was written' test "$(ls "$work/dumped")" = 00-elaborate.ir -a ! -e "$work/x.so"
run 0 "$ampc" "$work/guard.amp" "${quick[@]}" -o /dev/null
run 0 "$ampc" - --emit ir -o - <"$work/guard.amp"
says 'module "small"'
run 2 "$ampc" - <"$work/guard.amp"
says 'give -o'
run 0 "$ampc" explain "$so" --json -
says '"decisions":'
holds 'no file is named -' test ! -e - -a ! -e "$work/-"
for closed in '>&-' '<&- >&- 2>&-'; do
    run 0 bash -c "cd $work && $ampc guard.amp --isa portable --dump-ir=plan -o closed.so --force $closed"
    holds "with $closed the output is what it should be" "$amprun" info "$work/closed.so"
done
printf 'amp 1\n\033]0;title\a\n' >"$work/escape.amp"
run 1 "$ampc" "$work/escape.amp"
holds 'no escape reaches the terminal' bash -c '! grep -q "$1" "$2"' - $'\033' "$work/.err"

# ---- ampc: dumps, stopping and going on ----------------------------------------------------------

run 2 "$ampc" "$work/small.amp" --stop-after=never --emit ir
read -ra passes < <(sed -n 's/.*the passes are //p' <<<"$err" | tr -d ,)
expect 'the passes, from the first to the last' 'elaborate autocast lower fuse bundle' \
    "${passes[0]} ${passes[1]} $(printf '%s\n' "${passes[@]}" | grep -Ex 'lower|fuse' | paste -sd ' ') ${passes[-1]}"
planned=$work/dumps/$((${#passes[@]} - 1))-${passes[-1]}.ir
run 0 "$ampc" "$work/small.amp" --dump-dir "$work/dumps" -o "$work/dumped.so"
run 0 "$ampc" "$work/small.amp" "${portable[@]}" --target cpu -o "$work/small_cpu.so"
run 0 "$ampc" "$work/small.amp" --target cpu --emit c -o "$work/small_cpu.c" # from target on the text is one target's
expect '--dump-dir writes one file per pass' "${passes[*]}" \
    "$(ls "$work/dumps" | sed 's/^[0-9]*-//; s/\.ir$//' | tr '\n' ' ' | sed 's/ $//')"
for i in "${!passes[@]}"; do
    pass=${passes[i]} dump="$work/dumps/$(printf '%02d-%s.ir' "$i" "${passes[i]}")"
    run 0 "$ampc" "$work/small.amp" --dump-ir="$pass"
    expect "--dump-ir=$pass equals the file of --dump-dir" "$(cat "$dump")" "$out"
    run 0 "$ampc" "$work/small.amp" --emit ir --stop-after="$pass" -o "$work/stopped.ir"
    holds "--stop-after=$pass writes that dump" cmp "$dump" "$work/stopped.ir"
    run 0 "$ampc" "$work/stopped.ir" --target cpu --emit c -o "$work/restarted.c"
    holds "going on after $pass gives the same bytes" cmp "$work/small_cpu.c" "$work/restarted.c"
    [[ $pass == autocast || $pass == simplify ]] || continue # the C compiler's time
    run 0 "$ampc" "$work/stopped.ir" "${portable[@]}" -o "$work/restarted.so"
    holds "going on after $pass gives the same bytes, CUDA code too" cmp "$work/small_portable.so" "$work/restarted.so"
done
run 0 "$ampc" "$work/small.amp" --dump-ir
expect '--dump-ir alone prints every pass' ${#passes[@]} "$(grep -c '^module ' "$work/.out")"

# Going on from a stage gives the same bytes for a schedule too, whose place is in the text.
sed 's/adamw(lr = 0.01)/adamw(lr = cosine(0.1, warmup = 10, steps = 100))/' "$work/small.amp" >"$work/schedule.amp"
run 0 "$ampc" "$work/schedule.amp" --target cpu --emit c -o "$work/schedule.c"
for pass in elaborate autocast means autodiff scale optimizer; do
    run 0 "$ampc" "$work/schedule.amp" --target cpu --emit ir --stop-after=$pass -o "$work/schedule.ir"
    run 0 "$ampc" "$work/schedule.ir" --target cpu --emit c -o "$work/went_on.c"
    holds "a schedule, from stage $pass: the same C" cmp "$work/schedule.c" "$work/went_on.c"
done
run 0 "$ampc" "$planned" --isa portable -o "$work/planned.so"
says 'warning: the model gets no CUDA code' '--target cpu'
run 2 "$ampc" "$planned" --isa portable --gpu-arch sm_80 -o "$work/planned.so"
says 'gpu arch sm_80' 'start from stage lower'

# ---- ampc explain --------------------------------------------------------------------------------

run 0 "$ampc" explain "$work/small.amp"
from_model=$out
says 'fc1.linear' 'op matmul, linear' 'casts' 'once a step, written by the optimizer' 'kernel' 'gradient' 'small.amp:4'
run 0 "$ampc" explain "$so"
expect 'a model.so explains what its model does' "$from_model" "$out"
run 0 "$ampc" explain "$planned"
expect 'and so does its IR' "$from_model" "$out"
run 0 "$ampc" explain "$so" 'fc2*' --json "$work/why.json"
expect 'explain --json keeps to the glob' 'fc2.linear' \
    "$(python3 -c 'import json, sys; print(*(d["path"] for d in json.load(open(sys.argv[1]))["decisions"]))' "$work/why.json")"
# rows: every op of the step, with a rule; what is not there is a constant
run 0 "$ampc" explain "$so" --json "$work/rows.json"
expect 'explain --json has a row for each op of the step, each with a rule, in three phases' 'backward forward update' \
    "$(python3 - "$work/rows.json" <<'PYTHON'
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
keys = {"id", "function", "op", "path", "phase", "inputs", "accumulate", "output", "rule", "policy", "policy_line", "because", "source_line"}
assert all(set(row) == keys and row["rule"] for row in rows), "a row lacks a key or a rule"
assert any(row["op"] == "cast" and row["inputs"] == ["f32"] and row["output"] == "f16" for row in rows), "no cast"
assert all(row["accumulate"] == "f32" for row in rows if row["op"] in ("linear", "matmul", "sum"))
print(*sorted({row["phase"] for row in rows}))
PYTHON
)"
run 0 "$ampc" explain "$work/small.amp" --json "$work/rows_of_text.json"
expect 'a model.so has the rows of its model' "$(cat "$work/rows.json")" "$(cat "$work/rows_of_text.json")"
run 0 "$ampc" explain "$work/small.amp" --precision fp32
says 'low precision'
run 1 "$ampc" explain "$so" 'nothing*'
says "small.so: no op's path matches 'nothing*'" "'*' shows all"
run 1 "$ampc" explain "$work/dumps/00-elaborate.ir" --precision none
run 1 "$ampc" explain "$work/data.st"
run 2 "$ampc" explain "$so" -o "$work/x"
says 'explain does not take this'
run 2 "$ampc" explain "$so" --emit ir
says '--emit: explain does not take this'
run 2 "$ampc" explain "$so" --isa v3
says '--isa: explain does not take this'

# which ops, and how many bytes their casts have
run 0 "$ampc" explain "$so" --op linear --dtype f16 --rule lower
says 'fc1.linear' 'fc2.linear' 'f32 -> f16   48 N bytes' 'all '
expect 'explain --op: no other ops' '' "$(grep '^relu ' <<<"$out")"
for wrong in '--dtype f64:f16' '--op conv2d:linear' '--rule override:lower'; do
    run 1 "$ampc" explain "$so" ${wrong%:*}
    says "small.so: no op" "there are" "${wrong#*:}"
done
run 0 "$ampc" explain "$so" --json "$work/casts.json"
expect 'explain --json: each cast has a name, a place and bytes, and they sum up' ok \
    "$(python3 - "$work/casts.json" <<'PYTHON'
import json, sys
told = json.load(open(sys.argv[1]))
casts, totals = told["casts"], told["cast_totals"]
assert all(c["name"] and c["file"] == "small.amp" and c["line"] and c["place"] and c["bytes"] for c in casts), casts
assert len(casts) == totals["count"] == sum(row["op"] == "cast" for row in told["rows"])
for power in range(2):
    assert sum((c["bytes_by_power_of_n"] + [0])[power] for c in casts) == totals["bytes_by_power_of_n"][power]
    assert sum((p["bytes_by_power_of_n"] + [0])[power] for p in totals["pairs"]) == totals["bytes_by_power_of_n"][power]
print("ok")
PYTHON
)"

# a compiled model is a source too: what it was compiled from is in it
run 0 "$ampc" "$so" -o "$work/again.so"
expect 'a model compiled again has the same bytes' '' "$(cmp "$so" "$work/again.so" 2>&1)"
run 0 "$ampc" "$work/small.amp" "${portable[@]}" --precision fp32 -o "$work/full.so"
run 0 "$ampc" "$so" "${portable[@]}" --precision fp32 -o "$work/again.so" --force
expect 'and so it has in another precision' '' "$(cmp "$work/full.so" "$work/again.so" 2>&1)"
run 0 "$ampc" policy show torch-fp16
sed 's/^policy "torch-fp16"/policy "kept"/' <<<"$out" >"$work/kept.policy"
run 0 "$ampc" "$work/small.amp" "${portable[@]}" --policy "$work/kept.policy" --batch-hint 8 -o "$work/with_policy.so"
rm "$work/kept.policy"
run 0 "$ampc" "$work/with_policy.so" "${portable[@]}" -o "$work/again.so" --force
expect 'a policy file goes along' '' "$(cmp "$work/with_policy.so" "$work/again.so" 2>&1)"
run 2 "$ampc" "$so" -D H=3 -o "$work/again.so"
says 'define H: ' 'is a compiled model, whose consts are numbers already'
run 0 "$ampc" "$work/small.amp" --stop-after simplify --emit ir -o "$work/late.ir"
run 0 "$ampc" "$work/late.ir" "${portable[@]}" -o "$work/late.so"
run 0 "$ampc" "$work/late.so" "${portable[@]}" -o "$work/again.so" --force
expect 'and so it is from IR' '' "$(cmp "$work/small_portable.so" "$work/again.so" 2>&1)"
sed '/^elaborated /,$d' "$work/late.ir" >"$work/alone.ir"
run 0 "$ampc" "$work/alone.ir" --isa portable -o "$work/alone.so"
run 1 "$ampc" "$work/alone.so" -o "$work/again.so" --force
says 'alone.so: does not keep what it was compiled from' "give the model's source"
head -c 5000 "$so" >"$work/cut_source.so"
run 1 "$ampc" "$work/cut_source.so" -o "$work/again.so"
says 'cut_source.so: '

# what is shipped leaves out what tools read; what is loaded is the same
run 0 "$ampc" "$work/small.amp" "${portable[@]}" --no-ir -o "$work/shipped.so"
loaded() { objcopy -O binary --remove-section=.amp.sha256 "$1" "$2"; }
loaded "$work/small_portable.so" "$work/kept.image"
loaded "$work/shipped.so" "$work/shipped.image"
holds '--no-ir: the same is loaded' cmp "$work/kept.image" "$work/shipped.image"
holds 'the file is smaller' test "$(wc -c <"$work/shipped.so")" -lt "$(wc -c <"$work/small_portable.so")"
for command in "explain $work/shipped.so" "diff $work/shipped.so $so" "$work/shipped.so -o $work/again.so --force" \
    "explain $so --against $work/shipped.so"; do
    run 1 "$ampc" $command
    says "shipped.so: compiled with --no-ir: compile " 'small.amp again'
done
run 1 "$amprun" train "$work/shipped.so" --data "safetensors:$work/data.st" --batch 4 --steps 1 --trace-nonfinite
says "shipped.so: compiled with --no-ir: compile " 'small.amp again'
run 0 "$ampc" "$work/small.amp" --no-ir --emit o --isa portable -o "$work/shipped.o"
run 0 "$ampc" "$work/small.amp" --no-ir --emit o --isa portable -o "$work/shipped.o" # an object of ours is replaced

# what is linked into a program is for the CPU, unless it is told otherwise
run 0 "$ampc" "$work/small.amp" --emit c -o "$work/linked.c"
run 0 "$ampc" "$work/small.amp" --emit c --target cpu -o "$work/linked_cpu.c"
holds '--emit c without --target: no CUDA code' bash -c '! grep -q cuda_prelude "$1"' - "$work/linked.c"
run 0 "$ampc" "$work/small.amp" --emit c --target both -o "$work/linked_both.c"
holds 'with --target both it has some' grep -q cuda_prelude "$work/linked_both.c"

# a line of the precision block, to try it out
sed 's/^    loss_scale/    "fc2.*": f32\n&/' "$work/small.amp" >"$work/tried.amp"
run 0 "$ampc" explain "$work/small.amp" --override 'fc2.*=f32' --against "$work/tried.amp"
says 'no difference: 0 of '
run 0 "$ampc" explain "$work/small.amp" --override 'fc2.*=f32' --op linear
says 'override at options:1   f32'
run 1 "$ampc" explain "$work/small.amp" --override 'fc7.*=f32'
says 'no op'"'"'s path matches "fc7.*"'
run 2 "$ampc" explain "$work/small.amp" --override 'fc2.*'
says '--override fc2.*: write --override PATH=WORD'
run 2 "$ampc" explain "$so" --override 'fc2.*=f32'
says 'override: ' 'is compiled already'
# drawings, reports, order
run 0 "$ampc" explain "$work/small.amp" --dot "$work/small.dot" --html "$work/small.html" --json "$work/both.json"
expect 'explain prints nothing where it writes files' '' "$out"
holds 'explain --dot' grep -q '^digraph "small" {$' "$work/small.dot"
holds 'explain --html' grep -q '<title>small: ampc explain</title>' "$work/small.html"
run 0 "$ampc" explain "$work/small.amp" --dot "$work/small.dot" --html "$work/small.html" # which ampc wrote
run 0 "$ampc" explain "$work/small.amp" --dot -
says 'digraph "small" {'
echo mine >"$work/mine.html"
keeps "$work/mine.html" 1 "$ampc" explain "$work/small.amp" --html "$work/mine.html"
says 'mine.html' 'a report that ampc wrote'
keeps "$work/mine.html" 1 "$ampc" explain "$work/small.amp" --dot "$work/mine.html"
says 'a drawing that ampc wrote'
keeps "$work/small.amp" 2 "$ampc" explain "$work/small.amp" --html "$work/small.amp"
run 2 "$ampc" explain "$work/small.amp" --html "$work/x" --dot "$work/x"
says 'is the same file as'
run 1 "$ampc" explain "$work/wrong.amp" --html "$work/wrong.html"
expect 'an error is told once' 1 "$(grep -c 'error:' "$work/.err")"
run 0 "$ampc" explain "$work/small.amp" --sort bytes --batch 4 --all
run 2 "$ampc" explain "$work/small.amp" --sort size
says "unknown sort key 'size'; use 'bytes'"
run 2 "$ampc" explain "$work/small.amp" --gpu H100
says 'explain takes --gpu only with --html'
run 2 "$ampc" explain "$work/small.amp" --html "$work/x.html" --gpu K6
says '--gpu K6: that GPU is not known'
run 2 "$ampc" explain "$work/small.amp" --dot "$work/x.dot" --against "$so"
says 'a comparison is no drawing'
run 2 "$ampc" explain "$work/small.amp" --sort bytes --against "$so"
says '--sort bytes: a comparison is in the order of the model'
run 0 "$ampc" explain "$work/small.amp" -D HIDDEN=160 --html "$work/small.html" --gpu H100 --against-precision fp32 \
    --batch 64
for part in '{"gpu":"H100","batch":64,"measured":false,"kernels":[{"function":"train_step","kernel":"k00"' \
    'id="part-comparison">{"before":' 'id="part-lint">{"model":"small.amp"' 'id="part-code">{"cuda":"/* k00'; do
    holds "the report has $part" grep -qF "$part" "$work/small.html"
done

# one against another: the first is what there is, the other what was
sed 's/^    loss_scale/    "fc2.*": f32 because "measured"\n&/' "$work/small.amp" >"$work/careful.amp"
run 0 "$ampc" explain "$work/careful.amp" --against "$work/small.amp"
says 'fc2.linear                          f16 -> f32' 'override at careful.amp:14   f32   because "measured"' \
    'min-cast.policy:7' '  gone   f32 -> f16' '  came   f16 -> f32'
against=$out
run 0 "$ampc" explain "$work/careful.amp" --against "$so"
expect 'a model.so is compared as its model is' "${against//small.amp/small.so}" "$out"
run 0 "$ampc" explain - --against "$work/small.amp" <"$work/careful.amp"
says 'fc2.linear' 'stdin'
run 0 "$ampc" explain "$work/small.amp" --against - <"$work/careful.amp"
says 'fc2.linear                          f32 -> f16'
run 0 "$ampc" explain "$so" --against "$work/small.amp"
says 'no difference: 0 of '
run 0 "$ampc" explain "$work/small.amp" --against-precision fp32 --op linear
says 'policy fp32' '2 of 2 ops changed'
run 0 "$ampc" explain "$work/small.amp" --precision bf16 --against-policy torch-fp16 --json "$work/compared.json"
expect 'explain --against --json' 'torch-fp16 min-cast-bf16 False True' "$(python3 -c '
import json, sys
told = json.load(open(sys.argv[1]))
print(told["before"]["policy"], told["after"]["policy"], told["same"], len(told["changed"]) > 3)' "$work/compared.json")"
run 0 "$ampc" explain "$work/small.amp" --against "$work/careful.amp" --json "$work/compared.json" # which ampc wrote
run 2 "$ampc" explain "$so" --against-precision fp32
says 'precision: ' 'small.so is compiled already'
run 1 "$ampc" explain "$work/small.amp" --against-policy nosuch
says 'there is no policy nosuch' 'built-in policies'
run 1 "$ampc" explain "$work/small.amp" --against "$work/none.amp"
says 'none.amp'
run 2 "$ampc" explain - --against - <"$work/small.amp"
says 'standard input already'
run 2 "$ampc" "$work/small.amp" --against "$work/careful.amp"
says '--against' 'only with ampc explain'
keeps "$work/careful.amp" 2 "$ampc" explain "$work/small.amp" --against "$work/careful.amp" --json "$work/careful.amp"
run 2 "$ampc" explain "$planned" --precision fp32
says 'precision fp32: ' "is at stage ${passes[-1]}"
run 2 "$ampc" "$work/dumps/00-elaborate.ir" -D HIDDEN=8 -o "$work/x.so"
says 'define HIDDEN' 'is IR'

# which group each parameter fell into
cat >"$work/groups.amp" <<'MODEL'
amp 1
model groups(x: f32[N, 8]) -> y {
    h = linear(x; out = 4) as fc1
    y = linear(h; out = 2) as fc2
}
train groups {
    loss = mean(y * y)
    optimizer = adamw(lr = 0.01)
    group "*.bias": weight_decay = 0.0, optimizer = lion(lr = 0.001)
    group "fc2.*": lr_scale = 0.5, weight_decay = 0.25
    group "fc1.*": frozen = true
    group "fc1.bias": frozen = false
}
MODEL
run 0 "$ampc" "$work/groups.amp" "${quick[@]}" -o "$work/groups.so"
for input in groups.amp groups.so; do
    run 0 "$ampc" explain "$work/$input"
    says 'not trained: frozen' 'weight_decay 0.0, by group "*.bias" (groups.amp:9); lion, by group "*.bias" (groups.amp:9)' \
        'lr_scale 0.5, by group "fc2.*" (groups.amp:10); weight_decay 0.25, by group "fc2.*"'
    run 0 "$ampc" explain "$work/$input" --json "$work/groups.json"
    expect "explain --json $input: the groups of each parameter, the last that decides" \
        "fc1.bias *fcfc 1.0 0.0 True lion|fc1.weight fc 1.0 None False adamw|fc2.bias *fc 0.5 0.25 True lion|fc2.weight fc 0.5 0.25 True adamw" \
        "$(python3 -c '
import json, sys
print("|".join(sorted(" ".join([p["name"], "".join(g.split(".")[0].rstrip("0123456789") for g in p["groups"]),
    str(p["lr_scale"]), str(p["weight_decay"]), str(p["trained"]), p["optimizer"]]) for p in json.load(open(sys.argv[1]))["parameters"])))' "$work/groups.json")"
done

run 0 "$amprun" info "$work/groups.so"
says 'fc1.bias                 f32[4]  trained by block 0, weight_decay 0 by "*.bias" (group 0), lion by "*.bias" (group 0)' \
    'fc1.weight               f32[4, 8]  frozen by "fc1.*"' \
    'f32[2, 4]  trained by block 0, lr_scale 0.5 by "fc2.*" (group 1), weight_decay 0.25 by "fc2.*" (group 1)'
run 0 "$amprun" info "$work/groups.so" --json
expect 'info --json: the groups of each parameter, the last that decides' \
    "fc1.bias None 1.0 *.bias 0.0 True *.bias|fc1.weight None 1.0 None None False None|fc2.bias fc2.* 0.5 fc2.* 0.25 True *.bias|fc2.weight fc2.* 0.5 fc2.* 0.25 True None|*.bias fc2.* fc1.* fc1.bias|adamw" \
    "$(python3 -c '
import json, sys
info = json.load(open(sys.argv[1]))
rows = sorted(" ".join(str(p[k]) for k in ("name", "lr_scale_group", "lr_scale", "weight_decay_group", "weight_decay", "trained", "optimizer_group"))
              for p in info["tensors"] if p["kind"] == "param")
print("|".join(rows + [" ".join(g["pattern"] for g in info["groups"])] + [b["optimizer"].split("(")[0] for b in info["train_blocks"]]))' "$work/.out")"
run 0 "$ampc" explain tests/parity/models/lazy.amp
says '  table                     trained; lazy: the rows of a step alone, by group "table" (lazy.amp:19)'
run 0 "$ampc" explain tests/parity/models/lazy.amp --json "$work/lazy.json"
expect 'explain --json: which tables are lazy' 'other.weight table' "$(python3 -c '
import json, sys
print(*sorted(p["name"] for p in json.load(open(sys.argv[1]))["parameters"] if p["lazy"]))' "$work/lazy.json")"

run 0 "$amprun" info "$so"
expect 'info: nothing of groups where there are none' '' "$(grep -e trained.by -e group <<<"$out")"

# ---- ampc policy ---------------------------------------------------------------------------------

run 0 "$ampc" policy list
says 'policy                     version   algorithm   low    default of' 'torch-fp16 ' 'Everything in f32.' \
    'min-cast-bf16                        min_cut     bf16   bf16' 'min-cast                             min_cut     f16    fp16'
run 0 "$ampc" policy list --json "$work/policies.json"
expect 'policy list --json has what the list has' "$(awk 'NR > 1 && /^[^ ]/ { print $1 }' <<<"$("$ampc" policy list)")" \
    "$(python3 -c '
import json, sys
for p in json.load(open(sys.argv[1]))["policies"]: print(p["policy"])' "$work/policies.json")"
run 0 "$ampc" policy list --json "$work/policies.json" # which ampc wrote
for name in torch-fp16 torch-fp16@2.11 fp32; do
    run 0 "$ampc" policy show $name
    holds "policy show $name is the file" cmp "$work/.out" "precision/policies/$name.policy"
done
"$ampc" policy show torch-fp16 | sed 's/^policy .*/policy "mine"/; s/^op softmax, /op /' >"$work/mine.policy"
run 0 "$ampc" policy check "$work/mine.policy"
says 'mine.policy: policy "mine", version 2.12, algorithm eager, low f16; it lists ' ' names, and all others are follow'
run 0 "$ampc" policy check "$work/mine.policy" --json -
says '"policy":"mine"' '"names":'
run 0 "$ampc" policy diff torch-fp16 "$work/mine.policy"
says 'before   torch-fp16 ' "after    $work/mine.policy" 'softmax                             f32_out  torch-fp16.policy:' \
    'follow   mine.policy:' '(not listed)' '1 of ' ' names changed their class'
run 0 "$ampc" policy diff torch-fp16@2.11 torch-fp16 --json "$work/versions.json"
expect 'policy diff --json' '2.11 2.12 False rms_norm first f32' "$(python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
print(d["before"]["version"], d["after"]["version"], d["same"],
      *(word for c in d["changed"] if not c["foreign"] for word in (c["name"], c["before"]["class"], c["after"]["class"])))' "$work/versions.json")"
printf 'policy "bad"\nalgorithm eager\nlow = f16\nop exq f32\nop * follow\n' >"$work/bad.policy"
run 1 "$ampc" policy check "$work/bad.policy"
says 'bad.policy:4:4: error: unknown op exq' '^' 'did you mean'
run 1 "$ampc" "$work/small.amp" --policy "$work/bad.policy" -o "$work/x.so"
says 'bad.policy:4:4: error: unknown op exq' # as check says it
run 0 "$ampc" policy show "$work/bad.policy"
run 1 "$ampc" policy diff torch-fp16 "$work/bad.policy"
for sub in show check; do
    run 1 "$ampc" policy $sub torch-fp61
    says 'there is no policy torch-fp61: neither a built-in one nor a file' 'built-in policies: '
done
run 1 "$ampc" policy diff torch-fp16 torch-fp16@1.0
says 'policy torch-fp16 has no version 1.0' 'its versions: '
run 2 "$ampc" policy
says 'policy: say list, show, check or diff'
run 2 "$ampc" policy lsit
says 'policy lsit: it is list, show, check or diff'
run 2 "$ampc" policy list torch-fp16
says 'policy list: takes no policy'
run 2 "$ampc" policy check
says 'policy check: takes one policy'
run 2 "$ampc" policy diff torch-fp16
says 'policy diff: takes two policies'
run 2 "$ampc" policy diff torch-fp16 fp32 tf32
says 'tf32 is one argument too many'
run 2 "$ampc" policy show torch-fp16 --json "$work/x.json"
says 'policy show: --json' 'prints the text as it is'
run 2 "$ampc" policy list --precision fp16
says '--precision: policy does not take this'
keeps "$work/mine.policy" 2 "$ampc" policy check "$work/mine.policy" --json "$work/mine.policy" --force
keeps "$work/own.policy" 2 "$ampc" policy diff fp32 "$work/own.policy" --json "$work/own.policy" --force

# ---- ampc diff: golden files are in tests/tools/golden -------------------------------------------

run 0 "$ampc" diff "$work/small.amp" torch-fp16 torch-bf16
says 'policy torch-fp16, low precision f16' 'policy torch-bf16, low precision bf16' 'f16 -> bf16' \
    'train_step at batch 32 on H100' 'launches on the GPU' 'temporaries on the CPU' 'modelled time' 'same'
run 0 "$ampc" diff "$work/small.amp" torch-fp16@2.11 torch-fp16
says 'no difference' 'policy torch-fp16@2.11'
run 0 "$ampc" diff "$so" "$work/small.amp"
says 'no difference: 0 of ' 'same'
run 0 "$ampc" diff - fp32 torch-fp16 <"$work/small.amp"
says 'before   stdin' 'fc1.linear                          f32 -> f16'
run 0 "$ampc" diff "$work/small.amp" "$work/mine.policy" --op linear --batch 8 --gpu 'rtx 4090'
says 'policy mine, low precision f16' '0 of 2 ops changed; same dtypes by another line: 2' 'train_step at batch 8 on RTX4090'
run 0 "$ampc" diff "$work/small.amp" "$work/plain.amp" --policy torch-fp16 # one of them has no training
says 'only before   cross_entropy.nll_loss' 'a step at batch 32 on H100' 'train_step         infer'
sed 's/^    optimizer/    accumulate = 4\n&/' "$work/small.amp" >"$work/micro.amp"
run 0 "$ampc" diff "$work/small.amp" "$work/micro.amp" -D HIDDEN=160 --json "$work/diff.json"
expect 'diff --json: every op, and the step on both sides; of a step of micro-batches all of them' ok "$(python3 - "$work/diff.json" <<'PYTHON'
import json, sys
told = json.load(open(sys.argv[1]))
assert not told["changed"] and told["matched"] >= 5 and told["before"]["policy"] == "min-cast", told["matched"]
step = told["step"]
assert (step["batch"], step["gpu"], step["measured"], step["missing"]) == (32, "H100", False, None)
before, after = step["before"], step["after"]
assert (before["program"], before["micro_batches"], after["program"], after["micro_batches"]) == ("train_step", 1, "micro_step", 4)
assert before["launches"] >= 5 and after["launches"] > 3 * before["launches"], (before, after)
assert after["bytes"] > before["bytes"] > 0 and before["temporaries"] > 0 < before["cpu_temporaries"]
assert 1.3 * before["launches"] <= before["microseconds"] < 4 * before["launches"]
for key, ratio in step["ratio"].items():
    assert abs(ratio - after[key] / before[key]) < 1e-12, key
print("ok")
PYTHON
)"
run 0 "$amprun" info "$so" --roofline H100 --batch 64 --json
cp "$work/.out" "$work/roofline.json"
run 0 "$ampc" diff "$so" "$so" --batch 64 --json "$work/diff.json" # which ampc wrote
expect 'diff counts what amprun info --roofline counts' ok "$(python3 - "$work/roofline.json" "$work/diff.json" <<'PYTHON'
import json, sys
model, step = json.load(open(sys.argv[1]))["roofline"], json.load(open(sys.argv[2]))["step"]["before"]
for key in "launches", "bytes", "microseconds":
    assert model[key] == step[key], (key, model[key], step[key])
print("ok")
PYTHON
)"
run 0 "$ampc" diff "$work/small_cpu.so" "$so" # one of them has no CUDA code
says 'launches on the GPU ' ' - ' 'no CUDA code, before: it was compiled with --target cpu'
run 0 "$ampc" diff "$work/small.amp" "$work/small.amp" --cc no-such-compiler
says 'no difference' 'steps are not compared: ' 'no-such-compiler'
run 0 "$ampc" diff "$work/small.amp" "$work/small.amp" --cc no-such-compiler --json -
says '"missing":"' 'no-such-compiler'
run 0 "$ampc" diff "$work/small.amp" fp32 torch-bf16 --gpu T4
says 'no time, after: T4 has no mma bf16'
run 2 "$ampc" diff
says 'diff: give two models, or a model and one or two policies'
run 2 "$ampc" diff "$work/small.amp"
says 'small.amp with what? Give another model, or one or two policies'
run 2 "$ampc" diff torch-fp16 min-cast
says 'diff: torch-fp16 is a policy, and the first argument is a model; ampc policy diff'
run 2 "$ampc" diff "$work/small.amp" "$work/plain.amp" torch-fp16
says 'plain.amp is no policy' 'ampc diff MODEL MODEL --policy POLICY'
run 2 "$ampc" diff "$work/small.amp" fp32 torch-fp16 tf32
says 'tf32 is one argument too many'
run 2 "$ampc" diff "$work/small.amp" fp32 tf32 --policy torch-fp16
says 'diff: --policy torch-fp16: the arguments have two policies already'
run 2 "$ampc" diff - - <"$work/small.amp"
says 'standard input already'
run 2 "$ampc" diff "$so" fp32 tf32
says 'policy: ' 'small.so is compiled already'
run 1 "$ampc" diff "$work/small.amp" torch-fp16 nosuch
says 'there is no policy nosuch' 'built-in policies: '
run 1 "$ampc" diff "$work/small.amp" torch-fp16 torch-fp16@1.0
says 'policy torch-fp16 has no version 1.0'
run 1 "$ampc" diff "$work/small.amp" torch-fp16 "$work/bad.policy"
says 'bad.policy:4:4: error: unknown op exq'
run 1 "$ampc" diff "$work/small.amp" fp32 torch-bf16 --precision fp16
says 'do not agree'
run 1 "$ampc" diff "$work/small.amp" nosuch
says 'diff: nosuch is neither a file nor a built-in policy; ampc policy list names those'
run 1 "$ampc" diff "$work/small.amp" "$work/none.amp"
says 'none.amp' 'No such file'
run 1 "$ampc" diff "$work/none.amp" torch-fp16 min-cast
says 'none.amp' 'No such file'
run 1 "$ampc" diff "$work/small.amp" "$work/wrong.amp"
says 'wrong.amp:5:'
run 1 "$ampc" diff "$work/small.amp" fp32 torch-fp16 --op conv2d
says "no op is a 'conv2d'"
run 2 "$ampc" diff "$work/small.amp" fp32 torch-fp16 --gpu B9000
says '--gpu B9000: that GPU is not known; known are H200, H100'
run 2 "$ampc" diff "$work/small.amp" fp32 torch-fp16 --batch 0
says '--batch 0: a whole number from 1 to 2147483647 is wanted'
run 2 "$ampc" diff "$work/small.amp" fp32 torch-fp16 --batch 100000000
says '--batch 100000000: ' 'small.amp takes multiples of 1, 16777216 at most'
run 2 "$ampc" diff "$work/small.amp" fp32 torch-fp16 -o "$work/x"
says '-o: diff does not take this'
run 2 "$ampc" "$work/small.amp" --gpu H100
says '--gpu: only with ampc explain, lint, diff'
keeps "$work/mine.policy" 2 "$ampc" diff "$work/small.amp" fp32 "$work/mine.policy" --json "$work/mine.policy" --force
keeps "$work/plain.amp" 2 "$ampc" diff "$work/small.amp" "$work/plain.amp" --json "$work/plain.amp" --force

# ---- ampc: what it refuses -----------------------------------------------------------------------

for help in --help -h; do run 0 "$ampc" $help; done
says 'usage: ampc' 'elaborate autocast' 'usage: ampc MODEL -o'
run 0 "$ampc" explain -h
says 'usage: ampc explain' '--policy NAME|FILE' '-h, --help'
holds 'the help of explain names its options alone' bash -c '! grep -q -e --emit -e "\[explain\]" "$1"' - "$work/.out"
run 0 "$ampc" -v "$work/small.amp" -o "$work/verbose.so" --isa portable
stages=$(grep -c '^ampc: [0-9]*/[0-9]* ' "$work/.err")
says "ampc: 1/$stages elaborate" "/$stages codegen cuda" "ampc: $stages/$stages cc"
expect 'each has its number' "$(seq "$stages")" "$(sed -n 's#^ampc: \([0-9]*\)/.*#\1#p' "$work/.err")"
run 2 "$ampc" explain "$work/small.amp" -v
says '--verbose: explain does not take this'
run 2 "$ampc" "$work/small.amp" --color sometimes
says '--color sometimes: auto, always or never'
run 0 "$ampc" --version
says 'ampc '
run 2 "$ampc"
says 'no model was given' 'ampc --help'
run 2 "$ampc" "$work/small.amp" extra
says 'extra is one argument too many'
run 2 "$ampc" "$work/small.amp" --nonsense
says '--nonsense: there is no such option' 'ampc --help'
run 2 "$ampc" "$work/small.amp" -x
says '-x: there is no such option'
run 2 "$ampc" "$work/small.amp" -o
says '-o: needs a value'
run 2 "$ampc" "$work/small.amp" --emit wasm
says '--emit wasm: so, o, c, ir, cu or ptx'
run 2 "$ampc" "$work/small.amp" --target gpu
says "unknown target 'gpu'; use cpu, cuda or both"
run 2 "$ampc" "$work/small.amp" --gpu-arch hopper
says "gpu arch 'hopper': names such as sm_80"
run 2 "$ampc" "$work/small.amp" --target cpu --gpu-arch sm_80
says 'gpu arch sm_80: target cpu has no CUDA code'
run 2 "$ampc" "$work/small.amp" --target cpu --emit cu
says 'target cpu has no CUDA code to emit; use target cuda or both'
run 2 "$ampc" "$work/small.amp" --stop-after=never --emit ir
says '--stop-after=never: there is no such pass' 'elaborate, autocast'
run 2 "$ampc" "$work/small.amp" --dump-ir=never
says 'there is no such pass'
run 2 "$ampc" "$work/small.amp" --no-pass=autocast
says "pass 'autocast' cannot be left out; these can: simplify; rewrite: turn_columns, split_sums, " \
    '; fuse; layout: masters, weight_copies, pack; order: postpone, '
run 2 "$ampc" "$work/small.amp" -D HIDDEN
says 'write -D NAME=VALUE'
run 2 "$ampc" "$work/small.amp" --max-ops many
says 'a whole number from 1 to 2147483647 is wanted'
run 2 "$ampc" "$work/small.amp" --stop-after=fuse -o "$work/x.so"
says 'fuse' '--emit ir'
run 2 "$ampc" "$work/small.amp" --json "$work/x"
says 'only with ampc explain'
run 2 "$ampc" "$planned" --emit ir --stop-after=fuse -o "$work/x.ir"
says "is already at stage ${passes[-1]}"
run 1 "$ampc" "$work/none.amp"
says 'none.amp' 'No such file'
run 1 "$ampc" "$work/wrong.amp" -o "$work/x.so"
says "$work/wrong.amp:5:" 'error:' 'hh' '^'
run 1 "$ampc" "$work/small.amp" -D WIDTH=3 -o "$work/x.so"
says 'WIDTH' 'small.amp'
run 1 "$ampc" "$work/small.amp" -D HIDDEN=word -o "$work/x.so"
says 'HIDDEN'
run 1 "$ampc" "$work/small.amp" --precision fp8 -o "$work/x.so"
says 'fp8'
run 1 "$ampc" "$work/small.amp" --policy no-such-policy -o "$work/x.so"
says 'no-such-policy' 'torch-fp16'
run 1 "$ampc" "$work/small.amp" --cc no-such-compiler -o "$work/x.so"
says 'no-such-compiler'
run 1 "$ampc" "$work/small.amp" --cc false -o "$work/x.so"
says 'false'
run 1 "$ampc" "$work/small.amp" -o "$work/no/such/folder/x.so"
says 'no/such/folder'
run 1 "$ampc" "$work/small.amp" --dump-dir "$work/no/such/folder"
says 'no/such/folder' 'No such file'
run 1 "$ampc" "$work/small.amp" --max-ops 2 -o "$work/x.so"
says '2'
holds 'nothing refused was written' test ! -e "$work/x.so"
run 1 bash -c '"$1" "$2" --dump-ir=plan >/dev/full' - "$ampc" "$work/small.amp"
says 'standard output: No space left'

# ---- amprun: the commands ------------------------------------------------------------------------

data=safetensors:$work/data.st
run 0 "$amprun" info "$so" --batch 7
says 'policy   min-cast (fp16)' 'fc1.weight' 'f32[16, 8]' 'f32[7, 8]' 'memory   at batch 7' 'adamw(' 'dynamic(' \
    'code and tables, once for all sessions'
run 0 "$amprun" info "$work/plain.so"
says 'inference only'
run 0 "$amprun" train "$so" --data "$data" --epochs 10 --batch 16 --seed 3 --threads 2 --save "$st" --log "$work/log.jsonl"
says 'epoch 10: train loss' 'samples/s'
expect 'one line for the model and one per epoch' 11 "$(wc -l <"$work/.out")"
holds 'the log is JSON: header, 40 steps' python3 -c '
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
steps = [l for l in lines if "iteration" in l]
assert lines[0]["model"] == "small" and lines[0]["peak_bytes"] > 0
assert [s["iteration"] for s in steps] == list(range(1, 41))
assert steps[-1]["loss"] < 0.7 * steps[0]["loss"], (steps[0], steps[-1])
' "$work/log.jsonl"
run 0 "$amprun" train "$so" --data "idx:$work/idx" --epochs 2 --batch 16
says 'test loss' 'test acc'
run 0 "$amprun" train "$so" --data "$data" --steps 3 --batch 16 --quiet
expect '--quiet prints nothing' '' "$out$err"
run 0 "$amprun" eval "$so" --data "$data" --weights "$st"
says '{"samples": 60, "loss": ' '"acc": '
run 0 "$ampc" "$work/small.amp" --eval-precision fp32 --isa portable -o "$work/twofold.so"
run 0 "$amprun" eval "$work/twofold.so" --data "$data" --weights "$st" --precision fp32
says '{"samples": 60, "loss": ' '"acc": '
run 1 "$amprun" eval "$so" --data "$data" --weights "$st" --precision fp32
says '--eval-precision fp32'
run 2 "$amprun" eval "$so" --data "$data" --weights "$st" --precision bf16
says 'in fp32'
sed 's/^    loss = /    accumulate = 3\n    loss = /' "$work/small.amp" >"$work/parts.amp"
run 0 "$ampc" "$work/parts.amp" --isa portable -o "$work/parts.so"
run 0 "$amprun" train "$work/parts.so" --data "$data" --batch 16 --epochs 3 --quiet --log "$work/parts.jsonl"
expect '3 epochs of 4 batches are 4 steps of 3' 4 "$(grep -c '"iteration"' "$work/parts.jsonl")"
run 0 "$amprun" infer "$work/plain.so" --weights "$st" --inputs "$work/data.st" --outputs "$work/logits.st" --batch 7
holds 'results of all samples are written' grep -qa '"logits":{"dtype":"F32","shape":\[60,3\]' "$work/logits.st"
run 0 "$amprun" infer "$so" --weights "$st" --inputs "$work/no_targets.st" --outputs "$work/logits.st"
sed '/^model/s/-> .*{/-> pairs {/; /logits *=/a\    pairs = matmul(logits, transpose(logits))' "$work/plain.amp" >"$work/pairs.amp"
run 0 "$ampc" "$work/pairs.amp" --isa portable -o "$work/pairs.so"
run 1 "$amprun" infer "$work/pairs.so" --weights "$st" --inputs "$work/data.st" --outputs "$work/pairs.st" --batch 7
says 'result pairs has not one row for each sample' '--batch 60'
run 0 "$amprun" infer "$work/pairs.so" --weights "$st" --inputs "$work/data.st" --outputs "$work/pairs.st" --batch 60
holds 'samples by samples, of one batch' grep -qa '"pairs":{"dtype":"F32","shape":\[60,60\]' "$work/pairs.st"
run 0 "$amprun" step "$so" --weights "$st" --inputs "$work/data.st" --steps 2 --scale 64 --grads "$work/grads.st" \
    --values '*logits*' "$work/values.st" --save "$work/stepped.st" --checkpoint "$work/stepped.ck"
expect 'step prints one line per step' 2 "$(grep -c '^{"step": .*"grad_norm": ' "$work/.out")"
says '"scale": 64'
holds 'gradients by name' grep -qa '"fc1.weight":{"dtype":"F32","shape":\[16,8\]' "$work/grads.st"
run 0 "$amprun" step "$so" --resume "$work/stepped.ck" --inputs "$work/data.st"
says '"step": 3, "iteration": 3'

# Uninterrupted, and in two parts: the same weights to the last bit; so with another number of threads and kernel set.
run 0 "$amprun" train "$so" --data "$data" --steps 10 --batch 16 --threads 1 --save "$work/whole.st"
run 0 "$amprun" train "$so" --data "$data" --steps 6 --batch 16 --threads 2 --checkpoint "$work/part.ck"
run 0 "$amprun" train "$so" --data "$data" --steps 10 --batch 16 --resume "$work/part.ck" --save "$work/parts.st"
holds 'resumed training equals uninterrupted training' cmp "$work/whole.st" "$work/parts.st"
run 0 "$amprun" train "$so" --data "$data" --steps 10 --batch 16 --resume "$work/part.ck" --isa portable --device cpu
run 0 "$amprun" train "$so" --data "$data" --steps 6 --batch 16 --resume "$work/part.ck"
says 'nothing is left to train'
run 0 "$amprun" train "$so" --data "$data" --steps 2 --batch 16 --device null --quiet

# ---- amprun: what it never overwrites ------------------------------------------------------------

cp "$so" "$work/guard.so"
run 0 "$amprun" train "$so" --data "$data" --steps 2 --batch 16 --save "$work/guard.st" --checkpoint "$work/guard.ck"
ln -sf guard.st "$work/link.st"
cp "$work/data.st" "$work/other_data.st"
train_on() { "$amprun" train "$work/guard.so" --data "safetensors:$work/other_data.st" --steps 2 --batch 16 "$@"; }
for option in --save --checkpoint --log "--save-best loss"; do
    # shellcheck disable=SC2086
    for file in guard.so other_data.st guard.st; do
        keeps "$work/$file" 2 train_on --weights "$work/guard.st" --eval-split 0.1 $option "$work/./$file" --force
        says "${option%% *} $work/./$file: is the same file as"
    done
done
keeps "$work/guard.st" 2 train_on --weights "$work/link.st" --save "$work/guard.st"
keeps "$work/idx/train-labels-idx1-ubyte" 2 "$amprun" train "$so" --data "idx:$work/idx" --steps 1 \
    --log "$work/idx/train-labels-idx1-ubyte"
keeps "$work/guard.ck" 2 train_on --resume "$work/guard.ck" --save "$work/guard.ck"
for pair in '--save --checkpoint' '--log --checkpoint' '--save --log'; do
    # shellcheck disable=SC2086
    run 2 train_on ${pair/ / $work/new.x } "$work/./new.x"
    says 'which is written too'
done
run 2 "$amprun" infer "$so" --weights "$st" --inputs "$work/data.st" --outputs "$work/data.st"
for option in --grads --save --checkpoint '--values *'; do
    set -f
    # shellcheck disable=SC2086
    keeps "$work/data.st" 2 "$amprun" step "$so" --weights "$st" --inputs "$work/data.st" $option "$work/data.st"
    set +f
done
holds 'nothing was written' test ! -e "$work/new.x"
# Files of others, and of another kind.
printf '{"mine": 1}\n' >"$work/mine"
for file in mine no_targets.st guard.ck; do
    keeps "$work/$file" 1 train_on --save "$work/$file"
    says "--save $work/$file: is there already and is not parameters that amprun saved" '--force'
done
keeps "$work/mine" 1 train_on --log "$work/mine"
keeps "$work/guard.st" 1 train_on --checkpoint "$work/guard.st"
keeps "$work/no_targets.st" 1 "$amprun" infer "$so" --weights "$st" --inputs "$work/data.st" --outputs "$work/no_targets.st"
run 0 train_on --save "$work/mine" --force
run 0 train_on --save "$work/mine" --log "$work/guard.jsonl"
run 0 train_on --resume "$work/guard.ck" --steps 4 --checkpoint "$work/guard.ck" --log "$work/guard.jsonl"
run 0 "$amprun" infer "$so" --weights "$st" --inputs - --outputs - <"$work/data.st"
holds 'infer reads standard input and writes standard output' grep -qa '"logits":{"dtype":"F32","shape":\[60,3\]' "$work/.out"
run 0 train_on --quiet --log -
expect '--log - prints the log' 3 "$(grep -c '^{"' "$work/.out")"
run 0 bash -c "$amprun train $so --data $data --steps 3 --batch 16 --log $work/closed.jsonl >&- 2>&-"
holds 'with closed descriptors the log is JSON' python3 -c '
import json, sys
assert len([json.loads(line) for line in open(sys.argv[1])]) == 4' "$work/closed.jsonl"
run 0 "$amprun" train "$so" --data "$data" --steps 2 --batch 16 --save /dev/null

# ---- amprun: nothing that was trained is lost ----------------------------------------------------

# Outputs are tried before the first step, which would take minutes.
for option in --save --checkpoint --log '--save-best loss'; do
    # shellcheck disable=SC2086
    run 1 timeout 30 "$amprun" train "$so" --data "$data" --eval-split 6 --steps 10000000 --quiet $option "$work/no/such/x"
    says "${option%% *}" 'no/such/x' 'No such file or directory'
done
chmod 0444 "$work/guard.st"
keeps "$work/guard.st" 1 timeout 30 "$amprun" train "$so" --data "$data" --steps 10000000 --save "$work/guard.st"
chmod 0644 "$work/guard.st"
interrupted_inputs
run 0 interrupted 3 5 # full/interrupted.sh: 1, too, and many more
says ok
# A signal that was ignored at the start stays ignored.
run 0 bash -c "trap '' HUP; $amprun train $so --data $data --steps 5000 --batch 4 --quiet & sleep 0.1; kill -HUP \$!; wait \$!"
# A second signal ends it at once, even where the step has not ended.
run 143 bash -c "$amprun train $so --data $data --steps 100000000 --batch 4 --quiet --save $work/second.st & sleep 0.5; kill -STOP \$!
    kill -TERM \$!; kill -CONT \$!; sleep 0.3; kill -TERM \$! 2>/dev/null; wait \$!"
# The reader is gone: training goes on.
run 0 bash -c "$amprun train $so --data $data --epochs 200 --batch 4 --save $work/piped.st --quiet | true; rm $work/piped.st
    $amprun train $so --data $data --epochs 200 --batch 4 --save $work/piped.st | head -2 >/dev/null; exit \${PIPESTATUS[0]}"
says 'standard output: Broken pipe; training goes on'
holds 'and saves' test -s "$work/piped.st"
# One file that cannot be written in the end does not keep the other from it.
mkdir "$work/gone"
run 1 bash -c "$amprun train $so --data $data --steps 100000000 --batch 4 --save $work/gone/x.st --checkpoint $work/kept.ck \\
    --log $work/gone.jsonl --quiet & until [[ \$(wc -l <$work/gone.jsonl) -gt 2 ]]; do sleep 0.05; done
    rm -rf $work/gone; kill -TERM \$!; wait \$!"
says '--save' 'gone/x.st'
holds 'the checkpoint is written though --save fails' test -s "$work/kept.ck"
# An error in the data keeps what was trained before, and names the sample in the file.
run 1 "$amprun" train "$so" --data "safetensors:$work/bad_label.st" --epochs 3 --batch 4 --seed 2 --checkpoint "$work/bad.ck"
says 'bad_label.st: input targets, sample 0: index 9'
holds 'a checkpoint is there' test -s "$work/bad.ck"
# A half line of a killed run, and the lines after the checkpoint, are cut.
run 0 "$amprun" train "$so" --data "$data" --steps 6 --batch 16 --log "$work/cut.jsonl" --checkpoint "$work/cut.ck"
printf '{"iteration": 7, "step": 7}\n{"itera' >>"$work/cut.jsonl"
run 0 "$amprun" train "$so" --data "$data" --steps 10 --batch 16 --log "$work/cut.jsonl" --resume "$work/cut.ck"
holds 'the log has each step once' python3 -c '
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert [l["iteration"] for l in lines if "iteration" in l] == list(range(1, 11)), lines
assert "model" in lines[0] and sum("model" in l for l in lines) == 1' "$work/cut.jsonl"
# Going on with another batch, seed or data, or with weights too.
run 1 "$amprun" train "$so" --data "$data" --steps 10 --batch 8 --resume "$work/cut.ck"
says '--batch 8:' 'was written with --batch 16' '--allow other-batch'
run 1 "$amprun" train "$so" --data "$data" --steps 10 --seed 9 --resume "$work/cut.ck"
says '--seed 9:' '--allow other-seed'
run 1 "$amprun" train "$so" --data "idx:$work/idx" --eval-split 3 --steps 10 --resume "$work/cut.ck"
says 'samples' '--allow other-data'
# Each word allows one of them, and --force none.
declare -A other=([batch]="$data --batch 8" [seed]="$data --seed 9" [data]="idx:$work/idx --eval-split 3")
for what in batch seed data; do
    for allowed in --force '--allow nan,alone' '--allow other-batch' '--allow other-seed' '--allow other-data'; do
        wanted=1
        [[ $allowed != *other-$what ]] || wanted=0
        run "$wanted" "$amprun" train "$so" --data ${other[$what]} --steps 10 --quiet --resume "$work/cut.ck" $allowed
    done
done
run 0 "$amprun" train "$so" --data "$data" --batch 8 --seed 9 --steps 10 --resume "$work/cut.ck" --allow other-seed,other-batch
run 0 "$amprun" train "$so" --data "$data" --batch 8 --seed 9 --steps 10 --resume "$work/cut.ck" --allow other-seed \
    --allow other-batch
for word in force nan,, other nan,x ,nan ''; do
    run 2 "$amprun" train "$so" --data "$data" --allow "$word"
    says "--allow $word: nan, other-batch, other-data, other-seed or alone is wanted"
done
run 2 "$amprun" infer "$so" --allow nan
run 0 "$amprun" train "$so" --data "$data" --steps 10 --resume "$work/cut.ck" --save "$work/cut.st"
run 0 "$amprun" train "$so" --data "$data" --steps 10 --batch 16 --save "$work/uncut.st"
holds 'batch and seed come from the checkpoint' cmp "$work/cut.st" "$work/uncut.st"
run 2 "$amprun" train "$so" --data "$data" --resume "$work/cut.ck" --weights "$st"
says '--weights or --resume, not both'
# Parameters that became NaN replace nothing.
run 0 "$ampc" "$work/small.amp" --precision fp32 --isa portable --target cpu -o "$work/fp32.so"
python3 - "$work/data.st" "$work/inf.st" <<'INF'
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
data[-4 * 60 - 4 : -4 * 60] = data[-4 * 60 - 4 : -4 * 60]
size = struct.unpack("<Q", data[:8])[0]
import json
at = 8 + size + json.loads(data[8 : 8 + size])["x"]["data_offsets"][0]
data[at : at + 4] = struct.pack("<f", float("inf"))
open(sys.argv[2], "wb").write(data)
INF
run 0 "$amprun" train "$work/fp32.so" --data "$data" --steps 4 --batch 16 --save "$work/good.st" --checkpoint "$work/good.ck"
cp "$work/good.ck" "$work/good_before.ck"
keeps "$work/good.st" 1 "$amprun" train "$work/fp32.so" --data "safetensors:$work/inf.st" --epochs 3 --batch 16 \
    --save "$work/good.st" --checkpoint "$work/good.ck"
says 'not finite' 'training ends' "$work/inf.st: x, sample 0, has a NaN" '--save' 'not written' '--allow nan'
holds 'nor the checkpoint' cmp "$work/good.ck" "$work/good_before.ck"
keeps "$work/good.st" 1 "$amprun" train "$work/fp32.so" --data "safetensors:$work/inf.st" --epochs 3 --batch 16 \
    --save "$work/good.st" --force --allow other-data
says 'training ends' '--allow nan'
cp "$work/guard.amp" "$work/foreign.st"
keeps "$work/foreign.st" 1 "$amprun" train "$work/fp32.so" --data "$data" --steps 1 --save "$work/foreign.st" --allow nan
run 0 "$amprun" train "$work/fp32.so" --data "safetensors:$work/inf.st" --epochs 3 --batch 16 --save "$work/good.st" \
    --allow nan
holds 'all epochs were trained' grep -q '^epoch 3' "$work/.out"
# A bf16 input takes F32 data, and what has no number in bf16 is named like the rest.
sed 's/x: f32/x: bf16/' "$work/small.amp" >"$work/small_bf16.amp"
run 0 "$ampc" "$work/small_bf16.amp" --precision fp32 --isa portable --target cpu -o "$work/bf16_input.so"
run 0 "$amprun" train "$work/bf16_input.so" --data "$data" --steps 4 --batch 16
run 1 "$amprun" train "$work/bf16_input.so" --data "safetensors:$work/inf.st" --epochs 3 --batch 16 --save "$work/bf16.st"
says "$work/inf.st: x, sample 0, has a NaN or an infinity"

# ---- amprun: validation, the best so far, early stop ---------------------------------------------

run 0 "$amprun" train "$so" --data "$data" --eval-split 0.2 --epochs 6 --batch 8 --save-best acc "$work/best.st" --log "$work/best.jsonl"
says 'test loss' 'test acc'
run 0 "$amprun" train "$so" --data "$data" --eval-data "$data" --epochs 40 --batch 8 --save-best loss "$work/best.st" \
    --patience 2 --seed 3 --log "$work/best.jsonl"
holds 'what is kept is the best of the log, and training ends after two that are no better' python3 - "$work/best.jsonl" "$amprun" "$so" "$data" "$work/best.st" <<'BEST'
import json, subprocess, sys
losses = [l["test_loss"] for l in map(json.loads, open(sys.argv[1])) if "test_loss" in l]
best = losses.index(min(losses))
assert len(losses) == 40 or len(losses) == best + 3, losses
out = subprocess.run([sys.argv[2], "eval", sys.argv[3], "--data", sys.argv[4], "--weights", sys.argv[5]], capture_output=True, text=True).stdout
assert abs(json.loads(out)["loss"] - losses[best]) < 1e-6, (out, losses)
BEST
# ---- amprun: averages of weights, evaluated and saved; of a checkpoint either ---------------------

sed 's/^    optimizer = .*/&\n    ema = 0.9/' "$work/small.amp" >"$work/averaged.amp"
averaged=$work/averaged.so
run 0 "$ampc" "$work/averaged.amp" --isa portable --target cpu -o "$averaged"
run 0 "$amprun" train "$averaged" --data "$data" --eval-data "$data" --epochs 3 --batch 8 --ema --save "$work/averages.st" \
    --save-best loss "$work/best.st" --checkpoint "$work/averaged.ck" --log "$work/averaged.jsonl"
loss() { "$amprun" eval "$averaged" --batch 8 --data "$data" --weights "$@" | grep -o '"loss": [^,}]*'; }
wanted=$(grep -o '"test_loss": [^,}]*' "$work/averaged.jsonl" | tail -n 1)
expect 'what was evaluated last is what is saved' "${wanted/test_loss/loss}" "$(loss "$work/averages.st")"
expect 'and what the checkpoint has with --ema' "$(loss "$work/averages.st")" "$(loss "$work/averaged.ck" --ema)"
expect 'and the best' "$(loss "$work/averages.st")" "$(loss "$work/best.st")"
holds 'without --ema a checkpoint has the parameters' test "$(loss "$work/averaged.ck")" != "$(loss "$work/averages.st")"
run 0 "$amprun" infer "$averaged" --weights "$work/averages.st" --inputs "$work/data.st" --outputs "$work/a.st"
run 0 "$amprun" infer "$averaged" --weights "$work/averaged.ck" --ema --inputs "$work/data.st" --outputs "$work/b.st"
holds 'inference with --ema is with the averages' cmp -s "$work/a.st" "$work/b.st"
run 0 "$amprun" step "$averaged" --resume "$work/averaged.ck" --inputs "$work/data.st" --save "$work/step.st" --ema
holds 'a step with --ema saves other averages' test "$(loss "$work/step.st")" != "$(loss "$work/averages.st")"
run 1 "$amprun" train "$so" --data "$data" --ema
says '--ema: small keeps no averages; write `ema = 0.999` in its train block'
run 1 "$amprun" eval "$averaged" --data "$data" --weights "$work/averages.st" --ema
says "$work/averages.st: --ema: it has no averages (optim/NAME/ema)"
run 2 "$amprun" step "$averaged" --resume "$work/averaged.ck" --inputs "$work/data.st" --ema
says '--ema only with --save'

run 2 "$amprun" train "$so" --data "$data" --save-best acc "$work/best.st"
says '--eval-data or --eval-split'
run 2 "$amprun" train "$so" --data "$data" --eval-split 0.2 --save-best speed "$work/best.st"
says '--save-best speed' 'no metric'
run 1 "$amprun" train "$so" --data "$data" --eval-split 60
says '--eval-split 60'
for every in 0 x 1.5 -3 5d 1e99s; do
    run 2 "$amprun" train "$so" --data "$data" --checkpoint "$work/x.ck" --checkpoint-every "$every"
    says "--checkpoint-every $every: a number of steps"
done
run 2 "$amprun" train "$so" --data "$data" --checkpoint-every 5
says 'only with --checkpoint'
run 0 "$amprun" train "$so" --data "$data" --steps 2 --batch 16 --device null
says 'nothing is computed'

# ---- both: one table of options for help, manual pages and completions --------------------------

for tool in ampc amprun; do
    run 0 "$bin/tools/$tool" --describe man
    expect "docs/man/$tool.1 lists the options of the table (tools/make-man)" "$out" \
        "$(sed '1,/^\.SH OPTIONS$/d; /^\.SH/,$d; /^\.PP$/,$d' docs/man/$tool.1)"
    for shell in bash zsh fish; do
        run 0 "$bin/tools/$tool" --describe $shell
        says "$tool" 'force'
        cp "$work/.out" "$work/complete.$tool.$shell"
        ! command -v $shell >/dev/null || holds "$shell reads the completion of $tool" $shell -n "$work/complete.$tool.$shell"
    done
    run 2 "$bin/tools/$tool" --describe csh
    says '--describe csh: bash, zsh, fish or man'
done
# completes WANTED WORD...: what bash offers for the last word, in a folder without files
mkdir "$work/no_files"
completes() {
    local wanted=$1
    shift
    expect "completion of $*" "$wanted" "$(cd "$work/no_files" && bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); "_$1"
        echo "${COMPREPLY[*]}"' - "$work/complete.$1.bash" "$@")"
}
completes 'train' amprun tr
completes '--save --save-like --save-best' amprun train --sa
completes '' amprun info --sa
completes 'portable' amprun train m.so --isa p
completes '--json' amprun info --j
completes '--roofline --ranks' amprun info --r
completes 'RTX4090' amprun info m.so --roofline R
completes '--precision --policy' ampc m.amp --p
completes 'fp16 fp32' ampc m.amp --precision fp
completes 'explain' ampc expl
completes "${passes[*]}" ampc m.amp --stop-after ''
completes 'check' ampc policy ch
completes 'diff' ampc policy d
completes 'diff' ampc di
completes 'RTX4090' ampc diff m.amp --gpu R
completes '' ampc explain ch
completes '--json' ampc policy list --j
run 0 "$amprun" info "$so" --json --batch 7
holds 'info --json is what info says' python3 -c '
import json, sys
info = json.load(open(sys.argv[1]))
shapes = {t["name"]: t["shape"] for t in info["tensors"]}
assert info["model"] == "small" and info["metrics"] == ["acc"] and info["losses"] == []
assert shapes == {"fc1.weight": [16, 8], "fc1.bias": [16], "fc2.weight": [3, 16], "fc2.bias": [3], "x": [7, 8],
                  "targets": [7], "logits": [7, 3]}
memory = info["memory"]
assert memory["total"] == sum(v for k, v in memory.items() if k not in ("total", "model")) > 0
assert memory["model"] > 1000' "$work/.out"

# ---- amprun train: the loss scale, watched --------------------------------------------------------

# Three samples of 60 overflow, so that the scale falls again whenever it grew.
sed 's/init = 1024.0/init = 65536.0, interval = 3/' "$work/small.amp" >"$work/falls.amp"
run 0 "$ampc" "$work/falls.amp" --isa portable -o "$work/falls.so"
run 0 "$amprun" train "$work/falls.so" --data "safetensors:$work/large.st" --batch 5 --steps 60 --log "$work/falls.log"
says ': the loss scale is falling: 3 overflows since it last grew, ' 'steps between the last two' 'docs/seeing-precision.md'
for word in settling steady 'at its ceiling' falling; do
    holds "--log says that the scale is $word" grep -q "\"scale_is\": \"$word\"" "$work/falls.log"
done
run 0 "$amprun" train "$work/falls.so" --data "safetensors:$work/large.st" --batch 5 --steps 31 \
    --log "$work/resumed.log" --checkpoint "$work/falls.ck"
run 0 "$amprun" train "$work/falls.so" --data "safetensors:$work/large.st" --batch 5 --steps 60 \
    --log "$work/resumed.log" --resume "$work/falls.ck"
holds 'what is watched goes on after --resume' cmp "$work/falls.log" "$work/resumed.log"
run 0 "$amprun" train "$so" --data "$data" --steps 3 --log "$work/ordinary.log"
expect 'nothing is said of a scale that is as it should be' '' "$err"
run 0 "$amprun" train "$work/fp32.so" --data "$data" --steps 3 --log "$work/ordinary.log"
expect 'FP32 has no scale' '' "$(grep scale_is "$work/ordinary.log")"

# ---- amprun doctor -----------------------------------------------------------------------------------

run 0 "$amprun" doctor
says 'cpu       ok' 'products on ' 'FLOP/s f32 by ' 'FLOP/s bf16 by ' 'memory    ok' 'driver' 'nvrtc' 'cublaslt' 'cache' 'verdict   a model has all it needs on cpu'
run 0 "$amprun" doctor "$so" --batch 8 --json
expect 'doctor --json: each check has a state and a text' ok "$(python3 - "$work/.out" <<'PYTHON'
import json, sys
found = json.load(open(sys.argv[1]))
checks = {check["about"]: check for check in found["checks"]}
assert found["ok"] is True and found["device"] == "cpu"
assert {"cpu", "memory", "driver", "nvrtc", "cublaslt", "cache", "kernels"} <= set(checks)
assert all(check["state"] in ("ok", "note") and check["text"] for check in found["checks"])
assert checks["cpu"]["processors"] >= 1 and checks["cpu"]["f32_flops"] > 1e8 and checks["cpu"]["bf16_flops"] > 1e8
assert 0 < checks["memory"]["needed"] < checks["memory"]["available"]
print("ok")
PYTHON
)"
run 1 "$amprun" doctor "$so" --isa v9
says 'cpu       FAILED unknown isa v9; use portable, v3 or v4' 'small.so needs on cpu is missing'
run 1 "$amprun" doctor "$work/small_cpu.so" --device cuda
says 'kernels   FAILED of CUDA: the model has none: it was compiled with --target cpu' 'is missing'
run 1 env LD_LIBRARY_PATH= CUDA_VISIBLE_DEVICES= "$amprun" doctor --device cuda
says 'driver' 'FAILED' 'verdict   something that a model needs on cuda is missing'
run 0 env AMPC_CACHE_LIMIT=0 "$amprun" doctor
says 'cache     note   is off, because AMPC_CACHE_LIMIT is 0: unset it'
mkdir -p "$work/open_cache" && chmod 777 "$work/open_cache"
run 0 env AMPC_CACHE_DIR="$work/open_cache" "$amprun" doctor
says 'cache     note   no cache, so every process compiles its kernels: AMPC_CACHE_DIR'
run 0 env NVRTC_PATH=/nowhere CUBLASLT_PATH=/nowhere "$amprun" doctor
says 'nvrtc     note   ' 'searched: NVRTC_PATH=/nowhere' 'cublaslt  note   ' '`pip install nvidia-cublas` or with the CUDA toolkit' \
    'searched: CUBLASLT_PATH=/nowhere; it takes 540 MB, under NVIDIA' \
    'verdict   a model has all it needs on cpu'
run 1 "$amprun" doctor "$work/none.so"
says 'none.so'
run 2 "$amprun" doctor --device null
says '--device null: doctor looks at cpu and cuda'
run 2 "$amprun" doctor "$so" more
says 'doctor: more is one argument too many'

# ---- amprun info: the largest batch, and memory over time -----------------------------------------

# small.so takes less than 300 KB; the batch found is planned again as any other is.
run 0 "$amprun" info "$so" --batch auto --memory 1MiB --against "$work/fp32.so" --threads 2 --json
cp "$work/.out" "$work/auto.json"
expect 'info --batch auto: the batch fits, the next does not, and the ratio is of both' ok "$(
    python3 - "$work/auto.json" "$amprun" "$so" "$work/fp32.so" <<'PYTHON'
import json, subprocess, sys
found, amprun, files = json.load(open(sys.argv[1])), sys.argv[2], sys.argv[3:]


def total(file, batch):
    words = [amprun, "info", file, "--batch", str(batch), "--threads", "2", "--json"]
    return json.loads(subprocess.run(words, capture_output=True, check=True).stdout)["memory"]["total"]


assert found["limit"] == 1 << 20 and [m["file"] for m in found["models"]] == files
for m in found["models"]:
    assert total(m["file"], m["batch"]) == m["memory"]["total"] <= found["limit"] < m["next_total"], m
    assert m["next_batch"] == m["batch"] + 1 and total(m["file"], m["next_batch"]) == m["next_total"], m
    assert m["no_batch_fits_above"] >= m["batch"] > 100, m
a, b = (m["batch"] for m in found["models"])
assert abs(found["ratio"] - a / b) < 1e-6
print("ok")
PYTHON
)"
run 0 "$amprun" info "$so" --batch auto --memory 1MiB --against "$work/fp32.so" --threads 2
says 'model a' 'model b' 'min-cast' 'next batch' 'would take' 'times the batch'
run 0 "$amprun" info "$so" --batch auto --memory 1.5M
says 'at most 1500000 bytes'
run 1 "$amprun" info "$so" --batch auto --memory 1K
says 'small.so: --memory 1000: a batch of the smallest size takes ' 'weights ' 'docs/seeing-precision.md'
run 2 "$amprun" info "$so" --batch auto
says 'info takes --batch auto and --memory BYTES together'
run 2 "$amprun" info "$so" --batch 8 --memory 8G
says 'info takes --batch auto and --memory BYTES together'
run 2 "$amprun" info "$so" --against "$so"
says 'info takes --against only with --batch auto'
run 2 "$amprun" info "$so" --batch auto --memory 8G --timeline
says 'info takes a number as --batch with --timeline'
run 2 "$amprun" train "$so" --data "$data" --batch auto
says 'train takes a number as --batch; amprun info --batch auto finds the largest that fits'
for bytes in 0 -1 8Gi 8GB x '' 1e400; do
    run 2 "$amprun" info "$so" --batch auto --memory "$bytes"
    says "--memory $bytes: a number of bytes is wanted, such as 8589934592, 24G (10^9) or 8GiB (2^30)"
done
run 1 "$amprun" info "$so" --batch auto --memory 1G --against "$work/none.so"
says 'none.so'

# Wider than what is one launch on CUDA.
run 0 "$ampc" "$work/small.amp" -D HIDDEN=160 --isa portable -o "$work/apart.so"
for device in cpu cuda; do
    run 0 "$amprun" info "$work/apart.so" --timeline --batch 64 --device $device --json
    expect "info --timeline on $device: the peak is the most of all kernels, and the buffers alive in it add up to it" ok "$(
        python3 - "$work/.out" "$device" <<'PYTHON'
import json, sys
t = json.load(open(sys.argv[1]))
peak, kernels = t["peak"], t["kernels"]
assert (t["device"], t["program"], t["batch"]) == (sys.argv[2], "train_step", 64)
assert peak["bytes"] == max(k["alive"] for k in kernels) == kernels[peak["kernel"]]["alive"] <= t["planned"]
assert peak["bytes"] == sum(b["bytes"] for b in peak["buffers"]) and len(kernels) > 5
assert all(b["first_kernel"] <= peak["kernel"] <= b["last_kernel"] for b in peak["buffers"])
assert {b["name"] for b in peak["buffers"]} & {"grad.fc1.weight", "grad.fc2.weight"}, peak
print("ok")
PYTHON
    )"
done
run 0 "$amprun" info "$so" --timeline --batch 64
says 'train_step at batch 64' 'fc1: linear' 'peak ' '; planned in ' 'alive in k' 'grad.fc'
run 0 "$amprun" info "$work/plain.so" --timeline
says 'infer at batch 1'
run 1 "$amprun" info "$so" --timeline --program training
says 'there is no program training; there are train_step, '
run 1 "$amprun" info "$work/small_cpu.so" --timeline --device cuda
says 'it has no CUDA code, which --device cuda looks at'
run 2 "$amprun" info "$so" --timeline --kernels
says 'info takes --timeline, or --kernels and --roofline, not both'

# ---- amprun info: what ranks send -----------------------------------------------------------------

cat >"$work/ranks.amp" <<'AMP'
amp 1
model ranks(x: f32[N, 40]) -> logits {
    h = relu(batch_norm(linear(x; out = 64) as fc1) as bn)
    logits = linear(h; out = 5) as fc2
}
train ranks {
    input targets: i32[N]
    loss = cross_entropy(logits, targets)
    optimizer = adamw(lr = 0.01)
    data_parallel = true
    accumulate = 2
}
precision bf16 { reduce = bf16 }
AMP
run 0 "$ampc" "$work/ranks.amp" --isa portable -o "$work/ranks.so"
for device in cpu cuda; do
    run 0 "$amprun" info "$work/ranks.so" --ranks 5 --batch 16 --device $device --json
    expect "info --ranks on $device: messages add up, are of whole tensors, and are complete in order" ok "$(
        python3 - "$work/.out" $device <<'PYTHON'
import json, sys
info = json.load(open(sys.argv[1]))
of, wrong = info["messages"], []
kinds = [m["kind"] for m in of]
if kinds != ["gradients", "statistics", "measures", "agreement"]: wrong.append(kinds)
if [m["dtype"] for m in of] != ["bf16", "f32", "f64", "u8"]: wrong.append("dtypes")
if [m["op"] for m in of] != ["all_reduce", "all_gather", "all_reduce", "all_gather"]: wrong.append("ops")
for m in of:
    if m["kind"] == "agreement":
        if m["bytes"] != 16 * 5 or m["tensors"]: wrong.append("agreement")
        continue
    tensors = sum(t["bytes"] for t in m["tensors"])
    if m["bytes"] != tensors * (5 * 2 if m["kind"] == "statistics" else 1): wrong.append(m["kind"])
    if m["complete_after"] < max(t["complete_after"] for t in m["tensors"]): wrong.append("it is complete too early")
    if not all(0 <= t["complete_after"] < info["kernels"] for t in m["tensors"]): wrong.append("a kernel")
times = [m["complete_after"] for m in of]
if times != sorted(times): wrong.append(times)
least = 2 * (40 * 64 + 3 * 64 + 64 * 5 + 5)  # bf16; each tensor is padded
if not least <= of[0]["bytes"] < 2.5 * least: wrong.append(of[0]["bytes"])
if of[1]["bytes"] < 10 * 4 * 2 * 64: wrong.append(of[1]["bytes"])
total = info["bytes"]
if total["total"] != sum(m["bytes"] for m in of) or any(total[m["kind"]] != m["bytes"] for m in of): wrong.append("sums")
if total["sent_by_a_ring"] != (2 * (of[0]["bytes"] + of[2]["bytes"]) + of[1]["bytes"] + of[3]["bytes"]) * 4 // 5: wrong.append("ring")
if info["samples"] != 5 * 2 * 16 or info["exchange"] < of[1]["bytes"]: wrong.append("samples, exchange")
if ("memory" in info) != (sys.argv[2] == "cpu"): wrong.append("memory")
print(wrong or "ok")
PYTHON
    )"
done
run 0 "$amprun" info "$work/ranks.so" --ranks 5 --batch 16
says 'ranks on cpu: a step of 5 ranks with 2 x 16 samples each: 160 samples' 'complete after' 'bf16' \
    '6 of 6 gradients, ' 'statistics of each micro-batch' 'losses, metrics and counts' 'in all' 'a ring' \
    'memory   of rank 0 at batch 16, in bytes' 'exchange'
numbers=$((40 * 64 + 3 * 64 + 64 * 5 + 5))
for model in ranks.amp ranks.so; do
    run 0 "$ampc" explain "$work/$model"
    says "between ranks          3 messages a step (3 on CUDA): 6 gradients in bf16, $((2 * numbers)) bytes; with reduce = f32 $((4 * numbers))"
done
run 0 "$ampc" explain "$work/ranks.so" --op linear
expect 'explain of some ops has no line about ranks' '' "$(grep 'between ranks' <<<"$out")"
run 0 "$ampc" explain "$work/ranks.so" --json "$work/ranks.json"
expect 'explain --json: what ranks exchange' "{'messages': 3, 'messages_on_cuda': 3, 'gradients': 6, 'numbers': $numbers, 'dtype': 'bf16', 'bytes': $((2 * numbers)), 'bytes_in_f32': $((4 * numbers))}" \
    "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["exchange"])' "$work/ranks.json")"
run 0 "$ampc" explain "$so" --json "$work/alone.json"
holds 'explain --json: nothing, where it trains alone' grep -q '"exchange": *null' "$work/alone.json"
run 0 "$ampc" lint "$work/ranks.amp"
run 1 "$ampc" lint "$work/small.amp" --distribute data --allow alignment
says 'wide-reduce: ranks add up ' ' bytes of gradients in f32 in each step, and the model computes in f16' 'reduce = bf16'
run 0 "$ampc" lint "$work/small.amp" --distribute data --allow alignment --allow wide-reduce
run 0 "$amprun" info "$work/ranks.so" --ranks 1
says 'a step of 1 rank with' 'a ring               0  by each rank'
run 1 "$amprun" info "$so" --ranks 4
says 'small.so: it was compiled to train alone; compile it with --distribute data, or say data_parallel = true in its'
run 1 "$amprun" info "$work/plain.so" --ranks 4
says 'plain.so: it only infers: a model without a train block has nothing that ranks add up'
for ranks in 0 -1 two 4x; do
    run 2 "$amprun" info "$work/ranks.so" --ranks $ranks
    says "--ranks $ranks: a whole number from 1 "
done
run 2 "$amprun" info "$work/ranks.so" --ranks 1048577
says '--ranks 1048577: more than 1048576 ranks are not counted'
run 2 "$amprun" info "$work/ranks.so" --ranks 4 --timeline
says 'info takes --ranks with a number as --batch, and without --timeline, --kernels and --roofline'

# ---- amprun info: CUDA kernels, and a model of their time ----------------------------------------

run 0 "$amprun" info "$so" --kernels --batch 70
says 'train_step at batch 70 on H100: 1 kernels' 'all 17 kernels in 5 supersteps'
run 0 "$amprun" info "$work/apart.so" --kernels --batch 70
says 'train_step at batch 70 on H100: ' 'infer at batch 70 on H100: ' 'blocks' 'shared' 'function' 'by 2' 'train_step_k0' 'fc1: linear + bias + relu'
run 0 "$amprun" info "$so" --kernels --program infer
says 'infer at batch 1 on H100: '
expect 'one program alone' 1 "$(grep -c ' at batch ' "$work/.out")"
for gpu in H100 h100 'RTX 4090' rtx-4090 T4; do
    run 0 "$amprun" info "$so" --roofline "$gpu" --batch 128
    says 'train_step at batch 128 on ' 'a model of the time, not a measurement' 'launches' 'mma f16' 'as if in FP32' 'verdict  FP16 '
done
run 0 "$amprun" info "$work/apart.so" --roofline H100 --batch 4
says 'verdict  FP16 does not pay at this batch: it takes 1.00 of FP32'"'"'s modelled time' '10 of 10 kernels are bound by launches'
run 0 "$amprun" info "$work/apart.so" --roofline H100 --batch 128 --kernels --json
expect 'info --roofline --json: sums, shares and what bounds each kernel' ok "$(python3 - "$work/.out" <<'PYTHON'
import json, sys
told = json.load(open(sys.argv[1]))
model = told["roofline"]
rows = model["kernels"]
close = lambda a, b: abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1)
assert model["gpu"] == "H100" and model["batch"] == 128 and model["measured"] is False and model["pays"] is True
assert model["launches"] == len(rows) and close(sum(k["share"] for k in rows), 1)
for key in "flops", "bytes", "microseconds":
    assert close(model[key], sum(k[key] for k in rows)), key
assert {k["bound"] for k in rows} == {"launch"} and all(1.3 <= k["microseconds"] < 4 for k in rows)
products = [k for k in rows if k["instruction"] == "mma f16"]
assert all(k["instruction"] is None for k in rows if k["kind"] != "product")
listed = [k for k in told["kernels"] if k["program"] == "train_step"]
# both gradients of fc2 are one launch
parts = {k["name"]: k["parts"] for k in listed}
assert sum(parts[k["name"]] for k in products) == 5 and len(products) == 4
# fc1: 2 * 128 * 8 * 160, and what its epilogue adds; x in f32, weight and bias in f16, h in f16
fc1 = next(k for k in products if k["title"].startswith("fc1: linear"))
assert 2 * 128 * 8 * 160 < fc1["flops"] < 4 * 128 * 8 * 160, fc1
assert fc1["bytes"] == 4 * 128 * 8 + 2 * 160 * 8 + 2 * 160 + 2 * 128 * 160, fc1
assert fc1["products"] == [[128 * 160, 8]] and fc1["sizes"] == [128, 8, 160] and min(fc1["tile"]) >= 16, fc1
assert all("products" not in k for k in rows if k["instruction"] is None)
# x in f32 becomes f16 as it is read
no_call = {k["title"]: k["no_call"] for k in listed if "no_call" in k}
assert no_call[fc1["title"]] == "an operand is rounded as it is read", no_call
assert set(no_call) == {k["title"] for k in products}, no_call # and rows of 3 are not aligned
assert [k["name"] for k in listed] == [k["name"] for k in rows]
for k, row in zip(listed, rows):
    assert k["blocks"][0] * k["blocks"][1] * k["blocks"][2] == row["blocks"] and k["threads"] >= 1 and k["users"] >= 1
print("ok")
PYTHON
)"
run 0 "$ampc" "$work/small.amp" -D HIDDEN=8192 --precision bf16 --isa portable -o "$work/wide.so"
run 0 "$amprun" info "$work/wide.so" --roofline A100 --batch 4096
says 'mma bf16' 'memory' "verdict  BF16 takes 0." "of FP32's modelled time and 0." "of TF32's"
run 1 "$amprun" info "$work/wide.so" --roofline T4 --batch 4096
says 'wide.so: T4 has no mma bf16, which kernel k' 'choose a later GPU, or compile with --precision fp16 or fp32'
run 0 "$ampc" "$work/small.amp" --precision fp32 --isa portable -o "$work/full.so"
run 0 "$amprun" info "$work/full.so" --roofline A100 --batch 128
says 'verdict  the model computes in FP32: compile it with --precision fp16 or bf16 to compare'
run 0 "$amprun" info "$work/tf32.so" --roofline A100 --batch 128
says 'TF32 does not pay at this batch'
run 0 "$amprun" info "$work/plain.so" --roofline A100 --batch 128
says 'infer at batch 128 on A100'
run 0 "$amprun" info "$so" --roofline A100 --batch 128 --program eval
says 'eval at batch 128 on A100'
run 2 "$amprun" info "$so" --roofline B9000 --batch 128
says '--roofline B9000: that GPU is not known; known are H200, H100, A100, RTX4090, T4'
run 2 "$amprun" info "$so" --roofline H100
says 'info takes --roofline only with --batch: how many samples the program is given'
run 2 "$amprun" info "$so" --program infer
says 'info takes --program only with --roofline, --kernels or --timeline'
run 2 "$amprun" train "$so" --data "$data" --roofline H100
says '--roofline: train does not take this'
for look in --kernels '--roofline H100 --batch 8'; do
    # shellcheck disable=SC2086
    run 1 "$amprun" info "$so" $look --program training
    says 'small.so: there is no program training; there are train_step, '
    # shellcheck disable=SC2086
    run 1 "$amprun" info "$work/small_cpu.so" $look
    says 'small_cpu.so: it has no CUDA code, which --kernels and --roofline look at: it was compiled with --target cpu' '(--target both adds it, where all ops have CUDA code)'
    # shellcheck disable=SC2086
    run 1 "$amprun" info "$work/none.so" $look
    says 'none.so'
done
run 1 "$amprun" info "$so" --kernels --batch 2147483647
says 'small.so: --batch 2147483647: it takes multiples of 1, 16777216 at most'

# ---- amprun: wrong arguments ---------------------------------------------------------------------

for help in --help -h 'train -h'; do
    # shellcheck disable=SC2086
    run 0 "$amprun" $help
done
says 'usage: amprun train'
for command in info train eval infer step; do
    run 0 "$amprun" $command -h
    says "usage: amprun $command MODEL.so" '--threads T' 'Default: one per processor'
    expect "the help of $command is of no other command" 1 "$(grep -c 'amprun [a-z]* MODEL.so' "$work/.out")"
done
run 0 "$amprun" --help
says 'usage: amprun info' 'amprun step MODEL.so'
run 0 "$amprun" info "$so" -v --threads 1
says 'amprun: cpu: 1 thread, instruction set' 'amprun: cpu: products on 1 thread: '
if grep -q avx2 /proc/cpuinfo; then
    run 0 "$amprun" info "$work/plain.so" -v --threads 1 --isa v3
    says "amprun: cpu: 1 thread, instruction set v3 for products; the model's kernels are portable"
fi
run 2 "$amprun" info "$so" --color sometimes
says '--color sometimes: auto, always or never'
run 0 "$amprun" --version
says 'amprun '
run 2 "$amprun"
says 'no command was given' 'amprun --help'
run 2 "$amprun" fly
says 'there is no command fly'
run 2 "$amprun" train "$so"
says 'train needs --data'
run 2 "$amprun" eval "$so" --data "$data"
says 'eval needs --weights'
run 2 "$amprun" step "$so" --inputs "$work/data.st"
says 'step needs --weights or --resume'
run 2 "$amprun" info
says 'no model was given'
run 2 "$amprun" info "$so" more
says 'more is one argument too many'
run 2 "$amprun" info "$so" --data "$data"
says '--data: info does not take this'
run 2 "$amprun" info "$so" --nonsense
says '--nonsense: there is no such option'
run 2 "$amprun" info "$so" --batch
says '--batch: needs a value'
for batch in 0 -1 1.5 many 99999999999; do
    run 2 "$amprun" info "$so" --batch "$batch"
    says "--batch $batch: a whole number from 1"
done
run 2 "$amprun" train "$so" --data "$data" --epochs 1 --steps 1
says 'not both'
run 2 "$amprun" train "$so" --data "$data" --seed -1
says '--seed -1'
run 2 "$amprun" step "$so" --weights "$st" --inputs "$work/data.st" --scale 0
says '--scale 0: a positive number'
run 1 "$amprun" step "$so" --weights "$st" --inputs "$work/data.st" --scale 1e-46
says 'a loss scale is a number from 2^-126'
run 2 "$amprun" step "$so" --weights "$st" --inputs "$work/data.st" --values 'x*'
says '--values x*: a file must follow'

# ---- amprun: files that are missing, of the wrong kind, or do not belong together ----------------

run 1 "$amprun" info "$work/none.so"
says 'none.so' 'No such file'
run 1 "$amprun" info "$work/data.st"
says 'data.st'
run 1 "$amprun" info /bin/true
says '/bin/true'
run 1 "$amprun" train "$so" --data "table:$work/x"
says "--data table:$work/x: write idx:DIR, safetensors:FILE, tokens:FILE or csv:FILE"
run 1 "$amprun" train "$so" --data "safetensors:$work/none.st"
says 'none.st' 'No such file'
run 1 "$amprun" train "$so" --data "idx:$work"
says "$work/train-images-idx3-ubyte[.gz]: No such file"
run 1 "$amprun" train "$so" --data "safetensors:$work/no_targets.st"
says 'no_targets.st: has no array named targets'
run 1 "$amprun" train "$so" --data "safetensors:$work/bad_label.st" --batch 60
says 'targets' '9'
run 1 "$amprun" train "$work/plain.so" --data "$data"
says 'has no train block'
run 1 "$amprun" eval "$so" --data "$data" --weights "$work/none.st"
says 'none.st'
run 1 "$amprun" eval "$so" --data "$data" --weights "$work/small.amp"
says 'small.amp'
run 1 "$amprun" eval "$work/other.so" --data "$data" --weights "$st"
says 'small.st: does not fit the model small: 2 have another shape or type' \
    'fc2.bias: the file has f32[3], the model f32[4]; fc2.weight: the file has f32[3, 16], the model f32[4, 16]'
run 1 "$amprun" train "$work/other.so" --data "$data" --resume "$work/part.ck"
says 'part.ck' 'fc2'
run 1 "$amprun" train "$so" --data "$data" --resume "$st"
says 'small.st'
run 1 "$amprun" train "$so" --data "$data" --device tpu
says 'tpu'
run 0 "$ampc" "$work/small.amp" --isa native --target cpu -o "$work/native.so"
run 0 "$amprun" info "$work/native.so"
holds 'it says its one set' grep -qxE 'cpu      (portable|v3|v4)' <<<"$out"
run 2 "$ampc" "$work/small.amp" --isa next -o "$work/none.so"
says "isa 'next': portable, v3, v4 or native"
run 1 "$amprun" train "$so" --data "$data" --isa v9
says 'v9'
run 1 "$amprun" train "$so" --data "$data" --steps 1 --save "$work/no/such/folder/x.st"
says 'no/such/folder'
run 1 "$amprun" train "$so" --data "$data" --steps 1 --log "$work/no/such/folder/x"
says 'no/such/folder'
run 1 "$amprun" train "$so" --data "$data" --steps 50 --log /dev/full
says '--log /dev/full: could not be written'
run 1 "$amprun" info "$so" --batch 2147483647
says 'capacity 2147483647'
run 1 "$amprun" step "$so" --weights "$st" --inputs "$work/data.st" --values 'nothing*' "$work/x.st"
says "--values 'nothing*': no value"
run 1 bash -c '"$1" eval "$2" --data "$3" --weights "$4" >/dev/full' - "$amprun" "$so" "$data" "$st"
says 'standard output: No space left'

# A model.so that was cut, or in which one byte flipped, is refused and not run.
size=$(stat -c %s "$so")
for keep in 0 1 63 64 1000 $((size / 2)) $((size - 1)); do
    head -c "$keep" "$so" >"$work/cut.so"
    run 1 "$amprun" info "$work/cut.so"
    says 'cut.so'
done
for at in 5 70 $((size / 3)) $((size / 2)) $((size - 20)); do
    python3 -c 'import sys; b = bytearray(open(sys.argv[1], "rb").read()); b[int(sys.argv[3])] ^= 1; open(sys.argv[2], "wb").write(b)' \
        "$so" "$work/flipped.so" "$at"
    run 1 "$amprun" info "$work/flipped.so"
    says 'flipped.so'
done
cp "$st" "$work/cut.st" && truncate -s -4 "$work/cut.st"
run 1 "$amprun" eval "$so" --data "$data" --weights "$work/cut.st"
says 'cut.st'

# ---- terminals -----------------------------------------------------------------------------------

train="$amprun train $so --data $data --epochs 3 --batch 4 --threads 1"
control=$'[\x01-\x08\x0b-\x1f\x7f]'
run 0 bash -c "$train"
holds 'no control characters in a file' bash -c '! grep -q "$1" "$2"' - "$control" "$work/.out"
# ---- signals while C compilers run ---------------------------------------------------------------

cat >"$work/slow-cc" <<'COMPILER'
#!/bin/sh
case "$*" in *-dumpmachine*) exec cc "$@" ;; esac
sleep 300 &
echo $! >>"$STARTED"
wait
COMPILER
chmod +x "$work/slow-cc"

# ended_by SIGNAL STATUS: ampc, when its compilers run
ended_by() {
    local tmp=$work/tmp-$1 started=$work/started-$1 child=
    mkdir "$tmp"
    TMPDIR=$tmp STARTED=$started "$ampc" "$work/small.amp" --target cpu --cc "$work/slow-cc" -o "$work/$1.so" &
    local pid=$!
    for ((i = 0; i < 600; i++)); do
        child=$(tail -n 1 "$started" 2>/dev/null) && [[ -n $child ]] && break
        sleep 0.05
    done
    kill -"$1" $pid
    wait $pid
    expect "SIG$1 ends ampc" "$2" $?
    expect "SIG$1: nothing is left in TMPDIR" '' "$(ls "$tmp")"
    for ((i = 0; i < 100; i++)); do
        kill -0 "$child" 2>/dev/null || break
        sleep 0.05
    done
    holds "SIG$1: what the compiler started has ended" bash -c '! kill -0 "$1" 2>/dev/null' - "$child"
    holds "SIG$1: no model" test ! -e "$work/$1.so"
}
ended_by TERM 143
ended_by HUP 129

# in_terminal COLUMNS [VARIABLE=VALUE]: what training draws there
in_terminal() { script -qec "stty cols $1; env TERM=xterm LC_ALL=C.UTF-8 ${2:-AMP_NOTHING=} $train" /dev/null </dev/null; }
terminal_checks() {
    in_terminal 120 >"$work/terminal"
    holds 'a terminal gets a bar that moves' grep -q $'\r.*━' "$work/terminal"
    for word in epoch loss acc scale skipped '/s' left; do
        holds "the bar's line has $word" grep -q $'\r.*'"$word" "$work/terminal"
    done
    holds 'in colour' grep -q $'\033\\[32m' "$work/terminal"
    in_terminal 120 NO_COLOR=1 >"$work/terminal"
    holds 'without colour under NO_COLOR' bash -c '! grep -q "$1" "$2"' - $'\033\\[[0-9;]*m' "$work/terminal"
    in_terminal 120 LC_ALL=C >"$work/terminal"
    holds 'a bar of ASCII where the terminal takes nothing else' grep -q $'\r.*==' "$work/terminal"
    holds 'and nothing but ASCII' bash -c '! LC_ALL=C grep -q "$1" "$2"' - $'[\x80-\xff]' "$work/terminal"
    in_terminal 120 TERM=dumb >"$work/terminal"
    holds 'no moving line on a dumb terminal' bash -c '! grep -q "$1" "$2"' - $'\033' "$work/terminal"
    for columns in 20 60 80 200; do
        in_terminal $columns NO_COLOR=1 >"$work/terminal"
        expect "no line is wider than $columns columns" '' "$(python3 -c '
import sys
lines = [line.rstrip("\r").split("\r\x1b[K")[-1] for line in open(sys.argv[1], newline="").read().split("\n")]
print(*(line for line in lines if len(line) > max(40, int(sys.argv[2]))), sep="\n", end="")' "$work/terminal" $columns)"
        expect "no moving line is wider than $columns columns" '' "$(python3 -c '
import sys
moving = [part for line in open(sys.argv[1], newline="") for part in line.split("\r") if part.startswith("\x1b[K") and "train loss" not in part]
print(*(p for p in moving if len(p.rstrip("\n")) - 3 >= int(sys.argv[2])), sep="\n", end="")' "$work/terminal" $columns)"
    done
}
for when in always never; do
    run 1 "$ampc" "$work/wrong.amp" -o "$work/x.so" --color $when
    [[ $when != always ]] || holds 'the word and the carets in colour' \
        grep -qzP '\x1b\[1;31merror:\x1b\[0m.*\n.*\n *\| +\x1b\[1;32m\^~*\x1b\[0m\n' "$work/.err"
    [[ $when != never ]] || holds 'no colour' bash -c '! grep -q "$1" "$2"' - $'\033' "$work/.err"
done
in_colour=$'\033[1;31merror:'
diagnostic_checks() {
    for setting in TERM=xterm TERM=dumb NO_COLOR=1; do
        script -qec "env TERM=xterm $setting $ampc $work/wrong.amp -o $work/x.so" /dev/null </dev/null >"$work/terminal"
        expect "errors in colour on a terminal, with $setting" "$([[ $setting != TERM=xterm ]] || echo yes)" \
            "$(! grep -qF "$in_colour" "$work/terminal" || echo yes)"
    done
    run 1 "$ampc" "$work/wrong.amp" -o "$work/x.so"
    holds 'no colour in a file' bash -c '! grep -q "$1" "$2"' - $'\033' "$work/.err"
}
# A log of hours is not silent between epochs: by a clock that goes on by a second each time it is read.
cat >"$work/clock.c" <<'CLOCK'
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *t) {
    static time_t seconds = 1000;
    (void)id;
    *t = (struct timespec){.tv_sec = __sync_add_and_fetch(&seconds, 1)};
    return 0;
}
CLOCK
run 0 cc -shared -fPIC -o "$work/clock.so" "$work/clock.c"
run 0 env LD_PRELOAD="$work/clock.so" $train
holds 'in a file there is a line a minute' \
    grep -Eqx '  epoch [12]/3  [0-9]+/[0-9]+  loss [0-9.]+  (.*  )?[0-9]+/s  [0-9]+:[0-9]{2} left' "$work/.out"
run 0 $train
expect 'and none in less' '' "$(grep '^  epoch' "$work/.out")"
if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    diagnostic_checks
    terminal_checks
else
    skipped 'no pseudo-terminal can be made here, so the moving line is not looked at'
fi
finish
