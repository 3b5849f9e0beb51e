#!/usr/bin/env bash
# What `amprun train` writes for other tools: event files of TensorBoard (--tensorboard).  They are read by the
# definitions of their formats, and by PyPI's tensorboard where tools/see-env has it.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun
ampc=$bin/tools/ampc amprun=$bin/tools/amprun
readonly images=idx:/usr/share/datasets/fashion-mnist
readers=.see-env/bin/python
if [[ ! -e .see-env/ready ]]; then
    skipped 'no tensorboard here (tools/see-env): files are read by their definitions alone'
    readers=''
fi

# make NAME [SED]: the MLP, changed by SED
make() {
    sed "${2:-}" examples/fashion_mnist/mlp.amp >"$work/$1.amp"
    run 0 "$ampc" "$work/$1.amp" -o "$work/$1.so" --isa portable
}
train() { run 0 "$amprun" train "$work/$1.so" --data "$images" --batch 4096 --quiet --log "$work/log" "${@:2}"; }

# ---- scalars

# events FOLDER WANTED: its events are those of the log
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

finish
