"""published.py: files with every name and shape of torchvision's ResNet-50, MobileNetV3-small and EfficientNet-B0 and
Hugging Face's BERT-base and GPT-2, at full size, of random numbers: they load strictly, by the options that the error
proposes; give PyTorch's outputs; are fine-tuned as PyTorch does it; and go back by load_state_dict(strict=True).  Needs
8 GB and some minutes.
"""
import copy
import math
import os
import re
from collections import namedtuple

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

import ampc_tools as tools
import harness
import inverted
from twins import bert, gpt, resnet
from weights import output_differences, published, update_differences

STEPS = 10
STEPS_BOUND = 1e-3  # of the updates of all steps together: both sides round in f32, and each step adds to it
FARTHER, ONE_FARTHER = 1.5, 4  # from float64 than PyTorch in f32, all together and a single tensor

# make: PyTorch's module
# tensors, numbers: how many the published state_dict has, and how many of the numbers are trained
# clip: the model's clip_norm
# rate: of sgd, large enough that an update is more than a rounding of its weight
# others: of the file, no parameters and no buffers of the module
# options: all that the error proposes
# kinks: steps are held against PyTorch's in float64, by FARTHER
Case = namedtuple("Case", "model defines make tensors numbers inputs targets clip rate others options kinks",
                  defaults=[False])

# resnet.py's, and the one before a sum in inverted.py
LAST_NORM = re.compile(r"(?:bn3|block\.[23]\.1)\.weight$")
GPT2 = {"V": 50257, "LONGEST": 1024, "C": 768, "L": 12, "H": 12}
BERT = {"V": 30522, "LONGEST": 512, "T": 48, "C": 768, "L": 12, "H": 12, "CLASSES": 2}


class Gpt2LMHeadModel(nn.Module):
    """The head is the table of the tokens, under a second name."""

    def __init__(self):
        super().__init__()
        self.transformer = gpt.Gpt2(*GPT2.values())
        self.lm_head = nn.Linear(GPT2["C"], GPT2["V"], bias=False)
        self.lm_head.weight = self.transformer.wte.weight

    def forward(self, tokens):
        return self.transformer.results(tokens)["logits"]


class BertForSequenceClassification(bert.Bert):
    def forward(self, *inputs):
        return self.results(*inputs)["logits"]


def case_gpt2():
    ids = torch.randint(0, GPT2["V"], (2, 49))
    return Case("examples/gpt/gpt2.amp", {"T": 48, "LONGEST": 1024, "P": 0.0}, Gpt2LMHeadModel, 149, 124_439_808,
                {"tokens": ids[:, :-1]}, ids[:, 1:], 1.0, 0.1, {},
                {"--rename 'transformer.*=*'", "--rename 'lm_head.weight=wte.weight'"})


def case_gpt2_hub():
    """As the hub has it: no prefix, no head, and the masks of the attention."""
    masks = {f"h.{i}.attn.bias": torch.ones(1, 1, 1024, 1024).tril() for i in range(GPT2["L"])}
    return case_gpt2()._replace(make=lambda: Gpt2LMHeadModel().transformer, tensors=148, others=masks,
                                options={"--ignore 'h.*.attn.bias'"})


def case_bert():
    positions = {"bert.embeddings.position_ids": torch.arange(512)[None]}  # a buffer in older files
    return Case("examples/bert/bert.amp", {"T": BERT["T"], "P": 0.0},
                lambda: BertForSequenceClassification(*BERT.values()), 201, 109_483_778,
                bert.batch(BERT, 4), torch.randint(0, 2, (4,)), 1.0, 0.1, positions,
                {"--ignore 'bert.embeddings.position_ids'"})


def moved(module):
    """Running statistics are away from where they begin, so that none can be left out unseen.  The last norm of each
    block has small weights, as in trained files: with 1 a rounding in the first block is most of the last gradient."""
    for name, value in module.named_parameters():
        if LAST_NORM.search(name):
            torch.nn.init.uniform_(value, 0.0, 0.05)
    for value in module.buffers():
        value += 17 if value.dtype == torch.int64 else 0.1 * torch.rand_like(value)
    return module


def resnet50():
    return moved(resnet.ResNet(*resnet.KINDS["resnet50"], CLASSES=1000, CHANNELS=3, W=64, IMAGENET=True))


