"""interop.py: safetensors files that we write are read by Python's safetensors, and the other way round, with equal bits."""
import json
import os
import struct

import torch
from safetensors.torch import save_file

import ampc_tools as tools
import harness
import twin

SAMPLES = 8


def small_model(options):
    """A model, and a batch on which every gradient is NaN: a step that changes nothing."""
    path = os.path.join(options.work, "small")
    model = tools.compile_model(os.path.join(tools.MODELS, "mlp_16_32_10.amp"), path + ".so", "--policy", "torch-fp16")
    inputs = tools.write_batch(path + ".batch.safetensors", torch.full((SAMPLES, 16), float("nan")), torch.zeros(SAMPLES))
    return path, model, inputs


def ordinary_weights():
    return {name: p.detach().clone() for name, p in twin.make(twin.SMALL).named_parameters()}


def awkward_weights():
    """With numbers that a careless copy changes: subnormal, negative zero, infinite, NaN with a payload, the largest."""
    weights = ordinary_weights()
    odd = torch.tensor([1, -2147483648, 0x7F800000, 0x7FC12345, 0x7F7FFFFF], dtype=torch.int32).view(torch.float32)
    weights["fc1.bias"][:len(odd)] = odd
    return weights


def loaded_and_saved(options, tensors):
    """What amprun saves after it has loaded these tensors."""
    path, model, inputs = small_model(options)
    save_file(tensors, path + ".in.safetensors", metadata={"format": "pt"})
    report, = tools.step(model, "--weights", path + ".in.safetensors", "--inputs", inputs, "--save", path + ".out.safetensors")
    if not report["skipped"]:
        raise RuntimeError("the step was meant to be skipped")
    return tools.read_tensors(path + ".out.safetensors")


def check_round_trip(tally, options):
    weights = awkward_weights()
    tally.same("f32 weights: Python -> amprun -> Python, equal bits", tools.bit_differences(weights, loaded_and_saved(options, weights)))
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        stored = {name: w.to(dtype) for name, w in ordinary_weights().items()}
        wanted = {name: w.float() for name, w in stored.items()}
        tally.same(f"{dtype} weights are read as their f32", tools.bit_differences(wanted, loaded_and_saved(options, stored)))


def check_checkpoint(tally, options):
    """A checkpoint of ours, read and written again by Python, resumes to the same bits."""
    path, model, _ = small_model(options)
    inputs = tools.write_batch(path + ".real.safetensors", torch.randn(SAMPLES, 16), torch.arange(SAMPLES))
    weights = tools.write_weights(path + ".weights.safetensors", twin.make(twin.SMALL))
    first, copy = path + ".first.safetensors", path + ".copy.safetensors"
    tools.step(model, "--weights", weights, "--inputs", inputs, "--steps", 3, "--checkpoint", first)
    save_file(tools.read_tensors(first), copy, metadata=tools.read_metadata(first))
    ends = []
    for start in (first, copy):
        tools.step(model, "--resume", start, "--inputs", inputs, "--steps", 3, "--checkpoint", path + ".end.safetensors")
        ends.append(tools.read_tensors(path + ".end.safetensors"))
    tally.same("a checkpoint that Python has rewritten resumes to equal bits", tools.bit_differences(*ends))


def refusal(model, *options):
    """What amprun says where it refuses a file; "" where it reads it."""
    try:
        tools.step(model, *options)
    except RuntimeError as error:
        return str(error)
    return ""


def check_sums(tally, options):
    """Sums in the metadata: an edited tensor is refused by name, unless its sums are dropped, as Python's tools do."""
    path, model, inputs = small_model(options)
    weights, edited = path + ".summed.safetensors", path + ".edited.safetensors"
    tools.step(model, "--weights", tools.write_weights(path + ".made.safetensors", twin.make(twin.SMALL)),
               "--inputs", inputs, "--save", weights)
    metadata = tools.read_metadata(weights)
    tensors = tools.flip_bit(tools.read_tensors(weights), "fc1.weight")
    sums = [key for key in metadata if key.startswith("amp.xxh64")]
    tally.same("a saved file has a sum for each tensor, and one more",
               [] if len(sums) == len(tensors) + 1 else [str(sums)])
    save_file(tensors, edited, metadata=metadata)
    said = refusal(model, "--weights", edited, "--inputs", inputs)
    tally.same("an edited tensor is refused by name",
               [] if "edited.safetensors: tensor fc1.weight is not as it was saved" in said else [said])
    for what, kept in (("its sums", {key: metadata[key] for key in metadata if key not in sums}), ("all metadata", None)):
        save_file(tensors, edited, metadata=kept)
        said = refusal(model, "--weights", edited, "--inputs", inputs)
        tally.same(f"an edited tensor without {what} is read", [said] if said else [])


def check_form(tally, options):
    """What readers that map the file rely on."""
    loaded_and_saved(options, awkward_weights())
    with open(os.path.join(options.work, "small.out.safetensors"), "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    tally.same("the data starts at a multiple of 64", [] if (8 + length) % 64 == 0 else [f"at {8 + length}"])
    starts = [entry["data_offsets"][0] for name, entry in header.items() if name != "__metadata__"]
    tally.same("tensors stand in the header in the order of their data", [] if starts == sorted(starts) else [str(starts)])


def plant(tally, options):
    weights = awkward_weights()
    saved = loaded_and_saved(options, weights)
    tally.seen("one bit of one saved weight flipped", tools.bit_differences(weights, tools.flip_bit(saved, "fc2.weight")))
    renamed = {name.replace("fc2.bias", "fc3.bias"): w for name, w in saved.items()}
    tally.seen("a weight saved under another name", tools.bit_differences(weights, renamed))


if __name__ == "__main__":
    harness.main(__doc__, [check_round_trip, check_checkpoint, check_sums, check_form], [plant])
