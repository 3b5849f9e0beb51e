"""The peer of `bench/run models`: a twin of tests/parity/twins that trains.

    twin_peer.py TWIN ARGUMENTS     the program in examples/ and its constants, as JSON
    twin_peer.py TWIN ARGUMENTS adamw|momentum|nesterov PRECISION BATCH THREADS eager|compile|channels_last

ARGUMENTS are the arguments of the twin's `example`, in JSON.  The second form prints "ready", then answers each line K
with the milliseconds of K training steps (of processor time, where BENCH_CLOCK=processor in the environment).
"""
import importlib
import json
import math
import os
import sys
import time

import torch

clock = time.process_time if os.environ.get("BENCH_CLOCK") == "processor" else time.perf_counter
OPTIMIZERS = {
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.01, fused=True),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, weight_decay=1e-4, fused=True),
    "nesterov": lambda parameters: torch.optim.SGD(
        parameters, lr=1e-3, momentum=0.9, nesterov=True, weight_decay=1e-4, fused=True),
}


def repeated(tensor, batch):
    return torch.cat([tensor] * -(-batch // tensor.shape[0]))[:batch]


def make_step(example, optimizer, low, batch, mode):
    torch.manual_seed(0)
    module = example.make()
    data = [repeated(t, batch) for t in (*example.inputs().values(), example.targets())]
    if mode == "channels_last":
        module = module.to(memory_format=torch.channels_last)
        data = [t.contiguous(memory_format=torch.channels_last) if t.dim() == 4 else t for t in data]
    parameters = list(module.parameters())
    optimizer = OPTIMIZERS[optimizer](parameters)

    def loss_of():
        with torch.autocast("cpu", dtype=low or torch.bfloat16, enabled=low is not None):
            return module(*data)

    if mode == "compile":
        loss_of = torch.compile(loss_of)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss_of().backward()
        if math.isfinite(example.clip):
            torch.nn.utils.clip_grad_norm_(parameters, example.clip)
        optimizer.step()

    return step


def main(twin, arguments, *rest):
    example = importlib.import_module("twins." + twin).example(**json.loads(arguments))
    if not rest:
        print(json.dumps({"model": example.model, "defines": example.defines}))
        return
    optimizer, precision, batch, threads, mode = rest
    torch.set_num_threads(int(threads))
    step = make_step(example, optimizer, {"fp32": None, "bf16": torch.bfloat16}[precision], int(batch), mode)
    step()
    print("ready", flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            start = clock()
            step()
            times.append(1e3 * (clock() - start))
        print(" ".join(f"{t:.4f}" for t in times), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
