"""lengths.py: the models in models/lengths, which have a size T, beside their PyTorch twins at ten lengths: results,
loss and gradients in FP32 against float64; in FP16 and BF16 their errors against PyTorch's with the same casts."""
import copy
import os

import torch

import ampc_tools as tools
import harness
import length_models
import twins
from cuda_casts import CudaCasts
from examples import GRADIENT_BOUND, RESULT_BOUND, SHARE_OF_LARGEST, arguments, exactly, written
from gradients import Errors, ratio_differences

MOST = 256
LENGTHS = {1: (1, 2, 3, 7, 16, 31, 33, 64, 100, 130), 8: (8, 16, 24, 32, 40, 64, 72, 104, 128, 200)}  # by the unit
PRECISIONS = {"fp16": (torch.float16, 1024.0), "bf16": (torch.bfloat16, 1.0)}
ONE_BOUND = 2.0  # of the error at one length, all gradients together, by PyTorch's
BATCHES = 2      # of each length, in the long form
LIVE = (("gpt", "fp32"), ("texts", "fp16"))  # all that is not left to the long form


class Run:
    """A model for all lengths, and its twin."""

    def __init__(self, options, name, precision):
        self.model, self.path = length_models.MODELS[name], os.path.join(options.work, f"{name}.{precision}")
        defines = {"MOST": MOST, "UNIT": self.model.unit, **self.model.defines}
        policy = "fp32" if precision == "fp32" else f"torch-{precision}"
        self.compiled = tools.compile_model(
            length_models.path_of(name), self.path + ".so", "--target", "cpu", "--isa", "native", "--policy", policy,
            *(word for key, value in defines.items() for word in ("-D", f"{key}={value}")))
        torch.manual_seed(0)
        self.module = self.model.make(MOST)
        self.exact = copy.deepcopy(self.module).double()
        self.weights = tools.write_weights(self.path + ".weights", self.module)
        self.low, self.scale = PRECISIONS.get(precision, (None, 1.0))

    def ours(self, inputs, targets, length):
        """Result, loss and gradients by name."""
        batch, grads, results = (f"{self.path}.{kind}" for kind in ("batch", "grads", "results"))
        common = "--weights", self.weights, "--length", length, "--force"
        written(batch, inputs)
        tools.run(tools.program("tools/amprun"), "infer", self.compiled, "--inputs", batch, "--outputs", results,
                  *common)
        written(batch, {**inputs, "targets": targets})
        scaled = ["--scale", self.scale] if self.scale != 1.0 else []
        report, = tools.step(self.compiled, "--inputs", batch, "--grads", grads, *common, *scaled)
        if report["skipped"]:
            raise RuntimeError(f"the gradients overflow at scale {self.scale:g}: choose a smaller one")
        return {"logits": tools.read_tensors(results)["logits"].double(), "loss": torch.tensor(report["loss"]).double(),
                **{name: g.double() for name, g in tools.read_tensors(grads).items()}}

    def theirs(self, module, batch):
        loss = module(*batch)
        grads = twins.gradients_of(module, {"": loss}, self.scale)
        results = module.results(*batch[:-1])
        return {"logits": results["logits"].detach().double(), "loss": loss.detach().double(),
                **{name: g.double() for name, g in grads.items()}}

    def batch(self, length):
        inputs, targets = self.model.inputs(length), self.model.targets(length)
        given = arguments(inputs, targets)
        return self.ours(inputs, targets, length), self.theirs(self.exact, exactly(given)), given

    def in_low(self, given):
        with CudaCasts(self.low):
            return self.theirs(self.module, given)


def differences(ours, exact):
    """In FP32."""
    if ours.keys() != exact.keys():
        yield f"{sorted(ours.keys() ^ exact.keys())} on one side only"
    largest = max(float(g.norm()) for name, g in exact.items() if name not in ("logits", "loss"))
    for name in ours.keys() & exact.keys():
        result = name in ("logits", "loss")
        size = float(exact[name].norm()) if result else max(float(exact[name].norm()), SHARE_OF_LARGEST * largest)
        bound = RESULT_BOUND if result else GRADIENT_BOUND
        error = float((ours[name] - exact[name]).norm()) / size
        if not error <= bound:
            yield f"{name}: error {error:.3g}, bound {bound:g}"


def check_fp32(tally, options, name, lengths):
    run = Run(options, name, "fp32")
    for length in lengths:
        ours, exact, _ = run.batch(length)
        tally.same(f"{name} fp32, T = {length}: results, loss and gradients", differences(ours, exact))


def check_low(tally, options, name, precision, lengths):
    run, ours, theirs = Run(options, name, precision), Errors(), Errors()
    for length in lengths:
        our, their = Errors(), Errors()
        for _ in range(BATCHES if options.long else 1):
            mine, exact, given = run.batch(length)
            of_torch = run.in_low(given)
            for errors in (our, ours):
                errors.add(mine, exact)
            for errors in (their, theirs):
                errors.add(of_torch, exact)
        whole = our.whole(their)
        tally.same(f"{name} {precision}, T = {length}: error at most {ONE_BOUND} times PyTorch's",
                   [f"{whole:.3f}"] if not whole <= ONE_BOUND else [], f"{whole:.3f}")
    ratios = ours.ratios(theirs)
    worst = max(ratios, key=ratios.get)
    tally.same(f"{name} {precision}: errors beside PyTorch's", ratio_differences(ratios),
               f"all {ratios['whole gradient']:.3f}, largest {worst} {ratios[worst]:.3f}")


def check_lengths(tally, options):
    for name, model in length_models.MODELS.items():
        for precision in ("fp32", *PRECISIONS):
            lengths = LENGTHS[model.unit]
            if options.long or (name, precision) in LIVE:
                check = (check_fp32, options, name) if precision == "fp32" else (check_low, options, name, precision)
                tally.attempt(*check, lengths)


def plant(tally, options):
    run = Run(options, "texts", "fp32")
    ours, exact, (tokens, mask, targets) = run.batch(24)
    longer = {**ours, "head.bias": 1.001 * ours["head.bias"]}
    tally.seen("a gradient that is 0.1 % too long", differences(longer, exact))
    mask[1, -1] = 1 - mask[1, -1]
    of_another_mask = run.theirs(run.exact, (tokens, mask, targets))
    tally.seen("one token more or less that the mask shows", differences(ours, of_another_mask))
    shorter = run.theirs(run.exact, (tokens[:, :-1], mask[:, :-1], targets))
    tally.seen("a text that is cut by a token", differences(ours, shorter))


if __name__ == "__main__":
    harness.main(__doc__, [check_lengths], [plant])
