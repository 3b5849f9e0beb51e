"""values.py: what compiled models promise about bits: every value of a low type is rounded to it, passes that may be left out change
nothing (simplify: only what it lists), threads change nothing, and a resumed training goes on as if it had never stopped."""
import os
from collections import namedtuple

import torch

import ampc_tools as tools
import fashion
import harness
import ir_text
import twin

LOW = {"f16": torch.float16, "bf16": torch.bfloat16}
THREADS = (1, 2, 3, 8)
SAMPLES = 100  # not a multiple of a tile

# precisions: in which passes are left out (--long: in all)
Case = namedtuple("Case", "model sizes precisions")
PRECISIONS = ("fp16", "bf16", "fp32", "tf32")
CASES = {
    "mlp": Case(tools.MLP, twin.MLP, ("fp16", "fp32")),
    "mlp_16_32_10": Case(os.path.join(tools.MODELS, "mlp_16_32_10.amp"), twin.SMALL, PRECISIONS),
    "dropout": Case(os.path.join(tools.MODELS, "dropout.amp"), twin.SMALL, ("fp16",)),
}


def batch_of(case, samples=SAMPLES):
    if case.sizes == twin.MLP:
        return fashion.batches(samples, 1)[0]
    generator = torch.Generator().manual_seed(3)
    return torch.randn(samples, case.sizes[0], generator=generator), torch.randint(10, (samples,), generator=generator)


class Bench:
    """Weights and a batch of one case, and the models that are compiled from it."""

    def __init__(self, options, name):
        self.name, self.case, self.folder = name, CASES[name], options.work
        self.weights = tools.write_weights(self.file("weights"), twin.make(self.case.sizes))
        self.batch = tools.write_batch(self.file("batch"), *batch_of(self.case))

    def file(self, suffix, ending=".safetensors"):
        return os.path.join(self.folder, f"{self.name}.{suffix}{ending}")

    def compile(self, precision, *options):
        path = self.file("".join((precision, *options)), ".so")
        if not os.path.exists(path):  # several checks want the same model
            tools.compile_model(self.case.model, path, "--precision", precision, *options)
        return path

    def steps(self, model, count, *options):
        """The checkpoint after |count| steps, and the gradients of the first."""
        after, grads = self.file("after"), self.file("grads")
        tools.step(model, "--weights", self.weights, "--inputs", self.batch, "--steps", count, "--checkpoint", after, "--grads", grads,
                   "--seed", 5, *options)
        gradients = {"grad." + name: g for name, g in tools.read_tensors(grads).items()}
        return {**tools.read_tensors(after), **gradients}

    def values(self, model):
        """({name: tensor}, {name: dtype}) of every value that stays readable after a step."""
        path = self.file("values")
        tools.step(model, "--weights", self.weights, "--inputs", self.batch, "--values", "*", path)
        dtypes = tools.read_metadata(path)
        dtypes.pop("amp.format", None)
        return tools.read_tensors(path), dtypes


# ---- roundings ----------------------------------------------------------------------------------------------------------------


def rounding_differences(values, dtypes):
    for name, tensor in values.items():
        if dtypes.get(name) in LOW:
            rounded = tensor.to(LOW[dtypes[name]]).to(tensor.dtype)
            wrong = (tools.bits(rounded) != tools.bits(tensor)) & ~(tensor.isnan() & rounded.isnan())
            if wrong.any():
                yield f"{name}: {int(wrong.sum())} of {tensor.numel()} values are not their own {dtypes[name]} rounding"


def check_roundings(tally, options):
    bench = Bench(options, "mlp")
    for precision, low in (("fp16", "f16"), ("bf16", "bf16")):
        for flags in ((), ("--no-pass=fuse",)):
            values, dtypes = bench.values(bench.compile(precision, *flags))
            count = sum(dtypes.get(name) == low for name in values)
            label = " ".join((precision, *flags))
            tally.same(f"{label}: every {low} value is its own rounding", rounding_differences(values, dtypes), f"{count} values")
            tally.same(f"{label}: there are {low} values", [] if count else [f"none of {sorted(values)}"])


# ---- passes left out ------------------------------------------------------------------------------------------------------------


