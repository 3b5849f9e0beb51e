"""means.py: losses and metrics of random models, whole and in parts, against PyTorch on all samples at once:
evaluations by batches of every size, steps of several micro-batches, ranks. Losses ignore labels, have weights for
classes, label smoothing, masks, several terms that are means over different counts, or are sums; some parts have no
label at all."""
import json
import os
import random
import re
import subprocess

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

import ampc_tools as tools
import harness

SAMPLES, FEATURES, HIDDEN, CLASSES, WORDS, OUTPUTS = 12, 5, 7, 4, 3, 2
STEPS, RATE = 3, 0.05
FIGURE_BOUND = {"fp32": 2e-6, "bf16": 2e-2, "fp16": 4e-3}  # relative, or of 1
WEIGHT_BOUND = {"fp32": 1e-6, "bf16": 4e-3, "fp16": 5e-4}  # of the largest element
FIRST, SHORT, LONG = 1, 5, 200

HEAD = f"""amp 1
model made(x: f32[N, {FEATURES}]) -> logits, words, y {{
    h = tanh(linear(x; out = {HIDDEN}, bias = false) as body)
    logits = linear(h; out = {CLASSES}, bias = false) as head
    words = linear(h; out = {WORDS * CLASSES}, bias = false) as each
    y = linear(h; out = {OUTPUTS}, bias = false) as fit
}}
train made {{
"""
INPUTS = {"t": "i32[N]", "u": f"i32[N, {WORDS}]", "m": f"f32[N, {OUTPUTS}]", "z": f"f32[N, {OUTPUTS}]"}
REST = "0.01 * mean(logits * logits) + 0.01 * mean(words * words) + 0.01 * mean(y * y)"  # every layer is reached

# A term: its text, and the same by PyTorch, of `v`, the values by name, for all samples.
TERMS = [
    ("cross_entropy(logits, t)", lambda v: F.cross_entropy(v["logits"], v["t"])),
    ("cross_entropy(logits, t, to_f32(arange(; count = 4)) * 1.5 + 0.25; label_smoothing = 0.1)",
     lambda v: F.cross_entropy(v["logits"], v["t"], v["classes"], label_smoothing=0.1)),
    ("cross_entropy(reshape(words; shape = [3 * N, 4]), reshape(u; shape = [3 * N]); ignore = -1)",
     lambda v: F.cross_entropy(v["words"].reshape(-1, 4), v["u"].reshape(-1), ignore_index=-1)),
    ("mse_loss(y, z)", lambda v: F.mse_loss(v["y"], v["z"])),
    ("smooth_l1_loss(y, z; beta = 0.5)", lambda v: F.smooth_l1_loss(v["y"], v["z"], beta=0.5)),
    ("sum(abs(y - z) * m) / maximum(sum(m), 1.0)", lambda v:
     (abs(v["y"] - v["z"]) * v["m"]).sum() / v["m"].sum().clamp(min=1)),
    ("mean(y * y * m) / (mean(m) + 1e-6)", lambda v: (v["y"]**2 * v["m"]).mean() / (v["m"].mean() + 1e-6)),
    ("0.05 * sum(y * y)", lambda v: 0.05 * (v["y"]**2).sum()),
    ("bce_with_logits(y, m)", lambda v: F.binary_cross_entropy_with_logits(v["y"], v["m"])),
]

METRICS = [
    ("exp(loss)", lambda v: v["loss"].exp()),
    ("loss", lambda v: v["loss"]),
    ("accuracy(logits, t; ignore = -100)", lambda v: share(v["logits"].argmax(-1) == v["t"], v["t"] != -100)),
    ("accuracy(reshape(words; shape = [3 * N, 4]), reshape(u; shape = [3 * N]))", lambda v:
     (v["words"].reshape(SAMPLES, WORDS, CLASSES).argmax(-1) == v["u"]).double().mean()),
    ("sqrt(mse_loss(y, z))", lambda v: F.mse_loss(v["y"], v["z"]).sqrt()),
    ("sum(m)", lambda v: v["m"].sum()),
    ("2.0 * sum(m * z) / (sum(m) + sum(z * z) + 1.0)", lambda v: 2 * (v["m"] * v["z"]).sum() /
     (v["m"].sum() + (v["z"]**2).sum() + 1)),
    ("mean(abs(y); dims = 1)", lambda v: v["y"].abs().mean()),
    ("cross_entropy(logits, t) + mse_loss(y, z)",
     lambda v: F.cross_entropy(v["logits"], v["t"]) + F.mse_loss(v["y"], v["z"])),
]