def case_of_images(model, defines, make, tensors, numbers):
    return Case(model, defines, make, tensors, numbers, {"x": torch.randn(4, 3, 224, 224)},
                torch.randint(0, 1000, (4,)), math.inf, 0.002, {}, set(), kinks=True)


def case_resnet50():
    return case_of_images("examples/resnet/resnet50.amp", {}, resnet50, 320, 25_557_032)


def case_mobilenet():
    return case_of_images("tests/parity/models/published_mobilenet.amp", {"P": 0.0},
                          lambda: moved(inverted.mobilenet_v3_small()), 244, 2_542_856)


def case_efficientnet():
    return case_of_images("tests/parity/models/published_efficientnet.amp", {"P": 0.0, "DROP": 0.0},
                          lambda: moved(inverted.efficientnet_b0()), 360, 5_288_548)


# ---- running ---------------------------------------------------------------------------------------------------------


def compiled(options, case):
    source = os.path.join(tools.ROOT, case.model)
    beside = os.path.join(os.path.dirname(source), ".parity.amp")  # beside what it includes
    defines = [word for name, value in case.defines.items() for word in ("-D", f"{name}={value}")]
    try:
        text = tools.variant(source, beside, optimizer=f"sgd(lr = {case.rate})")
        return tools.compile_model(text, os.path.join(options.work, "model.so"), "--precision", "fp32", "--isa",
                                   "native", *defines)
    finally:
        os.remove(beside)


def written(options, name, tensors):
    path = os.path.join(options.work, name)
    save_file({key: (t.int() if t.dtype == torch.int64 and name == "batch" else t).contiguous()
               for key, t in tensors.items()}, path, metadata={"format": "pt"})
    return path


def infer(options, model, weights, rules, inputs):
    out = os.path.join(options.work, "outputs")
    tools.run(tools.program("tools/amprun"), "infer", model, "--weights", weights, *rules, "--inputs",
              written(options, "batch", inputs), "--outputs", out, "--force")
    return tools.read_tensors(out)["logits"]


def proposed(options, model, weights, inputs):
    """The options that the error proposes: at once all that are needed."""
    try:
        infer(options, model, weights, [], inputs)
    except RuntimeError as error:
        return re.findall(r"--(?:rename|ignore|transpose|fresh) '[^']*'", str(error))
    return []


def logits_of(module, inputs):
    return getattr(module, "results", lambda *a: {"logits": module(*a)})(*inputs.values())["logits"]


def tuned_by_torch(module, case):
    module = copy.deepcopy(module).train()
    optimizer = torch.optim.SGD(module.parameters(), lr=case.rate)
    for _ in range(STEPS):
        optimizer.zero_grad()
        F.cross_entropy(logits_of(module, case.inputs).flatten(0, -2), case.targets.flatten()).backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), case.clip)
        optimizer.step()
    return published(module)


def tuned_by_amprun(options, model, weights, rules, case):
    out = os.path.join(options.work, "tuned.safetensors")
    batch = written(options, "batch", {**case.inputs, "targets": case.targets})
    tools.step(model, "--weights", weights, *rules, "--inputs", batch, "--steps", STEPS, "--save", out, "--save-like",
               weights, "--force")
    return out


def tuned_in_double(module, case):
    inputs = {name: x.double() if x.is_floating_point() else x for name, x in case.inputs.items()}
    return tuned_by_torch(copy.deepcopy(module).double(), case._replace(inputs=inputs))


# ---- comparing -------------------------------------------------------------------------------------------------------


def size_differences(module, case):
    tensors, numbers = len(module.state_dict()), sum(p.numel() for p in module.parameters())
    if (tensors, numbers) != (case.tensors, case.numbers):
        yield f"{tensors} tensors, {numbers} trained numbers; published are {case.tensors} and {case.numbers}"


def strict_differences(ours, case, others):
    """What load_state_dict(strict=True) says to what amprun saved; |others| have no place in the module."""
    module = case.make().eval()
    try:
        module.load_state_dict({name: t for name, t in ours.items() if name not in others}, strict=True)
    except RuntimeError as error:
        yield str(error)
    yield from tools.bit_differences(ours, others, names=others)


def distance(tuned, exact, names):
    return math.sqrt(sum((tuned[name].double() - exact[name]).square().sum().item() for name in names))


