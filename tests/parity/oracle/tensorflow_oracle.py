"""tensorflow_oracle.py: what TensorFlow's graph rewrites for mixed precision decide in the training step of a model.

The step is traced (forward pass, loss, gradients), and the rewrite alone runs over its graph: auto_mixed_precision for
FP16, over a described GPU of architecture 8.0, and auto_mixed_precision_onednn_bfloat16 for BF16, over a CPU.  Nothing
is computed, so neither a GPU nor an input is needed; but TensorFlow must be a build that has the GPU's kernels, because
the rewrite asks for them.

decisions(traced) gives them by the name of a node, answer(traced) by the op of ours whose scope the node is in.  As a
program, with PYTHONPATH=tests/parity, it writes the answers that are committed beside it.
"""
import json
import os
from collections import namedtuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import tensorflow as tf  # noqa: E402  it reads the environment
from tensorflow.core.protobuf import config_pb2, device_properties_pb2  # noqa: E402
from tensorflow.core.protobuf import meta_graph_pb2, rewriter_config_pb2  # noqa: E402
from tensorflow.python.grappler import cluster, tf_optimizer  # noqa: E402

VERSION = tf.__version__
MACHINE = "/job:localhost/replica:0/task:0/device:"
LOW = {"f16": tf.float16, "bf16": tf.bfloat16}
REWRITES = {"f16": "auto_mixed_precision", "bf16": "auto_mixed_precision_onednn_bfloat16"}
DTYPES = {tf.float32: "f32", tf.float16: "f16", tf.bfloat16: "bf16"}

# op: "MatMul"; inputs: names of the nodes that it reads; dtypes: "f16 bf16", by each precision
Node = namedtuple("Node", "op inputs dtypes")
# down: casts to the low type; up: back to f32
Casts = namedtuple("Casts", "down up")


def _described(kind, **properties):
    return device_properties_pb2.NamedDevice(
        name=f"{MACHINE}{kind}:0", properties=device_properties_pb2.DeviceProperties(type=kind, **properties))


def _machine(low):
    cpu = _described("CPU", num_cores=4, frequency=2000)
    gpu = _described("GPU", num_cores=108, frequency=1400,
                     environment={"architecture": "8.0", "cuda": "12050", "cudnn": "90300"})
    return cluster.Cluster(devices=[cpu, gpu] if low == "f16" else [cpu])


def _rewritten(graph, fetches, low):
    config = config_pb2.ConfigProto()
    options = config.graph_options.rewrite_options
    options.meta_optimizer_iterations = rewriter_config_pb2.RewriterConfig.ONE
    options.min_graph_nodes = -1
    options.optimizers.append(REWRITES[low])
    setattr(options, REWRITES[low], rewriter_config_pb2.RewriterConfig.ON)
    meta = meta_graph_pb2.MetaGraphDef(graph_def=graph)
    meta.collection_def["train_op"].node_list.value.extend(fetches)
    return tf_optimizer.OptimizeGraph(config, meta, cluster=_machine(low))


def _type_attrs(node):
    return {name: tf.as_dtype(value.type) for name, value in node.attr.items()
            if value.WhichOneof("value") == "type"}


def _float_attrs(node):
    """Those by which a float node is painted.  The first is of its data; a batch norm has U for the statistics."""
    floats = [name for name, dtype in _type_attrs(node).items() if dtype == tf.float32]
    return sorted(floats, key=lambda name: (name not in ("T", "dtype"), name))


def _casts(before, after, low):
    added = [_type_attrs(node) for node in after.node if node.op == "Cast" and node.name not in before]
    down = sum(attrs["DstT"] == LOW[low] for attrs in added)
    return Casts(down, len(added) - down)


def _gives_float(traced):
    return {operation.name for operation in traced.graph.get_operations()
            if any(tensor.dtype == tf.float32 for tensor in operation.outputs)}


