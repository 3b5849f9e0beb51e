"""compile_time.py: how long large models take to compile, beside torch.compile of the same step (bench/compile).

Ours is all of `ampc --target cpu`: text to model.so for its three instruction sets, the C compiler's processes and the
linker among it.  PyTorch's is the first step of a compiled forward pass with its backward pass, less a second one, with
empty caches.  Processor time counts all processes; on a busy machine it says more than the time on the wall.
"""
import argparse
import fnmatch
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

import ampc_tools as tools

LAST_PASS = "bundle"  # rows of --time-passes come in the order in which passes run


def gpt2():
    from twins import gpt
    import torch
    ids = torch.randint(0, 50257, (1, 128))
    return gpt.Gpt2(50257, 128, 768, 12, 12), (ids, ids)


def bert():
    from twins import bert as twin
    import torch
    sizes = {"V": 30522, "T": 128}
    inputs = twin.batch(sizes, samples=1)
    return twin.Bert(30522, 512, 128, 768, 12, 12, 2), (*inputs.values(), torch.zeros(1, dtype=torch.int64))


def resnet50():
    from twins import resnet
    import torch
    module = resnet.ResNet(*resnet.KINDS["resnet50"], CLASSES=1000, CHANNELS=3, W=64, IMAGENET=True)
    return module, (torch.rand(1, 3, 224, 224), torch.zeros(1, dtype=torch.int64))


MODELS = {  # the file in examples/, the twin
    "gpt2": ("gpt/gpt2.amp", gpt2),
    "bert-base": ("bert/bert.amp", bert),
    "resnet50": ("resnet/resnet50.amp", resnet50),
}


def processor_seconds(run):
    """(what it returns, seconds of the wall, of all processors)"""
    def used():
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime
    wall, before = time.perf_counter(), used()
    result = run()
    return result, time.perf_counter() - wall, used() - before


def ours(source, work):
    model, text = os.path.join(work, "model.so"), os.path.join(work, "model.c")
    command = [tools.program("tools/ampc"), source, "--target", "cpu", "--time-passes", "-o", model]
    done, wall, processor = processor_seconds(
        lambda: subprocess.run(command, capture_output=True, text=True, check=True))
    times = {name: float(ms) for name, ms in re.findall(r"(?m)^(\w+) +([\d.]+) ms", done.stderr + done.stdout)}
    tools.run(tools.program("tools/ampc"), source, "--target", "cpu", "--emit", "c", "-o", text)
    c = open(text, encoding="utf-8").read()
    kernels = len(re.findall(r"(?m)^/\* k\d+ ", c))
    functions = len(re.findall(r"(?m)^[^\n]*void K\([^\n]*\)\n\{\n(?!    K\()", c))
    passes = list(times.values())[:list(times).index(LAST_PASS) + 1]
    return {"wall_s": wall, "processor_s": processor, "passes_s": sum(passes) / 1e3,
            "kernels": kernels, "functions": functions}


def torch_peer(name):
    """In a process of its own: prints the seconds of the first step less the second's."""
    import torch
    torch.manual_seed(0)
    module, batch = MODELS[name][1]()
    compiled, times = torch.compile(module), []
    for _ in range(2):
        start = time.perf_counter()
        compiled(*batch).backward()
        times.append(time.perf_counter() - start)
    print(f"seconds {times[0] - times[1]:.2f}")


def theirs(name, work):
    env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": work, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
    command = [sys.executable, __file__, "--peer", name]
    done, _, processor = processor_seconds(
        lambda: subprocess.run(command, env=env, capture_output=True, text=True, check=True))
    return {"torch_wall_s": float(re.search(r"seconds ([\d.]+)", done.stdout).group(1)), "torch_processor_s": processor}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--only", default="*")
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--peer")
    options = parser.parse_args()
    if options.peer:
        return torch_peer(options.peer)
    found = []
    heads = f"{'model':10} {'kernels':>7} {'functions':>9} {'passes':>7} {'wall':>6} {'processor':>9}"
    print(heads + "   torch.compile: wall, processor  (seconds)")
    for name, (model, _) in MODELS.items():
        source = os.path.join(tools.ROOT, "examples", model)
        if not fnmatch.fnmatch(name, options.only) or not os.path.exists(source):
            continue
        with tempfile.TemporaryDirectory() as work:
            row = {"model": name, **ours(source, work), **({} if options.no_torch else theirs(name, work))}
        found.append(row)
        text = f"{name:10} {row['kernels']:7} {row['functions']:9} {row['passes_s']:7.2f} {row['wall_s']:6.1f}"
        peer = f"{row['torch_wall_s']:20.1f} {row['torch_processor_s']:10.1f}" if "torch_wall_s" in row else ""
        print(f"{text} {row['processor_s']:9.1f}{peer}", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
