"""many_tensors.py: models of about 500 and 1,000 trained tensors, compiled and trained, against PyTorch in double: in
FP32 the losses of three steps and how each tensor moves; in FP16 and BF16 the first loss, and that it falls."""
import math

import torch
import torch.nn.functional as F

import harness
import tensor_models as many
from tensor_models import CLASSES, WIDTH, Model, Trained, training_differences

CHOSEN = [  # number (of features), count, precision
    (0, 503, "fp32"), (9, 512, "fp32"), (17, 520, "fp32"), (7, 497, "fp16"),
    (4, 1000, "fp32"), (8, 1024, "fp32"), (1, 1013, "fp16"), (5, 1030, "bf16")]
STEPS, LONG_STEPS = 3, 12
LOSS_BOUND = {"fp32": 1e-5, "fp16": 1e-2, "bf16": 5e-2}  # relative
MOVE_BOUND = 1e-3  # of how far a tensor moves, or 0.05 of the one that moves most

# ---- the same by PyTorch ----


def shape(name):
    if name.endswith("head.weight"):
        return CLASSES, WIDTH
    return (WIDTH, ) if name.endswith(".bias") or "_n." in name else (WIDTH, WIDTH)


def forward(model, w, x):
    """The results by block."""
    h, out = x, {}
    for name, kind in model.layers:
        z = h
        if kind == "layer_norm":
            z = F.layer_norm(h, [WIDTH], w[name + "_n.weight"], w[name + "_n.bias"])
        elif kind == "batch_norm":
            z = F.batch_norm(h, None, None, w[name + "_n.weight"], w[name + "_n.bias"], training=True)
        h = h + 0.1 * torch.tanh(F.linear(z, w[name + ".weight"], w.get(name + ".bias")))
        out[name[0]] = F.linear(h, w[name[0] + "_head.weight"]) if name[0] + "_head.weight" in w else h
    return out


def twin(model, first, steps, clips=True):
    """Losses of the steps, and the parameters after them."""
    w = {name: torch.tensor(first[name]).double().reshape(shape(name)).requires_grad_() for name in model.trained()}
    x, t = many.batch()
    x, t = torch.tensor(x, dtype=torch.float32).double(), torch.tensor(t)
    make = (lambda p: torch.optim.SGD(p, 0.1)) if model.optimizer.startswith("sgd") else \
        (lambda p: torch.optim.AdamW(p, 0.01, eps=0.01))
    mine = {block: [p for name, p in w.items() if name.startswith(block)] for block in model.blocks}
    optimizers = [make(parameters) for parameters in mine.values()]
    losses = []
    for _ in range(steps):
        y = forward(model, w, x)
        parts = {block: F.cross_entropy(y[block], t) for block in model.blocks}
        losses.append(float(sum(part.detach() for part in parts.values())))
        for block, part in parts.items():  # of its own loss alone
            for p, gradient in zip(mine[block], torch.autograd.grad(part, mine[block], retain_graph=True)):
                p.grad = gradient
            if model.clip is not None and clips:
                torch.nn.utils.clip_grad_norm_(mine[block], float(model.clip))
        for optimizer in optimizers:
            optimizer.step()
    return losses, {name: p.detach().flatten() for name, p in w.items()}


# ---- comparing ----


def loss_differences(ours, theirs, bound):
    for step, (a, b) in enumerate(zip(ours, theirs)):
        if not abs(a - b) <= bound * abs(b):
            yield f"loss of step {step + 1}: {a}, PyTorch {b:.9g}"


def move_differences(first, ours, theirs):
    """How each tensor moves."""
    moves = {name: their - torch.tensor(first[name]).double() for name, their in theirs.items()}
    largest = max(float(move.norm()) for move in moves.values())
    for name, their in theirs.items():
        error = float((torch.tensor(ours[name]).double() - their).norm())
        if not error <= MOVE_BOUND * max(float(moves[name].norm()), 0.05 * largest):
            yield f"{name} moves by {float(moves[name].norm()):.3g}, and is off by {error:.3g}"


# ---- checks ----


def check_models(tally, options):
    for number, count, precision in CHOSEN if options.long else CHOSEN[:1]:
        model = Model(number, count, precision)
        low = precision != "fp32"
        trained = Trained(model, options.work, LONG_STEPS if low else STEPS)
        losses, last = twin(model, trained.first, STEPS)
        told = f"losses {', '.join(f'{loss:.6g}' for loss in trained.losses)}"
        tally.same(f"{model}: losses", loss_differences(trained.losses, losses[:1] if low else losses,
                                                        LOSS_BOUND[precision]), told)
        if low:
            tally.same(f"{model}: trains", training_differences(model, trained))
        else:
            tally.same(f"{model}: parameters", move_differences(trained.first, trained.last, last))
            plant(tally, model, trained, last)


def plant(tally, model, trained, last):
    name = max(last, key=lambda n: float((last[n] - torch.tensor(trained.first[n])).norm()))
    off = dict(trained.last, **{name: trained.first[name]})
    tally.seen("a tensor that does not move", move_differences(trained.first, off, last))
    if model.clip not in (None, "inf"):
        whole = twin(model, trained.first, STEPS, clips=False)[1]
        moved = {n: v.tolist() for n, v in whole.items()}
        tally.seen("gradients that are not clipped", move_differences(trained.first, moved, last))


def plants(tally, options):
    tally.seen("a loss that is not a number", loss_differences([math.nan], [1.0], 1))


if __name__ == "__main__":
    harness.main(__doc__, [check_models], [plants])
