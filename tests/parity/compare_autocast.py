#!/usr/bin/env python3
"""compare_autocast.py DUMP.ir ORACLE.jsonl: every dtype decision and cast of a training step against PyTorch's CUDA autocast.

DUMP is what `ampc MODEL --dump-ir=autodiff` prints (before simplify), ORACLE what tests/parity/oracle/torch_autocast_oracle.py answers for
the model's twin. Prints the differences; exit status 1 where there are any. Needs no PyTorch.

Both are brought into one form. Pure views are looked through, aten's names are mapped by a table (aten_ops.json), and a value is known by
what it is computed from: two values are the same where op, dtype and operands are, down to inputs and parameters. Then
  * the ops, casts left out, must be the same in the same order, each with the same operands, casts included, and the same dtype;
  * the casts must be the same, as often as they are there (where a cast stands between the ops changes nothing);
  * the loss and each parameter's gradient must be the same value;
  * and every op of the dump must say why it has its dtype.
"""
import json
import os
import re
import sys
from collections import Counter, namedtuple

import ir_text

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "aten_ops.json"), encoding="utf-8") as table:
    ATEN = json.load(table)

# ops: what is computed, in order, casts left out; casts: how often each; ends: {"loss" or parameter: value}
Graph = namedtuple("Graph", "ops casts ends")


class Values:
    """Names for values of both sides: the same name where they are computed in the same way."""

    def __init__(self):
        self.names = {}

    def name(self, op, dtype, operands):
        """("relu.f16", "relu : f16 of linear.f16"): the value's name, and how it is computed.  Names are numbered where they repeat."""
        how = f"{op} : {dtype} of {', '.join(operands) or 'nothing'}"
        if how not in self.names:
            alike = sum(name.split("#")[0] == f"{op}.{dtype}" for name in self.names.values())
            self.names[how] = f"{op}.{dtype}" + (f"#{alike + 1}" if alike else "")
        return self.names[how], how


def _graph(steps, ends):
    """steps: (op, how it is computed) in order."""
    return Graph([how for op, how in steps if op != "cast"], Counter(how for op, how in steps if op == "cast"), ends)


# ---- PyTorch's side -------------------------------------------------------------------------------------------------------------


def _source_name(value, inputs):
    """`param:fc1.weight` and `arg:0` by the names that the model has for them."""
    kind, _, name = value.partition(":")
    return inputs[int(name)] if kind == "arg" else name if kind in ("param", "buffer") else None


def _kind(dtype):
    return "int" if dtype in ("i32", "i64") else dtype


def _writes_a_buffer(row):
    """Running statistics are no part of the loss and its gradients."""
    return row.get("inplace") and row["in_ids"][0].startswith("buffer:")


def _float_mask(row):
    """scaled_dot_product_attention makes 0 and -inf of a mask of bools, which our op takes as it is."""
    return row["op"] == "aten.where.self" and row["in_shapes"][1:] == [[], []]


def _divides_again(row, op, how, steps):
    """Autograd makes the quotient again for the gradient of the divisor; ours reads the one that is there."""
    return row["phase"] == "bwd" and op == "div" and (op, how) in steps


def _result_name(name, result):
    return f"{name}[{result}]" if result else name


def _results(row, entry):
    """Our op's results in the order of the ATen op's; run on a real device, that gives only those that are asked for."""
    results, mask = entry.get("results", [0]), row.get("attrs", {}).get("output_mask")
    if mask and len(row["out_ids"]) < len(results):
        return [result for result, there in zip(results, mask) if there]
    return results


def _entries(row):
    """(our op's entry, {position of the ATen op's result: ours})"""
    op = row["op"] + (", transposed" if row.get("attrs", {}).get("transposed") else "")
    if op not in ATEN["ops"]:
        raise ValueError(f"{op} (line {row['i'] + 1}) is not in aten_ops.json")
    entry = ATEN["ops"][op]
    if not isinstance(entry, list):
        return [(entry, dict(enumerate(_results(row, entry))))]
    made = [part for part, there in zip(entry, row["attrs"]["output_mask"]) if there]
    return [(part, {at: 0}) for at, part in enumerate(made)]


BCE_BACKWARD = ["aten.sigmoid.default", "aten.sub.Tensor", "aten.mul.Tensor", "aten.div_.Scalar"]


def _joined(rows):
    """The gradient of binary_cross_entropy_with_logits, (sigmoid(x) - t) g / count, is one op of ours."""
    made, at = [], 0
    while at < len(rows):
        parts = rows[at : at + len(BCE_BACKWARD)]
        if [row.get("op") for row in parts] == BCE_BACKWARD and parts[0]["phase"] == "bwd":
            of = [(parts[2], 1), (parts[0], 0), (parts[1], 1)]  # g, x, t
            made.append({**parts[-1], "op": "bce_with_logits_backward", "inplace": False,
                         **{key: [row[key][i] for row, i in of] for key in ("in", "in_ids", "in_shapes")}})
            at += len(parts)
        else:
            made.append(rows[at])
            at += 1
    return made


def _promoted(dtypes):
    floats = {t for t in dtypes if t in ("f32", "f16", "bf16")}
    return floats.pop() if len(floats) == 1 else "f32"


