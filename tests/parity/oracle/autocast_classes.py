#!/usr/bin/env python
"""autocast_classes.py: what autocast does to each op that it has a kernel for, found by calling the op.

    autocast_classes.py cpu|cuda [-o FILE]

Every op is called with small tensors that its schema asks for: all f32, all bf16, and f32 first with bf16 after it. The
casts that autocast puts before the op are logged, whether the op then accepts the tensors or not:

    f32 cast to bf16              lower_precision_fp
    bf16 cast to f32              fp32
    only mixed ones cast to f32   promote
    no cast, and an f32 result    fp32_set_opt_dtype
    refused as unsafe             banned
"""
import argparse
import json

from torch_autocast_oracle import DT, Log, Oracle, registered  # before torch: it loads the shim

import torch

LOW = "bf16"
VALUES = {"int": 1, "SymInt": 1, "float": 0.5, "bool": False, "number": 1, "str": "fro"}
BY_NAME = {"weight_stride0": 4, "mode": 2, "proj_size": 0}  # of _cudnn_rnn: an LSTM


def value_of(kind, tensors, name):
    """An argument of the schema's type |kind|; tensors(): the next tensor."""
    if name in BY_NAME and kind == "int":
        return BY_NAME[name]
    if kind in ("Tensor", "Optional[Tensor]"):
        return tensors()
    if kind == "List[Tensor]":
        return [tensors() for _ in range(4)]
    if kind == "List[Optional[Tensor]]":
        return [torch.zeros(2, dtype=torch.int64, device=tensors().device)]
    if kind.startswith("List[int]") or kind.startswith("List[SymInt]"):
        return [1]
    if kind.startswith("List[float]"):
        return [0.5]
    return VALUES.get(kind)


def arguments(schema, tensors):
    """(positional, keyword) arguments: each tensor, and each other one that has no default."""
    args, kwargs = [], {}
    for a in schema.arguments:
        kind = str(a.type)
        if a.has_default_value() and "Tensor" not in kind:
            if a.kwarg_only:
                continue
            args.append(a.default_value)
        elif a.kwarg_only:
            kwargs[a.name] = value_of(kind, tensors, a.name)
        else:
            args.append(value_of(kind, tensors, a.name))
    return args, kwargs


def call(op, device, first, rest):
    """Calls |op| with a tensor of dtype |first|, then tensors of |rest|: (the logged calls, the error's text)."""
    name, _, overload = op.removeprefix("aten::").partition(".")
    made = []

    def tensors():
        made.append(torch.ones(2, 2, device=device, dtype=DT[rest if made else first]))
        return made[-1]
    log = Log()
    args, kwargs = arguments(torch._C._get_schema("aten::" + name, overload), tensors)
    try:
        with torch.autocast(device, dtype=DT[LOW]), log:
            getattr(getattr(torch.ops.aten, name), overload or "default")(*args, **kwargs)
    except Exception as error:  # noqa: BLE001  the op does not like these tensors: its casts were made before
        return log.rows, str(error)
    return log.rows, ""


def casts(rows, source, target):
    """Whether the first thing that happened was such a cast."""
    first = rows[0] if rows else {"op": ""}
    return first["op"].startswith("aten._to_copy") and (first["in"], first["out"]) == ([source], [target])


def class_of(op, device):
    wide, low, mixed = (call(op, device, *t) for t in (("f32", "f32"), (LOW, LOW), ("f32", LOW)))
    if "unsafe to autocast" in low[1]:
        return "banned"
    if casts(wide[0], "f32", LOW):
        return "lower_precision_fp"
    if casts(low[0], LOW, "f32"):
        return "fp32"
    if casts(mixed[0], LOW, "f32"):
        return "promote"
    if low[0] and low[0][-1]["out"][:1] == ["f32"]:
        return "fp32_set_opt_dtype"
    return "?"  # it did not get so far: cuDNN's LSTM asks the driver first


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", choices=("cpu", "cuda"))
    parser.add_argument("-o", default="/dev/stdout")
    options = parser.parse_args()
    with Oracle(options.device):
        ops = sorted(registered({"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}[options.device]))
        rows = [{"op": op, "policy": class_of(op, options.device)} for op in ops]
    with open(options.o, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
