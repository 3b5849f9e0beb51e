"""The programs of examples/ that gpu-check times beside PyTorch, whose side are the twins of tests/parity/twins.

As a program: a line for each, NAME SOURCE and the options of ampc, which tools/make-dist compiles.
"""
from collections import namedtuple

# source: in examples/
# twin, arguments: the file in twins/, and what its `example` is given
# extra: -D beyond those arguments
# bounds: ids of an input are below this number (step_bench); else below 10
Example = namedtuple("Example", "name source twin arguments extra batch optimizer bounds", defaults=[{}])

GPT2 = {"V": 50257, "T": 1024, "C": 768, "L": 12, "H": 12}
BYTES = {"V": 256, "T": 128, "C": 128, "L": 4, "H": 4}
BERT = {"V": 30522, "LONGEST": 512, "T": 128, "C": 768, "L": 12, "H": 12, "CLASSES": 2}
TABULAR = {"WIDE": 128}
UNET = {"S": 64, "C": 32}


def resnet(name, size, classes, **arguments):
    return {"name": name, "size": size, "W": 64, "CLASSES": classes, **arguments}


NO_DROPOUT = {"P": 0.0}  # the twins have none
# In the order in which gpu-check measures them.
EXAMPLES = [
    Example("bert", "bert/bert.amp", "bert", BERT, NO_DROPOUT, 32, "adamw",
            {"input_ids": 30522, "token_type_ids": 2, "attention_mask": 2, "targets": 2}),
    Example("gpt2", "gpt/gpt2.amp", "gpt", GPT2, NO_DROPOUT, 16, "adamw", {"tokens": 50257, "targets": 50257}),
    Example("resnet50", "resnet/resnet50.amp", "resnet", resnet("resnet50", 224, 1000, IMAGENET=True), {}, 64,
            "momentum", {"targets": 1000}),
    Example("resnet18", "resnet/resnet18.amp", "resnet", resnet("resnet18", 32, 10), {}, 64, "nesterov"),
    Example("bytes", "gpt/gpt2.amp", "gpt", BYTES, NO_DROPOUT, 32, "adamw", {"tokens": 256, "targets": 256}),
    Example("unet", "unet/unet.amp", "unet", UNET, {}, 16, "adamw"),
    Example("tabular", "tabular/tabular.amp", "tabular", TABULAR, NO_DROPOUT, 1024, "adamw",
            {"trade": 17, "region": 11, "purpose": 9, "targets": 2}),
]


def written(value):
    return str(value).lower() if isinstance(value, bool) else value


def defines(example):
    told = {"SIZE" if key == "size" else key: value for key, value in example.arguments.items() if key != "name"}
    return [f"{key}={written(value)}" for key, value in {**told, **example.extra}.items()]


if __name__ == "__main__":
    for one in EXAMPLES:
        print(one.name, one.source, *(word for define in defines(one) for word in ("-D", define)))
