"""Whether the line that `ampc explain` names for an op decides it: the line is changed, and the op changes.

    policy_lines.py AMPC WORK [--each] lines POLICY... -- MODEL...
    policy_lines.py AMPC WORK [--each] overrides POLICY... -- MODEL...
    policy_lines.py AMPC WORK self

lines       For each line that decides an op of the model, copies of the policy in which that line alone has another
            class: the class of the low type in one, f32's in the other. --each: also for each name that decides
            an op, copies in which it has a line of its own.
overrides   The same with lines in the precision block of copies of the model: one that names an op, one a layer, one a
            path. --each: all of them.
self        Copies that change nothing or another line, and ops that change without a cause, are found.

What is asserted of the two copies (one may be the policy itself):
    ops of the line     have the line's place and its new class. What they read and make differs between the copies, and
                        is of the low type in one, f32 in the other. That is exact, because these two classes ask no
                        neighbour. Where all are integers, or there are no operands (`zeros` is f32), and under a
                        low type of 32 bits, the class alone differs.
    other ops           keep their line and class, which their names alone decide, and their types where the class fixes
                        them. `eager` decides in order, each op by what it reads, so that all but what is computed from
                        the line's ops keep everything. `min_cut` and `paint` decide all ops together: there the others
                        may have other types.
    the backward pass   has lines under `paint`, and is held to the same but for what it reads, since only the rows
                        after the pass `simplify` tell of it.
Prints "pass WHAT" or "FAIL WHAT: why" for each line, with --each for each name too.
"""
import collections
import copy
import json
import multiprocessing
import os
import pathlib
import re
import shutil
import subprocess
import sys

POLICIES = pathlib.Path("precision/policies")
MODELS = pathlib.Path("examples")
NAMES = pathlib.Path("ir/ops.def")
PROCESSES = 2

# Of an algorithm: the classes of the low type and of f32; those that fix what an op reads, and what it makes.
Algorithm = collections.namedtuple("Algorithm", "low f32 fix_reads fix_makes in_order")
ALGORITHMS = {
    "eager": Algorithm("lower", "f32", {"lower", "f32"}, {"lower", "f32", "f32_out"}, True),
    "min_cut": Algorithm("lower", "f32", {"lower", "f32"}, {"lower", "f32", "f32_out"}, False),
    "paint": Algorithm("allow", "deny", {"deny", "none"}, {"deny", "none"}, False),
}
WIDE = ("tf32", "f32")  # low types in which results are f32


class Fault(Exception):
    pass


def need(good, *why):
    if not good:
        raise Fault(" ".join(str(part) for part in why))


# ---- policies --------------------------------------------------------------------------------------------------------


def statement(line):
    """A line without its comment, each blank once."""
    return " ".join(line.split("#")[0].split())


class Policy:
    """The text of a policy, in lines, which are counted from 1."""

    def __init__(self, text):
        self.text, self.lines = text, text.split("\n")
        self.algorithm = ALGORITHMS[re.search(r"^algorithm (\w+)", text, re.M)[1]]

    def line(self, number):
        return statement(self.lines[number - 1])

    def names(self, number):
        return re.split(r"[ ,]+", self.line(number))[1:-1]

    def op_class(self, number):
        return self.line(number).split()[-1]

    def replaced(self, number, *lines):
        """With the first of |lines| in place of one, the others at the end, where they move none."""
        return Policy("\n".join(self.lines[:number - 1] + [lines[0]] + self.lines[number:] + list(lines[1:])))

    def with_class(self, number, word):
        return self.replaced(number, f"op {', '.join(self.names(number))} {word}")

    def with_name_apart(self, number, name, word):
        others = [other for other in self.names(number) if other != name]
        return self.replaced(number, f"op {', '.join(others)} {self.op_class(number)}", f"op {name} {word}")


def builtin(name):
    return Policy((POLICIES / f"{name}.policy").read_text())


# ---- what `ampc explain` says ----------------------------------------------------------------------------------------


class Op(collections.namedtuple("Op", "op layer within text rule override line reads makes neighbour")):
    """|within|: the op that it is told with; |reads|, |makes|: types."""
    @property
    def reason(self):
        return self.rule, self.override, self.line

    @property
    def types(self):
        return self.reads + (self.makes,)

    @property
    def may_change(self):
        """An op that reads nothing, `full`, makes what the language says."""
        return bool(self.reads) and any(re.match("b?f|tf", word) for word in self.types)


def op_of(said):
    return Op(said["op"], said["layer"], said["folded_into"], statement(said["policy_text"] or ""), said["rule"],
              said["override"], said["origin_line"], tuple(said["operands"]), said["dtype"], said["neighbour"])


