"""steps.py: single training steps, each started from PyTorch's own state (weights, moments, counters, scaler) and compared with PyTorch's
step on the same batch: the loss, and the update w_new - w_old."""
import copy
import os
from collections import namedtuple

import torch

import ampc_tools as tools
import fashion
import harness
import twin

BATCH, SPARE = 128, 128
STEPS, SHORT_STEPS, FEW_STEPS, LONG_STEPS = 50, 10, 5, 200
LOW_STEPS = 2
LOW_POLICIES = {torch.float16: "torch-fp16", torch.bfloat16: "torch-bf16"}
LOW_BOUNDS = {torch.float16: (2e-3, 0.05), torch.bfloat16: (1.6e-2, 0.15)}  # of the loss, of the update
FP16_STEPS, LONG_FP16_STEPS = 12, 60
KINK = 4e-6             # how far from relu's kink a preactivation must be
LOSS_BOUND = 1e-5     # relative
UPDATE_BOUND = 1e-4   # relative to the update's norm
FP16_LOSS_BOUND = 2e-3  # relative: the logits are rounded to 11 bits on both sides, after sums in different orders


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, algorithm 2: what PyTorch has not."""

    def __init__(self, params, lr, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                m, (beta1, beta2) = self.state[p].setdefault("exp_avg", torch.zeros_like(p)), group["betas"]
                p.mul_(1 - group["lr"] * group["weight_decay"]).sub_((beta1 * m + (1 - beta1) * p.grad).sign(), alpha=group["lr"])
                m.mul_(beta2).add_(p.grad, alpha=1 - beta2)


class Lamb(torch.optim.Optimizer):
    """You et al. 2019, algorithm 2: AdamW's step with the ratio of two norms."""

    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if not self.state[p]:
                    self.state[p] = {"exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p), "step": 0}
                state = self.state[p]
                state["step"] += 1
                m, v, t = state["exp_avg"], state["exp_avg_sq"], state["step"]
                m.mul_(beta1).add_(p.grad, alpha=1 - beta1)
                v.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                r = (m / (1 - beta1 ** t)) / ((v / (1 - beta2 ** t)).sqrt() + group["eps"]) + group["weight_decay"] * p
                ratio = p.norm() / r.norm() if p.norm() > 0 and r.norm() > 0 else 1.0
                p.sub_(group["lr"] * ratio * r)


class Apart(torch.optim.Optimizer):
    """The optimizer |weights| makes of matrices, |others| of all else."""

    def __init__(self, params, weights, others):
        params = list(params)
        self.parts = [make([p for p in params if (p.dim() == 2) == matrices]) for make, matrices in ((weights, True), (others, False))]

    @property
    def state(self):
        return {p: state for part in self.parts for p, state in part.state.items()}

    def zero_grad(self):
        for part in self.parts:
            part.zero_grad()

    def step(self):
        for part in self.parts:
            part.step()


# line: of the model; make: PyTorch's optimizer of these parameters; slots: its moments, of matrices and, after a None, of all else; first, count: the steps that are compared;
# bound: of the update in FP32; carries: how much of a gradient's rounding the update has, times the others'
Case = namedtuple("Case", "line make slots first count bound carries", defaults=[UPDATE_BOUND, 1])
OPTIMIZERS = {
    "adamw": Case("adamw(lr = 0.001)", lambda p: torch.optim.AdamW(p, lr=1e-3), ("m", "v"), 0, STEPS),
    "adam": Case("adam(lr = 0.001)", lambda p: torch.optim.Adam(p, lr=1e-3), ("m", "v"), 0, SHORT_STEPS),
    # Not from step 0: there the update is g / (|g| + eps), almost the sign of g, and where weight decay cancels the gradient that sign is
    # one of rounding errors.
    "adam with weight decay": Case("adam(lr = 0.001, weight_decay = 0.01)",
                                   lambda p: torch.optim.Adam(p, lr=1e-3, weight_decay=0.01), ("m", "v"), 5, SHORT_STEPS),
    "sgd": Case("sgd(lr = 0.1, momentum = 0.9, weight_decay = 0.001)",
                lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3), ("momentum",), 0, SHORT_STEPS),
    "sgd with nesterov": Case("sgd(lr = 0.1, momentum = 0.9, nesterov = true)",
                              lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True), ("momentum",), 0, SHORT_STEPS),
    "two": Case("sgd(lr = 0.1, momentum = 0.9)\n    group \"*.bias\": optimizer = adamw(lr = 0.002)",
                lambda p: Apart(p, lambda w: torch.optim.SGD(w, lr=0.1, momentum=0.9), lambda b: torch.optim.AdamW(b, lr=2e-3)),
                ("momentum", None, "m", "v"), 0, FEW_STEPS),
    # The iteration is in bf16: what small singular values of a gradient become is rounding errors, 0.03 of the norm in 100 steps.
    "muon": Case("muon(lr = 0.02)\n    group \"*.bias\": optimizer = adamw(lr = 0.002)",
                 lambda p: Apart(p, lambda w: torch.optim.Muon(w, lr=2e-2), lambda b: torch.optim.AdamW(b, lr=2e-3)),
                 ("momentum", None, "m", "v"), 0, FEW_STEPS, 0.05, 2),
    "muon, adjusted": Case("muon(lr = 0.001, nesterov = false, adjust_lr = match_rms_adamw)\n    group \"*.bias\": optimizer = sgd(lr = 0.002)",
                           lambda p: Apart(p, lambda w: torch.optim.Muon(w, nesterov=False, adjust_lr_fn="match_rms_adamw"),
                                           lambda b: torch.optim.SGD(b, lr=2e-3)), ("momentum", None), 0, FEW_STEPS, 0.05, 2),
    "adafactor": Case("adafactor()", torch.optim.Adafactor, ("rows", "cols", None, "v"), 0, FEW_STEPS),
    "adafactor, clipped": Case("adafactor(lr = 0.1, beta2_decay = -0.5, eps2 = 0.2, d = 2.0, weight_decay = 0.01)",
                               lambda p: torch.optim.Adafactor(p, lr=0.1, beta2_decay=-0.5, eps=(None, 0.2), d=2.0, weight_decay=0.01),
                               ("rows", "cols", None, "v"), 0, FEW_STEPS),
    "lamb": Case("lamb(lr = 0.01)", lambda p: Lamb(p, lr=1e-2), ("m", "v"), 0, FEW_STEPS),
    # An element whose sign is of a number near 0 may go the other way: of 10,000 one is 0.02.
    "lion": Case("lion(lr = 0.001, weight_decay = 0.01)", lambda p: Lion(p, lr=1e-3, weight_decay=1e-2), ("m",), 0, FEW_STEPS, 0.02),
    "adagrad": Case("adagrad(lr_decay = 0.5, weight_decay = 0.01, initial_accumulator_value = 0.001)",
                    lambda p: torch.optim.Adagrad(p, lr_decay=0.5, weight_decay=1e-2, initial_accumulator_value=1e-3),
                    ("squares",), 0, FEW_STEPS),
    "rmsprop": Case("rmsprop(lr = 0.001)", lambda p: torch.optim.RMSprop(p, lr=1e-3), ("v",), 0, FEW_STEPS),
    "rmsprop, centered": Case("rmsprop(lr = 0.001, weight_decay = 0.01, momentum = 0.9, centered = true)",
                              lambda p: torch.optim.RMSprop(p, lr=1e-3, weight_decay=1e-2, momentum=0.9, centered=True),
                              ("v", "m", "momentum"), 5, FEW_STEPS),
}