def oracle_graph(values, rows, inputs):
    """rows: the oracle's lines; inputs: names of the model's inputs in the order of the module's arguments."""
    known, steps = {}, []

    def value(name):
        return known.get(name) or _source_name(name, inputs)

    def operand(row, at, entry):
        """The value that the op reads: where it promotes by itself, its cast."""
        name, wanted = value(row["in_ids"][at]), _promoted(row["in"])
        if not entry.get("promotes") or row["in"][at] == wanted:
            return name
        cast, how = values.name("cast", wanted, [name])
        steps.append(("cast", how))
        return cast

    for row in _joined(rows):
        if row["phase"] == "end":
            ends = {"loss": value(row["loss_id"]), **{name: value(entry[0]) for name, entry in row["grads"].items()}}
            return _graph(steps, ends)
        if _writes_a_buffer(row) or row["op"] in ATEN["no_tensor_op"]:
            continue
        if row["op"] in ATEN["views"] or _float_mask(row):
            known[row["out_ids"][0]] = value(row["in_ids"][0])
            continue
        for entry, outs in _entries(row):
            operands = [operand(row, at, entry) for at in entry["operands"] if at < len(row["in_ids"])]
            name, how = values.name(entry["op"], _kind(row["out"][min(outs)]), operands)
            for out, result in outs.items():
                known[row["out_ids"][out]] = _result_name(name, result)
            if not _divides_again(row, entry["op"], how, steps):
                steps.append((entry["op"], how))
    raise ValueError("the oracle's answer has no end line")


# ---- our side --------------------------------------------------------------------------------------------------------------------


def _needed(ops, wanted):
    """The ops that the loss and the gradients are computed from; metrics are not PyTorch's."""
    wanted, kept = set(wanted), []
    for op in reversed(ops):
        if wanted & set(op.results):
            wanted |= set(op.operands)
            kept.append(op)
    return kept[::-1]


def _beside_input_grads(ops):
    """The gradients of a convolution's two operands one after the other, as PyTorch's one op gives them."""
    ordered = []
    for op in ops:
        places = [at for at, other in enumerate(ordered)
                  if op.code == "conv2d_weight_grad" and other.code == "conv2d_input_grad"
                  and op.operands[0] == other.operands[0]]
        ordered.insert(places[-1] + 1 if places else len(ordered), op)
    return ordered


def dump_graph(values, text):
    results = ir_text.results(text, "train_step")
    ends = {name.removeprefix("grad."): value for name, value in results.items() if name == "loss" or name.startswith("grad.")}
    known, steps = {}, []
    for op in _beside_input_grads(_needed(ir_text.function(text, "train_step"), ends.values())):
        if op.code == "const":
            known[op.results[0]] = None  # PyTorch's numbers are no tensors
            continue
        operands = [name for value in op.operands if (name := known.get(value, value))]
        if op.code in ATEN["our_views"] and "mean = true" not in op.line:
            known[op.results[0]] = operands[0]
            continue
        code = ATEN["our_names"].get(f"{op.code}/{len(operands)}") or ATEN["our_names"].get(op.code, op.code)
        name, how = values.name(code, _kind(ir_text.dtype(op.types[0])), operands[: ATEN["our_operands"].get(op.code)])
        known.update((result, _result_name(name, at)) for at, result in enumerate(op.results))
        if op.code != "broadcast_to" or (code, how) not in steps:  # one division as in _divides_again
            steps.append((code, how))
    return _graph(steps, {name: known.get(value, value) for name, value in ends.items()})


# ---- comparing ---------------------------------------------------------------------------------------------------------------------


def both_graphs(text, rows):
    values = Values()
    return dump_graph(values, text), oracle_graph(values, rows, ir_text.inputs(text, "train_step"))


def graph_differences(ours, theirs):
    for at, (our, their) in enumerate(zip(ours.ops, theirs.ops)):
        if our != their:
            yield f"op {at}: {our}; PyTorch {their}"
    if len(ours.ops) != len(theirs.ops):
        yield f"{len(ours.ops)} ops, PyTorch {len(theirs.ops)}"
    for cast, count in sorted((ours.casts - theirs.casts).items()):
        yield f"{count} more than PyTorch: {cast}"
    for cast, count in sorted((theirs.casts - ours.casts).items()):
        yield f"{count} less than PyTorch: {cast}"
    for name in sorted(ours.ends.keys() | theirs.ends.keys()):
        our, their = ours.ends.get(name, "none"), theirs.ends.get(name, "none")
        if our != their:
            yield f"{'loss' if name == 'loss' else 'gradient of ' + name}: {our}; PyTorch {their}"


def missing_reasons(text):
    for name in ir_text.functions(text):
        for op in ir_text.function(text, name):
            if op.results and not op.because:
                yield f"{name}: no reason: {op.line}"


def differences(text, rows):
    yield from graph_differences(*both_graphs(text, rows))
    yield from missing_reasons(text)


def main(dump, oracle):
    with open(dump, encoding="utf-8") as file:
        text = file.read()
    with open(oracle, encoding="utf-8") as file:
        found = list(differences(text, [json.loads(line) for line in file]))
    print("\n".join(found) or "the same decisions and casts, each with its reason")
    return bool(found)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
