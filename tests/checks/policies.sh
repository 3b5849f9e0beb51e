#!/usr/bin/env bash
# Built-in policies compile the models of examples/, up to the plan of buffers, without C: min-cast, whose work grows
# most with a model, all of them, one policy of each other algorithm the small ones, the others a few. Every op has a
# reason, a line of the policy, and that line decides it. AMP_ALL=1, as full/policies.sh has it: every policy takes
# every model, and lines are changed under every policy and in every model.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc

models=$(grep -lE '^model ' -r examples --include='*.amp' | sort)
small=$(grep -vE '/(bert|gpt2|lstm|resnet50|resnet101)\.amp$' <<<"$models")
few=$(printf 'examples/%s.amp\n' cnn/cnn tabular/tabular llama/llama gan/gan)
algorithms=(torch-fp16 min-cast tf-fp16)
for policy in precision/policies/*.policy; do
    name=$(basename "$policy" .policy)
    some=$models
    if [[ -z ${AMP_ALL:-} && $name != min-cast ]]; then
        [[ " ${algorithms[*]} " == *" $name "* ]] && some=$small || some=$few
    fi
    for model in $some; do
        holds "$model by $name" "$bin/tools/ampc" "$model" --policy "$name" --emit ir -o /dev/null
    done
done

# every op has a reason: the line of the policy that it names is there, is what explain says, and names the op, its
# layer or all
cat >"$work/reasons.py" <<'PYTHON'
import json, re, sys
for path in sys.argv[1:]:
    told = json.load(open(path))
    assert told["decisions"]
    for op in told["decisions"]:
        if op["override"]:
            continue  # a line of the model
        line = open(f"precision/policies/{op['origin']}.policy").read().split("\n")[op["origin_line"] - 1]
        names = re.split(r"[ ,]+", line.split("#")[0])
        assert " ".join(op["policy_text"].split()) == " ".join(line.split("#")[0].split()), (path, op, line)
        about = {"*", op["op"], op["layer"], f"{op['layer']}.{op['op']}", f"{op['layer']}.*"}
        assert about & set(names), (path, op, line)
        assert names[-1] == op["rule"] or op["rule"] in names, (path, op, line)
PYTHON
[[ -n ${AMP_ALL:-} ]] && some=$models || some=$small
mkdir "$work/reasons"
for model in $some; do
    for policy in torch-fp16 min-cast; do
        run 0 "$bin/tools/ampc" explain "$model" --policy $policy --json "$work/reasons/${model//\//-}-$policy.json"
    done
done
run 0 python3 "$work/reasons.py" "$work"/reasons/*
# painted ops of the backward pass have reasons as in the forward pass, and are of the backward pass
run 0 "$bin/tools/ampc" explain examples/fashion_mnist/cnn.amp --policy tf-fp16 --json "$work/phases.json"
cat >"$work/phases.py" <<'PYTHON'
import json, sys
told = json.load(open(sys.argv[1]))
backward = [row for row in told["rows"] if ".grad" in row["path"]] + [c for c in told["casts"] if ".grad" in c["name"]]
assert len(backward) > 10
assert {row["phase"] for row in backward} == {"backward"}
PYTHON
run 0 python3 "$work/phases.py" "$work/phases.json"
# planted: another line
sed -i 's/"origin_line":\([0-9]*\)/"origin_line":1\1/' "$work"/reasons/*-tabular.amp-min-cast.json
run 1 python3 "$work/reasons.py" "$work"/reasons/*

# that line decides the op: where it is changed, so is the op, and ops of other lines stay; the same of a line of the
# model's precision block
changed() {
    run 0 python3 -B tests/checks/policy_lines.py "$bin/tools/ampc" "$work" "$@"
    told
}
changed self
if [[ -n ${AMP_ALL:-} ]]; then
    others=()
    for policy in precision/policies/*.policy; do
        name=$(basename "$policy" .policy)
        [[ " ${algorithms[*]} " == *" $name "* ]] || others+=("$name")
    done
    changed --each lines "${algorithms[@]}" -- $models
    changed lines "${others[@]}" -- $models
    changed --each overrides torch-fp16 -- $models
    changed overrides min-cast tf-fp16 -- $models
else
    # with examples of few ops, and a model of what those lack, each line that an example's ops decide by
    cat >"$work/more.amp" <<'AMP'
amp 1
model more(x: f32[N, 8]) -> logits {
    h = gelu(layer_norm(linear(x; out = 8) as fc1) as norm1)
    h = rms_norm(linear(h; out = 8) as fc2) as norm2
    logits = linear(h; out = 4) as fc3
}
train more {
    input targets: f32[N, 4]
    loss = bce_with_logits(logits, targets) + dice_loss(sigmoid(logits), targets)
    metric marked = mean(where(logits > 0.0, 1.0, 0.0))
    optimizer = adamw(lr = 0.001)
}
AMP
    some=$(printf 'examples/%s.amp\n' cnn/cnn tabular/tabular gan/gan several_results/points)
    changed lines "${algorithms[@]}" -- $some "$work/more.amp"
    changed lines apex-o1 apex-o2 keras-mixed-float16 mxnet-fp16 pure-bf16 torch-cpu-bf16 tf32 -- examples/cnn/cnn.amp \
        "$work/more.amp"
    changed overrides "${algorithms[@]}" -- $some
fi

run 1 "$bin/tools/ampc" examples/fashion_mnist/mlp.amp --policy torch-fp15 --emit ir -o /dev/null
says 'there is no policy torch-fp15'
finish
