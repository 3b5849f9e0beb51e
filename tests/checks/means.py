"""means.py FOLDER: losses, metrics and steps of random models, whole and in parts, against PyTorch's answers for all
samples at once (tests/parity/oracle/means.jsonl): on the CPU by batches, micro-batches and ranks, and on the stand-in
for a GPU; and all calls of C, C++, Python and amprun that give a loss of several batches. FOLDER has the programs
mean_calls_c and mean_calls_cc. tests/checks/means.sh starts it.

    means.py FOLDER --full      every model, not every second, all on the stand-in, with Adam, and by every call"""
import argparse
import json
import os
import subprocess
import sys
import zlib

import harness
import mean_models as m
from programs import ROOT, program, run

STAND_IN = ("tools/with-fakecuda", "--arch", "80")
BATCH = 5
EVERY, OFTEN = 10, 4  # of that many models one is on the stand-in and by all calls; and one takes a step of Adam
DIGITS = 9  # that amprun prints
BATCHES_OF_5 = ("amp_eval_end", "Session::evaluate_end", "Session.evaluate, batches", "amprun eval")


def on_stand_in(tally, case, answers, optimizers):
    found = []
    for optimizer in optimizers:
        model = case.compile(m.MICRO_BATCHES, optimizer=optimizer, target="cuda")
        found += m.training_differences(case, model, answers, optimizer, m.parts(m.MICRO_BATCHES), "--device", "cuda",
                                        optimizer=optimizer, start=STAND_IN)
    found += m.evaluation_differences(case, model, answers["figures"], [BATCH], "--device", "cuda", start=STAND_IN)
    tally.same(f"{case}: on the stand-in", found)


# ---- calls ----


