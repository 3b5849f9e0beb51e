#!/usr/bin/env python3
"""compare_tensorflow.py DUMP.ir ANSWER.json: the dtype of every op of a training step against TensorFlow's decisions.

DUMP is what `ampc MODEL --policy tf-fp16 --dump-ir=paint` prints, or with tf-bf16; ANSWER is oracle/tf_model_*.json,
what oracle/tensorflow_oracle.py found for the model's twin. Prints the differences; exit status 1 where there are any.
Needs no TensorFlow.

An op of ours is compared with the nodes of TensorFlow's graph that compute it, known by the op's path, and an op of the
backward pass with the nodes that the tape made for the same forward op. Each of these nodes must have our op's dtype,
but where ours is SEVERAL_THERE: then those whose values leave the op must. And each node must have an op of ours.
"""
import json
import re
import sys
from collections import namedtuple

import ir_text

# In the backward pass several ops of ours may have one forward op: which nodes each is.
PARTS = {
    "matmul": {"MatMul", "Einsum"},
    "mul": {"Mul"},
    "div": {"Mul", "RealDiv", "Reciprocal"},
    "neg": {"Neg"},
    "sin": {"Sin"},
    "cos": {"Cos"},
    "sum": {"BiasAddGrad"},
    "conv2d_input_grad": {"Conv2DBackpropInput"},
    "conv2d_weight_grad": {"Conv2DBackpropFilter"},
}
# Ops that are a row of nodes there, some of another dtype than the result; one kernel of ours computes them in f32.
SEVERAL_THERE = {
    "attention_grad", "embedding_grad", "erf_grad", "extreme_grad", "gelu_grad", "hard_sigmoid_grad", "hard_swish_grad",
    "huber_loss", "huber_loss_grad", "l1_loss", "l1_loss_grad", "layer_norm_grad", "log_softmax_grad", "mse_loss_grad",
    "pow_grad", "rms_norm", "rms_norm_grad", "smooth_l1_loss", "smooth_l1_loss_grad", "softmax_grad",
    "var_grad"}
# The gradient of the weight, which is a Sum there and f32 in FP16; ours has the type of the data's.
OTHER_RESULT = {"rms_norm_grad": {"Reshape"}}
# What TensorFlow computes and nothing reads: the gradient of the model's own input.
UNREAD = {"Conv2DBackpropInput"}
# Numbers, what follows from decisions, and the loss's own gradient.
NOT_DECIDED = {"const", "cast", "grad_seed"}
# The gradient of a linear layer of more than two dims has products of rows here, where TensorFlow has Einsum.
ROWS_OF_LINEAR = "reshape"
FLOATS = {"f32", "f16", "bf16"}

# path: of the forward op; where: how the difference names it; dtypes: of its results
Ours = namedtuple("Ours", "part path where code dtypes")


def _path(op):
    """(part, path of the forward op)"""
    path, *grad = re.split(r"\.grad(?:_\d+)?(?:\.|$)", op.path, maxsplit=1)
    return ("backward" if grad else "forward"), path


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


def _nodes_of(op, nodes):
    """(the nodes that our op is, the ones that it is compared with); each is [op, dtype in f16, in bf16, "result"]"""
    parts = PARTS.get(op.code) if op.part == "backward" else None
    ours = [node for node in nodes if not parts or node[0] in parts]
    if op.code not in SEVERAL_THERE:
        return ours, ours
    other = OTHER_RESULT.get(op.code, set())
    return ours, [node for node in ours if node[-1] == "result" and node[0] not in other]


def differences(text, answer):
    column = 1 + answer["precisions"].index(low_type(text))
    theirs = {part: {path: [node.split() for node in nodes] for path, nodes in answer[part].items()}
              for part in ("forward", "backward")}
    seen = []
    for op in our_ops(text):
        path = _sum_with(theirs[op.part], op.path) if op.code == "add" and " + " in op.path else op.path
        ours, compared = _nodes_of(op, theirs[op.part].get(path, []))
        seen += ours
        if not compared:
            yield f"{op.where}: TensorFlow has no {op.code} there"
        for node in compared:
            dtype = op.dtypes[1 if node[0].endswith(":U") else 0]  # a batch norm's statistics are its other results
            if node[column] != dtype:
                yield f"{op.where}: {op.code} is {dtype}, TensorFlow's {node[0]} {node[column]}"
    for part, paths in theirs.items():
        for path, nodes in paths.items():
            for node in nodes:
                if node[0] not in UNREAD and not any(node is one for one in seen):
                    yield f"{path}: no op of ours is TensorFlow's {node[0]}, {part}"


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
