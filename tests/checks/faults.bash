# Faults of ranks that train together (faults_distributed.py); sourced after checks.bash.

# faults_inputs: a model whose checkpoint takes a while to write, with what is random and what is averaged; its data
faults_inputs() {
    mkdir -p "$work/faults"
    cat >"$work/faults/net.amp" <<'MODEL'
amp 1
model net(x: f32[N, 40]) -> logits {
    h = dropout(relu(batch_norm(linear(x; out = 1000) as fc1) as bn); p = 0.1)
    h = relu(linear(h; out = 1000) as fc2)
    logits = linear(h; out = 5) as fc3
}
train net {
    input targets: i32[N]
    loss = cross_entropy(logits, targets)
    metric acc = accuracy(logits, targets)
    optimizer = adamw(lr = 0.001)
    data_parallel = true
}
MODEL
    run 0 "$bin/tools/ampc" "$work/faults/net.amp" --target cpu --isa v3 -o "$work/faults/net.so"
    run 0 env PYTHONPATH=tests/checks python3 -B tests/checks/distributed.py data "$work/faults/data.st" 150
}

# faults MPI COUNT SEED [FIRST]
faults() {
    mkdir -p "$work/faults/$1"
    python3 -B tests/checks/faults_distributed.py "$1" "$bin/tools/amprun" "$work/faults/net.so" \
        "safetensors:$work/faults/data.st" "$work/faults/$1" "${@:2}"
}
