#!/usr/bin/env python3
"""compare_autocast.py DUMP.ir ORACLE.jsonl: every dtype decision and cast of a training step against PyTorch's CUDA autocast.

DUMP is what `ampc MODEL --dump-ir=autodiff` prints (before simplify), ORACLE what tests/parity/oracle/torch_autocast_oracle.py answers for
the model's twin. Prints the differences; exit status 1 where there are any. Needs no PyTorch.

Both are brought into one form. Pure views are looked through, aten's names are mapped by a table (aten_ops.json), and a value is known by
what it is computed from: two values are the same where op, dtype and operands are, down to inputs and parameters. Then
  * the ops, casts left out, must be the same in the same order, each with the same operands, casts included, and the same dtype;
  * the casts must be the same, as often as they are there (where a cast is between the ops changes nothing);
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
        self.names, self.alike = {}, Counter()

    def name(self, op, dtype, operands):
        """("relu.f16", "relu : f16 of linear.f16"): the value's name, and how it is computed.  Names are numbered where they repeat."""
        how = f"{op} : {dtype} of {', '.join(operands) or 'nothing'}"
        if how not in self.names:
            plain = f"{op}.{dtype}"
            self.alike[plain] += 1
            self.names[how] = plain + (f"#{self.alike[plain]}" if self.alike[plain] > 1 else "")
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
    if any(pixels < 0 for pixels in row.get("attrs", {}).get("pad", [])):
        op += ", cutting"
    if "batch_norm" in op and row["in_shapes"][0][0] == 1:  # instance_norm takes channels as one sample's
        op += ", of one sample"
    if op not in ATEN["ops"]:
        raise ValueError(f"{op} (line {row['i'] + 1}) is not in aten_ops.json")
    entry = ATEN["ops"][op]
    if not isinstance(entry, list):
        return [(entry, dict(enumerate(_results(row, entry))))]
    made = [part for part, there in zip(entry, row["attrs"]["output_mask"]) if there]
    return [(part, {at: 0}) for at, part in enumerate(made)]


def _without_views(rows):
    """The rows that compute something; a view has the id of what it shows."""
    of, made = {}, []
    for row in rows:
        ids = [of.get(name, name) for name in row.get("in_ids", [])]
        if row["op"] in ATEN["views"]:
            of[row["out_ids"][0]] = ids[0]
        elif row["phase"] == "end":
            grads = {name: [of.get(grad[0], grad[0]), *grad[1:]] for name, grad in row["grads"].items()}
            made.append({**row, "loss_id": of.get(row["loss_id"], row["loss_id"]), "grads": grads})
        else:
            made.append({**row, "in_ids": ids})
    return made


def _without_unread_slices(rows):
    """The gradients that a concat gives to inputs, which are not read."""
    read = {name for row in rows for name in row.get("in_ids", [])}
    read |= {row["grads"][name][0] for row in rows if row["phase"] == "end" for name in row["grads"]}
    return [row for row in rows
            if (row["phase"], row["op"]) != ("bwd", "aten.slice.Tensor") or read & set(row["out_ids"])]


def _is_group(rows, group):
    """Whether these rows are what one op of ours computes: what passes between them has a type of the results."""
    if [row["op"] for row in rows] != group["ops"] or any(row["phase"] != group["phase"] for row in rows):
        return False
    if group.get("chain") and any(not set(b["in_ids"]) & set(a["out_ids"]) for a, b in zip(rows, rows[1:])):
        return False
    outs = {(at, out) for at, out in group.get("results", [[len(rows) - 1, 0]])}
    floats = {rows[at]["out"][out] for at, out in outs}
    for at, row in enumerate(rows):
        later = {name for other in rows[at + 1 :] for name in other["in_ids"]}
        inside = [out for out in range(len(row["out"])) if (at, out) not in outs and row["out_ids"][out] in later]
        if not inside and not any(at == maker for maker, _ in outs):
            return False
        if any(row["out"][out] not in floats | {"bool", "i64"} for out in inside):
            return False
    return True


def _joined(rows):
    """Several rows that are one op of ours, by the table, as one."""
    made, at, maker = [], 0, {}
    while at < len(rows):
        for group in ATEN["joined"]:
            parts = rows[at : at + len(group["ops"])]
            if _is_group(parts, group):
                break
        else:
            group, parts = None, rows[at : at + 1]
        maker.update((name, part) for part in parts for name in part.get("out_ids", []))
        made.append(_as_one(parts, group, maker) if group else parts[0])
        at += len(parts)
    return made


