"""Writes a perceptron of linear layers with ReLU between as ONNX: write_onnx.py WEIGHTS.safetensors OUT.onnx

Layers are fc1, fc2, ...; the input is "x", the result "logits".
"""

import sys

import onnx
from onnx import helper, numpy_helper
from safetensors.numpy import load_file


def main(weights_path: str, out_path: str) -> None:
    weights = load_file(weights_path)
    layers = sum(name.endswith(".weight") for name in weights)
    nodes, value = [], "x"
    for i in range(1, layers + 1):
        result = f"h{i}" if i < layers else "logits"
        nodes.append(helper.make_node("Gemm", [value, f"fc{i}.weight", f"fc{i}.bias"], [result], transB=1))
        value = result
        if i < layers:
            nodes.append(helper.make_node("Relu", [result], [f"relu{i}"]))
            value = f"relu{i}"
    width, classes = weights["fc1.weight"].shape[1], weights[f"fc{layers}.weight"].shape[0]
    f32 = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", f32, ["N", width])],
        [helper.make_tensor_value_info("logits", f32, ["N", classes])],
        [numpy_helper.from_array(w, name) for name, w in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, out_path)


main(*sys.argv[1:])