def input_files(case):
    """A file of bytes for each input, in the model's order."""
    with open(case.path + ".data", "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        head, data = json.loads(file.read(size)), file.read()
    for name in ["x", *case.inputs()]:
        start, end = head[name]["data_offsets"]
        with open(f"{case.path}.{name}.bytes", "wb") as out:
            out.write(data[start:end])
        yield f"{case.path}.{name}.bytes"


def amprun_ranks(case, model):
    """What rank 0 of two says of an evaluation."""
    folder = case.path + ".eval"
    os.makedirs(folder, mode=0o700)
    ranks = [
        subprocess.Popen([
            program("tools/amprun"), "eval", model, *map(str, case.arguments(BATCH)), "--dist", "files",
            "--dist-folder", folder, "--dist-rank", f"{rank}/2"
        ], stdout=subprocess.PIPE, text=True) for rank in range(2)
    ]
    said = [rank.communicate()[0] for rank in ranks]
    return json.loads(said[0])


def amprun_calls(case, model):
    batch = m.parts(m.MICRO_BATCHES)
    yield {"call": "amprun eval, whole", **case.evaluate(model, m.SAMPLES)}
    yield {"call": "amprun eval", **case.evaluate(model, BATCH)}
    yield {"call": "amprun eval, 2 ranks", **amprun_ranks(case, model)}
    yield {"call": "amprun train", **case.train(model, batch, steps=1)[0]}
    yield {"call": "amprun train, 2 ranks", **case.train(model, batch // 2, steps=1, ranks=2)[0]}
    if not any("sum(y * y)" in text for text, _ in case.terms):  # the micro-batches are the same one: a sum is twice it
        yield {"call": "amprun step", **json.loads(run(
            program("tools/amprun"), "step", model, "--inputs", case.path + ".data", "--weights",
            case.path + ".weights"))}


def epoch_differences(case, model):
    """An evaluation after an epoch has the figures of the weights that are saved then, by `amprun eval`."""
    path, after = case.path + ".epoch", case.path + ".epoch.after"
    data = ["--data", f"safetensors:{case.path}.data"]
    run(program("tools/amprun"), "train", model, "--quiet", "--epochs", 1, "--eval-data", data[1], "--log", path,
        "--save", after, "--force", *case.arguments(m.parts(m.MICRO_BATCHES)))
    with open(path, encoding="utf-8") as file:
        line = json.loads(file.readlines()[-1])
    told = {name[5:]: value for name, value in line.items() if name.startswith("test_")}
    wanted = json.loads(run(program("tools/amprun"), "eval", model, *data, "--weights", after, "--batch", BATCH))
    del wanted["samples"]
    yield from m.figure_differences(told, wanted, m.FIGURE_BOUND[case.precision], "amprun train --eval-data")


def called(case, model, folder):
    arguments = [model, case.path + ".weights", m.SAMPLES, BATCH, *input_files(case)]
    programs = [[f"{folder}/mean_calls_c"], [f"{folder}/mean_calls_cc"]]
    if os.environ.get("NUMPY_PYTHON"):
        programs.append([os.environ["NUMPY_PYTHON"], "-B", "tests/checks/mean_calls.py"])
    for start in programs:
        yield from map(json.loads, run(*start, *arguments).splitlines())
    yield from amprun_calls(case, model)


def call_differences(calls, figures, bound):
    """Each has PyTorch's figures, and those by batches of five are the same to the last digit."""
    for call in calls:
        wanted = figures if call["call"] != "amprun step" else {"loss": figures["loss"]}
        yield from m.figure_differences(call, wanted, bound, call["call"])
    for name in figures:
        same = {f"{call[name]:.{DIGITS}g}" for call in calls if call["call"] in BATCHES_OF_5}
        if len(same) != 1:
            yield f"batches of 5: {name} is {', '.join(sorted(same))}"


def check_calls(tally, case, answers, model, folder):
    calls = list(called(case, model, folder))
    figures, bound = answers["figures"], m.FIGURE_BOUND[case.precision]
    tally.same(f"{case}: {len(calls)} calls", call_differences(calls, figures, bound))
    tally.same(f"{case}: an evaluation while training", epoch_differences(case, model))
    planted = [dict(call, loss=call["loss"] * (1 + 3e-8 * (call["call"] == "amprun eval"))) for call in calls]
    tally.seen("a call whose loss is off in its eighth digit", call_differences(planted, figures, bound))


# ---- all ----


def check(tally, row, options):
    case = m.Case(row["seed"], options.folder)
    with open(case.path + ".data", "rb") as file:
        of = zlib.crc32(file.read() + case.text(1, False, "sgd").encode())
    if of != row["of"]:
        tally.same(f"{case}: is the model of the answers", ["it is another one: means.py --write (tests/parity)"])
        return
    chosen, model = options.full or case.seed % EVERY == 0, case.compile(m.MICRO_BATCHES, True, isa="portable")
    tally.same(f"{case}: evaluations", m.evaluation_differences(case, model, row["figures"], [m.SAMPLES, BATCH]))
    tally.same(f"{case}: steps", [
        *m.training_differences(case, model, row, "2 micro-batches", m.parts(2)),
        *m.rank_differences(case, model, row, m.RANKS if options.full else [m.RANKS[case.seed % 3]])
    ])
    adam = options.full or case.seed % OFTEN == 0
    if adam:
        model = case.compile(m.MICRO_BATCHES, True, "adam", isa="portable")
        tally.same(f"{case}: Adam", m.rank_differences(case, model, row, [1, 2], "adam"))
    if chosen:
        check_calls(tally, case, row, model, options.folder)
        if options.stand_in:
            on_stand_in(tally, case, row, ["sgd", "adam"] if options.full else ["sgd"])


def plant(tally, rows):
    row = next(row for row in rows if row["seed"] == 2)
    off = dict(row["figures"], loss=row["figures"]["loss"] + 1e-5)
    tally.seen("a loss that is off by 1e-5", m.figure_differences(off, row["figures"], 1e-6, "planted"))
    off = {name: [w * 1.00001 for w in values] for name, values in row["adam"].items()}
    tally.seen("weights that are off by 1e-5", m.weight_differences(off, row["adam"], 1e-6, "planted"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--stand-in", action="store_true")
    options, tally = parser.parse_args(), harness.Tally()
    with open(os.path.join(ROOT, "tests/parity/oracle/means.jsonl"), encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    for row in rows:
        if options.full or row["seed"] % 2 == 0: tally.attempt(check, row, options)
    tally.attempt(plant, rows)
    print(f"{tally.passed} passed, {tally.failed} failed")
    sys.exit(tally.failed > 0)


main()