def share(right, counted):
    return (right & counted).double().sum() / counted.sum().clamp(min=1)


# ---- models ----


class Case:
    """A random model, its data and its weights."""

    def __init__(self, seed, work):
        r = random.Random(seed)
        self.path = os.path.join(work, f"means-{seed}")
        self.terms = r.sample(TERMS, r.choice([1, 1, 2, 3]))
        self.factors = [r.choice([1.0, 0.5, 2.0]) for _ in self.terms]
        self.metrics = r.sample(METRICS, 3)
        self.named = len(self.terms) > 1 and r.random() < 0.5
        self.precision = r.choice(["fp32", "fp32", "fp32", "bf16", "fp16"])
        torch.manual_seed(seed)
        self.data = self.make_data()
        self.weights = {
            "body.weight": torch.randn(HIDDEN, FEATURES) * 0.6,
            "head.weight": torch.randn(CLASSES, HIDDEN) * 0.6,
            "each.weight": torch.randn(WORDS * CLASSES, HIDDEN) * 0.6,
            "fit.weight": torch.randn(OUTPUTS, HIDDEN) * 0.6
        }
        save_file({name: self.data[name] for name in ["x", *self.inputs()]}, self.path + ".data")
        save_file(self.weights, self.path + ".weights")

    def make_data(self):
        t = torch.randint(0, CLASSES, (SAMPLES, ), dtype=torch.int32)
        u = torch.randint(0, CLASSES, (SAMPLES, WORDS), dtype=torch.int32)
        m = (torch.rand(SAMPLES, OUTPUTS) < 0.6).float()
        t[torch.rand(SAMPLES) < 0.4] = -100
        u[torch.rand(SAMPLES, WORDS) < 0.5] = -1
        u[:4], m[:4], t[5:8] = -1, 0, -100  # micro-batches without anything that counts
        t[0], u[9, 0], m[9, 0] = 1, 2, 1
        return {"x": torch.randn(SAMPLES, FEATURES), "t": t, "u": u, "m": m, "z": torch.randn(SAMPLES, OUTPUTS)}

    def inputs(self):
        """What a model may declare: what it reads."""
        texts = " ".join(text for text, _ in self.terms + self.metrics)
        return [name for name in INPUTS if re.search(rf"\b{name}\b", texts)]

    def text(self, micro_batches, parallel):
        terms = [f"{f} * ({text})" for f, (text, _) in zip(self.factors, self.terms)]
        if self.named:
            losses = [f"loss part{i} = {term}" for i, term in enumerate(terms)] + [f"loss rest = {REST}"]
        else:
            losses = [f"rest = {REST}", "loss = rest + " + " + ".join(terms)]
        lines = losses + [f"metric m{i} = {text}" for i, (text, _) in enumerate(self.metrics)] + \
            [f"optimizer = sgd({RATE})", f"accumulate = {micro_batches}"] + ["data_parallel = true"] * parallel
        inputs = [f"input {name}: {INPUTS[name]}" for name in self.inputs()]
        return HEAD + "".join(f"    {line}\n" for line in inputs + lines) + "}\n" + \
            f"precision {self.precision} {{ {'loss_scale = static(256.0)' if self.precision == 'fp16' else ''} }}\n"

    def compile(self, micro_batches, parallel=False):
        name = f"{self.path}-{micro_batches}{'-ranks' if parallel else ''}"
        with open(name + ".amp", "w", encoding="utf-8") as file:
            file.write(self.text(micro_batches, parallel))
        return tools.compile_model(name + ".amp", name + ".so", "--isa", "native", "--target", "cpu")

    # ---- the same by PyTorch, in double ----

    def values(self, weights):
        data = {name: v.double() if v.is_floating_point() else v.long() for name, v in self.data.items()}
        h = torch.tanh(data["x"] @ weights["body.weight"].T)
        v = dict(data,
                 logits=h @ weights["head.weight"].T,
                 words=(h @ weights["each.weight"].T),
                 y=h @ weights["fit.weight"].T,
                 classes=torch.arange(4).double() * 1.5 + 0.25)
        rest = 0.01 * (v["logits"]**2).mean() + 0.01 * (v["words"]**2).mean() + 0.01 * (v["y"]**2).mean()
        v["loss"] = rest + sum(f * term(v) for f, (_, term) in zip(self.factors, self.terms))
        return v

    def figures(self):
        v = self.values({name: w.double() for name, w in self.weights.items()})
        out = {"loss": v["loss"], **{f"m{i}": metric(v) for i, (_, metric) in enumerate(self.metrics)}}
        if self.named:
            out.update({
                f"loss.part{i}": f * term(v)
                for i, (f, (_, term)) in enumerate(zip(self.factors, self.terms))
            })
        return {name: float(value) for name, value in out.items()}

    def trained(self):
        weights = {name: w.double().requires_grad_() for name, w in self.weights.items()}
        optimizer = torch.optim.SGD(weights.values(), RATE)
        for _ in range(STEPS):
            optimizer.zero_grad()
            self.values(weights)["loss"].backward()
            optimizer.step()
        return {name: w.detach() for name, w in weights.items()}


