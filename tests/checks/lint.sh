#!/usr/bin/env bash
# `ampc lint` as a person calls it; what it reports of every example in every precision and under one policy of each
# kind, and of the smaller ones under other systems' policies, is tests/lint/examples.txt (AMP_BLESS=1 writes it anew,
# and each line has to be true); it reads every model of the tests without falling over.
#
#     lint.sh             of the four large ones three precisions, and ResNet-101 none
#     lint.sh --full      all of it: full/lint.sh; so does AMP_BLESS=1
#
# Takes long.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc
ampc=$bin/tools/ampc

# ---- the examples

precisions='--precision=fp32 --precision=tf32 --precision=bf16 --precision=fp16 --policy=torch-bf16
    --policy=torch-fp16 --policy=tf-fp16 --policy=apex-o2 --policy=keras-mixed-float16 --policy=mxnet-fp16
    --policy=torch-cpu-fp16 --policy=pure-fp16 --policy=pure-bf16'
large='/(bert|gpt2|lstm|resnet50|resnet101)[.]amp --policy=(torch-bf16|apex-o2|keras.*|mxnet.*|torch-cpu.*|pure-bf16)$'
short='/(resnet101[.]amp .*|(bert|gpt2|lstm|resnet50)[.]amp --p.*=(fp32|tf32|bf16|torch-fp16))$'
[[ ${1:-} != --full && -z ${AMP_BLESS:-} ]] || short=none
for model in $(git ls-files 'examples/*.amp' | xargs grep -lE '^model '); do
    for precision in $precisions; do
        [[ ! "$model $precision" =~ $large|$short ]] || continue
        status=0
        "$ampc" lint "$model" "$precision" >"$work/told" 2>&1 || status=$?
        ((status == 0)) && continue
        printf '%s %s\n' "$model" "$precision"
        ((status == 1)) || cat "$work/told"
        sed -n 's/^[^ ]*\/\([^ /]*\): warning: /  \1 /p; s/^  help/    help/p' "$work/told"
    done
done >"$work/examples.txt"
[[ -z ${AMP_BLESS:-} ]] || cp "$work/examples.txt" tests/lint/examples.txt
awk -v short="$short" '/^[^ ]/ { left_out = $0 ~ short } !left_out' tests/lint/examples.txt >"$work/wanted.txt"
expect 'what is told of the examples' "$(<"$work/wanted.txt")" "$(<"$work/examples.txt")"

# ---- every model of the tests

while read -r model; do
    status=0
    "$ampc" lint "$model" --policy pure-fp16 >"$work/told" 2>&1 || status=$?
    ((status <= 2)) || failed "ampc lint $model" "exit status $status"
done < <(
    git ls-files 'tests/*.amp' 'tests/*.ir' 'bench/*.amp'
    # tests/golden/golden.h has the form
    awk -v to="$work/" 'function end() { if (file) { printf "%s", tail >file; close(file) } }
        FNR == 1 || /^====$/ { end(); file = head = tail = ""; place = 0; if (/^====$/) next }
        /^==== / { end(); file = to $2; printf "%s", head >file; if (file ~ /[.]amp$/) print file; next }
        !file && /^[.][.][.]$/ { place = 1; next }
        !file { if (place) tail = tail $0 "\n"; else head = head $0 "\n"; next }
        /^ *\^~* error: / { said = 1; next }
        said && /^  (help|[^ ]*[0-9]+:[0-9]+): / { next }
        { said = 0; print >file }
        END { end() }' tests/frontend/golden/wrong/*.cases
)
passed

# ---- the command

cat >"$work/m.amp" <<'END'
amp 1
model m(x: f32[N, 8]) -> y {
    y = exp(x)
}
END
run 0 "$ampc" lint "$work/m.amp"
expect 'nothing to tell' 'm.amp: 0 findings' "$out"
run 1 "$ampc" lint "$work/m.amp" --policy pure-fp16
says "m.amp:3:9: warning: exp-overflow: exp: exp of what nothing bounds" '   3 |     y = exp(x)' \
    "  help: \`\"exp\": f32' in the precision block" 'm.amp: 1 finding: exp-overflow 1'
run 1 "$ampc" lint - --policy pure-fp16 <"$work/m.amp"
says 'stdin:3:9: warning: exp-overflow'
run 0 "$ampc" lint "$work/m.amp" --policy pure-fp16 --allow exp-overflow
run 1 "$ampc" lint "$work/m.amp" --policy pure-fp16 --allow 'exp-overflow:h.*'
run 1 "$ampc" lint "$work/m.amp" --policy pure-fp16 --json "$work/m.json"
expect 'JSON alone goes to its file' '' "$out"
run 1 "$ampc" lint "$work/m.amp" --policy pure-fp16 --json "$work/m.json"
expect 'the JSON' 'exp-overflow 3 "exp": f32' "$(python3 -c 'import json, sys
found = json.load(open(sys.argv[1]))["findings"][0]
print(found["id"], found["line"], found["line_to_add"])' "$work/m.json")"
run 1 "$ampc" lint examples/hot_reload/scores.amp --precision bf16 --gpu H100
says 'no-gain: bf16 does not pay: at N = 32 a step takes 3.434 us on H100'
run 0 "$ampc" lint examples/fashion_mnist/cnn.amp --precision bf16 --gpu H100

# ---- what is refused, always with 2: 1 is for findings

run 2 "$ampc" lint "$work/m.amp" --allow exp
says 'allow exp: no check has this name; there are alignment, cast,'
run 2 "$ampc" lint "$work/nosuch.amp"
run 2 "$ampc" lint "$work/m.amp" --gpu nosuch
says '--gpu nosuch: that GPU is not known'
run 2 "$ampc" lint "$work/m.amp" --json "$work/m.amp"
run 2 "$ampc" lint "$work/m.amp" -o "$work/m.so"
says '-o: lint does not take this'
run 2 "$ampc" "$work/m.amp" --allow cast
says '--allow: only with ampc lint'
sed -i 's/exp(x)/epx(x)/' "$work/m.amp"
run 2 "$ampc" lint "$work/m.amp"
says "there is no block, layer or op 'epx'"
finish