def snapshot(module):
    return {name: p.detach().clone() for name, p in module.named_parameters()}


def away_from_kinks(module, batch):
    """The first BATCH samples without a preactivation so close to 0 that the order of a float32 sum decides its sign: there relu's
    derivative is 0 on one side and 1 on the other, both are right, and the update differs by that sample's share."""
    x, targets = batch
    with torch.no_grad():
        exact = copy.deepcopy(module).double().preactivations(x.double())
    safe = torch.stack([z.abs().min(dim=1).values > KINK for z in exact]).all(dim=0).nonzero().flatten()[:BATCH]
    if len(safe) < BATCH:
        raise RuntimeError(f"only {len(safe)} samples are away from relu's kink; make SPARE larger")
    return x[safe], targets[safe]


def ampc_step(options, model, batch, checkpoint):
    """One step of ours from the checkpoint: what amprun prints, and the checkpoint after it."""
    files = {name: os.path.join(options.work, name + ".safetensors") for name in ("before", "after", "batch")}
    os.replace(checkpoint, files["before"])
    tools.write_batch(files["batch"], *batch)
    report, = tools.step(model, "--resume", files["before"], "--inputs", files["batch"], "--checkpoint", files["after"])
    return report, tools.read_tensors(files["after"])


# ---- comparing ------------------------------------------------------------------------------------------------------------------