def check_fuse_and_layout(tally, options):
    for name in CASES:
        bench = Bench(options, name)
        for precision in PRECISIONS if options.long else bench.case.precisions:
            whole = bench.steps(bench.compile(precision), 3)
            for flag in ("--no-pass=fuse", "--no-pass=layout"):
                other = bench.steps(bench.compile(precision, flag), 3)
                tally.same(f"{name} {precision} {flag}: 3 steps, equal bits", tools.bit_differences(whole, other))


def simplify_differences(whole, other, allowed):
    """Bits that differ between values that both have, where simplify's list does not allow it."""
    return tools.bit_differences(whole, other, named_in_both(whole, other) - allowed)


def named_in_both(whole, other):
    """Values without a name are numbered, and numbers shift when ops go."""
    return {name for name in whole.keys() & other.keys() if not name.isdigit()}


def simplify_sides(options, precision):
    """(values with simplify, without, the values that may differ)"""
    bench = Bench(options, "mlp")
    with_it, _ = bench.values(bench.compile(precision))
    without, _ = bench.values(bench.compile(precision, "--no-pass=simplify"))
    text = tools.dump(bench.case.model, "simplify", "--precision", precision)
    allowed = ir_text.dependents(ir_text.function(text, "train_step"), ir_text.removed(text, "train_step"))
    allowed |= {result for result, value in ir_text.results(text, "train_step").items() if value in allowed}
    return with_it, without, allowed


def check_simplify(tally, options):
    for precision in ("fp16", "bf16", "fp32"):
        with_it, without, allowed = simplify_sides(options, precision)
        both = named_in_both(with_it, without)
        tally.same(f"{precision} --no-pass=simplify: there are values that may not differ",
                   [] if both - allowed else [f"none of {sorted(both)}"])
        tally.same(f"{precision} --no-pass=simplify: only what is listed as removed, and what depends on it, differs",
                   simplify_differences(with_it, without, allowed), f"{len(both - allowed)} values equal, {len(both & allowed)} may differ")


# ---- threads and resuming --------------------------------------------------------------------------------------------------------


def check_threads(tally, options):
    bench = Bench(options, "mlp")
    for precision in ("fp16", "bf16", "fp32"):
        model = bench.compile(precision)
        one = bench.steps(model, 3, "--threads", THREADS[0])
        for threads in THREADS[1:]:
            several = bench.steps(model, 3, "--threads", threads)
            tally.same(f"{precision}: {threads} threads give the bits of one", tools.bit_differences(one, several))


def resumed_and_not(options, name, precision):
    """The checkpoints after 20 steps at one go, and after 10 steps, a checkpoint and 10 more."""
    bench = Bench(options, name)
    model, data = bench.compile(precision), bench.file("data")
    tools.write_batch(data, *batch_of(bench.case, 500))
    common = ("--data", "safetensors:" + data, "--batch", 64, "--seed", 11)
    tools.train(model, *common, "--steps", 20, "--checkpoint", bench.file("whole"))
    tools.train(model, *common, "--steps", 10, "--checkpoint", bench.file("half"))
    tools.train(model, *common, "--steps", 20, "--resume", bench.file("half"), "--checkpoint", bench.file("resumed"))
    return [tools.read_tensors(bench.file(part)) for part in ("whole", "resumed", "half")]


def check_resuming(tally, options):
    for name in ("mlp", "dropout"):
        for precision in ("fp16", "bf16", "fp32"):
            whole, resumed, _ = resumed_and_not(options, name, precision)
            tally.same(f"{name} {precision}: resumed training has the bits of uninterrupted", tools.bit_differences(whole, resumed))


# ---- planted ------------------------------------------------------------------------------------------------------------------------


def plant(tally, options):
    bench = Bench(options, "mlp")
    values, dtypes = bench.values(bench.compile("fp16"))
    name = next(name for name in sorted(values) if dtypes.get(name) == "f16" and values[name].dim() > 1)
    tally.seen("one f16 value with a bit below its rounding", rounding_differences(tools.flip_bit(values, name), dtypes))
    tally.seen("one bit of one value flipped", tools.bit_differences(values, tools.flip_bit(values)))
    with_it, without, _ = simplify_sides(options, "fp16")
    tally.seen("a removed rounding that is not listed", simplify_differences(with_it, without, set()))
    whole, _, half = resumed_and_not(options, "dropout", "fp32")
    tally.seen("a training that stopped at half", tools.bit_differences(whole, half))


if __name__ == "__main__":
    harness.main(__doc__, [check_roundings, check_fuse_and_layout, check_simplify, check_threads, check_resuming], [plant])
