"""ema.py: averages of weights over 200 steps, against torch.optim.swa_utils: of the same training in PyTorch, and step
by step of our own weights, with steps that are skipped; what --save --ema writes, buffers included."""
import os

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import ampc_tools as tools
import harness

STEPS, SAMPLES, DECAY = 200, 32, 0.97
AVERAGE_BOUND = 1e-6  # relative, of an average of the same weights
WEIGHT_BOUND = 1e-4   # relative, of all that the training changed
OVERFLOWS = (0, 70)   # steps of FP16 that are skipped: the first, and one later

MODEL = """amp 1
model averaged(x: f32[N, 19]) -> logits {
    h = relu(batch_norm(linear(x; out = 37, bias = false) as fc1) as bn)
    logits = linear(h; out = 10) as fc2
}
train averaged {
    input targets: i32[N]
    loss = cross_entropy(logits, targets)
    optimizer = adamw(lr = 0.01)
    ema = %g
}
""" % DECAY


class Twin(nn.Module):
    """The model above.  No bias comes before the norm: its gradient would be noise, and AdamW makes steps of it."""

    def __init__(self):
        super().__init__()
        self.fc1, self.bn, self.fc2 = nn.Linear(19, 37, bias=False), nn.BatchNorm1d(37), nn.Linear(37, 10)

    def forward(self, x, targets):
        return F.cross_entropy(self.fc2(F.relu(self.bn(self.fc1(x)))), targets)


def make_twin():
    torch.manual_seed(3)
    return Twin()


def averaged(module, decay=DECAY):
    return AveragedModel(module, multi_avg_fn=get_ema_multi_avg_fn(decay))


def batches(count):
    generator = torch.Generator().manual_seed(5)
    return [(torch.randn(SAMPLES, 19, generator=generator), torch.randint(10, (SAMPLES,), generator=generator))
            for _ in range(count)]


# ---- ours ------------------------------------------------------------------------------------------------------------


def our_steps(options, precision, overflows, steps):
    """Yields (report, the checkpoint's tensors, what --save --ema wrote) after each step."""
    names = ("amp", "so", "weights", "batch", "before", "after", "save")
    files = {name: os.path.join(options.work, f"ema.{name}") for name in names}
    with open(files["amp"], "w", encoding="utf-8") as file:
        file.write(MODEL)
    model = tools.compile_model(files["amp"], files["so"], "--precision", precision)
    start = ["--weights", tools.write_weights(files["weights"], make_twin())]
    for at, (x, targets) in enumerate(batches(steps)):
        tools.write_batch(files["batch"], x * 1e30 if at in overflows else x, targets)
        report, = tools.step(model, *start, "--inputs", files["batch"], "--checkpoint", files["after"],
                             "--save", files["save"], "--ema")
        os.replace(files["after"], files["before"])
        start = ["--resume", files["before"]]
        yield report, tools.read_tensors(files["before"]), tools.read_tensors(files["save"])


# ---- comparing -------------------------------------------------------------------------------------------------------


def average_differences(at, ours, average, names):
    for name in names:
        error = tools.relative_error(ours[name], average[name])
        if not error <= AVERAGE_BOUND:
            yield f"step {at}: average of {name}: relative error {error:.2g}, bound {AVERAGE_BOUND:g}"


def training_differences(start, ours, theirs, names):
    def changed(weights):
        return torch.cat([(weights[name].double() - start[name].double()).flatten() for name in names])

    error = tools.relative_error(changed(ours), changed(theirs))
    if not error <= WEIGHT_BOUND:
        yield f"what the training changed: relative error {error:.2g}, bound {WEIGHT_BOUND:g}"


def follow(options, precision, overflows=(), decay=DECAY, steps=STEPS):
    """Differences from the average that PyTorch makes of our weights; steps skipped; the last file of averages."""
    module, found, skipped = make_twin(), [], 0
    average, names = averaged(module, decay), [name for name, _ in module.named_parameters()]
    for at, (report, tensors, saved) in enumerate(our_steps(options, precision, overflows, steps)):
        module.load_state_dict({name: tensors[name] for name in module.state_dict()})
        skipped += bool(report["skipped"])
        if not report["skipped"]:
            average.update_parameters(module)
        if at == 0 and report["skipped"]:
            continue  # nothing is averaged yet: both have the first weights
        kept, theirs = {name: tensors[f"optim/{name}/ema"] for name in names}, average.module.state_dict()
        found += average_differences(at, kept, theirs, names)
        found += average_differences(at, saved, theirs, names)
        buffers = [name for name, _ in module.named_buffers()]
        found += [f"step {at}: {text}" for text in tools.bit_differences(saved, tensors, buffers)]
    return found, skipped, saved


def check_fp32(tally, options):
    found, _, ours = follow(options, "fp32")
    tally.same(f"fp32: averages of {STEPS} steps within {AVERAGE_BOUND:g} of torch.optim.swa_utils, buffers", found)
    module = make_twin()
    start = {name: p.detach().clone() for name, p in module.named_parameters()}
    average, optimizer = averaged(module), torch.optim.AdamW(module.parameters(), lr=0.01)
    for batch in batches(STEPS):
        optimizer.zero_grad()
        module(*batch).backward()
        optimizer.step()
        average.update_parameters(module)
    theirs = average.module.state_dict()
    error = tools.relative_error(*(torch.cat([side[name].flatten() for name in start]) for side in (ours, theirs)))
    tally.same(f"fp32: averages of PyTorch's own training within {WEIGHT_BOUND:g} of what it changed",
               training_differences(start, ours, theirs, start), f"the weights differ by {error:.2g}")


def check_fp16(tally, options):
    found, skipped, _ = follow(options, "fp16", OVERFLOWS)
    tally.same(f"fp16: averages of {STEPS} steps within {AVERAGE_BOUND:g} of torch.optim.swa_utils", found,
               f"{skipped} steps skipped")
    tally.same("fp16: the steps that overflow were skipped", [] if skipped == len(OVERFLOWS) else [f"{skipped} were"])


# ---- planted ---------------------------------------------------------------------------------------------------------


def plant(tally, options):
    tally.seen("a decay that is off by 1e-4", follow(options, "fp32", decay=DECAY + 1e-4, steps=5)[0])


if __name__ == "__main__":
    harness.main(__doc__, [check_fp32, check_fp16], [plant])
