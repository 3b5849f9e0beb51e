"""The types of `ampc autocast --policy torch-fp16` beside what PyTorch's CUDA autocast gives, value by value.

    onnx_decisions.py AMPC [FAMILY...]

A network is exported by PyTorch's default exporter, whose values have the names of the program's nodes; that program
runs under autocast on tensors of a CUDA device that is none (tests/parity/oracle).  A line `pass WHAT` or `FAIL WHAT:
why` for each network.
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "parity", "oracle"))
import torch_autocast_oracle as oracle  # noqa: E402  before torch

import onnx  # noqa: E402
import torch  # noqa: E402

import onnx_models  # noqa: E402

OPSET = 23
TYPES = {torch.float32: onnx.TensorProto.FLOAT, torch.float16: onnx.TensorProto.FLOAT16}


class Recorder(torch.fx.Interpreter):
    """The type of each node's result."""

    def __init__(self, module):
        super().__init__(module)
        self.types = {}

    def run_node(self, node):
        if node.target is torch.ops.aten.lstm.input:  # cuDNN's, which asks the driver; it is on autocast's list
            with torch.autocast("cuda", enabled=False):
                return self.lstm(*self.fetch_args_kwargs_from_env(node)[0])
        out = super().run_node(node)
        if isinstance(out, torch.Tensor) and out.dtype in TYPES and node.op == "call_function":
            self.types[node.name] = TYPES[out.dtype]
        return out

    @staticmethod
    def lstm(x, state, *_):
        half = [t.half() for t in state]
        return x.new_empty(*x.shape[:2], state[0].shape[-1], dtype=torch.float16), *half


def shapes_of(program, inputs):
    """Of the graph's placeholders, in their order: parameters, buffers, constants, inputs."""
    state = {**program.state_dict, **program.constants}
    left = list(inputs)
    for spec in program.graph_signature.input_specs:
        tensor = state[spec.target] if spec.target in state else left.pop(0)
        yield tuple(tensor.shape), tensor.dtype


def under_autocast(program, inputs):
    graph = program.graph_module
    for node in graph.graph.nodes:
        if "device" in node.kwargs:
            node.kwargs = {**node.kwargs, "device": torch.device("cuda:0")}
    shapes = list(shapes_of(program, inputs))
    with oracle.Oracle("cuda"), torch.no_grad():
        made = [torch.empty(shape, dtype=dtype, device="cuda") for shape, dtype in shapes]
        recorder = Recorder(graph)
        with oracle.autocast("cuda", "f16"):
            recorder.run(*made)
    return recorder.types


def types_of(path):
    """By value: its type; and by value the op that makes it."""
    model = onnx.shape_inference.infer_shapes(onnx.load(path, load_external_data=False), data_prop=True)
    infos = [*model.graph.value_info, *model.graph.output]
    return ({i.name: i.type.tensor_type.elem_type for i in infos},
            {name: node.op_type for node in model.graph.node for name in node.output})


def compare(ampc, family, work):
    path, out, report = (os.path.join(work, name) for name in ("model.onnx", "out.onnx", "report.json"))
    inputs, program = onnx_models.export(family, OPSET, path, calibrated=False)
    subprocess.run([ampc, "autocast", path, "-o", out, "--policy", "torch-fp16", "--json", report], check=True)
    with open(report) as file:  # what is made of constants alone is stored as it is read, and a cast less
        constant = {d["result"] for d in json.load(file)["decisions"] if "a weight" in d["because"]}
    wanted = under_autocast(program, inputs)
    got, ops = types_of(out)
    names = {i.name for i in onnx.load(path, load_external_data=False).graph.output}
    both = [n for n in wanted if n in got and n not in names | constant]
    differ = [f"{n} ({ops.get(n)}) is {onnx.TensorProto.DataType.Name(got[n])}" for n in both if got[n] != wanted[n]]
    what = f"{family}: the types of {len(both)} values are PyTorch's"
    print(f"FAIL {what}: {len(differ)} differ: {'; '.join(differ[:8])}" if differ else f"pass {what}", flush=True)
    if not both:
        print(f"FAIL {family}: no name is matched")


if __name__ == "__main__":
    for name in sys.argv[2:] or onnx_models.FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            compare(sys.argv[1], name, folder)
