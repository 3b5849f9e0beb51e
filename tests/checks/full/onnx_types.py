"""Types and shapes of the node tests of the onnx wheel, against the tensors that they give.

    onnx_types.py PROGRAM FOLDER     PROGRAM: tests/onnx/print_types; FOLDER: for the models

What the models say of their outputs is taken away first, and small inputs become initializers. Prints a line
"pass WHAT" or "FAIL WHAT: why" for each model, and in the end how many shapes were known in full.
"""
import os
import re
import subprocess
import sys

import numpy
import onnx
from onnx import helper
from onnx.backend.test.loader import load_model_tests

PROGRAM, FOLDER = sys.argv[1:]
ELEMENT = {number: helper.tensor_dtype_to_string(number).split(".")[-1].lower()
           for number in onnx.TensorProto.DataType.values() if number}
ELEMENT[onnx.TensorProto.FLOAT], ELEMENT[onnx.TensorProto.DOUBLE] = "float32", "float64"


def fix_small_inputs(model, values):
    """Shapes, axes, scales, .. are constants in models."""
    for info, value in zip(list(model.graph.input), values):
        if isinstance(value, numpy.ndarray) and value.size <= 16 and value.dtype.name in ("int64", "int32", "float32"):
            model.graph.initializer.append(onnx.numpy_helper.from_array(value, info.name))
            model.graph.input.remove(info)


def wanted_type(info):
    kind = info.type.WhichOneof("value")
    if kind == "tensor_type":
        return ELEMENT[info.type.tensor_type.elem_type]
    if kind == "sequence_type":
        return "a sequence of " + ELEMENT[info.type.sequence_type.elem_type.tensor_type.elem_type]
    return None


def main():
    cases = {}
    for case in load_model_tests(kind="node"):
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        opset = max([one.version for one in model.opset_import if not one.domain] or [17])
        if opset < 11 or any("training" in one.domain or "preview" in one.domain for one in model.opset_import):
            continue
        for info in model.graph.output:
            if info.type.HasField("tensor_type"):
                info.ClearField("type")
        fix_small_inputs(model, case.data_sets[0][0])
        path = os.path.join(FOLDER, case.name + ".onnx")
        onnx.save(model, path)
        cases[path] = case
    printed = subprocess.run([PROGRAM], input="".join(path + "\n" for path in cases), text=True, check=True,
                             stdout=subprocess.PIPE).stdout
    said = {}
    for line in printed.splitlines():
        path, name, text = line.split(";", 2)
        said.setdefault(path, {})[name] = text
    known = total = 0
    for path, case in cases.items():
        wrong = said.get(path, {}).get("")
        for info, value in zip(case.model.graph.output, case.data_sets[0][1]):
            text = said.get(path, {}).get(info.name, "nothing")
            wanted = wanted_type(info)
            element, _, dims = text.partition("[")
            if wanted is not None and element != wanted:
                wrong = wrong or "%s is said to be %s, and is %s" % (info.name, text, wanted)
            if not isinstance(value, numpy.ndarray) or wanted is None or wanted.startswith("a "):
                continue
            total += 1
            if not dims:
                continue
            dims = [dim for dim in dims.rstrip("]").split(", ") if dim]
            known += all(re.fullmatch(r"-?\d+", dim) for dim in dims)
            if len(dims) != value.ndim or any(re.fullmatch(r"-?\d+", dim) and int(dim) != size
                                              for dim, size in zip(dims, value.shape)):
                wrong = wrong or "%s is said to be %s, and is %s" % (info.name, text, list(value.shape))
        print("FAIL %s: %s" % (case.name, wrong) if wrong else "pass %s" % case.name)
    print("%d of %d shapes are known in full" % (known, total))


main()