def _as_one(parts, group, maker):
    """One row for these.  An operand is (row, place), or (row, place, place in what made it)."""
    of = []
    for at, place, *inner in group["operands"]:
        row = parts[at]
        for deeper in inner:
            row, place = maker[row["in_ids"][place]], deeper
        of.append((row, place))
    outs = group.get("results", [[len(parts) - 1, 0]])
    return {**parts[-1], "op": group["as"], "inplace": False, "attrs": {},
            **{key: [row[key][place] for row, place in of] for key in ("in", "in_ids", "in_shapes")},
            **{key: [parts[at][key][out] for at, out in outs] for key in ("out", "out_ids", "out_shapes")}}


def _promoted(dtypes):
    floats = {t for t in dtypes if t in ("f32", "f16", "bf16")}
    return floats.pop() if len(floats) == 1 else "f32"


def oracle_graph(values, rows, inputs):
    """rows: the oracle's lines; inputs: names of the model's inputs in the order of the module's arguments."""
    known, steps, numbers = {}, [], set()

    def value(name):
        return known.get(name) or _source_name(name, inputs)

    def operand(row, at, entry):
        """The value that the op reads: where it promotes by itself, its cast."""
        name, wanted = value(row["in_ids"][at]), _promoted(row["in"])
        if not entry.get("promotes") or row["in"][at] in (wanted, "bool"):
            return name
        cast, how = values.name("cast", wanted, [name])
        if ("cast", how) not in steps:  # ours is made once, for the gradient too
            steps.append(("cast", how))
        return cast

    for row in _joined(_without_unread_slices(_without_views(rows))):
        if row["phase"] == "end":
            ends = {"loss": value(row["loss_id"]), **{name: value(entry[0]) for name, entry in row["grads"].items()}}
            return _graph(steps, ends)
        if _writes_a_buffer(row) or row["op"] in ATEN["no_tensor_op"]:
            numbers |= set(row["out_ids"]) if row["op"] == "aten.scalar_tensor.default" else set()
            continue
        if _float_mask(row):
            known[row["out_ids"][0]] = value(row["in_ids"][0])
            continue
        for entry, outs in _entries(row):
            operands = [operand(row, at, entry) for at in entry["operands"]
                        if at < len(row["in_ids"]) and row["in_ids"][at] not in numbers]
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
    """The gradients of a convolution's operands one after the other, as PyTorch's one op gives them."""
    ordered = []
    for op in ops:
        places = [at for at, other in enumerate(ordered)
                  if op.code in ("conv2d_weight_grad", "sum") and other.operands[:1] == op.operands[:1]
                  and other.code in ("conv2d_input_grad", "conv2d_weight_grad")]
        ordered.insert(places[-1] + 1 if places else len(ordered), op)
    return ordered


def _inner_cast(op, types):
    """PyTorch casts bf16 before a softmax that gives f32, and the gradient after it; our op does both itself."""
    forward, backward = ("softmax", "log_softmax"), ("softmax_grad", "log_softmax_grad")
    given, made = types.get(op.operands[-1]) if op.operands else None, ir_text.dtype(op.types[0]) if op.types else None
    before = op.code in forward and (given, made) == ("bf16", "f32")
    return before, op.code in backward and (given, made) == ("f32", "bf16")


def _counted(operands, counted):
    """Of our operands those that PyTorch's op has: the first ones, or those at these places."""
    return operands[:counted] if counted is None or isinstance(counted, int) else [operands[at] for at in counted]


def dump_graph(values, text):
    results = ir_text.results(text, "train_step")
    ends = {name.removeprefix("grad."): value for name, value in results.items() if name == "loss" or name.startswith("grad.")}
    known, steps, types = {}, [], {}

    def add(code, dtype, operands, once=False):
        name, how = values.name(code, dtype, operands)
        if not once or (code, how) not in steps:
            steps.append((code, how))
        return name

    for op in _beside_input_grads(_needed(ir_text.function(text, "train_step"), ends.values())):
        types.update((result, ir_text.dtype(made)) for result, made in zip(op.results, op.types))
        if op.code == "const":
            known[op.results[0]] = None  # PyTorch's numbers are no tensors
            continue
        operands = [name for value in op.operands if (name := known.get(value, value))]
        if op.code in ATEN["our_views"] and "mean = true" not in op.line:
            known[op.results[0]] = operands[0]
            continue
        code = ATEN["our_names"].get(f"{op.code}/{len(operands)}") or ATEN["our_names"].get(op.code, op.code)
        before, after = _inner_cast(op, types)
        if before:
            operands = [add("cast", "f32", operands)]
        dtype = _kind(ir_text.dtype(op.types[0]))
        operands = _counted(operands, ATEN["our_operands"].get(op.code))
        once = op.code == "broadcast_to"  # one division as in _divides_again
        name = add(code, "f32" if after else dtype, operands, once)
        if after:
            name = add("cast", dtype, [name])
        known.update((result, _result_name(name, at)) for at, result in enumerate(op.results))
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
