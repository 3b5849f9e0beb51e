"""Data and comparisons for distributed.sh.

distributed.py data FILE SAMPLES [wild|label]
                                            40 features and 5 classes; every seventh label is ignored; wild: one sample
                                            that overflows f16; label: one that is no class
distributed.py same LOG LOG TOLERANCE       the steps of two logs: losses and metrics within the tolerance, relative
distributed.py near FILE FILE TOLERANCE [WORD]
                                            the arrays of two safetensors files (those with WORD in their names),
                                            relative to the largest of each
"""
import array
import json
import random
import struct
import sys

import safetensors_write


def data(path, samples, fault=None):
    random.seed(7)
    x, targets = array.array("f"), array.array("i")
    for i in range(samples):
        row = [random.gauss(0, 1) for _ in range(40)]
        targets.append(-100 if i % 7 == 3 else max(range(5), key=lambda c: row[c]))
        if fault == "wild" and i == samples // 2:
            row[3] = 1e30
        if fault == "label" and i == 77:
            targets[i] = 99
        x.extend(row)
    safetensors_write.write(path, {"x": ("F32", [samples, 40], x.tobytes()),
                                   "targets": ("I32", [samples], targets.tobytes())})


def steps(path):
    with open(path) as lines:
        return [line for line in map(json.loads, lines) if "loss" in line and "iteration" in line]


def differ(a, b, tolerance):
    return a != b and abs(float(a) - float(b)) > tolerance * max(abs(float(a)), abs(float(b)))


def same(one, other, tolerance):
    a, b = steps(one), steps(other)
    if not a or len(a) != len(b):
        sys.exit(f"{len(a)} steps and {len(b)}")
    for x, y in zip(a, b):
        for key in ("iteration", "step", "scale", "skipped"):
            if x[key] != y[key]:
                sys.exit(f"step {x['iteration']}: {key} {x[key]} and {y[key]}")
        for key in ("loss", "acc"):
            if differ(x[key], y[key], tolerance):
                sys.exit(f"step {x['iteration']}: {key} {x[key]} and {y[key]}")


def arrays(path):
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header, rest = json.loads(file.read(size)), file.read()
    return {name: array.array("f", rest[slice(*t["data_offsets"])]) for name, t in header.items()
            if name != "__metadata__" and t["dtype"] == "F32"}


def near(one, other, tolerance, only=""):
    a, b = ({k: v for k, v in arrays(path).items() if only in k} for path in (one, other))
    if not a or a.keys() != b.keys():
        sys.exit("other arrays")
    for name, x in a.items():
        largest = max(map(abs, x))
        worst = max(abs(p - q) for p, q in zip(x, b[name]))
        if not worst <= tolerance * largest:
            sys.exit(f"{name}: {worst} of {largest}")


command, arguments = sys.argv[1], sys.argv[2:]
if command == "data":
    data(arguments[0], int(arguments[1]), *arguments[2:])
else:
    {"same": same, "near": near}[command](*arguments[:2], float(arguments[2]), *arguments[3:])
