"""example_gradients.py: how far the FP16 and BF16 gradients of the models of examples/ are from float64, against how
far PyTorch's are when it does the same casts: as gradients.py, at small sizes."""
import copy
import os

import torch
from safetensors.torch import save_file

import ampc_tools as tools
import harness
import twins
from cuda_casts import CudaCasts
from gradients import Errors, in_double, ratio_differences
from twins import resnet

BATCHES, LONG_BATCHES = 32, 256
PRECISIONS = {"fp16": (torch.float16, 1024.0), "bf16": (torch.bfloat16, 1.0)}
LIVE = ("autoencoder", "bert", "cnn", "gan", "gpt2", "llama", "lstm", "tabular")
LONG = ("resnet18", "resnet50", "resnet101", "unet")  # besides
EXAMPLES = {name: example for name, _, example in twins.examples() if name in LIVE + LONG}
# In four images of 2 x 2 at the end one relu that a rounding turns off or on makes 20 to 40 times the error of all
# else, in one batch of 32, in ours or in PyTorch's: more images, so that there are some in each batch.
EXAMPLES["resnet18"] = resnet.example("resnet18", 16, batch=32)
EXAMPLES["resnet50"] = resnet.example("resnet50", 64, batch=32, IMAGENET=True)
EXAMPLES["resnet101"] = resnet.example("resnet101", 32, batch=32)


def arguments(inputs, targets):
    return [*inputs.values()] if targets is None else [*inputs.values(), targets]


def exactly(tensors):
    return [t.double() if t.is_floating_point() else t for t in tensors]


def low_gradients(module, batch, low, scale):
    if hasattr(module, "written_out"):  # what PyTorch computes by one call, whose inside no mode sees
        module = module.written_out()
    with CudaCasts(low):
        losses = twins.losses_of(module, batch)
    return in_double(twins.gradients_of(module, losses, scale))


def our_gradients(path, model, module, inputs, targets, scale):
    tensors = inputs if targets is None else {**inputs, "targets": targets}
    save_file({name: (t.int() if t.dtype == torch.int64 else t).contiguous() for name, t in tensors.items()},
              path + ".batch")
    scaled = ["--scale", scale] if scale != 1.0 else []
    report, = tools.step(model, "--weights", tools.write_weights(path + ".weights", module), "--inputs",
                         path + ".batch", "--grads", path + ".grads", "--force", *scaled)
    if report["skipped"]:
        raise RuntimeError(f"the gradients overflow at scale {scale:g}: choose a smaller one")
    return in_double(tools.read_tensors(path + ".grads"))


def errors_along_training(options, example, precision, count):
    """(our errors, PyTorch's, exact gradients and ours of the last batch), along FP32 training of PyTorch."""
    low, scale = PRECISIONS[precision]
    path = os.path.join(options.work, "example")
    defines = [word for name, value in example.defines.items() for word in ("-D", f"{name}={value}")]
    model = tools.compile_model(os.path.join(tools.ROOT, "examples", example.model), path + ".so", "--target", "cpu",
                                "--isa", "native", "--policy", f"torch-{precision}", *defines)
    torch.manual_seed(0)
    module, ours, theirs = example.make(), Errors(), Errors()
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
    for _ in range(count):
        inputs, targets = example.inputs(), example.targets()
        batch, double = arguments(inputs, targets), copy.deepcopy(module).double()
        exact = twins.gradients_of(double, twins.losses_of(double, exactly(batch)))
        mine = our_gradients(path, model, module, inputs, targets, scale)
        ours.add(mine, exact)
        theirs.add(low_gradients(copy.deepcopy(module), batch, low, scale), exact)
        optimizer.zero_grad()
        module(*batch).backward()
        optimizer.step()
    return ours, theirs, exact, mine


def check_one(tally, options, name, precision):
    count = LONG_BATCHES if options.long else BATCHES
    ours, theirs, _, _ = errors_along_training(options, EXAMPLES[name], precision, count)
    ratios = ours.ratios(theirs)
    whole = ratios["whole gradient"]
    worst = max(ratios, key=ratios.get)
    tally.same(f"{name} {precision}: errors over {count} batches, beside PyTorch's", ratio_differences(ratios),
               f"whole gradient {whole:.3f}, largest {worst} {ratios[worst]:.3f}")


def check_gradients(tally, options):
    for name in LIVE + (LONG if options.long else ()):
        for precision in PRECISIONS:
            tally.attempt(check_one, options, name, precision)


def plant(tally, options):
    ours, theirs, exact, mine = errors_along_training(options, EXAMPLES["bert"], "bf16", 1)
    scale = 1.5 / ours.ratios(theirs)["whole gradient"]  # so that the planted error is 1.5 times PyTorch's
    worse = Errors()
    worse.add({key: exact[key] + scale * (g - exact[key]) for key, g in mine.items()}, exact)
    tally.seen("1.5 times the error in every gradient", ratio_differences(worse.ratios(theirs)))
    largest = max(exact, key=lambda key: exact[key].norm())
    missing = Errors()
    missing.add({**mine, largest: torch.zeros_like(exact[largest])}, exact)
    tally.seen("a gradient that is zero", ratio_differences(missing.ratios(theirs)))


if __name__ == "__main__":
    harness.main(__doc__, [check_gradients], [plant])
