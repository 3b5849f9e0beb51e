#!/usr/bin/env bash
# The report of `ampc explain --html` in a headless Chromium: clicked, searched, sorted, used by keyboard, in both
# themes, looked at by axe.  A few examples; AMP_ALL=1 (full/html.sh): all of them, and one of 10,000 ops.  Pictures of
# every view are left in out/html/.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc
ampc=$bin/tools/ampc shots=$PWD/out/html
mkdir "$work/reports" "$work/bare"
rm -rf "$shots"

# report NAME MODEL OPTION...: a report, which is the same when it is made again
report() {
    local name=$1 model=$2
    shift 2
    run 0 "$ampc" explain "$model" "$@" --html "$work/reports/$name.html"
    run 0 "$ampc" explain "$model" "$@" --html "$work/again.html"
    holds "$name: the same input gives the same report" cmp "$work/reports/$name.html" "$work/again.html"
}

# A model of whose text a page could break, and one without blocks.
cat >"$work/odd.amp" <<'MODEL'
amp 1 # </script><script>alert(1)</script> <!-- "é" {{js}}
model odd(x: f32[N, 20]) -> y {
    y = softmax(linear(x; out = 5) as fc) # &amp; </pre>
}
precision fp16 { loss_scale = none }
MODEL
# A log whose words a page could break, too; its last line is not whole.
cat >"$work/odd.jsonl" <<'LOG'
{"model": "</script>", "policy": "p"}
{"iteration": 1, "step": 1, "loss": 2.5, "scale": 65536, "skipped": false}
{"iteration": 2, "step": 1, "loss": "nan", "scale": 65536, "skipped": true}
{"traced": 2, "fault": "overflow", "expected": false, "path": "<b>fc", "decided": null, "mend": ["</script>"]}
{"iteration": 3, "step": 2, "loss": 2.25, "scale": 32768, "skipped": false}
LOG
printf '%s' '{"stats": 2, "scale": 65536, "tensors": [{"name": "<i>h", "dtype": "f16", "count": 3, "zeros": 1, ' \
    '"largest": 2.0, "exponents": {"from": 0, "counts": [1, 1]}, ' \
    '"f16": {"flushed": 0, "subnormal": 0, "overflow": 0}}]}' $'\n{"iteration": 4, ' >>"$work/odd.jsonl"
report odd "$work/odd.amp" --log "$work/odd.jsonl"
run 2 "$ampc" explain "$work/odd.amp" --log "$work/odd.jsonl"
says '--log ' 'only with --html'
printf 'x\n' >"$work/wrong.jsonl"
run 1 "$ampc" explain "$work/odd.amp" --html "$work/wrong.html" --log "$work/wrong.jsonl"
says 'wrong.jsonl: line 1: ' 'is it a log of amprun train?'
run 1 "$ampc" explain "$work/odd.amp" --html "$work/wrong.html" --log "$work/nosuch.jsonl"
says 'nosuch.jsonl'
# A network of 100 steps, each with the same ops.
cat >"$work/loop.amp" <<'MODEL'
amp 1
const T = 100
model loop(x: f32[N, T, 8]) -> y {
    h = zeros(; shape = [N, 8])
    repeat t in 0..T { h = tanh(reshape(slice(x; dim = 1, from = t, to = t + 1); shape = [N, 8]) + 0.5 * h) }
    y = linear(h; out = 4) as fc
}
precision fp16 { loss_scale = none }
MODEL
report loop "$work/loop.amp"
report mlp examples/fashion_mnist/mlp.amp --against-policy torch-fp16
# A network of 7,591 ops: what is large is packed, and says what --json does.
cat >"$work/bilstm.amp" <<'MODEL'
amp 1
model bilstm(x: f32[N, 100, 32]) -> y {
    y = linear(lstm(x; hidden = 64, layers = 2, bidirectional = true) as rnn; out = 10) as fc
}
precision fp16 { loss_scale = none }
MODEL
run 0 "$ampc" explain "$work/bilstm.amp" --html "$work/bilstm.html" --json "$work/bilstm.json"
holds 'a BiLSTM over 100 steps is below 1 MB' test "$(stat -c %s "$work/bilstm.html")" -lt 1000000
cat >"$work/unpack.py" <<'PYTHON'
import base64, json, re, sys, zlib

