"""cnn.py: single training steps of the convolutional example, each started from PyTorch's own state (weights, moments, running statistics,
counters) and compared with PyTorch's step on the same batch: the loss, the update w_new - w_old, and batch norm's running statistics.
"""
import copy
import os

import torch

import ampc_tools as tools
import fashion
import harness
import steps
import twin

BATCH, STEPS, LONG_STEPS = 128, 50, 200
UPDATE_BOUND = 1e-4     # relative to the norm of the whole update
ONE_UPDATE_BOUND = 1e-3  # of a single parameter
# Of 3.2 million activations a step some lie so close to relu's kink, or to another of their pooling window, that the order of a float32
# sum decides; then two right updates differ by that pixel's share.  Batch norm mixes the samples, so that they cannot be left out, as
# steps.py does: where ours differs from PyTorch's, PyTorch's step in float64 shows which of the two took the side of
# exact arithmetic.  Ours may be the one that did not in at most one step in ten, by no more than KINK_FACTOR.
KINK_SHARE, KINK_FACTOR = 0.1, 20
STATISTICS_BOUND = 1e-5  # relative, of the batch's mean and variance as the running ones took them in
MOMENTUM = 0.1           # of batch norm
LINE = "adamw(lr = 0.001)"


def batches(count):
    return [(x.view(-1, 1, 28, 28), targets) for x, targets in fashion.batches(BATCH, count)]


def buffers(module):
    return {name: b.detach().clone() for name, b in module.named_buffers()}


def cnn_steps(options, count, precision="fp32"):
    """Yields (step, our loss, PyTorch's, (weights, buffers) before, ours after, (weights, buffers) of PyTorch after, a function that gives
    the weights after PyTorch's step in float64)."""
    path = os.path.join(options.work, "cnn")
    text = tools.variant(tools.CNN, path + ".amp", optimizer=LINE)
    model = tools.compile_model(text, path + ".so", "--precision", precision)
    module = twin.make_cnn()
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
    for at, batch in enumerate(batches(count)):
        checkpoint = tools.write_checkpoint(path + ".safetensors", module, optimizer, slots=("m", "v"), step_count=at, iteration=at)
        report, after = steps.ampc_step(options, model, batch, checkpoint)
        before = steps.snapshot(module), buffers(module)
        exact = exact_step(module, optimizer, batch)
        loss = steps.torch_step(module, optimizer, batch)
        yield at, report["loss"], loss, before, after, (steps.snapshot(module), buffers(module)), exact


def exact_step(module, optimizer, batch):
    """PyTorch's step in float64, from the state that it has now, when it is asked for."""
    module, state = copy.deepcopy(module).double(), copy.deepcopy(optimizer.state_dict())

    def weights():
        exact = torch.optim.AdamW(module.parameters(), lr=1e-3)
        exact.load_state_dict(state)
        for slots in exact.state.values():
            slots.update({name: slots[name].double() for name in ("exp_avg", "exp_avg_sq")})
        steps.torch_step(module, exact, (batch[0].double(), batch[1]))
        return steps.snapshot(module)

    return weights


# ---- comparing ------------------------------------------------------------------------------------------------------------------


def update_differences(at, before, ours, theirs, factor=1):
    for name, error in steps.update_errors(before, ours, theirs).items():
        bound = factor * (UPDATE_BOUND if name == "all" else ONE_UPDATE_BOUND)
        if not error <= bound:
            yield f"step {at}: update of {name}: relative error {error:.2g}, bound {bound:g}"


def statistics_differences(at, before, ours, theirs):
    """Running means and variances by the batch's own, (new - (1 - MOMENTUM) old) / MOMENTUM; integers by their bits."""
    for name, old in before.items():
        if not old.is_floating_point():
            if not torch.equal(ours[name], theirs[name]):
                yield f"step {at}: {name}: {ours[name].item()}, PyTorch {theirs[name].item()}"
            continue
        error = tools.relative_error(*((new[name].double() - (1 - MOMENTUM) * old.double()) / MOMENTUM for new in (ours, theirs)))
        if not error <= STATISTICS_BOUND:
            yield f"step {at}: {name}: relative error of the batch's {error:.2g}, bound {STATISTICS_BOUND:g}"


def check_steps(tally, options):
    losses, updates, kinks, statistics, worst, decided = [], [], [], [], 0.0, 0
    count = LONG_STEPS if options.long else STEPS
    for at, our_loss, their_loss, before, ours, theirs, exact in cnn_steps(options, count):
        losses += steps.loss_differences(at, our_loss, their_loss)
        kink = list(update_differences(at, before[0], ours, theirs[0]))[:1]
        if kink and not list(update_differences(at, before[0], ours, exact())):
            decided += 1
        else:
            kinks += kink
            worst = max(worst, steps.update_errors(before[0], ours, theirs[0])["all"])
        updates += update_differences(at, before[0], ours, theirs[0], KINK_FACTOR)
        statistics += statistics_differences(at, before[1], ours, theirs[1])
    tally.same(f"fp32 cnn: loss within {steps.LOSS_BOUND:g}", losses)
    tally.same(f"fp32 cnn: update within {UPDATE_BOUND:g} of its norm in all but {KINK_SHARE:.0%} of the steps",
               kinks if len(kinks) > KINK_SHARE * count else [],
               f"{count - len(kinks)} of {count}, at most {worst:.2g}; {decided} of them within it of float64 instead of float32")
    tally.same(f"fp32 cnn: update within {KINK_FACTOR * UPDATE_BOUND:g} of its norm in every step", updates)
    tally.same(f"fp32 cnn: the batch's statistics within {STATISTICS_BOUND:g}", statistics)


# ---- planted --------------------------------------------------------------------------------------------------------------------


def plant(tally, options):
    (at, _, _, before, ours, theirs, _), = cnn_steps(options, 1)
    off = {name: before[0][name] + (w - before[0][name]) * 1.002 for name, w in theirs[0].items()}
    tally.seen("a learning rate that is off by 2e-3", update_differences(at, before[0], off, theirs[0]))
    stuck = {**ours, "conv1.weight": before[0]["conv1.weight"]}
    tally.seen("a kernel that is not updated", update_differences(at, before[0], stuck, theirs[0]))
    biased = {**theirs[1], "bn1.running_var": theirs[1]["bn1.running_var"] * (1 - 1.0 / (BATCH * 784))}
    tally.seen("a running variance that is biased", statistics_differences(at, before[1], biased, theirs[1]))
    uncounted = {**theirs[1], "bn2.num_batches_tracked": before[1]["bn2.num_batches_tracked"]}
    tally.seen("a batch that is not counted", statistics_differences(at, before[1], uncounted, theirs[1]))


if __name__ == "__main__":
    harness.main(__doc__, [check_steps], [plant])
