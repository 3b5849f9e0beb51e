#!/usr/bin/env bash
# Kernels of the training steps: how many, none that does only a cast, and a layer_norm that a user writes becomes as many as the
# prelude's.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc

# kernels FILE.ir: how many kernels train_step has; a line per kernel that only casts, from one place to another of the same form.
# (A kernel that brings a caller's rows into the form that products read casts on the way: that is packing.)
kernels() {
    python3 - "$1" <<'PYTHON'
import re, sys
inside, kernels, layouts = False, [], {}
for line in open(sys.argv[1], encoding="utf-8"):
    if line.startswith("func "):
        inside = line.startswith("func train_step")
    elif inside and (found := re.match(r"  buffer (\S+) .*?(\w+) +live ", line)):
        layouts[found[1]] = found[2]
    elif inside and (found := re.match(r"  kernel (\S+) +(\w+) +\"([^\"]*)\"(?:.*? reads ([^\"{]*?))?(?: writes ([^\"{]*?))?(?: at [^{]*)?\{", line)):
        kernels.append([found[1], found[3], re.findall(r"b\d+", found[4] or ""), re.findall(r"b\d+", found[5] or ""), []])
    elif inside and kernels and (found := re.match(r"    (?:%.*? = )?(\w+)\(", line)):
        kernels[-1][4].append(found[1])
print(len(kernels))
for name, title, reads, writes, ops in kernels:
    if ops and set(ops) == {"cast"} and {layouts[b] for b in reads} == {layouts[b] for b in writes}:
        print(name, title)
PYTHON
}

for model in mlp cnn; do
    for precision in fp16 bf16 fp32; do
        run 0 "$bin/tools/ampc" examples/fashion_mnist/$model.amp --precision $precision --emit ir -o "$work/$model-$precision.ir"
        count=$(kernels "$work/$model-$precision.ir")
        printf '%s %s: %s kernels in a training step\n' $model $precision "${count%%$'\n'*}"
        holds "$model $precision: there are kernels" test "${count%%$'\n'*}" -gt 5
        expect "$model $precision: no kernel does only a cast" '' "$(tail -n +2 <<<"$count")"
    done
done

norm() {
    cat <<AMP
amp 1
block by_hand(x) {
    param weight: f32[48] = ones()
    param bias: f32[48] = zeros()
    d = x - mean(x; dims = -1, keep = true)
    return d * rsqrt(mean(d * d; dims = -1, keep = true) + 0.00001) * weight + bias
}
model m(x: f32[N, 48]) -> logits {
    h = linear(x; out = 48) as fc1
    h = $1(h) as norm
    logits = linear(h; out = 10) as fc2
}
train m {
    input targets: i32[N]
    loss = cross_entropy(logits, targets)
    optimizer = adamw(lr = 0.001)
}
AMP
}
for precision in fp32 fp16; do
    for block in layer_norm by_hand; do
        norm $block | if [[ $block == layer_norm ]]; then sed '/^block/,/^}/d'; else cat; fi >"$work/$block.amp"
        run 0 "$bin/tools/ampc" "$work/$block.amp" --precision $precision --emit ir -o "$work/$block.ir"
        kernels "$work/$block.ir" | head -n 1 >"$work/$block.count"
    done
    expect "$precision: a layer_norm by hand becomes as many kernels as the prelude's" "$(<"$work/layer_norm.count")" "$(<"$work/by_hand.count")"
done
finish
