"""examples.py: the models of examples/, at small sizes, against their PyTorch twins: results, loss and gradients in
FP32 against float64, and ten training steps, each from PyTorch's own state."""
import copy
import os

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

import ampc_tools as tools
import harness
import twins
from twins import gpt

RESULT_BOUND = 1e-5    # relative, of results and loss
GRADIENT_BOUND = 1e-4  # of max(own norm, 0.05 of the largest)
UPDATE_BOUND = 1e-4    # of the update's norm, or PyTorch's own error in f32: adam enlarges tiny gradients with theirs
SHARE_OF_LARGEST = 0.05
FIRST, STEPS = 2, 10    # of the steps that are compared
NO_GRADIENT = 1e-12     # of the largest norm: of a gradient that is 0 but for float64's rounding
STATISTICS_BOUND = 1e-5  # of the batch's mean over its deviation, and of its variance
MOMENTUM = 0.1          # of batch norm
ROUNDING = 2.0**-24
CLEAR = 5e-6            # deviations that what relu reads is away from 0, where a rounding decides between two gradients
TRIES = 1000            # batches that may be drawn for one that does


def written(path, tensors):
    def as_given(t):
        return (t.to(torch.int32) if t.dtype == torch.int64 else t).contiguous()

    save_file({name: as_given(t) for name, t in tensors.items()}, path)
    return path


def arguments(inputs, targets):
    """The twin's arguments."""
    return [*inputs.values()] if targets is None else [*inputs.values(), targets]


def exactly(tensors):
    return [x.double() if x.is_floating_point() else x for x in tensors]


class Kinks(torch.overrides.TorchFunctionMode):
    """How near what relu reads comes to 0, in its deviations; a 0 that is one in every arithmetic is none."""

    nearest = float("inf")

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in (F.relu, F.leaky_relu):
            sizes = args[0].detach().abs()
            near = sizes[sizes > 0].min() / sizes.square().mean().sqrt()
            self.nearest = min(self.nearest, float(near))
        return func(*args, **(kwargs or {}))


def nearest_kink(exact, batch):
    with torch.no_grad(), Kinks() as kinks:
        exact(*exactly(batch))
    return kinks.nearest


class Run:
    """An example, compiled with a plain optimizer, and its twin."""

    def __init__(self, options, example):
        self.path = os.path.join(options.work, "example")
        source = os.path.join(tools.ROOT, "examples", example.model)
        beside = os.path.join(os.path.dirname(source), ".parity.amp")  # beside what it includes
        module = example.make()
        changed = {} if hasattr(module, "optimizer") else {"optimizer": "adamw(lr = 0.001)"}
        text = tools.variant(source, beside, **changed)
        defines = [word for name, value in example.defines.items() for word in ("-D", f"{name}={value}")]
        try:
            options = ("--precision", "fp32", "--target", "cpu", "--isa", "native", *defines)
            self.model = tools.compile_model(text, self.path + ".so", *options)
        finally:
            os.remove(text)
        torch.manual_seed(0)
        self.example, self.module = example, example.make()

    def batch(self):
        exact = copy.deepcopy(self.module).double()  # its running statistics change, and decide nothing in training
        for _ in range(TRIES):
            inputs, targets = self.example.inputs(), self.example.targets()
            if nearest_kink(exact, arguments(inputs, targets)) > CLEAR:
                return inputs, targets
        raise RuntimeError(f"{TRIES} batches, and in each what relu reads comes within {CLEAR:g} of 0")

    def inputs_file(self, inputs, targets):
        given = inputs if targets is None else {**inputs, "targets": targets}
        return written(self.path + ".batch.safetensors", given)


def relative(ours, theirs):
    return float((ours.double() - theirs).norm() / theirs.norm())


def result_differences(run):
    inputs, targets = run.batch()
    run.module(*arguments(inputs, targets))  # running statistics that are not the first ones
    run.module.eval()
    weights = tools.write_weights(run.path + ".weights.safetensors", run.module)
    given, outputs = written(run.path + ".inputs.safetensors", inputs), run.path + ".out.safetensors"
    tools.run(tools.program("tools/amprun"), "infer", run.model, "--weights", weights, "--inputs", given, "--outputs",
              outputs, "--force")
    doubles = dict(zip(inputs, exactly(inputs.values())))
    exact, ours = run.module.double().results(**doubles), tools.read_tensors(outputs)
    run.module.float().train()
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
    losses = twins.losses_of(module, exactly(arguments(inputs, targets)))
    loss, grads = sum(losses.values()), twins.gradients_of(module, losses)
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


def decays(parameter):
    """The groups of the examples: no weight decay for biases and the weights of norms."""
    return parameter.dim() > 1


def optimizer_of(module):
    if hasattr(module, "optimizer"):
        return module.optimizer()
    decayed, others = ([p for p in module.parameters() if decays(p) == which] for which in (True, False))
    groups = [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-3)


def torch_step(module, optimizer, batch, clip):
    grads = twins.gradients_of(module, twins.losses_of(module, batch))
    for name, p in module.named_parameters():
        p.grad = grads[name]
    torch.nn.utils.clip_grad_norm_(module.parameters(), clip)
    optimizer.step()


