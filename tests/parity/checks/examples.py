"""examples.py: the models of examples/, at small sizes, against their PyTorch twins: results, loss and gradients in
FP32 against float64, and ten training steps, each from PyTorch's own state."""
import os
from collections import namedtuple

import torch
from safetensors.torch import save_file

import ampc_tools as tools
import example_twins as twins
import harness

RESULT_BOUND = 1e-5    # relative, of results and loss
GRADIENT_BOUND = 1e-4  # of max(own norm, 0.05 of the largest)
UPDATE_BOUND = 1e-4    # of the update's norm
SHARE_OF_LARGEST = 0.05
FIRST, STEPS = 2, 10    # of the steps that are compared
CLIP = 1.0

# model: in examples/; defines: -D; make: the twin; inputs(): by name, without targets; targets(): or None
Example = namedtuple("Example", "model defines make inputs targets")


def tokens(sizes, samples=3):
    return lambda: torch.randint(0, sizes["V"], (samples, sizes["T"]))


def gpt2(**sizes):
    sizes = {**twins.GPT_SIZES, **sizes}
    return Example("gpt/gpt2.amp", {**sizes, "P": 0.0}, lambda: twins.Gpt2(*sizes.values()),
                   lambda: {"tokens": tokens(sizes)()}, tokens(sizes))


EXAMPLES = {"gpt2": gpt2(), "gpt2, long": gpt2(T=150)}


def written(path, tensors):
    def as_given(t):
        return (t.to(torch.int32) if t.dtype == torch.int64 else t).contiguous()

    save_file({name: as_given(t) for name, t in tensors.items()}, path)
    return path


class Run:
    """An example, compiled with a plain optimizer, and its twin."""

    def __init__(self, options, example):
        self.path = os.path.join(options.work, "example")
        source = os.path.join(tools.ROOT, "examples", example.model)
        copy = os.path.join(os.path.dirname(source), ".parity.amp")  # beside what it includes
        text = tools.variant(source, copy, optimizer="adamw(lr = 0.001)")
        defines = [word for name, value in example.defines.items() for word in ("-D", f"{name}={value}")]
        try:
            options = ("--precision", "fp32", "--target", "cpu", *defines)
            self.model = tools.compile_model(text, self.path + ".so", *options)
        finally:
            os.remove(text)
        torch.manual_seed(0)
        self.example, self.module = example, example.make()

    def batch(self):
        return self.example.inputs(), self.example.targets()

    def inputs_file(self, inputs, targets):
        return written(self.path + ".batch.safetensors", {**inputs, "targets": targets})


def relative(ours, theirs):
    return float((ours.double() - theirs).norm() / theirs.norm())


def result_differences(run):
    inputs, _ = run.batch()
    weights = tools.write_weights(run.path + ".weights.safetensors", run.module)
    given, outputs = written(run.path + ".inputs.safetensors", inputs), run.path + ".out.safetensors"
    tools.run(tools.program("tools/amprun"), "infer", run.model, "--weights", weights, "--inputs", given, "--outputs",
              outputs, "--force")
    exact, ours = run.module.double().results(**inputs), tools.read_tensors(outputs)
    run.module.float()
    for name, result in exact.items():
        error = relative(ours[name], result.detach())
        if not error <= RESULT_BOUND:
            yield f"{name}: relative error {error:.3g}, bound {RESULT_BOUND:g}"


def gradient_differences(run):
    inputs, targets = run.batch()
    weights = tools.write_weights(run.path + ".weights.safetensors", run.module)
    written_grads = run.path + ".grads.safetensors"
    report, = tools.step(run.model, "--weights", weights, "--inputs", run.inputs_file(inputs, targets), "--grads",
                         written_grads)
    module = run.module.double()
    loss = module(*inputs.values(), targets)
    names, parameters = zip(*module.named_parameters())
    grads = dict(zip(names, torch.autograd.grad(loss, parameters)))
    run.module.float()
    ours, largest = tools.read_tensors(written_grads), max(float(g.norm()) for g in grads.values())
    if not abs(report["loss"] - loss.item()) <= RESULT_BOUND * abs(loss.item()):
        yield f"loss {report['loss']:.9g}, PyTorch in float64 {loss.item():.9g}"
    if ours.keys() != grads.keys():
        yield f"gradients of {sorted(ours.keys() ^ grads.keys())} on one side only"
    for name in ours.keys() & grads.keys():
        size = max(float(grads[name].norm()), SHARE_OF_LARGEST * largest)
        error = float((ours[name].double() - grads[name]).norm()) / size
        if not error <= GRADIENT_BOUND:
            yield f"gradient of {name}: error {error:.3g}, bound {GRADIENT_BOUND:g}"


def decays(name):
    """The groups of the examples: no weight decay for biases and norms."""
    return not (name.endswith(".bias") or "ln_" in name)


def optimizer_of(module):
    decayed, others = ([p for name, p in module.named_parameters() if decays(name) == which] for which in (True, False))
    groups = [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-3)


def torch_step(module, optimizer, batch):
    optimizer.zero_grad()
    module(*batch).backward()
    torch.nn.utils.clip_grad_norm_(module.parameters(), CLIP)
    optimizer.step()


def all_of(tensors, before):
    return torch.cat([(tensors[name].double() - old).flatten() for name, old in before.items()])


def update_differences(run):
    """The whole update of each step; from the third, since the first ones divide gradients by their own size."""
    optimizer = optimizer_of(run.module)
    for at in range(FIRST + STEPS):
        inputs, targets = run.batch()
        before = {name: p.detach().clone().double() for name, p in run.module.named_parameters()}
        checkpoint = tools.write_checkpoint(run.path + ".before.safetensors", run.module, optimizer, slots=("m", "v"),
                                            step_count=at, iteration=at)
        torch_step(run.module, optimizer, (*inputs.values(), targets))
        if at < FIRST:
            continue
        after = run.path + ".after.safetensors"
        tools.step(run.model, "--resume", checkpoint, "--inputs", run.inputs_file(inputs, targets), "--checkpoint",
                   after, "--force")
        theirs = {name: p.detach() for name, p in run.module.named_parameters()}
        error = relative(all_of(tools.read_tensors(after), before), all_of(theirs, before))
        if not error <= UPDATE_BOUND:
            yield f"step {at}: update: relative error {error:.3g}, bound {UPDATE_BOUND:g}"


def check_examples(tally, options):
    for name, example in EXAMPLES.items():
        run = Run(options, example)
        tally.same(f"{name}: results within {RESULT_BOUND:g}", result_differences(run))
        tally.same(f"{name}: loss and gradients", gradient_differences(run))
        tally.same(f"{name}: updates of {STEPS} steps within {UPDATE_BOUND:g}", update_differences(run))


def planted(tally, options):
    run = Run(options, EXAMPLES["gpt2"])
    inputs, targets = run.batch()
    exact = run.module.double()(*inputs.values(), targets)
    run.module.float()
    with torch.no_grad():
        run.module.h[1]["attn"]["c_attn"].bias[2 * twins.GPT_SIZES["C"] + 5] += 0.05
    weights = tools.write_weights(run.path + ".weights.safetensors", run.module)
    report, = tools.step(run.model, "--weights", weights, "--inputs", run.inputs_file(inputs, targets))
    error = abs(report["loss"] - exact.item()) / exact.item()
    tally.seen("a value that is 0.05 off", [f"loss {error:.2g} off"] if error > RESULT_BOUND else [])


if __name__ == "__main__":
    harness.main(__doc__, [check_examples], [planted])
