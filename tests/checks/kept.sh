#!/usr/bin/env bash
# Files of earlier versions, in tests/kept: weights, a checkpoint, a log and a schema are read; a model.so is refused
# with what to do, and compiled again from what it keeps.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun
ampc=$bin/tools/ampc amprun=$bin/tools/amprun kept=$PWD/tests/kept
data=csv:$kept/kept.csv

run 0 "$ampc" "$kept/kept.amp" --isa portable --target cpu -o "$work/now.so"
for so in "$kept"/*.so.gz; do
    name=$(basename "$so" .so.gz)
    old=$kept/$name
    gunzip -c "$so" >"$work/$name.so"
    # the model
    run 1 "$amprun" info "$work/$name.so"
    says "$name.so: made by another version of ampc" "make it again, ampc $work/$name.so -o NEW.so"
    run 0 "$ampc" "$work/$name.so" -o "$work/NEW.so" # as it says
    run 0 "$amprun" info "$work/NEW.so"
    run 0 "$ampc" "$work/$name.so" --isa portable --target cpu -o "$work/again.so" --force
    # weights, with the schema beside them and as a file of its own
    gives() { # SPEC WEIGHTS
        run 0 "$amprun" eval "$work/now.so" --data "$1" --weights "$2"
        expect "$name: what its weights give" "$(<"$old.eval")" "$out"
    }
    for spec in "$data" "$data,schema=$old.safetensors.schema"; do
        gives "$spec" "$old.safetensors"
    done
    { head -c -2 "$old.safetensors" && printf '\300' && tail -c 1 "$old.safetensors"; } >"$work/changed"
    finds "a byte of $name's weights" 'what its weights give' gives "$spec" "$work/changed"
    run 0 "$amprun" infer "$work/now.so" --inputs "$data" --weights "$old.safetensors" \
        --outputs "$work/out.safetensors" --force
    # the checkpoint: of its model compiled again and of the text, the same steps, near the ones of its own time
    for made in again now; do
        run 0 "$amprun" train "$work/$made.so" --data "$data" --batch 8 --steps 12 --seed 3 --resume "$old.checkpoint" \
            --log "$work/$made.log" --quiet --force
        grep -o '"iteration.*' "$work/$made.log" >"$work/$made.steps"
    done
    expect "$name: the model compiled again goes on as its text does" '' \
        "$(cmp "$work/again.steps" "$work/now.steps" 2>&1)"
    near() { # LOG
        holds "$name: its steps are near the ones of its time" python3 "$work/near.py" "$work/now.steps" "$1"
    }
    cat >"$work/near.py" <<'PYTHON'
import json, sys
now = {line["iteration"]: line["loss"] for line in map(json.loads, (("{" + text) for text in open(sys.argv[1])))}
then = {line["iteration"]: line["loss"] for line in map(json.loads, open(sys.argv[2])) if "iteration" in line}
assert len(now) == 6 and all(abs(loss - then[step]) <= 2e-3 * loss for step, loss in now.items()), (now, then)
PYTHON
    near "$old.log"
    sed 's/"loss": 0\.\(.\)/"loss": 0.0\1/' "$old.log" >"$work/changed"
    finds "other losses in $name's log" 'its steps are near' near "$work/changed"
    # the log
    run 0 "$amprun" watch "$old.log"
    says 'kept' '12'
done
finish
