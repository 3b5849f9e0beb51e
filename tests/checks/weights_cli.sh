#!/usr/bin/env bash
# Published weights through amprun: other names, shards, the layout of GPT-2's Conv1D, a tied head, a new head; what is
# proposed where they do not fit; saved under their own names again; and that none of their files is ever written over.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun
ampc=$bin/tools/ampc amprun=$bin/tools/amprun
quick_models

cat >"$work/little.amp" <<'MODEL'
amp 1
const V = 11, C = 4

model little(tokens: i32[N, 3]) -> logits {
    param wte as wte.weight: f32[V, C] = normal(std = 0.02)
    x = embedding(tokens, wte)
    repeat i in 0..2 { x = x + linear(gelu(linear(x; out = 4 * C) as h[i].c_fc); out = C) as h[i].c_proj }
    y = linear(x; out = C) as square
    logits = matmul(y, transpose(wte))
}

train little {
    input targets: i32[N, 3]
    loss = cross_entropy(logits, targets)
    optimizer = sgd(lr = 0.1)
}
MODEL
run 0 "$ampc" "$work/little.amp" -o "$work/little.so"

# Into the folder: a file with the model's names and layout, the same as published (prefix, linear weights [in, out],
# head stored twice, a mask), that in two shards with an index, one of f64, and a batch.
cat >"$work/weights.py" <<'PYTHON'
import json, os, random, struct, sys

folder = sys.argv[1]
random.seed(3)


