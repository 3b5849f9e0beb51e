"""ampc_tools.py: compile models with ampc, run them with amprun, and exchange tensors and training states as safetensors files."""
import json
import os
import re

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from programs import ROOT, dump, json_lines, program, run  # noqa: F401  parts of this module

MLP = os.path.join(ROOT, "examples/fashion_mnist/mlp.amp")
CNN = os.path.join(ROOT, "examples/fashion_mnist/cnn.amp")
MODELS = os.path.join(ROOT, "tests/parity/models")


# ---- models -----------------------------------------------------------------------------------------------------------------


def variant(model, path, **replacements):
    """Writes a copy of a model file with the right side of `optimizer = ...` or `loss_scale = ...` replaced."""
    text = open(model, encoding="utf-8").read()
    for word, value in replacements.items():
        text, count = re.subn(rf"(?m)^(\s*{word}\s*=)[^#\n]*", rf"\1 {value} ", text)
        if count != 1:
            raise ValueError(f"{model}: {count} lines `{word} = ...`; exactly one is wanted")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def compile_model(model, output, *options):
    run(program("tools/ampc"), model, "-o", output, *options)
    return output


# ---- running ------------------------------------------------------------------------------------------------------------------


def step(model, *options):
    """amprun step: one dict per step (step, iteration, loss, scale, skipped, grad_norm)."""
    lines = run(program("tools/amprun"), "step", model, *options).splitlines()
    return [{key: float(value) if value in ("nan", "inf", "-inf") else value for key, value in json.loads(line).items()}
            for line in lines]


def train(model, *options):
    return run(program("tools/amprun"), "train", model, "--quiet", *options)


# ---- files ----------------------------------------------------------------------------------------------------------------------


def write_batch(path, x, targets):
    save_file({"x": x.contiguous(), "targets": targets.to(torch.int32).contiguous()}, path)
    return path


def named_state(module):
    """Parameters in f32 and buffers by name, as --save writes them."""
    tensors = {name: p.detach().float() for name, p in module.named_parameters()}
    tensors.update((name, b.float() if b.is_floating_point() else b) for name, b in module.named_buffers())
    return {name: t.detach().clone().contiguous() for name, t in tensors.items()}


def write_weights(path, module):
    save_file(named_state(module), path)
    return path


def read_tensors(path):
    return load_file(path)


def read_metadata(path):
    with safe_open(path, "pt") as file:
        return file.metadata() or {}


# PyTorch's names of optimizer state, and the checkpoint's.
SLOTS = {"exp_avg": "m", "exp_avg_sq": "v", "momentum_buffer": "momentum",
         "square_avg": "v", "grad_avg": "m", "sum": "squares", "row_var": "rows", "col_var": "cols", "variance": "v"}


def checkpoint_tensors(module, optimizer=None, scaler=None, slots=(), step_count=0, iteration=0):
    """What a checkpoint file holds for PyTorch's state.  |slots| are the moments that the model has: zero where PyTorch made none yet; after
    a None come the slots of parameters that are no matrices."""
    slots = tuple(slots)
    matrix, other = (slots[:slots.index(None)], slots[slots.index(None) + 1:]) if None in slots else (slots, slots)
    tensors = {"counter/step": torch.tensor(step_count), "counter/iteration": torch.tensor(iteration)}
    tensors.update(named_state(module))
    for name, p in module.named_parameters():
        state = optimizer.state.get(p, {}) if optimizer else {}
        held = {SLOTS[key]: value for key, value in state.items() if key in SLOTS and value is not None}
        for slot in matrix if p.dim() == 2 else other:
            lines = {"rows": -2, "cols": -1}.get(slot)
            first = torch.zeros_like(p) if lines is None else torch.zeros(p.shape[lines])
            tensors[f"optim/{name}/{slot}"] = held.get(slot, first).detach().reshape(first.shape).clone().contiguous()
    if scaler:
        tensors["scaler/scale"] = torch.tensor(scaler["scale"], dtype=torch.float32)
        tensors["scaler/growth_tracker"] = torch.tensor(scaler["growth_tracker"], dtype=torch.int32)
        tensors["scaler/floor_hits"] = torch.tensor(0, dtype=torch.int32)
    return tensors


def write_checkpoint(path, *args, **kwargs):
    save_file(checkpoint_tensors(*args, **kwargs), path, metadata={"amp.format": "checkpoint 1"})
    return path


# ---- comparing -------------------------------------------------------------------------------------------------------------------


def bits(tensor):
    """The bits of a tensor as integers: equal NaNs compare equal, and -0 differs from 0."""
    views = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.contiguous().view(views[tensor.element_size()]) if tensor.dim() else bits(tensor.reshape(1))


def bit_differences(a, b, names=None):
    """Where two sets of tensors differ in a name, a shape or a bit."""
    for name in sorted(names if names is not None else a.keys() | b.keys()):
        if name not in a or name not in b:
            yield f"{name}: only in the {'second' if name not in a else 'first'}"
        elif a[name].shape != b[name].shape or a[name].dtype != b[name].dtype:
            yield f"{name}: {a[name].dtype} {list(a[name].shape)} and {b[name].dtype} {list(b[name].shape)}"
        else:
            wrong = int((bits(a[name]) != bits(b[name])).sum())
            if wrong:
                yield f"{name}: {wrong} of {a[name].numel()} elements differ"


def flip_bit(tensors, name=None):
    """A copy of a set of tensors with the lowest bit of one element flipped: the smallest fault there is."""
    copy = {key: value.clone() for key, value in tensors.items()}
    name = name or next(key for key in sorted(copy) if copy[key].dim())
    bits(copy[name]).view(-1)[0] ^= 1
    return copy


def relative_error(ours, theirs):
    """The norm of the difference over the norm of the reference, in double."""
    difference = (ours.double() - theirs.double()).norm()
    return float(difference / theirs.double().norm()) if difference else 0.0
