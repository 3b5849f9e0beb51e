#!/usr/bin/env bash
# Every built-in policy compiles every model of examples/: up to the plan of buffers, without C.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc

models=$(grep -lE '^model ' -r examples --include='*.amp' | sort)
for policy in passes/precision/policies/*.policy; do
    name=$(basename "$policy" .policy)
    for model in $models; do
        holds "$model by $name" "$bin/tools/ampc" "$model" --policy "$name" --emit ir -o /dev/null
    done
done

# every op has a reason: the line of the policy that it names is there, is what explain says, and names the op, its
# layer or all
cat >"$work/reasons.py" <<'PYTHON'
import json, re, sys
told = json.load(open(sys.argv[1]))
assert told["decisions"]
for op in told["decisions"]:
    if op["override"]:
        continue  # a line of the model
    line = open(f"passes/precision/policies/{op['origin']}.policy").read().split("\n")[op["origin_line"] - 1]
    names = re.split(r"[ ,]+", line.split("#")[0])
    assert " ".join(op["policy_text"].split()) == " ".join(line.split("#")[0].split()), (op, line)
    assert {"*", op["op"], op["layer"], f"{op['layer']}.{op['op']}", f"{op['layer']}.*"} & set(names), (op, line)
    assert names[-1] == op["rule"] or op["rule"] in names, (op, line)
PYTHON
for model in $models; do
    for policy in torch-fp16 min-cast; do
        run 0 "$bin/tools/ampc" explain "$model" --policy $policy --json "$work/reasons.json"
        run 0 python3 "$work/reasons.py" "$work/reasons.json"
    done
done
sed -i 's/"origin_line":\([0-9]*\)/"origin_line":1\1/' "$work/reasons.json" # another line
run 1 python3 "$work/reasons.py" "$work/reasons.json"

run 1 "$bin/tools/ampc" examples/fashion_mnist/mlp.amp --policy torch-fp15 --emit ir -o /dev/null
says 'there is no policy torch-fp15'
finish
