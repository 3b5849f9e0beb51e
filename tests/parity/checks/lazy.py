"""lazy.py: 200 steps that update the rows of tables that they have read, and no others, against PyTorch's optimizers of
sparse gradients; each step goes on from a checkpoint."""
import os
from collections import namedtuple

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

import ampc_tools as tools
import harness

STEPS, SAMPLES, WORDS, ROWS, CLASSES = 200, 48, 7, 301, 5
CLIP = 0.5
SCALE = 65536.0
TABLES = ("table", "other.weight")

# line: of the model; make: PyTorch's optimizer of tables; slots: of each table's moments; bounds: of the loss,
# relative, and of what the training has changed, by its norm.  200 steps of Adam make much of roundings to f16: there
# the bound is how far PyTorch's own casts take the training away from f32, times the factor
Case = namedtuple("Case", "line make dense slots precision bounds")
EXACT, ROUNDED = (2e-5, 1e-3), (5e-3, 1.5)
ADAMS = lambda p: torch.optim.SparseAdam(p, lr=0.01), lambda p: torch.optim.Adam(p, lr=0.01)
CASES = {
    "adam": Case("adam(lr = 0.01)", *ADAMS, ("m", "v"), "fp32", EXACT),
    "adagrad": Case("adagrad(lr = 0.05, lr_decay = 0.01, initial_accumulator_value = 0.01)",
                    *2 * (lambda p: torch.optim.Adagrad(p, lr=0.05, lr_decay=0.01, initial_accumulator_value=0.01),),
                    ("squares",), "fp32", EXACT),
    "sgd": Case("sgd(lr = 0.5)", *2 * (lambda p: torch.optim.SGD(p, lr=0.5),), (), "fp32", EXACT),
    "adam in fp16": Case("adam(lr = 0.01)", *ADAMS, ("m", "v"), "fp16", ROUNDED),
}


class Twin(nn.Module):
    """tests/parity/models/lazy.amp"""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(ROWS, 24) * 0.5)
        self.other = nn.Embedding(ROWS, 40, sparse=True)
        self.hidden, self.head = nn.Linear(88, 32), nn.Linear(32, CLASSES)

    def linear(self, layer, x, low):
        return F.linear(x.to(low), layer.weight.to(low), layer.bias.to(low))

    def forward(self, words, item, targets, low):
        rows = F.embedding(words, self.table, sparse=True), F.embedding(item, self.table, sparse=True)
        x = torch.cat([rows[0].mean(1), rows[1], self.other(item)], 1)
        return F.cross_entropy(self.linear(self.head, F.relu(self.linear(self.hidden, x, low)), low).float(), targets)


def batches(count):
    """Half of the rows are never read, and some in most batches."""
    generator = torch.Generator().manual_seed(11)
    draw = lambda *size: (torch.rand(*size, generator=generator) ** 3 * ROWS / 2).to(torch.int32)  # noqa: E731
    return [(draw(SAMPLES, WORDS), draw(SAMPLES), torch.randint(CLASSES, (SAMPLES,), generator=generator))
            for _ in range(count)]


def clip(parameters):
    """torch.nn.utils.clip_grad_norm_, which takes no sparse gradients."""
    for p in parameters:
        if p.grad.is_sparse:
            p.grad = p.grad.coalesce()
    values = [p.grad.values() if p.grad.is_sparse else p.grad for p in parameters]
    norm = torch.stack([v.norm() for v in values]).norm()
    for p in parameters:
        p.grad = p.grad * torch.clamp(CLIP / (norm + 1e-6), max=1.0)
    return norm.item()


def make_twin():
    torch.manual_seed(7)
    return Twin()


def torch_steps(module, case, count):
    """Yields (loss, norm of the gradients before clipping) of each step."""
    named = dict(module.named_parameters())
    low, scale = (torch.float16, SCALE) if case.precision == "fp16" else (torch.float32, 1.0)
    others = [p for name, p in named.items() if name not in TABLES]
    optimizers = [case.make([named[name] for name in TABLES]), case.dense(others)]
    for words, item, targets in batches(count):
        module.zero_grad()
        loss = module(words, item, targets, low)
        (loss * scale).backward()
        for p in named.values():
            p.grad = p.grad / scale
        norm = clip(list(named.values()))
        for optimizer in optimizers:
            optimizer.step()
        yield loss.item(), norm


def our_steps(options, case, module, count):
    """Yields the report of each step; the last yield is the tensors of the last checkpoint."""
    path = os.path.join(options.work, "lazy")
    text = tools.variant(os.path.join(tools.MODELS, "lazy.amp"), path + ".amp", optimizer=case.line)
    model = tools.compile_model(text, path + ".so", "--precision", case.precision)
    start = ["--weights", tools.write_weights(path + ".weights", module)]
    for words, item, targets in batches(count):
        save_file({"words": words, "item": item, "targets": targets.to(torch.int32)}, path + ".batch")
        report, = tools.step(model, *start, "--inputs", path + ".batch", "--checkpoint", path + ".after")
        os.replace(path + ".after", path + ".before")
        start = ["--resume", path + ".before"]
        yield report
    yield tools.read_tensors(path + ".before")