def _dtypes(before, after):
    """{node: {type attribute that was f32: its dtype now}}"""
    return {node.name: {attr: DTYPES[_type_attrs(node)[attr]] for attr in _float_attrs(before[node.name])}
            for node in after.node if node.name in before}


def decisions(traced):
    """traced: a concrete function.  ({name of a float node: Node}, {precision: Casts})

    What a batch norm says of its statistics is a node beside it, NAME:U."""
    graph = traced.graph.as_graph_def()
    before = {node.name: node for node in graph.node}
    dtypes, casts, nodes = [], {}, {}
    for low in LOW:
        after = _rewritten(graph, [output.op.name for output in traced.outputs], low)
        dtypes.append(_dtypes(before, after))
        casts[low] = _casts(before, after, low)
        if not casts[low].down:
            raise RuntimeError(f"TensorFlow's rewrite {REWRITES[low]} left the graph as it was")
    for name in _gives_float(traced):
        inputs = [word.split(":")[0] for word in before[name].input if not word.startswith("^")]
        for at, attr in enumerate(_float_attrs(before[name])):
            suffix = f":{attr}" if at else ""
            nodes[name + suffix] = Node(before[name].op + suffix, inputs, " ".join(by[name][attr] for by in dtypes))
    return nodes, casts


# ---- by the ops of a model ---------------------------------------------------------------------------------------

TAPE = "gradient_tape/"
# What computes nothing: numbers, variables, and the function's results.
NO_OP = {"Const", "Placeholder", "ReadVariableOp", "Identity", "ZerosLike"}


def _home(nodes, name):
    """(whether it is of the backward pass, the op's path): a sum of gradients is of all ops that give them."""
    node = nodes[name]
    if node.op == "AddN":
        homes = {_home(nodes, term)[1] for term in node.inputs}
        return True, " + ".join(sorted({path for home in homes for path in home.split(" + ")}))
    backward = name.startswith(TAPE)
    path, _, rest = name.removeprefix(TAPE).partition("/")
    if not rest:
        raise ValueError(f"node {name} ({node.op}) is in no scope of an op")
    return backward, path


def _results(nodes, homes):
    """The nodes whose values leave their op: read by another op of the same pass, or a result of the function."""
    results = set()
    for name, node in nodes.items():
        for term in set(node.inputs) & homes.keys():
            if name not in homes or homes[name][0] == homes[term][0] and homes[name] != homes[term]:
                results.add(term)
    return results


def answer(traced):
    """What is committed: for each path the nodes that compute the op, "MatMul f16 bf16", and its gradient's nodes; and
    by "PATH + PATH" the sums of gradients that several ops give.  Those whose values leave the op end in "result"."""
    nodes, casts = decisions(traced)
    homes = {name: _home(nodes, name) for name, node in nodes.items() if node.op not in NO_OP}
    results, found = _results(nodes, homes), {"forward": {}, "backward": {}}
    for name, (backward, path) in homes.items():
        text = f"{nodes[name].op} {nodes[name].dtypes}" + (" result" if name in results else "")
        found["backward" if backward else "forward"].setdefault(path, set()).add(text)
    return {"tensorflow": VERSION, "precisions": list(LOW), "casts": casts,
            **{part: {path: sorted(ops) for path, ops in sorted(homes.items())} for part, homes in found.items()}}


# ---- the committed answers ---------------------------------------------------------------------------------------


def _written(found):
    """One path a line."""
    parts = []
    for key, value in found.items():
        text = json.dumps(value)
        if key in ("forward", "backward"):
            text = "{\n" + ",\n".join(f"{json.dumps(path)}: {json.dumps(ops)}" for path, ops in value.items()) + "\n}"
        parts.append(f"{json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def answer_file(name):
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), f"tf_model_{name}.json")


def main():
    import tensorflow_twins  # beside the folder of this file

    for name, example in tensorflow_twins.examples().items():
        with open(answer_file(name), "w", encoding="utf-8") as file:
            file.write(_written({"model": example.model, **answer(tensorflow_twins.traced_step(example.twin()))}))


if __name__ == "__main__":
    main()
