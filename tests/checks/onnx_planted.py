"""Graphs that overflow in f16: `ampc autocast` keeps what overflows in f32, by the op, the weights, or --ranges.

    onnx_planted.py AMPC

The results run in ONNX's reference implementation, which computes f16 in f16 (onnxruntime on a CPU mostly does not).
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.reference
import onnxruntime
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

NEAR = 0.01  # of the largest number
onnxruntime.set_default_logger_severity(4)
DIM = 64


def weight(name, array):
    return numpy_helper.from_array(np.asarray(array, np.float32), name)


def plant(middle, large=1.0):
    """MatMul, |middle| from h to m, MatMul: what is between two products that are lowered."""
    rng = np.random.default_rng(1)
    w = rng.normal(size=(DIM, DIM)) / 8
    weights = [weight("w1", w * large), weight("w2", rng.normal(size=(DIM, DIM)) / 8), weight("two", 2.0),
               weight("three", 3.0), weight("tiny", 1e-5), weight("down", 1e-6), numpy_helper.from_array(
                   np.array([-1]), "axis")]
    nodes = [h.make_node("MatMul", ["x", "w1"], ["h"], "first"), *middle,
             h.make_node("MatMul", ["m", "w2"], ["y"], "last")]
    infos = [h.make_tensor_value_info(name, T.FLOAT, ["N", DIM]) for name in ("x", "y")]
    read = {name for node in nodes for name in node.input}
    graph = h.make_graph(nodes, "planted", infos[:1], infos[1:], [w for w in weights if w.name in read])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=10)


def node(op, inputs, output, **attributes):
    return h.make_node(op, inputs.split(), [output], f"{op}_{output}", **attributes)


NORM = [node("ReduceMean", "h axis", "mean"), node("Sub", "h mean", "c"), node("Pow", "c two", "s"),
        node("ReduceMean", "s axis", "v"), node("Add", "v tiny", "e"), node("Sqrt", "e", "r"), node("Div", "c r", "m")]
# Name, nodes, scale of x, scale of w1, whether --ranges is needed, what stays in f32.
CASES = [
    ("a spelled-out norm", NORM, 2000.0, 1.0, False, "Pow_s"),
    ("a power", [node("Pow", "h three", "p"), node("Mul", "p down", "m")], 100.0, 1.0, False, "Pow_p"),
    ("a sum", [node("Abs", "h", "a"), node("ReduceSum", "a axis", "p"), node("Mul", "p down", "q"),
               node("Add", "q h", "m")], 3000.0, 1.0, False, "ReduceSum_p"),
    ("weights", [node("Mul", "h down", "m")], 1.0, 1e6, False, "first"),
    ("a product", [node("Mul", "h h", "p"), node("Mul", "p down", "m")], 1000.0, 1.0, True, "Mul_p"),
]


def measured(model, x, path):
    everything = onnx.shape_inference.infer_shapes(model)
    everything.graph.output.extend(everything.graph.value_info)
    session = onnxruntime.InferenceSession(everything.SerializeToString())
    names = [o.name for o in session.get_outputs()]
    with open(path, "w") as file:
        json.dump({n: [float(v.min()), float(v.max())] for n, v in zip(names, session.run(None, {"x": x}))}, file)


def computed(model, x):
    kind = model.graph.input[0].type.tensor_type.elem_type
    with np.errstate(all="ignore"):
        found = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x.astype(h.tensor_dtype_to_np_dtype(kind))})
    return found[0].astype(np.float64)


def autocast(ampc, path, work, *options):
    out, report = os.path.join(work, "out.onnx"), os.path.join(work, "report.json")
    subprocess.run([ampc, "autocast", path, "-o", out, "--force", "--json", report, *options], check=True)
    with open(report) as file:
        return onnx.load(out), {d["node"]: d for d in json.load(file)["decisions"]}


def error(model, x, expected):
    y = computed(model, x)
    return np.abs(y - expected).max() / np.abs(expected).max() if np.isfinite(y).all() else np.inf


def check(ampc, case, work):
    name, middle, scale, large, by_ranges, kept = case
    path, ranges = os.path.join(work, "model.onnx"), os.path.join(work, "ranges.json")
    model = plant(middle, large)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    x = (np.random.default_rng(2).normal(size=(8, DIM)) * scale).astype(np.float32)
    expected = computed(model, x)
    measured(model, x, ranges)
    pure, _ = autocast(ampc, path, work, "--policy", "pure-fp16") if large == 1.0 else (None, None)
    cast, decisions = autocast(ampc, path, work, *["--ranges", ranges] * by_ranges)
    why = decisions[kept]["because"]
    wrong = []
    if pure is not None and error(pure, x, expected) < NEAR:
        wrong.append("nothing is planted: pure-fp16 computes it, too")
    if error(cast, x, expected) > NEAR:
        wrong.append(f"is {error(cast, x, expected):.2g} away")
    if decisions[kept]["type"] != "float32" or ((by_ranges or large > 1) and "range: " not in why):
        wrong.append(f"{kept} is {decisions[kept]['type']} because {why}")
    what = f"{name}: what overflows stays in f32"
    print(f"FAIL {what}: {'; '.join(wrong)}" if wrong else f"pass {what}", flush=True)


if __name__ == "__main__":
    for planted in CASES:
        with tempfile.TemporaryDirectory() as folder:
            check(sys.argv[1], planted, folder)
