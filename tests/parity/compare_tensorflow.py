#!/usr/bin/env python3
"""compare_tensorflow.py DUMP.ir ANSWER.json: the dtype of every op of a training step against TensorFlow's decisions.

DUMP is what `ampc MODEL --policy tf-fp16 --dump-ir=paint` prints, or with tf-bf16; ANSWER is oracle/tf_model_*.json,
what oracle/tensorflow_oracle.py found for the model's twin. Prints the differences; exit status 1 where there are any.
Needs no TensorFlow.

An op of ours is compared with the nodes of TensorFlow's graph that compute it, known by the op's path, and an op of the
backward pass with the nodes that the tape made for the same forward op. Of these nodes each must have our op's dtype,
but for those of the tables below; and each must have an op of ours.
"""
import json
import re
import sys
from collections import namedtuple

import ir_text

# In the backward pass several ops of ours may have one forward op, and one op of ours may be several nodes: by our op,
# those that decide about it. Ops that are not here have all nodes of their path.
DECIDING = {
    "matmul": {"MatMul", "Einsum"},
    "sum": {"BiasAddGrad"},
    "conv2d_input_grad": {"Conv2DBackpropInput"},
    "conv2d_weight_grad": {"Conv2DBackpropFilter"},
    "layer_norm_grad": {"AddN"},
    "gelu_grad": {"AddN"},
    "attention_grad": {"BatchMatMulV2"},
    "embedding_grad": {"UnsortedSegmentSum"},
}
# What else these are made of, whose dtypes are TensorFlow's alone: ours computes it in f32 inside one kernel.
INSIDE = {
    "layer_norm_grad": {"Mul", "Neg", "RealDiv", "Reshape", "RsqrtGrad", "Sub", "Sum", "Tile"},
    "gelu_grad": {"Exp", "Mul", "Neg", "Square"},
    "attention_grad": {"Mul", "Reshape", "SelectV2", "Sub", "Sum"},
    "embedding_grad": {"Reshape"},
    "conv2d_weight_grad": {"Conv2DBackpropInput"},  # of the model's input: in the graph, but nobody reads it
}
# Numbers, what follows from decisions, and the loss's own gradient.
NOT_DECIDED = {"const", "cast", "grad_seed"}
# The gradient of a linear layer of more than two dims has products of rows here, where TensorFlow has Einsum.
ROWS_OF_LINEAR = "reshape"
FLOATS = {"f32", "f16", "bf16"}

# path: of the forward op; where: how the difference names it; dtypes: of its results
Ours = namedtuple("Ours", "part path where code dtypes")


def _path(op):
    """(part, path of the forward op)"""
    path, grad, _ = (op.path + ".").partition(".grad.")
    return ("backward", path) if grad else ("forward", op.path)


def _is_sum(op):
    return op.code == "add" and _path(op)[0] == "backward"


def _terms(op, makers):
    """The forward ops whose gradients a chain of additions adds up."""
    if op.code == "cast" and op.operands[0] in makers:
        return _terms(makers[op.operands[0]], makers)
    if _is_sum(op):
        return set().union(*(_terms(makers[value], makers) for value in op.operands))
    return {_path(op)[1]}


def our_ops(text):
    ops = ir_text.function(text, "train_step")
    makers = {value: op for op in ops for value in op.results}
    for op in ops:
        dtypes = [ir_text.dtype(t) for t in op.types]
        if op.code in NOT_DECIDED or not dtypes or dtypes[0] not in FLOATS:
            continue
        part, path = _path(op)
        if part == "backward" and op.code == ROWS_OF_LINEAR and path.endswith(".linear"):
            continue
        if _is_sum(op):
            path = " + ".join(sorted(_terms(op, makers)))
        yield Ours(part, path, op.path, op.code, dtypes)


def low_type(text):
    return re.search(r'(?m)^  policy "[^"]*".* low (\w+) painted', text)[1]


def _sum_with(nodes, path):
    """What we add up one after the other is one sum of all there: the smallest one that has ours."""
    ours = set(path.split(" + "))
    sums = [key for key in nodes if " + " in key and ours <= set(key.split(" + "))]
    return min(sums, key=len, default=None)


def differences(text, answer):
    column = 1 + answer["precisions"].index(low_type(text))
    has_op = {"forward": {}, "backward": {}}  # by path: the node types that an op of ours has
    for op in our_ops(text):
        nodes = answer[op.part]
        path = _sum_with(nodes, op.path) if op.code == "add" and " + " in op.path else op.path
        if path not in nodes:
            yield f"{op.where}: TensorFlow has no {op.code} there"
            continue
        is_backward, seen = op.part == "backward", has_op[op.part].setdefault(path, set())
        deciding = DECIDING.get(op.code) if is_backward else None
        seen |= INSIDE.get(op.code, set()) if is_backward else set()
        compared = [node.split() for node in nodes[path] if not deciding or node.split()[0].split(":")[0] in deciding]
        if not compared:
            yield f"{op.where}: TensorFlow has no {' or '.join(sorted(deciding))} there"
        for node in compared:
            ours = op.dtypes[1 if node[0].endswith(":U") else 0]  # a batch norm's statistics are its other results
            seen.add(node[0])
            if node[column] != ours:
                yield f"{op.where}: {op.code} is {ours}, TensorFlow's {node[0]} {node[column]}"
    for part, seen in has_op.items():
        for path, nodes in answer[part].items():
            for node in nodes:
                if node.split()[0] not in seen.get(path, set()):
                    yield f"{path}: no op of ours is TensorFlow's {node.split()[0]}, {part}"


def casts(text):
    """(down, up) of the step, without those that end it: TensorFlow's results are f32 in any case."""
    kinds = [ir_text.dtype(op.types[0]) for op in ir_text.function(text, "train_step") if op.code == "cast"]
    return len(kinds) - kinds.count("f32"), kinds.count("f32")


def main(dump, answer):
    with open(dump, encoding="utf-8") as file:
        text = file.read()
    with open(answer, encoding="utf-8") as file:
        answer = json.load(file)
    found = list(differences(text, answer))
    print("\n".join(found) or f"the dtypes of {len(list(our_ops(text)))} ops are TensorFlow's")
    return bool(found)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
