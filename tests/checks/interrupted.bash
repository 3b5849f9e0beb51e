# Trainings for interrupted.py; sourced after checks.bash.

# interrupted_inputs: two models, with dropout and FP16, and data with a test part
interrupted_inputs() {
    mkdir -p "$work/interrupted/idx"
    for parts in 1 3; do
        cat >"$work/interrupted/$parts.amp" <<MODEL
amp 1
model net(x: f32[N, 8]) -> logits {
    h = dropout(relu(linear(x; out = 16) as fc1); p = 0.1)
    logits = linear(h; out = 3) as fc2
}
train net {
    input targets: i32[N]
    accumulate = $parts
    loss = cross_entropy(logits, targets)
    metric acc = accuracy(logits, targets)
    optimizer = adamw(lr = cosine(peak = 0.01, warmup = 20, steps = 1500))
}
precision fp16 {
    loss_scale = dynamic(init = 65536.0)
}
MODEL
        run 0 "$bin/tools/ampc" "$work/interrupted/$parts.amp" --isa portable --target cpu \
            -o "$work/interrupted/$parts.so"
    done
    python3 - "$work/interrupted/idx" <<'DATA'
import os, random, struct, sys
random.seed(2)
for part, count in ("train", 1000), ("t10k", 100):
    labels = [i % 3 for i in range(count)]
    pixels = [random.randrange(100) + 100 * (k == y) for y in labels for k in range(8)]
    for name, sizes, data in ("images-idx3", [count, 2, 4], pixels), ("labels-idx1", [count], labels):
        with open(os.path.join(sys.argv[1], f"{part}-{name}-ubyte"), "wb") as f:
            f.write(bytes([0, 0, 8, len(sizes)]) + b"".join(struct.pack(">I", s) for s in sizes) + bytes(data))
DATA
}

# interrupted PARTS MOMENTS
interrupted() {
    python3 -B tests/checks/interrupted.py "$bin/tools/amprun" "$work/interrupted/$1.so" "idx:$work/interrupted/idx" \
        "$work/interrupted" "$2"
}
