"""training.py: whole trainings with what a train block can set, against the same written in PyTorch: schedules, groups, clipping by norm,
frozen layers, micro-batches; and every schedule against torch.optim.lr_scheduler, step by step."""
import os

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn
from torch.optim import lr_scheduler

import ampc_tools as tools
import harness

STEPS, SAMPLES, MICRO_BATCHES = 30, 32, 4
LOSS_BOUND = 1e-4    # relative
WEIGHT_BOUND = 1e-4  # relative, of all that the training changed
RATE_BOUND = 1e-5    # of the peak: the rate is a difference of two f32 losses near 100

PEAK = 2.0
WARMUP, TOTAL = 4, 12


class Twin(nn.Module):
    """tests/parity/models/training.amp"""

    def __init__(self):
        super().__init__()
        for i, (fan_in, fan_out) in enumerate([(19, 37), (37, 23), (23, 23), (23, 10)], start=1):
            self.add_module(f"fc{i}", nn.Linear(fan_in, fan_out))

    def forward(self, x, targets):
        layers = list(self.children())
        for layer in layers[:-1]:
            x = F.relu(layer(x))
        return F.cross_entropy(layers[-1](x), targets)


def make_twin():
    torch.manual_seed(3)
    module = Twin()
    module.fc2.requires_grad_(False)
    return module