class Explained:
    """The ops of a model by path, in order."""

    def __init__(self, said):
        self.policy, self.low = said["policy"], said["low"]
        self.ops = {op["path"]: op_of(op) for op in said["decisions"]}
        need(len(self.ops) == len(said["decisions"]), "two ops have one path")
        self.readers = collections.defaultdict(list)
        for edge in said["graph"]["edges"]:
            self.readers[edge.get("from")].append(edge["to"])
        for path, op in self.ops.items():  # `simplify` may have changed places of the two in the graph
            self.readers[op.neighbour].append(path)
        rows = [row for row in said["rows"] if row["path"] not in self.ops and row["op"] != "cast"]
        self.gradients = {row["path"]: (row["rule"], row["policy_line"], row["output"]) for row in rows
                          if row["policy"] and row["policy_line"]}
        self.weight_gradients = {row["path"] for row in rows if row["rule"] == "weight_gradient"}

    def but(self, **members):
        """The same with other members, for tests of the checks."""
        other = copy.copy(self)
        other.__dict__.update(members)
        return other

    def but_op(self, path, **fields):
        return self.but(ops={**self.ops, path: self.ops[path]._replace(**fields)})

    def computed_from(self, paths):
        waiting = list(paths) + [self.ops[path].within for path in paths if self.ops[path].within]
        found = set(waiting)
        while waiting:
            for reader in self.readers[waiting.pop()]:
                if reader not in found:
                    found.add(reader)
                    waiting.append(reader)
        return found | {path for path, op in self.ops.items() if op.within in found}