# ---- comparing ----


def figure_differences(ours, theirs, bound, what):
    for name, their in theirs.items():
        if not abs(float(ours[name]) - their) <= bound * max(1, abs(their)):
            yield f"{what}: {name} {ours[name]}, PyTorch {their:.9g}"


def weight_differences(path, theirs, bound, what):
    ours, largest = tools.read_tensors(path), max(float(w.abs().max()) for w in theirs.values())
    for name, their in theirs.items():
        error = float((ours[name].double() - their).abs().max())
        if not error <= bound * largest:
            yield f"{what}: {name} is off by {error:.3g}, largest element {largest:.3g}"


def evaluation_differences(case, model, theirs):
    bound = FIGURE_BOUND[case.precision]
    for batch in (SAMPLES, 1, 5):
        ours = json.loads(
            tools.run(tools.program("tools/amprun"), "eval", model, "--data", f"safetensors:{case.path}.data",
                      "--weights", case.path + ".weights", "--batch", str(batch)))
        yield from figure_differences(ours, theirs, bound, f"batches of {batch}")


def arguments(case, batch, save):
    return [
        "--data", f"safetensors:{case.path}.data", "--batch", batch, "--steps", STEPS, "--weights",
        case.path + ".weights", "--save", save, "--force"
    ]


def training_differences(case, theirs):
    bound = WEIGHT_BOUND[case.precision]
    for k in (1, 2, 4):
        model, after = case.compile(k), f"{case.path}-{k}.after"
        tools.train(model, *arguments(case, SAMPLES // k, after))
        yield from weight_differences(after, theirs, bound, f"{k} micro-batches")


def rank_differences(case, theirs):
    """Two ranks of three micro-batches."""
    model, folder, after = case.compile(3, True), case.path + ".meet", case.path + "-ranks.after"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    program = tools.program("tools/amprun")
    ranks = [
        subprocess.Popen([
            program, "train", model, "--quiet", *map(str, arguments(case, SAMPLES // 3 // 2, after)), "--dist",
            "files", "--dist-folder", folder, "--dist-rank", f"{rank}/2"
        ]) for rank in range(2)
    ]
    if any([rank.wait() for rank in ranks]):
        yield "a rank failed"
    else:
        yield from weight_differences(after, theirs, WEIGHT_BOUND[case.precision], "2 ranks of 3 micro-batches")


# ---- checks ----


def check_models(tally, options):
    for seed in range(FIRST, FIRST + (LONG if options.long else SHORT)):
        case = Case(seed, options.work)
        name = f"{seed}: {case.precision}, " + " + ".join(text for text, _ in case.terms)
        tally.same(f"{name}: evaluations", evaluation_differences(case, case.compile(1), case.figures()))
        theirs = case.trained()
        tally.same(f"{name}: steps", [*training_differences(case, theirs), *rank_differences(case, theirs)])


def plant(tally, options):
    case = Case(FIRST, options.work)
    case.precision = "fp32"
    theirs = case.figures()
    right = dict(theirs)
    tally.same("figures agree with themselves", figure_differences(right, theirs, 1e-9, "planted"))
    tally.seen("a loss that is off by 1e-5",
               figure_differences(dict(right, loss=right["loss"] + 2e-5), theirs, 2e-6, "planted"))
    save_file({name: w.float() * (1 + 1e-4) for name, w in case.trained().items()}, case.path + ".off")
    tally.seen("weights that are off", weight_differences(case.path + ".off", case.trained(), 1e-6, "planted"))


if __name__ == "__main__":
    harness.main(__doc__, [check_models], [plant])
