"""ir_text.py: reads from the text form of the IR (docs/ir.md) what the comparisons need: the ops of a function, and the roundings
that simplify removed."""
import re
from collections import namedtuple

# results, operands: value names; types: as printed ("f16[N, 32]"); because: the text in the braces, None where there is no reason
Op = namedtuple("Op", "results code operands types path because line")

VALUE = r'%(?:"(?:[^"\\]|\\.)*"|[\w.\-/\[\]]+)'
STRING = r'"(?:[^"\\]|\\.)*"'
ARGUMENTS = rf'(?:{STRING}|[^"()]|\([^()]*\))*'  # dims have parentheses of their own
OP_LINE = re.compile(rf"^\s+(?:(?P<results>{VALUE}(?:\s*,\s*{VALUE})*)\s*=\s*)?(?P<code>\w+)\((?P<args>{ARGUMENTS})\)(?P<rest>.*)$")
TYPES = re.compile(r"^\s*:\s*((?:\w+(?:\[[^\]]*\])?)(?:\s*,\s*\w+(?:\[[^\]]*\])?)*)")
WORD = r'("(?:[^"\\]|\\.)*"|[^\s"]+)'


def unquote(name):
    name = name.strip().removeprefix("%")
    return re.sub(r"\\(.)", r"\1", name[1:-1]) if name.startswith('"') else name


def dtype(type_text):
    return type_text.split("[")[0]


def _op(line, match):
    operands = match["args"].split(";")[0]
    rest = match["rest"]
    types = TYPES.match(rest)
    because = re.search(r"\bbecause \{((?:\"(?:[^\"\\]|\\.)*\"|[^}])*)\}", rest)
    path = re.search(rf"(?:^|\s)@\s*{WORD}", rest)
    return Op(
        results=[unquote(v) for v in re.findall(VALUE, match["results"] or "")],
        code=match["code"],
        operands=[unquote(v) for v in re.findall(VALUE, operands)],
        types=re.findall(r"\w+(?:\[[^\]]*\])?", types[1]) if types else [],
        path=unquote(path[1]) if path else None,
        because=because[1] if because else None,
        line=line.strip(),
    )


def functions(text):
    return re.findall(r"(?m)^func (\w+)", text)


def _body(text, name):
    body = re.search(rf"(?ms)^func {re.escape(name)}\b[^\n]*\{{\n(.*?)^\}}", text)
    if not body:
        raise ValueError(f"the dump has no function {name}")
    return body[1]


def function(text, name):
    """The ops of one function, in order."""
    lines = [line for line in _body(text, name).splitlines() if not re.match(r"\s*(input|state|result|kernel|buffer|region)\b", line)]
    found = [(line, OP_LINE.match(line)) for line in lines if line.strip()]
    unread = [line for line, match in found if not match and "(" in line]
    if unread:
        raise ValueError(f"cannot read {len(unread)} lines of the dump, the first: {unread[0]}")
    return [_op(line, match) for line, match in found if match]


def inputs(text, name):
    """Names of the inputs of one function, in order."""
    return [unquote(value) for value in re.findall(rf"(?m)^\s+input\s+({VALUE})", _body(text, name))]


def results(text, name):
    """{result name: value} of one function."""
    return {unquote(result): unquote(value) for result, value in re.findall(rf"(?m)^\s+result\s+{WORD}\s*=\s*({VALUE})", _body(text, name))}


def removed(text, name):
    """Values of a function whose rounding simplify took away."""
    return [unquote(value) for func, value in re.findall(rf"(?m)^removed\s+(\S+)\s+({VALUE})", text) if func == name]


def dependents(ops, values):
    """The values, and all that is computed from them; states that are assigned from them count by their names."""
    tainted = set(values)
    for op in ops:
        if op.code == "assign":
            continue  # the state changes after the step
        if tainted & set(op.operands):
            tainted |= set(op.results)
    return tainted
