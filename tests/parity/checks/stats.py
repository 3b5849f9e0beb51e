"""stats.py: the counts of `amprun step --stats` are those that PyTorch and NumPy make of the tensors that `--values`
writes: exponents, zeros, what becomes zero, subnormal or infinite in f16, bf16 and the FP8 types; on the CPU, and on
the stand-in for CUDA."""
import copy
import json
import os
import subprocess

import numpy as np
import torch

import ampc_tools as tools
import harness
from programs import ROOT, program, run

# PyTorch's type, and the smallest magnitude that keeps all its bits
TYPES = {"f16": (torch.float16, 2.0**-14), "bf16": (torch.bfloat16, 2.0**-126), "e4m3": (torch.float8_e4m3fn, 2.0**-6),
         "e5m2": (torch.float8_e5m2, 2.0**-14)}
SAMPLES = 48
SIZES = (16, 32, 10)
MODEL = os.path.join(tools.MODELS, "mlp_16_32_10.amp")


# ---- what PyTorch and NumPy count -----------------------------------------------------------------------------------


def short_counts(magnitude, name):
    dtype, normal = TYPES[name]
    short = torch.from_numpy(magnitude).to(dtype).to(torch.float32).numpy()
    flushed = short == 0
    if name == "e4m3":  # PyTorch saturates; by OCP's specification what rounds to more than 448 is NaN
        short[magnitude > 464] = np.nan
    return {"flushed": int(flushed.sum()), "subnormal": int(((magnitude < normal) & ~flushed).sum()),
            "overflow": int((~np.isfinite(short)).sum())}


def counts(x):
    magnitude = np.abs(x[np.isfinite(x) & (x != 0)])
    exponents = np.maximum(np.floor(np.log2(magnitude.astype(np.float64))).astype(int), -127)
    found = {"count": x.size, "zeros": int((x == 0).sum()), "nans": int(np.isnan(x).sum()),
             "infinities": int(np.isinf(x).sum()), "largest": float(magnitude.max(initial=0.0)),
             "exponents": {int(e): int((exponents == e).sum()) for e in np.unique(exponents)}}
    return found | {name: short_counts(magnitude, name) for name in TYPES}


def told(tensor):
    found = {key: tensor[key] for key in ("count", "zeros", "nans", "infinities", *TYPES)}
    exponents = tensor["exponents"]
    return found | {"largest": float(np.float32(tensor["largest"])),
                    "exponents": {exponents["from"] + i: n for i, n in enumerate(exponents["counts"]) if n}}


def differences(tensors, arrays):
    """Of the tensors that are in both."""
    for tensor in tensors:
        name = tensor["name"]
        if name not in arrays:
            continue
        wanted, got = counts(arrays[name].numpy().astype(np.float32).ravel()), told(tensor)
        yield from (f"{name}: {key} is {got[key]}, not {wanted[key]}" for key in wanted if wanted[key] != got[key])


# ---- runs -----------------------------------------------------------------------------------------------------------


def batch(path, spread):
    """Magnitudes over 2^-spread .. 2^spread, with zeros."""
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(SAMPLES, SIZES[0], generator=generator)
    x *= 2.0 ** torch.randint(-spread, spread + 1, x.shape, generator=generator)
    x[3] = 0
    return tools.write_batch(path, x, torch.randint(SIZES[-1], (SAMPLES,), generator=generator))


def step(options, precision, spread, device):
    """The tensors of a step's line of statistics, and its values and parameters."""
    def file(name):
        return os.path.join(options.work, name)
    model = tools.compile_model(MODEL, file(f"{precision}.so"), "--precision", precision, "--force")
    weights, after, values = file("weights"), file("after"), file("values")
    command = [program("tools/amprun"), "step", model, "--inputs", batch(file("batch"), spread), "--stats", "1"]
    run(program("tools/amprun"), "train", model, "--data", f"safetensors:{file('batch')}", "--steps", "1", "--quiet",
        "--save", weights, "--force", "--allow", "nan")
    if device == "cuda":
        command = [os.path.join(ROOT, "tools/with-fakecuda"), "--arch", "80", *command, "--device", "cuda"]
    lines = run(*command, "--weights", weights, "--values", "*", values, "--save", after, "--force").splitlines()
    (stats,) = [json.loads(line) for line in lines if line.startswith('{"stats"')]
    return stats["tensors"], tools.read_tensors(values) | tools.read_tensors(after)


def has_nvrtc():
    command = [program("tools/ampc"), MODEL, "--gpu-arch", "sm_80", "-o", "/dev/null"]
    done = subprocess.run(command, capture_output=True, check=False)
    return done.returncode == 0


# ---- checks ---------------------------------------------------------------------------------------------------------


def check_steps(tally, options):
    devices = ["cpu", *(["cuda"] if has_nvrtc() else [])]
    for device in devices:
        for precision, spread in (("fp16", 6), ("bf16", 30), ("fp32", 40)):
            tensors, arrays = step(options, precision, spread, device)
            compared = sum(tensor["name"] in arrays for tensor in tensors)
            tally.same(f"{precision} on {device}", differences(tensors, arrays), f"{compared} tensors")
            tally.same(f"{precision} on {device}: most tensors are told of", [] if compared >= 15 else [f"{compared}"])


def plant_counts(tally, options):
    tensors, arrays = step(options, "fp16", 6, "cpu")
    for key in ("zeros", "count"):
        wrong = copy.deepcopy(tensors)
        wrong[-1][key] += 1
        tally.seen(f"one more of {key}", differences(wrong, arrays))
    wrong = copy.deepcopy(tensors)
    wrong[-1]["exponents"]["from"] += 1
    tally.seen("exponents one higher", differences(wrong, arrays))


harness.main(__doc__, [check_steps], [plant_counts])