def loss_differences(at, ours, theirs, bound=LOSS_BOUND):
    error = abs(ours - theirs) / abs(theirs)
    if not error <= bound:
        yield f"step {at}: loss {ours:.9g}, PyTorch {theirs:.9g}: relative error {error:.2g}, bound {bound:g}"


def update_errors(before, ours, theirs):
    """The relative error of the update, of each parameter and of all together."""
    updates = {name: (ours[name].double() - w.double(), theirs[name].double() - w.double()) for name, w in before.items()}
    errors = {name: tools.relative_error(*pair) for name, pair in updates.items()}
    errors["all"] = tools.relative_error(*(torch.cat([pair[side].flatten() for pair in updates.values()]) for side in (0, 1)))
    return errors


def update_differences(at, before, ours, theirs, bound=UPDATE_BOUND):
    for name, error in update_errors(before, ours, theirs).items():
        if not error <= bound:
            yield f"step {at}: update of {name}: relative error {error:.2g}, bound {bound:g}"


# ---- FP32 ---------------------------------------------------------------------------------------------------------------------------


def torch_step(module, optimizer, batch, low=None):
    optimizer.zero_grad()
    loss = module.forward_with_casts(*batch, low) if low else module(*batch)
    loss.backward()
    optimizer.step()
    return loss.item()


def steps_of(options, case, count, low=None):
    """Yields (step, our loss, PyTorch's, weights before, ours after, PyTorch's after); PyTorch goes on from its own.  |low|: the type that
    autocast computes in; None: FP32."""
    path = os.path.join(options.work, "model")
    flags = ["--policy", LOW_POLICIES[low], "--no-pass=simplify"] if low else ["--precision", "fp32"]
    model = tools.compile_model(tools.variant(tools.MLP, path + ".amp", optimizer=case.line, loss_scale="none"), path + ".so", *flags)
    module = twin.make(twin.MLP)
    optimizer = case.make(module.parameters())
    for at, batch in enumerate(fashion.batches(BATCH + SPARE, case.first + count)):
        batch = away_from_kinks(module, batch)
        if at < case.first:
            torch_step(module, optimizer, batch, low)
            continue
        checkpoint = tools.write_checkpoint(path + ".safetensors", module, optimizer, slots=case.slots, step_count=at, iteration=at)
        report, after = ampc_step(options, model, batch, checkpoint)
        before = snapshot(module)
        loss = torch_step(module, optimizer, batch, low)
        yield at, report["loss"], loss, before, after, snapshot(module)


def check_optimizer(tally, options, name):
    case = OPTIMIZERS[name]
    losses, updates, worst = [], [], 0.0
    for at, our_loss, their_loss, before, ours, theirs in steps_of(options, case, LONG_STEPS if options.long else case.count):
        losses += loss_differences(at, our_loss, their_loss)
        updates += update_differences(at, before, ours, theirs, case.bound)
        worst = max(worst, *update_errors(before, ours, theirs).values())
    tally.same(f"fp32 {name}: loss within {LOSS_BOUND:g}", losses)
    tally.same(f"fp32 {name}: update within {case.bound:g} of its norm", updates, f"at most {worst:.2g}")


def check_fp32(tally, options):
    for name in OPTIMIZERS:
        tally.attempt(check_optimizer, options, name)


# ---- FP16 and BF16, unscaled ------------------------------------------------------------------------------------------------------


