#!/usr/bin/env bash
# `ampc autocast` as a person runs it: what it prints and writes, what it refuses, and the exit status of each.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc
ampc=$bin/tools/ampc
export PYTHONDONTWRITEBYTECODE=1

# model NAME [OPTION...]: $work/NAME.onnx
model() { python3 tests/checks/onnx_write.py "$work/$1.onnx" "${@:2}"; }
model small
model large --large
model custom --domain com.example
model old --opset 11

# ---- what it says, and what it writes

run 0 "$ampc" autocast "$work/small.onnx"
says 'small.onnx, policy min-cast: 3 of 4 nodes in float16, 1 in float32' 'casts     0 -> 1' \
    'weights   80 B -> 40 B, 2 converted; 4 elements became zero' 'float16   linear' '{lower, min-cast:7}' \
    'w: 0 infinite, 4 zero'
expect 'without -o nothing is written' 4 "$(find "$work" -name '*.onnx' | wc -l)"
run 0 "$ampc" autocast "$work/small.onnx" -o "$work/out.onnx" --keep-io
says 'casts     0 -> 2'
holds 'nodes have their reasons' grep -aq 'ampc.because.*{lower, min-cast:7}' "$work/out.onnx"
run 1 "$ampc" autocast "$work/small.onnx" -o "$work/out.onnx"
says 'is there already and is not empty, so it is not replaced' '--force'
run 0 "$ampc" autocast "$work/out.onnx" -o "$work/twice.onnx" --keep-io
holds 'a second autocast changes nothing' cmp "$work/out.onnx" "$work/twice.onnx"
run 0 "$ampc" autocast "$work/small.onnx" -o "$work/out.onnx" --force --policy torch-bf16 --all
says 'policy torch-bf16: 3 of 4 nodes in bfloat16' 'node_Softmax' 'float32   {f32_out, torch-bf16'

# ---- what differs between two models

run 0 "$ampc" diff "$work/small.onnx" "$work/twice.onnx"
says 'small.onnx: opset 18, 4 nodes, 0 casts, 80 B of weights' \
    'twice.onnx: opset 18, 6 nodes, 2 casts, 40 B of weights' \
    'nodes     3 in another type, of 4' 'casts     2 came, 0 went' 'weights   2 in another type or new' \
    '     1  float32   float16   MatMul              {lower, min-cast:7}'
run 0 "$ampc" diff "$work/small.onnx" "$work/twice.onnx" --json "$work/diff.json"
expect 'what JSON says of the difference' \
    "False ['MatMul', 'Add', 'Relu'] ['x', 'v'] ['b', 'w'] {lower, min-cast:7}" "$(python3 -c 'import json, sys
told = json.load(open(sys.argv[1]))
print(told["same"], [n["op_type"] for n in told["changed"]], [c["value"] for c in told["casts_came"]],
      sorted(w["name"] for w in told["weights"]), told["changed"][0]["because"])' "$work/diff.json")"
run 0 "$ampc" diff "$work/small.onnx" "$work/small.onnx"
says 'no node, cast or weight differs in its type'
run 0 "$ampc" diff "$work/twice.onnx" "$work/custom.onnx" --assume v=float32
says 'casts     0 came, 2 went'
run 2 "$ampc" diff "$work/small.onnx" torch-fp16
says 'is an ONNX model, which is compared with another ONNX model alone'

# ---- JSON

run 0 "$ampc" autocast "$work/small.onnx" --json "$work/out.json" --keep Relu
expect 'what JSON says' "4 2 2 ['float16', 'float16', 'float32', 'float32'] ['w', 'b']" "$(python3 -c 'import json, sys
told = json.load(open(sys.argv[1]))
print(told["nodes"], told["lowered"], told["kept"], [d["type"] for d in told["decisions"]],
      [w["name"] for w in told["weights"]])' "$work/out.json")"

# The page shows what JSON says, with what a name could break it by.
run 0 "$ampc" autocast "$work/small.onnx" --html "$work/page.html" --json "$work/out.json" --keep Relu --force
holds 'the page has the JSON' grep -qF "id=\"part-autocast\">$(<"$work/out.json")" "$work/page.html"
run 0 "$ampc" autocast "$work/small.onnx" --html "$work/page.html"
expect 'with a page nothing is printed' '' "$out"
model odd --domain '</script><b>'
run 0 "$ampc" autocast "$work/odd.onnx" --assume v=float32 --html "$work/page.html"
expect 'names are no HTML' 2 "$(grep -c '</script>' "$work/page.html")"

# ---- what stays in f32

run 0 "$ampc" autocast "$work/small.onnx" --keep 'node_S*'
says '{f32, "kept by --keep node_S*"}'
run 1 "$ampc" autocast "$work/small.onnx" -o "$work/none.onnx" --keep '*'
says 'none of 4 nodes was lowered under policy min-cast, and nothing is written' 'kept by --keep *'
run 1 "$ampc" autocast "$work/large.onnx" -o "$work/none.onnx"
says 'none of 4 nodes was lowered' 'range: weight w has 1.0e5 > 65504'
expect 'nothing is written where nothing is lowered' '' "$(find "$work" -name 'none.onnx*')"
run 0 "$ampc" autocast "$work/large.onnx" --precision bf16
echo '{"t": [-7e4, 1], "gone": [0, 1]}' >"$work/ranges.json"
run 1 "$ampc" autocast "$work/small.onnx" --ranges "$work/ranges.json"
says 'range: value t has 7.0e4 > 65504'

# ---- what is not known

run 1 "$ampc" autocast "$work/custom.onnx"
says "node 2 'node_Relu' (Relu)" '--assume'
run 0 "$ampc" autocast "$work/custom.onnx" --assume v=float32
says '2 of 4 nodes in float16'
run 2 "$ampc" autocast "$work/custom.onnx" --assume v
says 'NAME=TYPE is wanted'
run 1 "$ampc" autocast "$work/old.onnx" --opset 18
says "node 3 'node_Softmax' (Softmax): means something else from opset 13 on"
run 0 "$ampc" autocast "$work/small.onnx" --opset 22 -o "$work/later.onnx"
run 2 "$ampc" autocast "$work/small.onnx" --opset 17
says 'opset 17: the model has 18'

# ---- wrong arguments and files

run 2 "$ampc" autocast
says 'no model was given'
run 2 "$ampc" autocast - -o "$work/none.onnx"
says 'give the names of files'
run 2 "$ampc" autocast "$work/small.onnx" -o "$work/./small.onnx" --force
says 'is the same file as the model'
run 2 "$ampc" autocast "$work/small.onnx" --policy tf32
says 'policy tf32: its low type is tf32; ONNX has float16 and bfloat16'
run 1 "$ampc" autocast "$work/small.onnx" --policy torch-fp61
says 'did you mean torch-fp16?'
run 1 "$ampc" autocast "$work/gone.onnx"
says 'gone.onnx'
head -c 100 "$work/small.onnx" >"$work/cut.onnx"
run 1 "$ampc" autocast "$work/cut.onnx"
says 'cut.onnx: byte '
echo '{"t": [2, 1]}' >"$work/ranges.json"
run 1 "$ampc" autocast "$work/small.onnx" --ranges "$work/ranges.json"
says 'the smallest number of "t", 2, is larger than the largest, 1'
run 2 "$ampc" autocast "$work/small.onnx" --keep Sofmax
says '--keep Sofmax names no op and no node'
finish