def cosine(step, peak=0.02, warmup=5, steps=25, floor=0.001):
    """The schedule of the model, by PyTorch's classes."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=peak)
    rising = lr_scheduler.LinearLR(optimizer, 1 / warmup, 1.0, warmup - 1)
    falling = lr_scheduler.CosineAnnealingLR(optimizer, steps - warmup, floor)
    schedule = lr_scheduler.SequentialLR(optimizer, [rising, falling], [warmup])
    for _ in range(min(step, steps)):
        optimizer.step()
        schedule.step()
    return optimizer.param_groups[0]["lr"]


def make_optimizer(module):
    groups = []
    for name, p in module.named_parameters():
        if p.requires_grad:
            groups.append({"params": [p], "weight_decay": 0.0 if name.endswith(".bias") else 0.1,
                           "factor": 0.5 if name.startswith("fc4.") else 1.0})
    return torch.optim.AdamW(groups, lr=0.02)


def batches(count):
    generator = torch.Generator().manual_seed(5)
    return [(torch.randn(SAMPLES, 19, generator=generator), torch.randint(10, (SAMPLES,), generator=generator)) for _ in range(count)]


def torch_step(module, optimizer, batch, step):
    """(loss, norm of the gradients before clipping)"""
    for group in optimizer.param_groups:
        group["lr"] = cosine(step) * group["factor"]
    optimizer.zero_grad()
    loss = module(*batch)
    loss.backward()
    norm = nn.utils.clip_grad_norm_([p for p in module.parameters() if p.requires_grad], 0.3)
    optimizer.step()
    return loss.item(), norm.item()


# ---- comparing ------------------------------------------------------------------------------------------------------------------


def number_differences(what, at, ours, theirs, bound):
    error = abs(ours - theirs) / abs(theirs)
    if not error <= bound:
        yield f"{what} {at}: {ours:.9g}, PyTorch {theirs:.9g}: relative error {error:.2g}, bound {bound:g}"


def changed(weights, start):
    return torch.cat([(weights[name].double() - old.double()).flatten() for name, old in start.items()])


def weight_differences(start, ours, theirs):
    error = tools.relative_error(changed(ours, start), changed(theirs, start))
    if not error <= WEIGHT_BOUND:
        yield f"what the training changed: relative error {error:.2g}, bound {WEIGHT_BOUND:g}"


# ---- a training -------------------------------------------------------------------------------------------------------------------


def our_steps(options, model, module, steps):
    """Yields the report of each step on its own batch; the last yield is the tensors of the last checkpoint."""
    files = {name: os.path.join(options.work, f"training.{name}") for name in ("weights", "batch", "before", "after")}
    start = ["--weights", tools.write_weights(files["weights"], module)]
    for batch in batches(steps):
        tools.write_batch(files["batch"], *batch)
        report, = tools.step(model, *start, "--inputs", files["batch"], "--checkpoint", files["after"])
        os.replace(files["after"], files["before"])
        start = ["--resume", files["before"]]
        yield report
    yield tools.read_tensors(files["before"])


def run_training(options, steps):
    """(differences of losses and norms, start, ours, theirs)"""
    model = tools.compile_model(os.path.join(tools.MODELS, "training.amp"), os.path.join(options.work, "training.so"))
    module = make_twin()
    start = tools.named_state(module)
    *reports, ours = our_steps(options, model, module, steps)
    optimizer, differences = make_optimizer(module), []
    for at, (report, batch) in enumerate(zip(reports, batches(steps))):
        loss, norm = torch_step(module, optimizer, batch, at)
        differences += number_differences("loss of step", at, report["loss"], loss, LOSS_BOUND)
        differences += number_differences("gradient norm of step", at, report["grad_norm"], norm, 10 * LOSS_BOUND)
    return differences, start, ours, tools.named_state(module)


def check_training(tally, options):
    differences, start, ours, theirs = run_training(options, STEPS)
    tally.same(f"{STEPS} steps: loss and gradient norm of each", differences)
    tally.same(f"{STEPS} steps: weights within {WEIGHT_BOUND:g}", weight_differences(start, ours, theirs))
    frozen = [name for name in start if name.startswith("fc2.")]
    tally.same("what is frozen keeps its bits", tools.bit_differences(ours, start, frozen))
    tally.same("what is frozen has no moments", [name for name in ours if name.startswith("optim/fc2.")])


# ---- micro-batches ------------------------------------------------------------------------------------------------------------------


def check_accumulation(tally, options):
    """One step of four micro-batches on a data set of exactly as many samples: the mean over all of them, in whatever order."""
    path = os.path.join(options.work, "accumulate")
    text = open(os.path.join(tools.MODELS, "training.amp"), encoding="utf-8").read()
    with open(path + ".amp", "w", encoding="utf-8") as file:
        file.write(text.replace("    clip_norm", f"    accumulate = {MICRO_BATCHES}\n    clip_norm"))
    model = tools.compile_model(path + ".amp", path + ".so")
    module = make_twin()
    start, batch = tools.named_state(module), batches(1)[0]
    tools.write_weights(path + ".weights", module)
    tools.write_batch(path + ".data", *batch)
    tools.train(model, "--data", f"safetensors:{path}.data", "--batch", SAMPLES // MICRO_BATCHES, "--steps", 10, "--weights",
                path + ".weights", "--save", path + ".after")
    optimizer = make_optimizer(module)
    for at in range(10):
        torch_step(module, optimizer, batch, at)
    tally.same(f"10 steps of {MICRO_BATCHES} micro-batches: weights within {WEIGHT_BOUND:g}",
               weight_differences(start, tools.read_tensors(path + ".after"), tools.named_state(module)))


# ---- schedules ------------------------------------------------------------------------------------------------------------------------


def constant(optimizer):
    return lr_scheduler.ConstantLR(optimizer, 1.0)


def warm(optimizer, then):
    rising = lr_scheduler.LinearLR(optimizer, 1 / WARMUP, 1.0, WARMUP - 1)
    return lr_scheduler.SequentialLR(optimizer, [rising, then], [WARMUP])


SCHEDULES = {
    f"constant({PEAK})": constant,
    f"cosine(peak = {PEAK}, warmup = 0, steps = {TOTAL}, floor = 0.1)":
        lambda o: lr_scheduler.CosineAnnealingLR(o, TOTAL, 0.1),
    f"cosine(peak = {PEAK}, warmup = {WARMUP}, steps = {TOTAL})":
        lambda o: warm(o, lr_scheduler.CosineAnnealingLR(o, TOTAL - WARMUP)),
    f"step(base = {PEAK}, every = 3, gamma = 0.1)": lambda o: lr_scheduler.StepLR(o, 3, 0.1),
    f"linear(peak = {PEAK}, warmup = 0, steps = {TOTAL})": lambda o: lr_scheduler.LinearLR(o, 1.0, 0.0, TOTAL),
    f"linear(peak = {PEAK}, warmup = {WARMUP}, steps = {TOTAL})":
        lambda o: warm(o, lr_scheduler.LinearLR(o, 1.0, 0.0, TOTAL - WARMUP)),
    f"one_cycle(peak = {PEAK}, steps = {TOTAL})": lambda o: lr_scheduler.OneCycleLR(o, PEAK, TOTAL),
    f"one_cycle(peak = {PEAK}, steps = 7)": lambda o: lr_scheduler.OneCycleLR(o, PEAK, 7),
}


def our_rates(options, call, count):
    path = os.path.join(options.work, "slope")
    model = tools.compile_model(tools.variant(os.path.join(tools.MODELS, "slope.amp"), path + ".amp", optimizer=f"sgd(lr = {call})"),
                                path + ".so")
    save_file({"x": torch.ones(2)}, path + ".batch")
    save_file({"w": torch.full((1,), 100.0)}, path + ".weights")
    losses = [r["loss"] for r in tools.step(model, "--weights", path + ".weights", "--inputs", path + ".batch", "--steps", count + 1)]
    return [before - after for before, after in zip(losses, losses[1:])]


def torch_rates(make, count):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=PEAK)
    schedule, rates = make(optimizer), []
    for at in range(count):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if at + 1 < count:
            schedule.step()
    return rates


def rate_differences(ours, theirs):
    for at, (our, their) in enumerate(zip(ours, theirs)):
        if not abs(our - their) <= RATE_BOUND * PEAK:
            yield f"step {at}: {our:.7g}, PyTorch {their:.7g}"


def check_schedules(tally, options):
    for call, make in SCHEDULES.items():
        count = 7 if "steps = 7" in call else TOTAL
        tally.same(call, rate_differences(our_rates(options, call, count), torch_rates(make, count)))


# ---- planted ----------------------------------------------------------------------------------------------------------------------------


def plant(tally, options):
    differences, start, ours, theirs = run_training(options, 3)
    tally.same("3 steps agree", [*differences, *weight_differences(start, ours, theirs)])
    tally.seen("an update that is off by 2e-4",
               weight_differences(start, {name: w + (w - start[name]) * 2e-4 for name, w in ours.items() if name in start}, theirs))
    tally.seen("a loss that is off by 2e-4", number_differences("loss", 0, 2.0004, 2.0, LOSS_BOUND))
    rates = torch_rates(SCHEDULES[f"one_cycle(peak = {PEAK}, steps = {TOTAL})"], TOTAL)
    tally.seen("a schedule that is late by a step", rate_differences(rates[1:], rates))


if __name__ == "__main__":
    harness.main(__doc__, [check_training, check_accumulation, check_schedules], [plant])
