"""means.py: losses and metrics of random models, whole and in parts, against PyTorch on all samples at once:
evaluations by batches of every size, steps of several micro-batches, ranks; steps of sgd and of Adam. The models are
in mean_models.py.

    means.py --write    makes oracle/means.jsonl again, PyTorch's answers for the first models"""
import json
import os
import sys
import tempfile
import zlib

import torch
import torch.nn.functional as F

import harness
from mean_models import (ADAM_EPS, ADAM_RATE, FIGURE_BOUND, MICRO_BATCHES, RANKS, RATE, SAMPLES, STEPS, WEIGHTS, Case,
                         evaluation_differences, figure_differences, parts, rank_differences, training_differences,
                         weight_differences)
from programs import ROOT

ANSWERS = os.path.join(ROOT, "tests/parity/oracle/means.jsonl")
FIRST, SHORT, KEPT, LONG = 1, 5, 20, 200

# ---- the same by PyTorch, in double ----


def tensor(shape, numbers):
    return torch.tensor(numbers, dtype=torch.long if isinstance(numbers[0], int) else torch.double).reshape(*shape)


def values(case, weights):
    data = {name: tensor(*case.data[name]) for name in case.data}
    h = torch.tanh(data["x"] @ weights["body.weight"].T)
    v = dict(data,
             logits=h @ weights["head.weight"].T,
             words=(h @ weights["each.weight"].T),
             y=h @ weights["fit.weight"].T,
             classes=torch.arange(4).double() * 1.5 + 0.25)
    rest = 0.01 * (v["logits"]**2).mean() + 0.01 * (v["words"]**2).mean() + 0.01 * (v["y"]**2).mean()
    v["loss"] = rest + sum(f * term(v, F) for f, (_, term) in zip(case.factors, case.terms))
    return v


def first_weights(case):
    return {name: tensor(WEIGHTS[name], w).requires_grad_() for name, w in case.weights.items()}


def figures(case):
    v = values(case, first_weights(case))
    out = {"loss": v["loss"], **{f"m{i}": metric(v, F) for i, (_, metric) in enumerate(case.metrics)}}
    if case.named:
        out.update({f"loss.part{i}": f * term(v, F) for i, (f, (_, term)) in enumerate(zip(case.factors, case.terms))})
    return {name: value.item() for name, value in out.items()}


def trained(case, make, steps):
    weights = first_weights(case)
    optimizer = make(weights.values())
    for _ in range(steps):
        optimizer.zero_grad()
        values(case, weights)["loss"].backward()
        optimizer.step()
    return {name: w.detach().flatten().tolist() for name, w in weights.items()}


def answers_of(case):
    return {
        "figures": figures(case),
        "sgd": trained(case, lambda w: torch.optim.SGD(w, RATE), STEPS),
        "adam": trained(case, lambda w: torch.optim.Adam(w, ADAM_RATE, eps=ADAM_EPS), 1)
    }


# ---- answers that are kept ----


def short(value):
    return {key: short(v) for key, v in value.items()} if isinstance(value, dict) else \
        [short(v) for v in value] if isinstance(value, list) else float(f"{value:.9g}")


def written(work):
    for seed in range(FIRST, FIRST + KEPT):
        case = Case(seed, work)
        with open(case.path + ".data", "rb") as file:  # of other data the answers would be others
            data = zlib.crc32(file.read() + case.text(1, False, "sgd").encode())
        yield json.dumps({"seed": seed, "of": data, **short(answers_of(case))})


def kept_differences(kept, work):
    for number, (mine, line) in enumerate(zip(written(work), kept, strict=True)):
        if mine != line.strip():
            yield f"line {number + 1} is not what PyTorch says: means.py --write"


# ---- checks ----


def check_models(tally, options):
    for seed in range(FIRST, FIRST + (LONG if options.long else SHORT)):
        case = Case(seed, options.work)
        answers = answers_of(case)
        models, batches = {k: case.compile(k) for k in (1, 2, 4)}, (SAMPLES, 1, 5)
        tally.same(f"{case}: evaluations", evaluation_differences(case, models[1], answers["figures"], batches))
        found = []
        for k, model in models.items():
            found += training_differences(case, model, answers, f"{k} micro-batches", parts(k))
        found += rank_differences(case, case.compile(MICRO_BATCHES, True), answers, RANKS)
        tally.same(f"{case}: steps", found)
        adam = case.compile(MICRO_BATCHES, True, "adam")
        tally.same(f"{case}: Adam", rank_differences(case, adam, answers, (1, RANKS[seed % len(RANKS)]), "adam"))


def check_kept(tally, options):
    with open(ANSWERS, encoding="utf-8") as file:
        tally.same("oracle/means.jsonl is what PyTorch says", kept_differences(list(file), options.work))


def scaled(weights, by):
    return {name: [w * by for w in values] for name, values in weights.items()}


def plant(tally, options):
    case = Case(FIRST, options.work)
    answers = answers_of(case)
    right, bound = answers["figures"], FIGURE_BOUND["fp32"]
    tally.same("figures agree with themselves", figure_differences(right, right, 1e-9, "planted"))
    tally.seen("a loss that is off by 1e-5",
               figure_differences(dict(right, loss=right["loss"] + 1e-5), right, bound, "planted"))
    tally.seen("weights that are off",
               weight_differences(scaled(answers["sgd"], 1 + 1e-5), answers["sgd"], 1e-6, "planted"))
    # A sum over four micro-batches in place of their mean.
    larger = trained(case, lambda w: torch.optim.Adam(w, ADAM_RATE, eps=ADAM_EPS / 4), 1)
    tally.seen("Adam's step on gradients that are four times as large",
               weight_differences(larger, answers["adam"], 4e-3, "planted"))
    with open(ANSWERS, encoding="utf-8") as file:
        lines = list(file)
    lines[3] = lines[3].replace("1", "2", 1)
    tally.seen("an answer that was changed", kept_differences(lines, options.work))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        with tempfile.TemporaryDirectory() as folder, open(ANSWERS, "w", encoding="utf-8") as out:
            out.writelines(line + "\n" for line in written(folder))
    else:
        harness.main(__doc__, [check_models, check_kept], [plant])