def all_of(tensors, before):
    return torch.cat([(tensors[name].detach().double() - old).flatten() for name, old in before.items()])


def buffers(module):
    return {name: b.detach().clone() for name, b in module.named_buffers()}


def exact_buffers(module, batch):
    """Those after a forward pass in float64."""
    exact = copy.deepcopy(module).double()
    with torch.no_grad():
        exact(*exactly(batch))
    return buffers(exact)


def statistics_differences(before, exact, ours):
    """Running means and variances by the batch's own, besides the rounding of the sum; counters by their bits."""

    def of_batch(name):
        return (exact[name] - (1 - MOMENTUM) * before[name].double()) / MOMENTUM

    for name, old in before.items():
        if not old.is_floating_point():
            if not torch.equal(ours[name], exact[name]):
                yield f"{name}: {ours[name].item()}, PyTorch {exact[name].item()}"
            continue
        scale = of_batch(name.replace("running_mean", "running_var"))
        scale = scale.sqrt() if name.endswith("running_mean") else scale
        error = float((ours[name].double() - exact[name]).norm())
        rounded = ROUNDING * float(exact[name].norm() + old.double().norm())
        if not error <= STATISTICS_BOUND * MOMENTUM * float(scale.norm()) + rounded:
            yield f"{name}: error {error:.2g}, of the batch's {error / MOMENTUM / float(scale.norm()):.2g}"


def changes_nothing(run):
    """Parameters that the loss does not depend on, such as the bias of attention's keys, which adds the same to all
    scores of a query: their gradient is rounding alone, and adam divides it by its own size."""
    inputs, targets = run.batch()
    module = copy.deepcopy(run.module).double()
    grads = twins.gradients_of(module, twins.losses_of(module, exactly(arguments(inputs, targets))))
    largest = max(float(g.norm()) for g in grads.values())
    return {name for name, g in grads.items() if g.norm() < NO_GRADIENT * largest}


def exact_step(module, optimizer, batch, clip):
    """The parameters after PyTorch's step in float64, from the same state: in FP32 PyTorch has an error of its own."""
    module, optimizer = copy.deepcopy((module, optimizer))
    module.double()
    for state in optimizer.state.values():
        state.update({name: x.double() for name, x in state.items() if torch.is_tensor(x) and x.dim()})
    torch_step(module, optimizer, exactly(batch), clip)
    return {name: p.detach() for name, p in module.named_parameters()}


def update_differences(run):
    """The whole update of each step, and the batch's statistics in the running ones; from the third, since the first
    ones divide gradients by their own size."""
    optimizer, left_out = optimizer_of(run.module), changes_nothing(run)
    for at in range(FIRST + STEPS):
        inputs, targets = run.batch()
        before = {name: p.detach().clone().double() for name, p in run.module.named_parameters()
                  if name not in left_out}
        checkpoint = tools.write_checkpoint(run.path + ".before.safetensors", run.module, optimizer, slots=("m", "v"),
                                            step_count=at, iteration=at)
        statistics = buffers(run.module), exact_buffers(run.module, arguments(inputs, targets))
        theirs = exact_step(run.module, optimizer, arguments(inputs, targets), run.example.clip)
        torch_step(run.module, optimizer, arguments(inputs, targets), run.example.clip)
        if at < FIRST:
            continue
        written_after = run.path + ".after.safetensors"
        tools.step(run.model, "--resume", checkpoint, "--inputs", run.inputs_file(inputs, targets), "--checkpoint",
                   written_after, "--force")
        ours = tools.read_tensors(written_after)
        yield from (f"step {at}: {text}" for text in statistics_differences(*statistics, ours))
        exact = all_of(theirs, before)
        tuned = dict(run.module.named_parameters())
        error, of_torch = (relative(all_of(after, before), exact) for after in (ours, tuned))
        if not error <= max(UPDATE_BOUND, of_torch):
            yield f"step {at}: update: relative error {error:.3g}, bound {UPDATE_BOUND:g}, PyTorch's own {of_torch:.3g}"


def check_examples(tally, options):
    for name, _, example in twins.examples():
        run = Run(options, example)
        tally.same(f"{name}: results within {RESULT_BOUND:g}", result_differences(run))
        tally.same(f"{name}: loss and gradients", gradient_differences(run))
        tally.same(f"{name}: updates of {STEPS} steps within {UPDATE_BOUND:g}", update_differences(run))


def planted(tally, options):
    run = Run(options, gpt.EXAMPLES["gpt2"])
    inputs, targets = run.batch()
    exact = run.module.double()(*exactly(arguments(inputs, targets)))
    run.module.float()
    with torch.no_grad():
        run.module.h[1]["attn"]["c_attn"].bias[2 * gpt.GPT_SIZES["C"] + 5] += 0.05
    weights = tools.write_weights(run.path + ".weights.safetensors", run.module)
    report, = tools.step(run.model, "--weights", weights, "--inputs", run.inputs_file(inputs, targets))
    error = abs(report["loss"] - exact.item()) / exact.item()
    tally.seen("a value that is 0.05 off", [f"loss {error:.2g} off"] if error > RESULT_BOUND else [])


if __name__ == "__main__":
    harness.main(__doc__, [check_examples], [planted])
