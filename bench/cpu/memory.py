"""memory.py: what a training step of each example keeps, beside the same step in PyTorch (bench/memory).

Ours is planned: `activations` of `amprun info` (values of the forward and backward pass, gradients that are waiting,
temporaries), to the byte what a session allocates.  PyTorch's is measured: every allocation and release of its CPU
allocator in one step, as torch.profiler records them; the peak of their sum, which starts at 0 with parameters and
moments already there.  It holds all gradients (.grad) until the optimizer has run, and under autocast its 16-bit copies
of the weights; ours are kept from step to step (`copies`), so both are shown.  Inputs are neither's.
"""
import argparse
import fnmatch
import importlib
import json
import os
import sys
import tempfile

import torch

import ampc_tools as tools
import twin
import twins

LOW = {"fp32": None, "bf16": torch.bfloat16}
POLICY = {"fp32": "fp32", "bf16": "torch-bf16"}  # of ours: both sides keep values of the same types
BATCH = 32
# The sizes of examples/, where the tests' own are smaller and more padding than numbers: by file of tests/parity/twins,
# arguments of its `example`, and of "batch" where 32 samples take PyTorch too much memory.
SIZES = {
    "autoencoder": {"autoencoder": {"SIZE": 28, "W": 16, "CODE": 16}},
    "cnn": {"cnn, 420 and 1000 channels": {"C1": 420, "C2": 1000, "SIZE": 28, "POOL": 4}},
    "gpt": {
        "gpt, bytes": {"V": 256, "T": 128, "C": 128, "L": 4, "H": 4},
        "gpt, 512 tokens": {"V": 256, "T": 512, "C": 128, "L": 4, "H": 4},
    },
    "bert": {"bert, small": {"V": 100, "LONGEST": 128, "T": 128, "C": 128, "L": 2, "H": 4}},
    "tabular": {"tabular": {"WIDE": 128}},
    "llama": {"llama": {"V": 256, "T": 128, "C": 128, "L": 4, "HIDDEN": 344}},
    "lstm": {"lstm": {"T": 64, "C": 64, "H": 256}},
    "resnet": {
        "resnet18, as trained": {"name": "resnet18", "size": 28, "W": 16, "CHANNELS": 1, "MARGIN": 2, "CLASSES": 10},
        "resnet18": {"name": "resnet18", "size": 32, "W": 64, "CLASSES": 10},
        "resnet50": {"name": "resnet50", "size": 224, "W": 64, "CLASSES": 1000, "IMAGENET": True, "batch": 8},
        "resnet101": {"name": "resnet101", "size": 224, "W": 64, "CLASSES": 1000, "IMAGENET": True, "batch": 8},
    },
    "unet": {
        "unet": {"S": 32, "C": 8},
        "unet, bilinear": {"S": 32, "C": 8, "BILINEAR": True, "GROUPS": 4},
        "unet, bilinear, batch norm": {"S": 32, "C": 8, "BILINEAR": True},
        "unet, 64 channels": {"S": 128, "C": 64, "batch": 8},
    },
}


def fashion(file, make, inputs):
    return twins.Example("fashion_mnist/" + file, {}, make, lambda: {"x": inputs()},
                         lambda: torch.randint(0, 10, (128,)), None)


def rows():
    """(name, example, samples of a batch)"""
    yield "mlp", fashion("mlp.amp", lambda: twin.make(twin.MLP), lambda: torch.rand(128, 784)), BATCH
    yield "cnn, 32 channels", fashion("cnn.amp", twin.make_cnn, lambda: torch.rand(128, 1, 28, 28)), BATCH
    seen = set()
    for name, path, example in twins.examples():
        kind = os.path.basename(path)[:-3]
        if kind not in SIZES:
            yield name, example, BATCH
        elif kind not in seen:
            seen.add(kind)
            module = importlib.import_module("twins." + kind)
            for case, sizes in SIZES[kind].items():
                arguments = {key: value for key, value in sizes.items() if key != "batch"}
                yield case, module.example(**arguments), sizes.get("batch", BATCH)


def repeated(tensor, batch):
    return torch.cat([tensor] * -(-batch // tensor.shape[0]))[:batch]


def ours(example, precision, batch, work):
    model = os.path.join(work, "model.so")
    defines = [word for name, value in example.defines.items() for word in ("-D", f"{name}={value}")]
    source = os.path.join(tools.ROOT, "examples", example.model)
    options = ("--policy", POLICY[precision], "--target", "cpu", "--isa", "portable", "--force")
    tools.compile_model(source, model, *options, *defines)
    return json.loads(tools.run(tools.program("tools/amprun"), "info", model, "--batch", batch, "--json"))["memory"]


def peak_of(step):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        step()
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    now = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        now += event.nbytes()
        peak = max(peak, now)
    return peak


def theirs(example, precision, batch):
    torch.manual_seed(0)
    module, low = example.make(), LOW[precision]
    data = [repeated(t, batch) for t in (*example.inputs().values(), example.targets()) if t is not None]
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, fused=True)

    def step():
        with torch.autocast("cpu", dtype=low or torch.bfloat16, enabled=low is not None):
            loss = module(*data)
        loss.backward()
        del loss
        optimizer.step()

    step()  # moments
    optimizer.zero_grad(set_to_none=True)
    return peak_of(step)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--only", default="*")
    parser.add_argument("--batch", type=int, help="of every model, in place of its own")
    options = parser.parse_args()
    found, larger = [], 0
    print(f"{'model':28} {'precision':9} {'batch':>5} {'activations':>12} {'copies':>11} {'PyTorch':>12} {'ratio':>6}")
    for name, example, batch in rows():
        if not fnmatch.fnmatch(name, options.only):
            continue
        batch = options.batch or batch
        for precision in LOW:
            with tempfile.TemporaryDirectory() as work:
                memory = ours(example, precision, batch, work)
            peak = theirs(example, precision, batch)
            row = {"model": name, "precision": precision, "batch": batch, "activations": memory["activations"],
                   "copies": memory["copies"], "pytorch": peak, "ratio": memory["activations"] / peak}
            found.append(row)
            larger += row["ratio"] > 1
            sizes = f"{row['activations']:12} {row['copies']:11} {peak:12} {row['ratio']:6.2f}"
            print(f"{name:28} {precision:9} {batch:5} {sizes}" + "   larger" * (row["ratio"] > 1), flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
    print(f"{len(found) - larger} at most PyTorch's, {larger} larger")
    return larger > 0


if __name__ == "__main__":
    sys.exit(main())
