"""Compares onnx/ops.def with the schemas of the onnx wheel: every op of ai.onnx and ai.onnx.ml at every opset.

    onnx_ops.py PRINTED     what tests/onnx/print_ops wrote

Prints a line "pass WHAT" or "FAIL WHAT: why" for each op.
"""
import collections
import sys

from onnx import TensorProto, defs

OLDEST, NEWEST = 11, 28
# What onnxruntime writes as an op of ai.onnx; the wheel has no schema of it, or a later one.
OF_ONNXRUNTIME = {"LayerNormalization", "SimplifiedLayerNormalization"}
WORDS = {"tensor": 0, "seq": 1, "optional": 2, "optional_seq": 3, "map": 4, "seq_map": 5}
NUMBERS = {"float": "FLOAT", "double": "DOUBLE"}


def number_of(element):
    return TensorProto.DataType.Value(NUMBERS.get(element, element.upper()))


def kind_and_number(text):
    """Of "optional(seq(tensor(float)))": its word in a set of types, and the bit there."""
    kind, inside = text[:-1].split("(", 1)
    if kind == "map":
        return "map", None
    if kind == "tensor":
        return "tensor", number_of(inside)
    inner, number = kind_and_number(inside)
    return {"tensor": kind, "seq": "optional_seq", "map": "seq_map"}[inner], number


def words_of(types):
    words = [0] * 6
    for text in types:
        kind, number = kind_and_number(text)
        words[WORDS[kind]] = 2**32 - 1 if number is None else words[WORDS[kind]] | 1 << number
    return words


def params_of(params):
    marks = {"Single": "", "Optional": "?"}
    for param in params:
        option = str(param.option).split(".")[-1]
        name = param.type_str
        if "(" in name:
            name = "=%d" % kind_and_number(name)[1]
        yield name + marks.get(option, "*" if param.is_homogeneous else "**")


def theirs(schema):
    return ([" ".join(params_of(schema.inputs)), " ".join(params_of(schema.outputs))],
            {one.type_param_str: words_of(one.allowed_type_strs) for one in schema.type_constraints})


def ours(fields):
    def plain(params):
        names = {"float32": "FLOAT", "float64": "DOUBLE"}
        for param in params.split():
            name = param.rstrip("?*")
            known = names.get(name, name.upper())
            yield ("=%d" % TensorProto.DataType.Value(known) + param[len(name):]
                   if known in TensorProto.DataType.keys() else param)
    sets = {}
    for field in fields[6:]:
        name, words = field.split("=")
        sets[name] = [int(word) for word in words.split(",")][:6]
    return [" ".join(plain(fields[4])), " ".join(plain(fields[5]))], sets


def main():
    printed = collections.defaultdict(dict)
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in file:
            fields = line.rstrip("\n").split(";")
            printed[fields[0], fields[1]][int(fields[2])] = ours(fields)
    known = {(schema.domain, schema.name) for schema in defs.get_all_schemas_with_history()
             if schema.domain in ("", "ai.onnx.ml")}
    for domain, op in sorted(known | {key for key in printed if key[0] in ("", "ai.onnx.ml")}):
        wrong = None
        for opset in range(1 if domain else OLDEST, min(NEWEST, defs.onnx_opset_version()) + 1):
            try:
                schema = defs.get_schema(op, opset, domain)
                if schema.deprecated:
                    continue
                wanted = theirs(schema)
            except defs.SchemaError:
                wanted = None
            got = printed[domain, op].get(opset)
            if wanted is None and op in OF_ONNXRUNTIME:
                continue
            if got != wanted and wrong is None:
                wrong = "opset %d: ops.def says %s, the wheel %s" % (opset, got, wanted)
        print("FAIL %s: %s" % (op, wrong) if wrong else "pass %s" % op)


main()