def farther_differences(module, before, ours, theirs, exact):
    """Names and integers are PyTorch's, and parameters and statistics are about as far from float64 as PyTorch's: in
    either, a relu on the other side of 0 moves all that follows."""
    yield from update_differences(before, ours, theirs, math.inf)
    trained = [name for name, _ in module.named_parameters()]
    for what, names in ("parameters", trained), ("statistics", exact.keys() - set(trained)):
        norm, our, their = (distance(x, exact, names) for x in (before, ours, theirs))
        if not our <= FARTHER * their:
            yield f"update of the {what}: {our / norm:.2g} of its norm from float64, PyTorch's {their / norm:.2g}"
    for name in exact:
        our, their = distance(ours, exact, [name]), distance(theirs, exact, [name])
        if not our <= ONE_FARTHER * their:
            yield f"{name}: {our:.2g} from float64, PyTorch's {their:.2g}"


def check_case(tally, options, name, make_case):
    torch.manual_seed(3)
    case = make_case()
    module, model = case.make().eval(), compiled(options, case)
    tally.same(f"{name}: the sizes that are published", size_differences(module, case))
    weights = written(options, "weights.safetensors", {**published(module), **case.others})
    found = proposed(options, model, weights, case.inputs)
    tally.same(f"{name}: the error proposes all that is needed", sorted(set(found) ^ case.options), " ".join(found))
    rules = [word.strip("'") for option in found for word in option.split(" ", 1)]
    with torch.no_grad():
        wanted = logits_of(module, case.inputs)
    ours = infer(options, model, weights, rules, case.inputs)
    tally.same(f"{name}: PyTorch's outputs", output_differences(ours, wanted))
    if options.outputs_only:
        return
    theirs = tuned_by_torch(module, case)
    path = tuned_by_amprun(options, model, weights, rules, case)
    saved = tools.read_tensors(path)
    of_module = {key: t for key, t in saved.items() if key not in case.others}
    if case.kinks:
        found = farther_differences(module, published(module), of_module, theirs, tuned_in_double(module, case))
    else:
        found = update_differences(published(module), of_module, theirs, STEPS_BOUND)
    tally.same(f"{name}: {STEPS} steps as PyTorch's", found)
    tally.same(f"{name}: loads with strict=True", strict_differences(saved, case, case.others))


def check_gpt2(tally, options):
    options.outputs_only = False
    check_case(tally, options, "GPT-2", case_gpt2)


def check_gpt2_hub(tally, options):
    options.outputs_only = True
    check_case(tally, options, "GPT-2 as the hub has it", case_gpt2_hub)


def check_bert(tally, options):
    options.outputs_only = False
    check_case(tally, options, "BERT-base", case_bert)


def check_resnet50(tally, options):
    options.outputs_only = False
    check_case(tally, options, "ResNet-50", case_resnet50)


def check_mobilenet(tally, options):
    options.outputs_only = False
    check_case(tally, options, "MobileNetV3-small", case_mobilenet)


def check_efficientnet(tally, options):
    options.outputs_only = False
    check_case(tally, options, "EfficientNet-B0", case_efficientnet)


def plant(tally, options):
    torch.manual_seed(3)
    case = case_bert()
    module, model = case.make().eval(), compiled(options, case)
    with torch.no_grad():
        wanted = logits_of(module, case.inputs)
        module.bert["encoder"]["layer"][11].output["dense"].bias[7] += 0.05
    weights = written(options, "weights.safetensors", published(module))
    tally.seen("a bias that is 0.05 off", output_differences(infer(options, model, weights, [], case.inputs), wanted))
    state = published(module)
    del state["bert.pooler.dense.bias"]
    tally.seen("a name left out", strict_differences(state, case, {}))
    plant_untrained(tally, case_resnet50())


def plant_untrained(tally, case):
    """In PyTorch's own result."""
    module = case.make().eval()
    before, theirs, exact = published(module), tuned_by_torch(module, case), tuned_in_double(module, case)
    for name in "layer1.1.conv2.weight", "layer3.4.bn2.bias", "layer4.0.bn1.running_var":
        tally.seen(f"{name} as before the steps",
                   farther_differences(module, before, {**theirs, name: before[name]}, theirs, exact))


if __name__ == "__main__":
    harness.main(__doc__, [check_gpt2, check_gpt2_hub, check_bert, check_resnet50, check_mobilenet,
                           check_efficientnet], [plant])
