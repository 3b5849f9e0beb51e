"""weights.py: weights that PyTorch saved under published names and layouts are loaded, give PyTorch's outputs, are
fine-tuned as PyTorch does it, and go back by load_state_dict(strict=True): whole files and shards, other prefixes, a
tied head, a new head; networks ported word for word, at full size but for small images.
"""
import copy
import json
import os
import re

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

import ampc_tools as tools
import harness
import inverted
import ported

SAMPLES, STEPS, RATE = 8, 10, 0.05
FEW = 3  # steps of the large networks
OUTPUT_BOUND = 1e-5  # relative to the largest output
UPDATE_BOUND = 1e-4  # of all steps together, relative to its norm


# ---- PyTorch's models ------------------------------------------------------------------------------------------------


class Conv1D(nn.Module):
    """GPT-2's linear layer: its weight is [in, out]."""

    def __init__(self, out, fan_in):
        super().__init__()
        self.weight, self.bias = nn.Parameter(0.2 * torch.randn(fan_in, out)), nn.Parameter(0.1 * torch.randn(out))

    def forward(self, x):
        return x @ self.weight + self.bias


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.c_attn, self.c_proj, self.heads = Conv1D(3 * width, width), Conv1D(width, width), heads
        self.register_buffer("bias", torch.ones(1, 1, 6, 6))  # in older files of GPT-2: a mask

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = (a.view(n, t, self.heads, -1).transpose(1, 2) for a in self.c_attn(x).split(width, dim=2))
        p = F.softmax(q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5, dim=-1)
        return self.c_proj((p @ v).transpose(1, 2).reshape(n, t, width))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc, self.c_proj = Conv1D(4 * width, width), Conv1D(width, 4 * width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), Attention(width, heads)
        self.ln_2, self.mlp = nn.LayerNorm(width), Mlp(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    """Names of GPT2LMHeadModel: transformer.h.0.attn.c_attn.weight, and lm_head.weight, tied."""

    def __init__(self):
        super().__init__()
        self.transformer = nn.ModuleDict(dict(
            wte=nn.Embedding(37, 16), wpe=nn.Embedding(6, 16), h=nn.ModuleList(GptBlock(16, 2) for _ in range(2)),
            ln_f=nn.LayerNorm(16)))
        self.lm_head = nn.Linear(16, 37, bias=False)
        self.lm_head.weight = self.transformer.wte.weight

    def forward(self, tokens):
        t = self.transformer
        x = t.wte(tokens) + t.wpe.weight
        for block in t.h:
            x = block(x)
        return self.lm_head(t.ln_f(x))


class Basic(nn.Module):
    def __init__(self, fan_in, out, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(fan_in, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.downsample = nn.Sequential(nn.Conv2d(fan_in, out, 1, stride, bias=False),
                                        nn.BatchNorm2d(out)) if stride != 1 else nn.Sequential()

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.downsample(x))


class ResNet(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8)
        self.layer1, self.layer2 = nn.Sequential(Basic(8, 8, 1)), nn.Sequential(Basic(8, 16, 2))
        self.fc = nn.Linear(16, classes)

    def forward(self, x):
        return self.fc(self.layer2(self.layer1(F.relu(self.bn1(self.conv1(x))))).mean((2, 3)))


def awake(module, noise=0.1):
    """Every buffer and parameter away from where it begins, so that none can be left out unseen."""
    torch.manual_seed(5)
    with torch.no_grad():
        for name, value in [*module.named_parameters(), *module.named_buffers()]:
            if name.endswith("num_batches_tracked"):
                value += 17
            elif name.endswith("running_var"):
                value += torch.rand_like(value)
            elif value.is_floating_point() and not name.endswith("attn.bias"):
                value += noise * torch.randn_like(value)
    return module.eval()


def case_gpt():
    torch.manual_seed(1)
    tokens = torch.randint(37, (SAMPLES, 6))
    rules = ["--rename", "transformer.*=*", "--rename", "lm_head.weight=wte.weight", "--ignore", "*.attn.bias"]
    return "published_gpt", awake(Gpt()), {"tokens": tokens.int()}, torch.randint(37, (SAMPLES, 6)), rules


def case_resnet():
    torch.manual_seed(2)
    x, targets = torch.randn(SAMPLES, 3, 8, 8), torch.randint(5, (SAMPLES,))
    return "published_resnet", awake(ResNet()), {"x": x}, targets, []


def case_convnext():
    torch.manual_seed(3)
    x, targets = torch.randn(2, 3, 64, 64), torch.randint(1000, (2,))
    return "published_convnext", awake(ported.ConvNeXt()), {"x": x}, targets, []


def case_swin():
    torch.manual_seed(4)
    x, targets = torch.randn(2, 3, 64, 64), torch.randint(1000, (2,))
    return "published_swin", awake(ported.Swin(), 0.03), {"x": x}, targets, ["--ignore", "*." + IGNORED]


def case_tcn():
    torch.manual_seed(6)
    x, targets = torch.randn(2, 1, 784), torch.randint(10, (2,))
    rules = ["--rename", "*.net.0.*=*.conv1.*", "--rename", "*.net.4.*=*.conv2.*"]
    return "published_tcn", awake(ported.Tcn()), {"x": x}, targets, rules


QUICK = ["--isa", "native", "--target", "cpu"]
SMALL = ["-D", "SIZE=64", "-D", "DROP=0.0", *QUICK]
OPTIONS = {"published_convnext": SMALL, "published_swin": SMALL, "published_tcn": ["-D", "P=0.0", *QUICK]}


# ---- files -----------------------------------------------------------------------------------------------------------


def published(module):
    return {name: value.detach().clone().contiguous() for name, value in module.state_dict().items()}


def write_shards(folder, tensors):
    """As Hugging Face's tools write large models."""
    os.makedirs(folder, exist_ok=True)
    names, where = sorted(tensors), {}
    for i, part in enumerate((names[:len(names) // 2], names[len(names) // 2:])):
        file = f"model-{i + 1:05}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, os.path.join(folder, file), metadata={"format": "pt"})
        where.update(dict.fromkeys(part, file))
    path = os.path.join(folder, "model.safetensors.index.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"metadata": {"total_size": sum(t.nbytes for t in tensors.values())}, "weight_map": where}, file)
    return path


# ---- comparing -------------------------------------------------------------------------------------------------------


def output_differences(ours, theirs):
    error = ((ours - theirs).abs().max() / theirs.abs().max()).item()
    if not error <= OUTPUT_BOUND:
        yield f"outputs: relative error {error:.2g}, bound {OUTPUT_BOUND:g}"


def update_differences(before, ours, theirs, bound=UPDATE_BOUND):
    """By the names of PyTorch's; integers by their bits."""
    if sorted(ours) != sorted(theirs):
        yield f"names: {sorted(set(ours) ^ set(theirs))[:3]}"
        return
    floats = [name for name in theirs if theirs[name].is_floating_point()]
    norm = sum((theirs[name] - before[name]).double().square().sum() for name in floats).sqrt()
    error = sum((ours[name] - theirs[name]).double().square().sum() for name in floats).sqrt() / norm
    if not error <= bound:
        yield f"update: relative error {error:.2g}, bound {bound:g}"
    for name in theirs:
        if name not in floats and not torch.equal(ours[name], theirs[name]):
            yield f"{name}: {ours[name]} for {theirs[name]}"


def outputs(module, inputs):
    return module(*(v.long() if v.dtype == torch.int32 else v for v in inputs.values()))


def infer(options, model, weights, rules, inputs):
    batch, out = os.path.join(options.work, "inputs"), os.path.join(options.work, "outputs")
    save_file({name: value.contiguous() for name, value in inputs.items()}, batch)
    tools.run(tools.program("tools/amprun"), "infer", model, "--weights", weights, *rules, "--inputs", batch,
              "--outputs", out)
    return tools.read_tensors(out)["logits"]


def tuned_by_torch(module, inputs, targets, steps=STEPS):
    module = copy.deepcopy(module).train()
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(outputs(module, inputs).flatten(0, -2), targets.flatten()).backward()
        optimizer.step()
    return published(module)


def tuned_by_amprun(options, model, weights, rules, inputs, targets, steps=STEPS):
    batch, out = os.path.join(options.work, "batch"), os.path.join(options.work, "tuned")
    save_file({**{k: v.contiguous() for k, v in inputs.items()}, "targets": targets.int()}, batch)
    tools.step(model, "--weights", weights, *rules, "--inputs", batch, "--steps", steps, "--save", out, "--save-like",
               weights)
    return out


def prepare(options, case):
    name, module, inputs, targets, rules = case()
    text = tools.variant(os.path.join(tools.MODELS, name + ".amp"), os.path.join(options.work, name + ".amp"),
                         optimizer=f"sgd(lr = {RATE})")
    model = tools.compile_model(text, os.path.join(options.work, name + ".so"), *OPTIONS.get(name, []))
    tensors = published(module)
    whole = os.path.join(options.work, name + ".safetensors")
    save_file(tensors, whole, metadata={"format": "pt"})
    return name, module, inputs, targets, rules, model, whole


def check_case(tally, options, case, steps=STEPS):
    name, module, inputs, targets, rules, model, whole = prepare(options, case)
    shards = write_shards(os.path.join(options.work, name), published(module))
    with torch.no_grad():
        wanted = outputs(module, inputs)
    for kind, weights in (("one file", whole), ("shards", shards)):
        ours = infer(options, model, weights, rules, inputs)
        tally.same(f"{name}, {kind}: PyTorch's outputs", output_differences(ours, wanted))
    theirs = tuned_by_torch(module, inputs, targets, steps)
    path = tuned_by_amprun(options, model, shards, rules, inputs, targets, steps)
    ours = tools.read_tensors(path)
    before = published(module)
    tally.same(f"{name}: {steps} steps as PyTorch's", update_differences(before, ours, theirs))
    least = min((key for key, _ in module.named_parameters()), key=lambda key: (theirs[key] - before[key]).norm())
    tally.seen(f"{name}: {least} as before the steps",
               update_differences(before, {**theirs, least: before[least]}, theirs))
    loaded = type(module)().eval()
    loaded.load_state_dict(ours, strict=True)
    with torch.no_grad():
        back = outputs(loaded, inputs)
    tally.same(f"{name}: loads with strict=True, and computes the same",
               output_differences(infer(options, model, path, rules, inputs), back))


def check_gpt(tally, options):
    check_case(tally, options, case_gpt)


def check_resnet(tally, options):
    check_case(tally, options, case_resnet)


def check_convnext(tally, options):
    check_case(tally, options, case_convnext, FEW)


def check_swin(tally, options):
    check_case(tally, options, case_swin, FEW)


def check_tcn(tally, options):
    check_case(tally, options, case_tcn, FEW)


def check_new_head(tally, options):
    """ResNet from DataParallel's file of another number of classes, in half precision, without counters."""
    _, _, inputs, targets, _, model, _ = prepare(options, case_resnet)
    other = awake(ResNet(classes=100))
    old = {"module." + name: v.half() for name, v in published(other).items() if "num_batches" not in name}
    path = os.path.join(options.work, "old.safetensors")
    save_file(old, path)
    rules = ["--rename", "module.*=*", "--fresh", "fc.*", "--fresh", "*.num_batches_tracked"]
    ours = tools.read_tensors(tuned_by_amprun(options, model, path, rules, inputs, targets))
    names = {name.removeprefix("module."): v for name, v in ours.items()}
    ResNet().load_state_dict(names, strict=True)
    shape, counted = tuple(names["fc.weight"].shape), int(names["bn1.num_batches_tracked"])
    tally.same("a new head is there", [] if shape == (5, 16) else [str(shape)])
    tally.same("counters begin anew", [] if counted == STEPS else [str(counted)])


def refused(options, rules, words):
    """What is missing in amprun's words about little GPT-2 without these rules."""
    _, _, inputs, _, _, model, whole = prepare(options, case_gpt)
    try:
        infer(options, model, whole, rules, inputs)
    except RuntimeError as error:
        return [word for word in words if word not in str(error)]
    return ["it was not refused"]


def check_proposals(tally, options):
    tally.same("GPT-2's prefix, tied head and masks are proposed", refused(options, [], [
        "--rename 'transformer.*=*'", "--rename 'lm_head.weight=wte.weight'", "--ignore 'transformer.h.*.attn.bias'"]))


# module, and the tensors and trained numbers that torchvision publishes; the model makes what is ignored by itself
TORCHVISION = {"published_mobilenet": (inverted.mobilenet_v3_small, 244, 2_542_856),
               "published_efficientnet": (inverted.efficientnet_b0, 360, 5_288_548),
               "published_convnext": (ported.ConvNeXt, 182, 28_589_128),
               "published_swin": (ported.Swin, 185, 28_288_354)}
IGNORED = "relative_position_index"


def shapes_of(name):
    model = os.path.join(tools.MODELS, name + ".amp")
    text = tools.run(tools.program("tools/ampc"), model, "--stop-after", "elaborate", "--emit", "ir", "-o", "-")
    states = re.findall(r"(?m)^state %(\S+) +: \w+(?:\[(.*?)\])? ", text)
    return {state: [int(d) for d in dims.split(", ") if d] for state, dims in states}


def shape_differences(ours, theirs):
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name) != theirs.get(name):
            yield f"{name}: {ours.get(name)} for {theirs.get(name)}"


def check_torchvision(tally, options):
    """Networks whose parts share scopes: every name and shape, at full size."""
    for name, (make, tensors, numbers) in TORCHVISION.items():
        module = make()
        made = len(module.state_dict()), sum(p.numel() for p in module.parameters())
        theirs = {key: list(value.shape) for key, value in module.state_dict().items() if not key.endswith(IGNORED)}
        tally.same(f"{name}: the sizes that are published", [] if made == (tensors, numbers) else [str(made)])
        tally.same(f"{name}: torchvision's names and shapes", shape_differences(shapes_of(name), theirs))


def plant(tally, options):
    shapes = shapes_of("published_mobilenet")
    moved = {name.replace("block.1.fc1", "block.2.fc1"): shape for name, shape in shapes.items()}
    tally.seen("a part at another place of its block", shape_differences(moved, shapes))
    name, module, inputs, targets, rules, model, whole = prepare(options, case_gpt)
    with torch.no_grad():
        wanted = outputs(module, inputs)
    square = rules + ["--transpose", "h.*.attn.c_proj.weight"]
    tally.seen(f"{name}: a square weight turned",
               output_differences(infer(options, model, whole, square, inputs), wanted))
    before, theirs = published(module), tuned_by_torch(module, inputs, targets)
    stale = {**theirs, "lm_head.weight": before["lm_head.weight"]}
    tally.seen("a head that was saved as it was before", update_differences(before, stale, theirs))
    del stale["lm_head.weight"]
    tally.seen("a name left out", update_differences(before, stale, theirs))


if __name__ == "__main__":
    harness.main(__doc__, [check_gpt, check_resnet, check_convnext, check_swin, check_tcn, check_new_head,
                           check_proposals, check_torchvision], [plant])