def check_low(tally, options, name, low):
    """Each side rounds its gradients: the update of all is compared, not of each parameter."""
    case, loss_bound, bound = OPTIMIZERS[name], *LOW_BOUNDS[low]
    bound *= case.carries
    losses, worst = [], 0.0
    for at, our_loss, their_loss, before, ours, theirs in steps_of(options, case, LONG_STEPS // 2 if options.long else LOW_STEPS, low):
        losses += loss_differences(at, our_loss, their_loss, loss_bound)
        worst = max(worst, update_errors(before, ours, theirs)["all"])
    kind = LOW_POLICIES[low].split("-")[1]
    tally.same(f"{kind} {name}: loss within {loss_bound:g}", losses)
    tally.same(f"{kind} {name}: update within {bound:g} of its norm", [] if worst <= bound else [f"{worst:.2g}"], f"at most {worst:.2g}")


def check_lows(tally, options):
    for name in ("rmsprop", "adafactor", "adagrad", "lion", "lamb", "muon", "two"):
        for low in LOW_POLICIES:
            tally.attempt(check_low, options, name, low)


# ---- FP16 ---------------------------------------------------------------------------------------------------------------------------


def fp16_steps(options, steps):
    """As PyTorch's training loop: autocast's casts, GradScaler's arithmetic, AdamW.  Starts at a scale that overflows at first.

    Without simplify, which takes the rounding of weight gradients away, and with it the overflows that are only in that rounding.
    """
    path = os.path.join(options.work, "model")
    text = tools.variant(tools.MLP, path + ".amp", optimizer="adamw(lr = 0.001)",
                         loss_scale="dynamic(init = 65536.0, interval = 3, min = 1.0, max = inf)")
    model = tools.compile_model(text, path + ".so", "--policy", "torch-fp16", "--no-pass=simplify")
    module = twin.make(twin.MLP)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
    scale, tracker, applied = torch.tensor(2.0 ** 22), torch.tensor(0, dtype=torch.int32), 0
    for at, batch in enumerate(fashion.batches(BATCH, steps)):
        state = {"scale": scale.item(), "growth_tracker": tracker.item()}
        checkpoint = tools.write_checkpoint(path + ".safetensors", module, optimizer, state, slots=("m", "v"), step_count=applied,
                                            iteration=at)
        report, after = ampc_step(options, model, batch, checkpoint)
        optimizer.zero_grad()
        loss = module.forward_with_casts(*batch, torch.float16)
        (loss * scale).backward()
        grads, found = [p.grad for p in module.parameters()], torch.tensor(0.0)
        torch._amp_foreach_non_finite_check_and_unscale_(grads, found, scale.double().reciprocal().float())
        if not found:
            optimizer.step()
            applied += 1
        torch._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 3)
        theirs = {"scaler/scale": scale.clone(), "scaler/growth_tracker": tracker.clone(), "counter/step": torch.tensor(applied)}
        yield at, report, loss.item(), bool(found), after, theirs


def check_fp16(tally, options):
    losses, states, skipped, steps = [], [], 0, LONG_FP16_STEPS if options.long else FP16_STEPS
    for at, report, loss, found, after, theirs in fp16_steps(options, steps):
        losses += loss_differences(at, report["loss"], loss, FP16_LOSS_BOUND)
        states += [f"step {at}: {text}" for text in tools.bit_differences(after, theirs, theirs)]
        if report["skipped"] != found:
            states.append(f"step {at}: skipped {report['skipped']}, PyTorch {found}")
        skipped += found
    tally.same(f"fp16 adamw: loss within {FP16_LOSS_BOUND:g}", losses)
    tally.same("fp16 adamw: scale, tracker, skips and step as PyTorch's", states, f"{skipped} steps skipped")
    tally.same("fp16 adamw: some steps were skipped and some not", [] if 0 < skipped < steps else [f"{skipped} skipped"])


# ---- planted ------------------------------------------------------------------------------------------------------------------------


def plant(tally, options):
    (at, _, loss, before, ours, theirs), = steps_of(options, OPTIMIZERS["adamw"], 1)
    tally.seen("a loss that is off by 2e-5", loss_differences(at, loss * (1 + 2e-5), loss))
    tally.seen("a loss that is NaN", loss_differences(at, float("nan"), loss))
    off = {name: before[name] + (w - before[name]) * 1.0002 for name, w in theirs.items()}
    tally.seen("a learning rate that is off by 2e-4", update_differences(at, before, off, theirs))
    stuck = {**ours, "fc3.bias": before["fc3.bias"]}
    tally.seen("a bias that is not updated", update_differences(at, before, stuck, theirs))


if __name__ == "__main__":
    harness.main(__doc__, [check_fp32, check_lows, check_fp16], [plant])
