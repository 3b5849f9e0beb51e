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

# without_casts MODEL PRECISION [OPTION...]
without_casts() {
    local count
    run 0 "$bin/tools/ampc" "examples/fashion_mnist/$1.amp" --precision "$2" --emit ir -o "$work/$1-$2.ir" "${@:3}"
    count=$(kernels "$work/$1-$2.ir")
    printf '%s %s: %s kernels in a training step\n' "$1" "$2" "${count%%$'\n'*}"
    holds "$1 $2: there are kernels" test "${count%%$'\n'*}" -gt 5
    expect "$1 $2: no kernel does only a cast" '' "$(tail -n +2 <<<"$count")"
}
for model in mlp cnn; do
    for precision in fp16 bf16 fp32; do without_casts $model $precision; done
done
finds 'casts that are not fused' 'mlp fp16: no kernel does only a cast' without_casts mlp fp16 --no-pass fuse

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
# same_kernels PRECISION [OPTION...]
same_kernels() {
    local block
    for block in layer_norm by_hand; do
        norm $block | if [[ $block == layer_norm ]]; then sed '/^block/,/^}/d'; else cat; fi >"$work/$block.amp"
        run 0 "$bin/tools/ampc" "$work/$block.amp" --precision "$1" --emit ir -o "$work/$block.ir" "${@:2}"
        kernels "$work/$block.ir" | head -n 1 >"$work/$block.count"
    done
    expect "$1: a layer_norm by hand becomes as many kernels as the prelude's" "$(<"$work/layer_norm.count")" "$(<"$work/by_hand.count")"
}
for precision in fp32 fp16; do same_kernels $precision; done
finds 'a layer_norm of several kernels' "as many kernels as the prelude's" same_kernels fp32 --no-pass fuse

# averages [OPTION...]: of weights are part of the kernels that update them.
averages() {
    local setting
    for setting in '' 'ema = 0.999'; do
        norm layer_norm | sed "/^block/,/^}/d; s/^    optimizer.*/&\n    $setting/" >"$work/averages.amp"
        run 0 "$bin/tools/ampc" "$work/averages.amp" --precision fp16 --emit ir -o "$work/averages.ir" "$@"
        kernels "$work/averages.ir" | head -n 1 >"$work/averages.${setting%% *}"
    done
    expect 'averages of weights take no kernel of their own' "$(<"$work/averages.")" "$(<"$work/averages.ema")"
}
averages
finds 'averages that are not fused' 'no kernel of their own' averages --no-pass fuse
finish
