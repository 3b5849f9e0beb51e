"""gradients.py: how far FP16 and BF16 gradients are from float64, against how far PyTorch's are when it does the same casts.

Over a number of batches, along one FP32 training run of PyTorch: the root-mean-square error of our gradients (amprun step --grads)
divided by the error of PyTorch's on the CPU, for the whole gradient and for each parameter.
"""
import os

import torch

import ampc_tools as tools
import fashion
import harness
import twin
import twins

BATCH = 128
BATCHES, LONG_BATCHES = 32, 256
WHOLE_BOUND, PARAMETER_BOUND = 1.2, 2.0
LOSS_SCALE = 65536.0
PRECISIONS = {"fp16": (torch.float16, LOSS_SCALE), "bf16": (torch.bfloat16, 1.0)}


def in_double(grads):
    return {name: g.double() for name, g in grads.items()}


def torch_gradients(module, loss, scale=1.0):
    return in_double(twins.gradients_of(module, {"": loss}, scale))


def ampc_gradients(options, model, weights, batch, scale):
    grads = os.path.join(options.work, "grads.safetensors")
    inputs = tools.write_batch(os.path.join(options.work, "batch.safetensors"), *batch)
    scaled = ["--scale", scale] if scale != 1.0 else []
    report, = tools.step(model, "--weights", weights, "--inputs", inputs, "--grads", grads, *scaled)
    if report["skipped"]:
        raise RuntimeError(f"the gradients overflow at scale {scale:g}: choose a smaller one")
    return in_double(tools.read_tensors(grads))


class Errors:
    """Sums of squared errors against float64 by parameter, over batches."""

    def __init__(self):
        self.sums = {}

    def add(self, grads, exact):
        if grads.keys() != exact.keys():
            raise ValueError(f"gradients of {sorted(grads)}; wanted {sorted(exact)}")
        for name, g in grads.items():
            self.sums[name] = self.sums.get(name, 0.0) + float((g - exact[name]).square().sum())

    def whole(self, other):
        return (sum(self.sums.values()) / sum(other.sums.values())) ** 0.5

    def ratios(self, other):
        """Our root-mean-square error over the other's."""
        ratio = {name: (s / other.sums[name]) ** 0.5 for name, s in self.sums.items()}
        ratio["whole gradient"] = self.whole(other)
        return ratio


def ratio_differences(ratios):
    for name, ratio in ratios.items():
        bound = WHOLE_BOUND if name == "whole gradient" else PARAMETER_BOUND
        if not ratio <= bound:
            yield f"{name}: {ratio:.3f} times PyTorch's error, bound {bound}"


def errors_along_training(options, precision, count):
    """(our errors, PyTorch's, exact gradients and ours of the last batch)"""
    low, scale = PRECISIONS[precision]
    path = os.path.join(options.work, precision)
    model = tools.compile_model(tools.MLP, path + ".so", "--policy", f"torch-{precision}")
    module = twin.make(twin.MLP)
    exact_module = twin.make(twin.MLP).double()
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
    ours, theirs = Errors(), Errors()
    for x, targets in fashion.batches(BATCH, count):
        exact_module.load_state_dict(module.state_dict())
        exact = torch_gradients(exact_module, exact_module(x.double(), targets))
        weights = tools.write_weights(path + ".safetensors", module)
        mine = ampc_gradients(options, model, weights, (x, targets), scale)
        ours.add(mine, exact)
        theirs.add(torch_gradients(module, module.forward_with_casts(x, targets, low), scale), exact)
        optimizer.zero_grad()
        module(x, targets).backward()
        optimizer.step()
    return ours, theirs, exact, mine


def check_precision(tally, options, precision):
    count = LONG_BATCHES if options.long else BATCHES
    ours, theirs, _, _ = errors_along_training(options, precision, count)
    ratios = ours.ratios(theirs)
    print(f"      {precision} over {count} batches: " + ", ".join(f"{name} {ratio:.3f}" for name, ratio in ratios.items()))
    tally.same(f"{precision}: error at most {WHOLE_BOUND} times PyTorch's (each parameter {PARAMETER_BOUND})",
               ratio_differences(ratios), f"{ratios['whole gradient']:.3f}")


def check_gradients(tally, options):
    for precision in PRECISIONS:
        tally.attempt(check_precision, options, precision)


def plant(tally, options):
    ours, theirs, exact, mine = errors_along_training(options, "bf16", 1)
    worse = Errors()
    worse.add({name: exact[name] + 1.5 * (g - exact[name]) for name, g in mine.items()}, exact)
    scale = 1.0 / ours.ratios(theirs)["whole gradient"]  # so that the planted error is 1.5 times PyTorch's
    planted = {name: ratio * scale for name, ratio in worse.ratios(theirs).items()}
    tally.seen("1.5 times the error in every gradient", ratio_differences(planted))
    missing = Errors()
    missing.add({**mine, "fc2.bias": torch.zeros_like(exact["fc2.bias"])}, exact)
    tally.seen("a bias whose gradient is zero", ratio_differences(missing.ratios(theirs)))


if __name__ == "__main__":
    harness.main(__doc__, [check_gradients], [plant])