def write(name, arrays, metadata=None):
    header, data = ({"__metadata__": metadata} if metadata else {}), b""
    for key, (dtype, shape, values) in arrays.items():
        raw = struct.pack(f"<{len(values)}{dict(F32='f', F64='d', I32='i')[dtype]}", *values)
        header[key] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(os.path.join(folder, name), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def numbers(*shape):
    count = 1
    for size in shape:
        count *= size
    return "F32", list(shape), [round(random.uniform(-1, 1), 3) for _ in range(count)]


def turned(array):
    dtype, (rows, cols), values = array
    return dtype, [cols, rows], [values[row * cols + col] for col in range(cols) for row in range(rows)]


own = {"wte.weight": numbers(11, 4), "square.weight": numbers(4, 4), "square.bias": numbers(4)}
for i in range(2):
    own |= {f"h.{i}.c_fc.weight": numbers(16, 4), f"h.{i}.c_fc.bias": numbers(16),
            f"h.{i}.c_proj.weight": numbers(4, 16), f"h.{i}.c_proj.bias": numbers(4)}
published = {"transformer." + name: turned(a) if name.startswith("h.") and len(a[1]) == 2 else a
             for name, a in own.items()}
published |= {"lm_head.weight": own["wte.weight"], "transformer.h.0.mask": numbers(1, 1, 3, 3)}
write("own.st", own)
write("published.st", published, {"format": "pt"})
write("f64.st", own | {"square.weight": ("F64", [4, 4], own["square.weight"][2])})
os.makedirs(os.path.join(folder, "shards"), exist_ok=True)
shards, where = [{}, {}], {}
for i, (name, array) in enumerate(published.items()):
    shards[i % 2][name] = array
    where[name] = f"part-{i % 2}.safetensors"
for i in range(2):
    write(f"shards/part-{i}.safetensors", shards[i], {"format": "pt"})
with open(os.path.join(folder, "shards/model.safetensors.index.json"), "w") as f:
    json.dump({"metadata": {"total_size": 0}, "weight_map": where}, f)
tokens = [random.randrange(11) for _ in range(24)]
write("batch.st", {"tokens": ("I32", [8, 3], tokens), "targets": ("I32", [8, 3], tokens[1:] + tokens[:1])})
PYTHON
run 0 python3 "$work/weights.py" "$work"
rules=(--rename 'transformer.*=*' --rename 'lm_head.*=wte.*' --ignore '*.mask' --transpose 'h.*.weight')
index=$work/shards/model.safetensors.index.json
step() { "$amprun" step "$work/little.so" --inputs "$work/batch.st" "$@"; }

# ---- loading -------------------------------------------------------------------------------------

run 0 step --weights "$work/own.st" --steps 2 --save "$work/own_out.st"
line=$out
for weights in "$work/published.st" "$index"; do
    run 0 step --weights "$weights" "${rules[@]}" --steps 2 --save "$work/out.st"
    expect 'the same steps from published weights' "$line" "$out"
    holds 'and the same parameters after them' cmp "$work/own_out.st" "$work/out.st"
done
run 0 step --weights "$index" "${rules[@]}" -v
says '11 tensors loaded (4 transposed), 0 parameters left as they were, 1 tensors ignored'
run 1 step --weights "$work/own.st" --scale 8
says '--scale: this model trains unscaled, in fp32: a scale is for gradients in f16, and it has none'
run 0 step --weights "$work/f64.st"
says 'f64.st: 1 of its tensors are F64 and were rounded to f32'
run 0 "$amprun" infer "$work/little.so" --weights "$index" "${rules[@]}" --inputs "$work/batch.st" \
    --outputs "$work/a.st"
run 0 "$amprun" infer "$work/little.so" --weights "$work/own.st" --inputs "$work/batch.st" --outputs "$work/b.st"
holds 'the same results' cmp "$work/a.st" "$work/b.st"

# ---- what does not fit, and what is proposed -----------------------------------------------------

run 1 step --weights "$work/published.st"
says 'published.st: does not fit the model little: 11 parameters are not in it, 13 tensors are not in the model. Try ' \
    "--rename 'transformer.*=*'" "--rename 'lm_head.weight=wte.weight' (the same numbers)" \
    "--transpose 'h.*.c_fc.weight' --transpose 'h.*.c_proj.weight', or linear(...; transposed = true) in the model" \
    "--ignore 'transformer.h.*.mask', where that is meant"
run 1 step --weights "$work/published.st" -v
says 'transformer.h.0.mask: is not in the model little; the file has f32[1, 1, 3, 3]' \
    'h.1.c_proj.bias: is not in the file; the model has f32[4]'
run 1 step --weights "$work/own.st" --rename 'bert.*=*'
says "own.st: --rename 'bert.*=*' matches none of the names of its 11 tensors; one is h.0.c_fc.bias"
run 1 step --weights "$work/own.st" --rename 'bert'
says "--rename 'bert': FROM=TO is wanted"
run 1 step --weights "$work/shards/part-0.safetensors" "${rules[@]}"
says 'part-0.safetensors: '
run 1 step --weights "$work/shards"
says 'shards: cannot read: Is a directory'
sed 's/part-1/gone/g' "$index" >"$work/shards/gone.json"
run 1 step --weights "$work/shards/gone.json" "${rules[@]}"
says 'gone.safetensors: cannot open: No such file or directory' 'gone.json has 6 tensors there'
sed 's|part-1|../part-1|g' "$index" >"$work/shards/out.json"
run 1 step --weights "$work/shards/out.json" "${rules[@]}"
says 'out.json: not a sound index of weights: weight_map: ' 'only files in the folder of the index'
many=()
for ((i = 0; i < 65; i++)); do many+=(--ignore "$i"); done
run 2 step --weights "$work/own.st" "${many[@]}"
says '--ignore 64: is given too often; the most is 64 times'
run 2 "$amprun" train "$work/little.so" --data "safetensors:$work/batch.st" --rename 'a=b'
says 'with --weights or --save-like'
run 2 step --weights "$work/own.st" --save-like "$work/own.st"
says 'takes --save-like only with --save or --save-best'
run 2 "$amprun" info "$work/little.so" --rename 'a=b'
says '--rename: info does not take this'

# ---- a new head, from the seed -------------------------------------------------------------------

sed 's/y = linear(x; out = C) as square/y = linear(linear(x; out = 3) as head; out = C) as square/' "$work/little.amp" \
    >"$work/headed.amp"
run 0 "$ampc" "$work/headed.amp" -o "$work/headed.so"
headed() { "$amprun" step "$work/headed.so" --inputs "$work/batch.st" --weights "$work/own.st" "$@"; }
run 1 headed
says "Try --fresh 'head.bias' --fresh 'head.weight' --fresh 'square.weight', where that is meant"
run 0 headed --fresh 'head.*' --fresh 'square.weight' --seed 1
first=$out
run 0 headed --fresh 'head.*' --fresh 'square.weight' --seed 2
holds 'the seed makes the head' test "$first" != "$out"

# ---- under the names of the file again -----------------------------------------------------------

compare='
import json, struct, sys
def read(path):
    with open(path, "rb") as f:
        data = f.read()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:end])
    return header.pop("__metadata__", {}), {
        name: (t["dtype"], t["shape"], data[end + t["data_offsets"][0]:end + t["data_offsets"][1]])
        for name, t in header.items()}
