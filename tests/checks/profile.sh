#!/usr/bin/env bash
# What amprun writes for other tools: event files of TensorBoard (--tensorboard), traces of Perfetto (--profile).  They
# are read by the definitions of their formats, and event files by PyPI's tensorboard where tools/see-env has it.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun
ampc=$bin/tools/ampc amprun=$bin/tools/amprun
readonly images=idx:/usr/share/datasets/fashion-mnist
readers=.see-env/bin/python
if ! imports $readers tensorboard; then
    skipped "$lacking (tools/see-env): event files are read by their definition alone"
    readers=''
fi

# make NAME [SED]: the MLP, changed by SED
make() {
    sed "${2:-}" examples/fashion_mnist/mlp.amp >"$work/$1.amp"
    run 0 "$ampc" "$work/$1.amp" -o "$work/$1.so" -D HIDDEN=64 --isa portable
}
train() { run 0 "$amprun" train "$work/$1.so" --data "$images" --batch 4096 --quiet --log "$work/log" "${@:2}"; }

# ---- scalars

# events FOLDER WANTED: its events are the log's
events() {
    expect "$1: events are the log's" "ok $2" \
        "$(python3 tests/checks/event_files.py "$work/$1" "$work/log" 2>&1 | tail -1)"
    [[ -z $readers ]] || expect "$1: as tensorboard reads them" "ok $2" \
        "$("$readers" tests/checks/event_files.py "$work/$1" "$work/log" --tensorboard 2>&1 | tail -1)"
}

make mlp
train mlp --steps 20 --tensorboard "$work/runs/one"
events runs/one '104 scalars, 0 histograms'
train mlp --steps 15 --tensorboard "$work/again" --checkpoint "$work/checkpoint" # an epoch
train mlp --steps 20 --tensorboard "$work/again" --resume "$work/checkpoint"
train mlp --steps 17 --tensorboard "$work/again" --resume "$work/checkpoint"
expect 'each run has a file' 3 "$(find "$work/again" -type f | wc -l)"
events again '89 scalars, 0 histograms'
make parts 's/optimizer = /accumulate = 2\n    &/
    s/^    loss = .*/    loss fit = cross_entropy(logits, targets)\n    loss small = 0.001 * mean(abs(logits))/'
train parts --steps 20 --tensorboard "$work/parts"
events parts '152 scalars, 0 histograms'

# ---- histograms

train mlp --steps 4 --stats 2 --tensorboard "$work/histograms"
count=$(python3 -c 'import json, sys
print(sum(len(json.loads(line).get("tensors", [])) for line in open(sys.argv[1])))' "$work/log")
holds 'tensors are counted' test "$count" -gt 20
events histograms "22 scalars, $count histograms"

# ---- where the time goes

# trace NAME WANTED: the trace and the table of the last profile say the same
trace() {
    expect "$1: the trace's sums are the table's" "ok $2" \
        "$(python3 tests/checks/trace_file.py "$work/$1.trace" "$work/table" 2>&1 | tail -1)"
}
# profile NAME STEPS
profile() {
    run 0 "$amprun" train "$work/$1.so" --data "$images" --batch 512 --steps "$2" --profile "$work/$1.trace"
    cp "$work/.out" "$work/table"
}
# amount NAME WHAT TITLE: "bytes" or "flops" of a kernel in the trace
amount() {
    PYTHONPATH=tests/checks PYTHONDONTWRITEBYTECODE=1 python3 -c 'import sys, trace_file
path, what, title = sys.argv[1:]
calls = trace_file.nest(trace_file.read_by_json(open(path, "rb").read()))
print(*sorted({int(k.annotations[what]) for call in calls for k in call.inner if k.name.startswith(title)}))' \
        "$work/$1.trace" "$2" "$3"
}

profile mlp 14
trace mlp '240 kernels, 25 rows'
says 'profile of step 3 to 12' 'peaks: measured on ' ' copied, ' '; one before that was not profiled took '
expect 'operations of a product' $((2 * 512 * 784 * 64)) "$(amount mlp flops 'fc1: linear')"
expect 'bytes of a cast: f32 in, f32 or bf16 out' $((512 * 784 * 8)) "$(amount mlp bytes 'fc1.linear: cast')"
profile parts 1
says 'profile of step 1 to 1'
trace parts '79 kernels, 31 rows' # a backward pass for each loss, whose counts differ
run 0 "$ampc" examples/cnn/cnn.amp -D C1=16 -D C2=16 -o "$work/cnn.so" --isa portable
profile cnn 2
says 'profile of step 2 to 2'
for pass in conv2: 'conv2.conv2d.grad.input: conv2d_input_grad +' 'conv2.weight: gradient'; do
    expect "operations of a convolution: $pass" $((2 * 512 * 14 * 14 * 16 * 9 * 16)) "$(amount cnn flops "$pass")"
done
run 0 "$amprun" train "$work/mlp.so" --data "$images" --steps 3 --quiet --profile "$work/mlp.trace"
expect '--quiet prints no table' '' "$out$err"

# ---- what cannot be done

refused() { run "$1" "$amprun" train "$work/mlp.so" --data "$images" --batch 4096 --steps 1 "${@:2}"; }
touch "$work/file"
refused 1 --tensorboard "$work/file"
says "--tensorboard $work/file: is there already and is no folder; name another one"
refused 1 --tensorboard "$work/file/below"
says "--tensorboard $work/file/below: Not a directory"
refused 1 --tensorboard ''
says '--tensorboard: names no folder'
refused 1 --tensorboard /proc/events
says '--tensorboard /proc/events: could not be written: No such file or directory'
mkdir -m 1777 "$work/shared"
mkdir "$work/elsewhere"
ln -s ../elsewhere "$work/shared/runs"
if chown -h 12345 "$work/shared/runs" 2>/dev/null; then
    refused 1 --tensorboard "$work/shared/runs/one"
    says "--tensorboard $work/shared/runs/one: $work/shared/runs is a symbolic link that another user (12345) has made"
    expect 'and nothing is made where it leads' '' "$(ls "$work/elsewhere")"
else
    skipped 'links of another user: files cannot be given to one here'
fi
refused 2 --tensorboard "$work/both" --save "$work/both"
says 'is the same file as --save'
(
    ulimit -f 1
    exec "$amprun" train "$work/mlp.so" --data "$images" --batch 4096 --steps 10 --tensorboard "$work/full" --quiet
) 2>"$work/.err"
expect 'a disk that is full: training goes on, and its end says that events are missing' 1 $?
expect 'and why, once' "amprun: --tensorboard $work/full: could not be written: File too large" \
    "$(head -1 "$work/.err")"
expect 'no half record is left' ok "$(python3 tests/checks/event_files.py "$work/full" 2>&1 | grep -o '^ok')"
touch "$work/other"
echo 'not a trace' >"$work/other"
refused 1 --profile "$work/other"
says 'is there already and is not a trace that amprun wrote'
refused 2 --profile "$work/mlp.so" --force
says 'is the same file as the model'
refused 2 --profile "$work/new" --stats 1 --log "$work/log"
says '--profile or --stats, not both'
refused 2 --profile "$work/new" --device null
says 'device null computes nothing that takes time'
refused 1 --profile /proc/new
says '--profile /proc/new'
refused 1 --profile /dev/full --save "$work/kept"
says '--profile ' '/dev/full' 'No space left on device'
holds 'the training is kept' test -s "$work/kept"
holds 'and the table is printed' grep -q '(all kernels)' "$work/.out"

finish