page, whole = (open(name, encoding="utf-8").read() for name in sys.argv[1:])
packed = re.search(r'type="application/zlib" id="part-explain">([^<]*)</script>', page).group(1)
here, whole = json.loads(zlib.decompress(base64.b64decode(packed, validate=True))), json.loads(whole)
assert all(here[name] == whole[name] for name in whole if name != "rows")
PYTHON
holds 'what is packed is whole' python3 "$work/unpack.py" "$work/bilstm.html" "$work/bilstm.json"
# Blocks of each form of a zlib stream: as it is, of fixed codes, and of codes of its own.
cat >"$work/unpack.js" <<'SCRIPT'
const fs = require("fs"), zlib = require("zlib");
const unpackText = new Function(`${fs.readFileSync("compiler/report/page/inflate.js", "utf8")}; return unpackText;`)();
const words = [() => "a", (i) => `rnn.slice_${i % 977} é`, (i) => String.fromCharCode(32 + ((i * i * 79) % 91))];
for (const [level, strategy] of [[0, 0], [6, zlib.constants.Z_FIXED], [6, 0], [9, 0]])
  for (const length of [0, 1, 300, 100000])
    for (const word of words) {
      const text = Array.from({ length }, (_, i) => word(i)).join(""), bytes = Buffer.from(text);
      const packed = zlib.deflateSync(bytes, { level, strategy }).toString("base64");
      if (unpackText(packed) !== text) throw new Error(`${level} ${strategy} ${length} ${word}`);
    }
SCRIPT
if answers node --version; then
    run 0 node "$work/unpack.js"
else
    skipped "$lacking: only reports are unpacked, in a browser"
fi
# Where there is no Graphviz, the report lays the graph out itself, and says so.
cp "$(command -v env)" "$(command -v bash)" "$work/bare"
run 0 env PATH="$work/bare" "$ampc" explain examples/gpt/gpt2.amp --precision fp16 --policy torch-fp16 \
    --html "$work/reports/gpt2.html"
layout_of() { grep -o 'id="part-layout"' "$work/reports/$1.html"; }
expect 'without dot there is no layout of its' '' "$(layout_of gpt2)"
if answers dot -V; then
    expect 'with dot there is' 'id="part-layout"' "$(layout_of mlp)"
else
    skipped "$lacking: the layouts of Graphviz are not looked at"
fi

# A model.so: modelled times of its kernels, no text of the model.
run 0 "$ampc" examples/fashion_mnist/mlp.amp --isa portable -o "$work/mlp.so"
run 0 "$ampc" explain "$work/mlp.so" --html "$work/so.html"
holds 'of a model.so times are modelled' grep -q 'id="part-times">{"gpu":"H100"' "$work/so.html"

if [[ -n ${AMP_ALL:-} ]]; then
    for model in examples/*/*.amp; do
        grep -q '^model' "$model" || continue # an include
        name=$(basename "$model" .amp)
        [[ -e $work/reports/$name.html ]] || report "$name" "$model" --against-policy torch-fp16
    done
fi

if ! imports .browser-env/bin/python selenium axe_selenium_python || ! answers chromium --version ||
    ! answers chromedriver --version; then
    skipped "$lacking (tools/browser-env): reports are made, but not looked at"
    finish
fi

# look OPTION...: counts what each check says
look() {
    local line told=0
    while read -r line; do
        case $line in
        pass*) passed ;;
        *) failed "$line" ;;
        esac
        ((told += 1))
    done < <(timeout 20m .browser-env/bin/python -B tests/checks/html_report.py "$shots" "$@" 2>&1)
    holds 'the browser was there' test "$told" -gt 10
}
look "$work"/reports/*.html
holds 'pictures are kept' test -s "$shots/mlp-graph.png"

# The report of an ONNX model.
python3 -B tests/checks/onnx_write.py "$work/small.onnx"
echo '{"t": [-2, 3]}' >"$work/ranges.json"
run 0 "$ampc" autocast "$work/small.onnx" --keep-io --ranges "$work/ranges.json" --html "$work/small.html" \
    --json "$work/small.json"
run 0 timeout 5m .browser-env/bin/python -B tests/checks/html_autocast.py "$work/small.html" "$work/small.json" \
    "$shots/autocast.png"
told
says 'pass nothing was logged'

# faults that are planted are found: a button without a name, an error
sed -e 's#<h1 id="title">#<button></button>&#' -e 's#^startFind();#& console.error("planted");#' \
    "$work/reports/odd.html" >"$work/faulty.html"
run 0 timeout 5m .browser-env/bin/python -B tests/checks/html_report.py "$work/shots" "$work/faulty.html"
says 'FAIL faulty: is accessible' 'button-name' 'FAIL faulty: nothing was logged' 'planted'

if [[ -n ${AMP_ALL:-} ]]; then # 10,200 ops
    cat >"$work/big.amp" <<'MODEL'
amp 1
block layer(x) -> y {
    h = relu(linear(x; out = 16) as fc1)
    y = layer_norm(x + gelu(linear(h; out = 16) as fc2)) as norm
}
model big(x: f32[N, 16]) -> y {
    h = x
    repeat i in 0..1700 { h = layer(h) as h[i] }
    y = linear(h; out = 4) as head
}
precision fp16 { loss_scale = none }
MODEL
    run 0 "$ampc" explain "$work/big.amp" --html "$work/big.html"
    look --seconds 2 "$work/big.html"
fi
finish