(m, a), (n, b) = read(sys.argv[1]), read(sys.argv[2])
assert n["format"] == m.get("format", "pt") and n["amp.format"] == "params 1", n
assert {k: v[:2] for k, v in a.items()} == {k: v[:2] for k, v in b.items()}, (sorted(a), sorted(b))
assert b["lm_head.weight"] == b["transformer.wte.weight"]
assert b["transformer.h.0.mask"] == a["transformer.h.0.mask"]
assert (a == b) == (sys.argv[3] == "same"), "values"
'
for weights in "$work/published.st" "$index"; do
    run 0 step --weights "$weights" "${rules[@]}" --save "$work/like.st" --save-like "$weights"
    run 0 python3 -c "$compare" "$work/published.st" "$work/like.st" trained
    run 0 "$amprun" infer "$work/little.so" --weights "$work/like.st" "${rules[@]}" --inputs "$work/batch.st" \
        --outputs "$work/a.st"
done
run 0 step --weights "$work/published.st" "${rules[@]}" --checkpoint "$work/little.ck"
run 0 step --resume "$work/little.ck" "${rules[@]}" --save "$work/like.st" --save-like "$work/published.st"
run 0 python3 -c "$compare" "$work/published.st" "$work/like.st" trained
run 0 "$amprun" train "$work/little.so" --data "safetensors:$work/batch.st" --steps 2 --quiet --weights "$index" \
    "${rules[@]}" --save "$work/like.st" --save-like "$index"
run 0 python3 -c "$compare" "$work/published.st" "$work/like.st" trained
# What cannot be saved so is said before anything is trained.
run 1 "$amprun" train "$work/little.so" --data "safetensors:$work/batch.st" --steps 2 --weights "$work/own.st" \
    --save "$work/never.st" --save-like "$work/published.st"
says '--save-like ' 'published.st: does not fit the model little'
holds 'nothing was written' test ! -e "$work/never.st"
ignoring=(--rename 'transformer.*=*' --ignore '*.mask' --ignore 'lm_head.*' --transpose 'h.*.weight')
run 1 step --weights "$work/published.st" "${ignoring[@]}" --save "$work/never.st" --save-like "$work/published.st"
says 'tensor lm_head.weight is ignored, but has the numbers of wte.weight'

# ---- what is read is not written over ------------------------------------------------------------

for file in shards/part-0.safetensors shards/part-1.safetensors shards/model.safetensors.index.json; do
    before=$(cksum <"$work/$file")
    run 2 step --weights "$index" "${rules[@]}" --save "$work/$file" --force
    says "--save $work/$file: is the same file as --weights"
    run 2 step --weights "$work/own.st" --save "$work/$file" --save-like "$index" --force
    says "--save $work/$file: is the same file as --save-like"
    expect "$file stays" "$before" "$(cksum <"$work/$file")"
done
# ---- pipes: what is read once may be one, what is read again is refused ---------------------------

mkfifo "$work/pipe"
# piped FILE STATUS COMMAND...: the command with the file in the pipe
piped() {
    timeout 20 cat "$1" >"$work/pipe" 2>/dev/null &
    run "$2" timeout 20 "${@:3}"
    kill $! 2>/dev/null
}
piped "$work/little.so" 0 "$amprun" info "$work/pipe"
piped "$work/own.st" 0 "$amprun" infer "$work/little.so" --weights "$work/pipe" --inputs "$work/batch.st" \
    --outputs "$work/a.st"
piped "$work/little.amp" 0 "$ampc" "$work/pipe" -o "$work/piped.so"
piped "$work/little.ck" 0 "$amprun" step "$work/little.so" --inputs "$work/batch.st" --resume "$work/pipe"
run 1 timeout 20 "$amprun" train "$work/little.so" --data "safetensors:$work/batch.st" --steps 3 \
    --resume "$work/pipe"
says 'pipe: is a pipe; only a regular file is read here: copy what it gives to one'
run 1 timeout 20 "$amprun" train "$work/little.so" --data "safetensors:$work/batch.st" --steps 3 \
    --save "$work/never.st" --save-like "$work/pipe"
says '--save-like ' 'pipe: is a pipe; only a regular file is read here'

finish