# ---- comparing ------------------------------------------------------------------------------------------------------


def number_differences(what, at, ours, theirs, bound):
    error = abs(ours - theirs) / abs(theirs)
    if not error <= bound:
        yield f"{what} {at}: {ours:.9g}, PyTorch {theirs:.9g}: relative error {error:.2g}, bound {bound:g}"


def change_error(start, ours, theirs, name):
    old = start[name].double()
    return tools.relative_error(ours[name].double() - old, theirs[name].double() - old)


def weight_differences(start, ours, theirs, bound):
    for name in start:
        error = change_error(start, ours, theirs, name)
        if not error <= bound:
            yield f"what the training changed of {name}: relative error {error:.2g}, bound {bound:g}"


def rounded_differences(start, ours, theirs, exact, factor):
    for name in start:
        error, own = change_error(start, ours, exact, name), change_error(start, theirs, exact, name)
        if not error <= factor * own:
            yield f"what the training changed of {name}: {error:.2g} from FP32, PyTorch's casts {own:.2g}"


def untouched(count):
    """Rows that no batch of |count| reads, by table."""
    read = {name: torch.zeros(ROWS, dtype=torch.bool) for name in TABLES}
    for words, item, _ in batches(count):
        read["table"][words.long()] = read["table"][item.long()] = read["other.weight"][item.long()] = True
    return {name: ~rows for name, rows in read.items()}


def row_differences(start, ours, slots, count):
    """Rows that were not read keep their bits, and their moments."""
    for name, rows in untouched(count).items():
        if not torch.equal(tools.bits(ours[name][rows]), tools.bits(start[name][rows])):
            yield f"{name}: rows that were not read differ"
        for slot in slots:
            moment = ours[f"optim/{name}/{slot}"][rows]
            if not (moment == moment.flatten()[0]).all():
                yield f"{name}/{slot}: rows that were not read differ"


def run_case(options, case, count):
    module = make_twin()
    start = tools.named_state(module)
    *reports, ours = our_steps(options, case, module, count)
    differences = []
    for at, (report, (loss, norm)) in enumerate(zip(reports, torch_steps(module, case, count))):
        differences += number_differences("loss of step", at, report["loss"], loss, case.bounds[0])
        differences += number_differences("gradient norm of step", at, report["grad_norm"], norm, 100 * case.bounds[0])
    return differences, start, ours, tools.named_state(module)


def torch_end(case, count):
    module = make_twin()
    for _ in torch_steps(module, case, count):
        pass
    return tools.named_state(module)


def check_case(tally, options, name):
    case = CASES[name]
    differences, start, ours, theirs = run_case(options, case, STEPS)
    tally.same(f"{name}: {STEPS} steps: loss within {case.bounds[0]:g}, and norms", differences)
    if case.precision == "fp32":
        tally.same(f"{name}: {STEPS} steps: weights within {case.bounds[1]:g}",
                   weight_differences(start, ours, theirs, case.bounds[1]))
    else:
        exact = torch_end(case._replace(precision="fp32"), STEPS)
        tally.same(f"{name}: {STEPS} steps: weights as near to FP32 as PyTorch's",
                   rounded_differences(start, ours, theirs, exact, case.bounds[1]))
    tally.same(f"{name}: rows that were not read keep their bits", row_differences(start, ours, case.slots, STEPS))


def check_cases(tally, options):
    for name in CASES:
        tally.attempt(check_case, options, name)


# ---- planted --------------------------------------------------------------------------------------------------------


def plant(tally, options):
    case = CASES["adam"]
    differences, start, ours, theirs = run_case(options, case, 3)
    tally.same("3 steps agree", [*differences, *weight_differences(start, ours, theirs, case.bounds[1])])
    off = {name: w + (w - start[name]) * 2e-3 for name, w in ours.items() if name in start}
    tally.seen("an update that is off by 2e-3", weight_differences(start, off, theirs, case.bounds[1]))
    decayed = torch_end(case._replace(make=Densely), 3)
    tally.seen("moments that decay where no row was read", weight_differences(start, ours, decayed, case.bounds[1]))


class Densely(torch.optim.Adam):
    """Of gradients made dense: rows that were not read go on by their moments."""

    def __init__(self, parameters):
        super().__init__(parameters, lr=0.01)

    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.grad = p.grad.to_dense()
        super().step()


if __name__ == "__main__":
    harness.main(__doc__, [check_cases], [plant])