class Ampc:
    def __init__(self, program, work):
        self.program, self.work = program, pathlib.Path(work)

    def explain(self, model, *options):
        done = subprocess.run([self.program, "explain", str(model), *options, "--json", "-"], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        need(done.returncode == 0, done.stderr.decode()[:400])
        return Explained(json.loads(done.stdout))

    def under(self, model, policy):
        file = self.work / f"{os.getpid()}.policy"
        file.write_text(policy.text)
        return self.explain(model, "--policy", str(file))


# ---- what is asserted ------------------------------------------------------------------------------------------------

# |word|: the class that the line now gives, in line |line|; |policy|: its text, if it is a policy's.
Copy = collections.namedtuple("Copy", "told word line policy")


def check_named(given, paths):
    for path in paths:
        wanted, has = (given.word, given.policy is None, given.line), given.told.ops[path].reason
        need(has == wanted, path, "is to have", *wanted, "and has", *has)


def check_texts(given):
    for path, op in given.told.ops.items():
        wanted = "" if op.override else given.policy.line(op.line) if given.policy else op.text
        need(op.text == wanted, path, "tells of the line", op.text, "which is", wanted)


def check_others(algorithm, base, told, paths):
    need(list(told.ops) == list(base.ops), "the copy has other ops")
    may_move = base.computed_from(paths) if algorithm.in_order else base.ops
    for path in base.ops.keys() - set(paths):
        old, new = base.ops[path], told.ops[path]
        need(old.reason == new.reason, path, "had", *old.reason, "and has", *new.reason)
        need(old.reads == new.reads or old.rule not in algorithm.fix_reads, path, "moves", old, new)
        need(old.makes == new.makes or old.rule not in algorithm.fix_makes, path, "moves", old, new)
        same = old.types == new.types and old.neighbour == new.neighbour
        need(same or path in may_move, path, "moves without a cause", old, new)


def check_types(low, f32, paths):
    """Of the copies with the class of the low type and with the class of f32."""
    for path in paths:
        one, other = low.ops[path], f32.ops[path]
        for pair in zip(one.types, other.types):
            need(pair[0] == pair[1] or pair == (low.low, "f32"), path, "is", *pair)
        need(one.types != other.types or not one.may_change or low.low in WIDE, path, "is the same:", *one.types)


def check_gradients(base, copies, line):
    """Of the ops of the backward pass: those that the line decides, a whole line of a policy, and the others."""
    for given in copies:
        makes = base.low if given.word == ALGORITHMS["paint"].low else "f32"
        for path, old in base.gradients.items():
            new = given.told.gradients.get(path)
            if path in given.told.weight_gradients:
                continue  # names no line, because `simplify` removed a rounding of it
            need(new, path, "is not in the copy")
            wanted = (given.word, given.line, makes) if old[1] == line else old[:2] + new[2:]
            need(new == wanted, path, "is to have", *wanted, "and has", *new)


def check(algorithm, base, copies, paths):
    """That the line in which the copies differ, and they from |base|, decides these ops."""
    for given in copies:
        check_named(given, paths)
        check_texts(given)
        check_others(algorithm, base, given.told, paths)
    by_class = {given.word: given.told for given in copies}
    check_types(by_class.get(algorithm.low, base), by_class.get(algorithm.f32, base), paths)


# ---- lines of policies -----------------------------------------------------------------------------------------------


def name_of(op, names):
    """The one that decides: the most specific."""
    for name in (f"{op.layer}.{op.op}", op.layer, op.op, "*"):
        if name in names:
            return name
    raise Fault(f"none of {' '.join(names)} is a name of {op.layer}.{op.op}")


def by_line(base):
    lines = collections.defaultdict(list)
    for path, op in base.ops.items():
        if not op.override:
            lines[op.line].append(path)
    for _, line, _ in base.gradients.values():
        lines[line] += []
    return sorted(lines.items())


def words_for(policy, line):
    return [word for word in (policy.algorithm.low, policy.algorithm.f32) if word != policy.op_class(line)]


def check_line(ampc, model, base, policy, line, paths):
    copies = []
    for word in words_for(policy, line):
        changed = policy.with_class(line, word)
        copies.append(Copy(ampc.under(model, changed), word, line, changed))
    check(policy.algorithm, base, copies, paths)
    check_gradients(base, copies, line)


def check_name(ampc, model, base, policy, line, name, paths):
    copies = []
    for word in words_for(policy, line):
        changed = policy.with_name_apart(line, name, word)
        copies.append(Copy(ampc.under(model, changed), word, len(changed.lines), changed))
    check(policy.algorithm, base, copies, paths)


def names_apart(policy, base, line, paths):
    """The names that decide ops, with these; none where the line has no other name."""
    by_name = collections.defaultdict(list)
    for path in paths if len(policy.names(line)) > 1 else []:
        by_name[name_of(base.ops[path], policy.names(line))].append(path)
    return by_name.items()


def outcome(what, run, *arguments):
    try:
        run(*arguments)
    except Fault as fault:
        return f"FAIL {what}: {fault}"
    return f"pass {what}"


def ops(count):
    return f"{count} op{'' if count == 1 else 's'}"


def lines_of(ampc, each, name, model):
    policy = builtin(name)
    base = ampc.explain(model, "--policy", name)
    outcomes = []
    for line, paths in by_line(base):
        gradients = sum(told[1] == line for told in base.gradients.values())
        what = f"{model}: {name}:{line} decides {ops(len(paths))}" + (f" and {gradients} backward" if gradients else "")
        outcomes.append(outcome(what, check_line, ampc, model, base, policy, line, paths))
        for apart, its_paths in names_apart(policy, base, line, paths) if each else []:
            what = f"{model}: {name}:{line} decides {ops(len(its_paths))} by {apart}"
            outcomes.append(outcome(what, check_name, ampc, model, base, policy, line, apart, its_paths))
    return outcomes


# ---- overrides -------------------------------------------------------------------------------------------------------


def with_line(text, line):
    """A model with one more line in its precision block, and the number of that line; one without a block gets one."""
    if not re.search(r"^precision ", text, re.M):
        text += "precision fp16 {}\n"
    end = text.index("}", re.search(r"^precision ", text, re.M).start())
    return f"{text[:end]}\n{line}\n{text[end:]}", text[:end].count("\n") + 2


def patterns_for(base, each):
    """Names of ops and layers, and paths of blocks and ops, as they are written; each with what it names."""
    layers = set(re.findall(r"^WORD\((\w+)\)", NAMES.read_text(), re.M))  # those that have a name in policies
    deciding = {path: op for path, op in base.ops.items() if op.may_change}
    first = {op.op: path for path, op in reversed(deciding.items())}
    names = sorted(first)
    of_layers = sorted({op.layer for op in deciding.values()} & layers)
    blocks = sorted({path.split(".")[0] for path in deciding if "." in path})
    paths = blocks + sorted(first.values())
    if not each:
        names, of_layers, paths = names[:1], of_layers[-1:], paths[:1]
    found = {name: [path for path, op in base.ops.items() if name in (op.op, op.layer)] for name in names + of_layers}
    for path in paths:
        found[f'"{path}"'] = [other for other in base.ops if other == path or other.startswith(path + ".")]
    return found.items()


def overrides_of(ampc, each, name, model):
    """In a copy of the model beside the files that it includes."""
    folder = ampc.work / f"{os.getpid()}.models"
    shutil.copytree(MODELS, folder / MODELS, dirs_exist_ok=True)
    text, algorithm = pathlib.Path(model).read_text(), builtin(name).algorithm

    def explain_with(line):
        changed, number = with_line(text, line)
        (folder / model).write_text(changed)
        return ampc.explain(folder / model, "--policy", name), number

    def check_pattern(pattern, paths):
        copies = []
        for word, op_class in ("low", algorithm.low), ("f32", algorithm.f32):
            told, number = explain_with(f"    {pattern}: {word}")
            copies.append(Copy(told, op_class, number, None))
        check(algorithm, base, copies, paths)

    base, _ = explain_with("")
    return [outcome(f"{model}: {name}: its own line {pattern} decides {ops(len(paths))}", check_pattern, pattern, paths)
            for pattern, paths in patterns_for(base, each)]


# ---- these checks can fail -------------------------------------------------------------------------------------------


def refused(what, text, run, *arguments):
    try:
        run(*arguments)
    except Fault as fault:
        return f"pass {what}" if text in str(fault) else f"FAIL {what}: is found as {fault}"
    return f"FAIL {what}: is not found"


class Planted:
    """The line of the products of the perceptron under a policy, and faults in what is said of it."""

    def __init__(self, ampc, name):
        self.ampc, self.name, self.model = ampc, name, MODELS / "fashion_mnist/mlp.amp"
        self.policy, self.base = builtin(name), ampc.explain(self.model, "--policy", name)
        self.line = self.base.ops["fc1.linear"].line
        self.paths = dict(by_line(self.base))[self.line]
        self.word = self.policy.algorithm.f32
        self.changed = self.policy.with_class(self.line, self.word)

    def check(self, policy=None, base=None, told=None, paths=None):
        base, policy = base or self.base, policy or self.changed
        copies = [Copy(told or self.ampc.under(self.model, policy), self.word, self.line, policy)]
        check(self.policy.algorithm, base, copies, paths or self.paths)
        check_gradients(base, copies, self.line)

    def faults(self):
        """What is wrong, a part of what is said of it, what is checked instead."""
        right = self.ampc.under(self.model, self.changed)
        spaced = self.policy.replaced(self.line, f" {self.policy.lines[self.line - 1]}  # {self.word}")
        elsewhere = self.policy.with_class(self.base.ops["relu"].line, self.word)
        low = self.base.ops["fc1.linear"]
        yield "an unchanged copy", "fc1.linear is to have", {"policy": self.policy}
        yield "other blanks and a comment", "fc1.linear is to have", {"policy": spaced}
        yield "another line", "fc1.linear is to have", {"policy": elsewhere}
        yield "an op of another line", "relu is to have", {"paths": self.paths + ["relu"]}
        yield "an op of the line left out", "fc3.linear had", {"paths": self.paths[:-1]}
        yield "types that stay", "fc1.linear is the same", {"told": right.but_op("fc1.linear", reads=low.reads,
                                                                                 makes=low.makes)}
        yield "a type that is neither", "fc1.linear is f16 i32", {"told": right.but_op("fc1.linear", makes="i32")}
        yield "a text that is not the line's", "fc1.linear tells of the line", {"told": right.but_op("fc1.linear",
                                                                                                     text="op exp f32")}
        yield "a class that fixes types, and another type", "nll_loss moves", {
            "told": right.but_op("cross_entropy.nll_loss", makes="f16")}
        if self.policy.algorithm.in_order:
            none_read = {**self.base.readers, "fc1.linear": []}
            yield "an op that moves and reads none of the line", "relu moves without a cause", {
                "told": right, "base": self.base.but(readers=collections.defaultdict(list, none_read))}
        if self.base.gradients:
            yield "a gradient that stays", "fc3.linear.grad.input is to have", {
                "told": right.but(gradients=self.base.gradients)}


def self_check(ampc, name):
    planted = Planted(ampc, name)
    return [outcome(f"{name}: the right copy", planted.check)] + [
        refused(f"{name}: found: {what}", text, lambda given=given: planted.check(**given))
        for what, text, given in planted.faults()]


# ---- what is run -----------------------------------------------------------------------------------------------------


def run(job):
    function, *arguments = job
    try:
        return function(*arguments)
    except Fault as fault:
        return [f"FAIL {' '.join(str(part) for part in arguments[1:])}: {fault}"]


def jobs_of(ampc, each, kind, names):
    if kind == "self":
        return [(self_check, ampc, name) for name in ("torch-fp16", "min-cast", "tf-fp16")]
    function, at = {"lines": lines_of, "overrides": overrides_of}[kind], names.index("--")
    return [(function, ampc, each, policy, model) for policy in names[:at] for model in names[at + 1:]]


def main():
    each = "--each" in sys.argv
    program, work, kind, *names = [word for word in sys.argv[1:] if word != "--each"]
    with multiprocessing.Pool(PROCESSES) as pool:
        for outcomes in pool.imap(run, jobs_of(Ampc(program, work), each, kind, names)):
            print(*outcomes, sep="\n", flush=True)


if __name__ == "__main__":
    main()
