"""states.py: examples trained with f32 states, with masters and moments of bf16 by both roundings, and with moments of
8 bits (bench/states); with --policies, under every built-in policy beside fp32's seeds, for fewer steps and one seed
each; with --policies fp32,NAME,NAME under these, by every seed.

Each model is trained in BF16 from the same seeds, which give the same initial weights and the same order of samples.
The table has the last evaluation's loss and metric of each choice: mean and standard deviation over the seeds, and the
bytes of weights and moments.  FASHION_MNIST is the folder of the images, TEXT the file that the language model reads.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

PROGRAMS = os.environ.get("AMP_PROGRAMS", "bazel-bin/tools")
CHOICES = {
    "f32": "",
    "moments bf16, nearest": "moments = bf16(nearest)",
    "moments bf16": "moments = bf16",
    "moments f8": "moments = f8",
    "masters bf16, nearest": "masters = bf16(nearest)",
    "masters bf16": "masters = bf16",
    "both bf16": "masters = bf16\n    moments = bf16",
    "masters bf16, moments f8": "masters = bf16\n    moments = f8",
}
IMAGES = "idx:" + os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist")
# name: file, consts, what amprun train gets, metric
MODELS = {
    "mlp": ("examples/fashion_mnist/mlp.amp", [], ["--data", IMAGES, "--epochs", "5"], "acc"),
    "cnn": ("examples/fashion_mnist/cnn.amp", ["STEPS=938"], ["--data", IMAGES, "--epochs", "2"], "acc"),
    "resnet18": ("examples/resnet/resnet18.amp", ["CHANNELS=1", "SIZE=28", "MARGIN=2", "W=8", "STEPS=300"],
                 ["--data", IMAGES, "--batch", "64", "--steps", "300"], "acc"),
    "gpt": ("examples/gpt/bytes.amp", ["T=64", "C=64", "L=2", "STEPS=500"],
            ["--data", "tokens:{text}", "--batch", "32", "--steps", "500"], "bits_per_byte"),
}
# The same for --policies: the examples, made small, and with other data where they have theirs.  {text}, {table}, ...
# are made by DATA.
SHORT = {
    "mlp": (*MODELS["mlp"][:2], ["--data", IMAGES, "--epochs", "2"], "acc"),
    "slow_mlp": (*MODELS["mlp"][:2], ["--data", IMAGES, "--epochs", "2"], "acc"),
    "cnn": ("examples/fashion_mnist/cnn.amp", ["STEPS=200"], ["--data", IMAGES, "--steps", "200"], "acc"),
    "resnet18": ("examples/resnet/resnet18.amp", ["CHANNELS=1", "SIZE=28", "MARGIN=2", "W=8", "STEPS=150"],
                 ["--data", IMAGES, "--batch", "64", "--steps", "150"], "acc"),
    "gpt": ("examples/gpt/bytes.amp", ["T=64", "C=64", "L=2", "STEPS=300"],
            ["--data", "tokens:{text}", "--batch", "32", "--steps", "300"], "bits_per_byte"),
    "vgg": ("examples/cnn/cnn.amp", ["POOL=4", "STEPS=150"],
            ["--data", IMAGES, "--batch", "32", "--steps", "150"], "acc"),
    "autoencoder": ("examples/autoencoder/autoencoder.amp", ["STEPS=800"],
                    ["--data", IMAGES, "--batch", "64", "--steps", "800"], "part"),
    "tabular": ("examples/tabular/tabular.amp", ["STEPS=1000"],
                ["--data", "csv:{table},schema=examples/tabular/loans.schema", "--batch", "256", "--steps", "1000"],
                "acc"),
    "lstm": ("examples/lstm/lstm.amp", ["STEPS=300"], ["--data", "tokens:{text}", "--batch", "32", "--steps", "300"],
             "bits_per_byte"),
    "unet": ("examples/unet/unet.amp", ["STEPS=250"],
             ["--data", "safetensors:{shapes}", "--eval-data", "safetensors:{shapes_test}", "--batch", "32", "--steps",
              "250"], "dice"),
    "bert": ("examples/bert/small.amp", ["STEPS=300"],
             ["--data", "safetensors:{pairs}", "--eval-data", "safetensors:{pairs_test}", "--batch", "32", "--steps",
              "300"], "acc"),
    "llama": ("examples/llama/llama.amp", ["STEPS=300"], ["--data", "tokens:{text}", "--batch", "32", "--steps", "300"],
              "bits_per_byte"),
}

# Steps of 0.00001 are less than half a unit of most weights in 16 bits.
EDITS = {"slow_mlp": ("lr = 0.0005", "lr = 0.00001")}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def make_text(work):
    """TEXT, or Debian's King James Bible without chapter and verse."""
    if "TEXT" in os.environ:
        return {"text": os.environ["TEXT"]}
    path = os.path.join(work, "text.txt")
    with open(path, "w", encoding="utf-8") as file:
        for line in run("bible", "-f", "gen1:1-rev22:21").splitlines():
            file.write(line.split(" ", 1)[-1] + "\n")
    return {"text": path}


def make_table(work):
    path = os.path.join(work, "loans.csv")
    with open(path, "w", encoding="utf-8") as file:
        file.write(run("bazel-bin/examples/tabular/loans", "40000", "1"))
    return {"table": path}


def make_pairs_of_files(work, name, program, sizes):
    paths = {name: os.path.join(work, name), name + "_test": os.path.join(work, name + "_test")}
    for seed, (path, size) in enumerate(zip(paths.values(), sizes), 1):
        run(program, *(word.format(path=path, size=size, seed=seed) for word in PROGRAM_WORDS[name]))
    return paths


PROGRAM_WORDS = {"shapes": ["{path}", "{size}", "{seed}"], "pairs": ["{size}", "{seed}", "{path}"]}
# What makes the files that a model's options name.
DATA = {
    "{text}": make_text,
    "{table": make_table,
    "{shapes}": lambda work: make_pairs_of_files(work, "shapes", "bazel-bin/examples/unet/shapes", (12000, 500)),
    "{pairs}": lambda work: make_pairs_of_files(work, "pairs", "bazel-bin/examples/bert/sentences", (40000, 4000)),
}


def with_data(work, how):
    """The options with the files that they name, which are made first."""
    names = {}
    for word, make in DATA.items():
        if any(word in option for option in how):
            names |= make(work)
    return [option.format(**names) for option in how]


def compile_text(work, source, consts, text, *options):
    """|text| as if it were the file |source|, beside the files that it includes."""
    model, path = os.path.join(work, "model.so"), os.path.join(os.path.dirname(source), ".states.amp")
    defines = [word for const in consts for word in ("-D", const)]
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        run(f"{PROGRAMS}/ampc", path, *defines, *options, "--target", "cpu", "--force", "-o", model)
    finally:
        os.remove(path)
    return model


def compile_with(work, source, consts, lines):
    """The model in BF16, with |lines| in place of what its precision block says."""
    with open(source, encoding="utf-8") as file:
        text = file.read().split("\nprecision ")[0]
    return compile_text(work, source, consts, f"{text}\nprecision bf16 {{\n    {lines}\n}}\n")


def compile_under(work, name, policy):
    """The model under a policy, otherwise as it is but for its edit."""
    source, consts, *_ = SHORT[name]
    with open(source, encoding="utf-8") as file:
        text = file.read()
    before, after = EDITS.get(name, ("", ""))
    if before not in text:
        sys.exit(f"{source}: has no '{before}' to change")
    return compile_text(work, source, consts, text.replace(before, after) if before else text, "--policy", policy)


def policy_names():
    """Those that ampc lists, but for older versions; fp32 first."""
    rows = json.loads(run(f"{PROGRAMS}/ampc", "policy", "list", "--json", "-"))["policies"]
    names = [row["policy"] for row in rows if "@" not in row["policy"]]
    return ["fp32", *(name for name in names if name != "fp32")]


def compare_policies(work, models, policies, seeds):
    """A line for each policy.  Of all policies: |seeds| of fp32, whose spread is the noise, and the first seed of each
    other; of those that were named every seed, and the mean difference from fp32 by the same seed."""
    names = policies or policy_names()
    for name in models:
        *_, how, metric = SHORT[name]
        how = with_data(work, how)
        print(f"\n| {name} | loss | of fp32 | {metric} |\n|---|---|---|---|", flush=True)
        base = None
        for policy in names:
            model = compile_under(work, name, policy)
            all_seeds = policies or policy == "fp32"
            losses, metrics = zip(*(train(work, model, how, seed, metric)
                                    for seed in range(1, 1 + (seeds if all_seeds else 1))))
            base = base or losses
            told = [shown(values) for values in (losses, metrics)]
            ratio = statistics.mean(loss / of for loss, of in zip(losses, base))
            print(f"| {policy} | {told[0]} | {ratio:.3f} | {told[1]} |", flush=True)


def train(work, model, options, seed, metric):
    """The loss and the metric of the last evaluation."""
    log = os.path.join(work, "log.jsonl")
    run(f"{PROGRAMS}/amprun", "train", model, "--seed", str(seed), "--log", log, "--force", "--allow", "nan",
        *options)
    with open(log, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    last = [line for line in lines if "test_loss" in line][-1]
    return last["test_loss"], last["test_" + metric]


def bytes_of(model):
    words = run(f"{PROGRAMS}/amprun", "info", model).split()
    return {kind: int(words[words.index(kind) + 1]) for kind in ("weights", "moments")}


def shown(values):
    if len(values) == 1:
        return f"{values[0]:.4f}"
    return f"{statistics.mean(values):.4f} ± {statistics.stdev(values):.4f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--choices", default=";".join(CHOICES), help="rows of the table, with ; between them")
    parser.add_argument("--policies", nargs="?", const="", metavar="NAME,NAME")
    options = parser.parse_args()
    options.models = options.models or ",".join(SHORT if options.policies is not None else MODELS)
    with tempfile.TemporaryDirectory() as work:
        if options.policies is not None:
            policies = options.policies.split(",") if options.policies else None
            compare_policies(work, options.models.split(","), policies, options.seeds)
            return
        for name in options.models.split(","):
            source, consts, how, metric = MODELS[name]
            how = with_data(work, how)
            print(f"\n| {name} | weights | moments | loss | {metric} |\n|---|---|---|---|---|", flush=True)
            for choice in options.choices.split(";"):
                model = compile_with(work, source, consts, CHOICES[choice])
                losses, metrics = zip(*(train(work, model, how, seed, metric) for seed in range(1, options.seeds + 1)))
                size = bytes_of(model)
                print(f"| {choice} | {size['weights']} | {size['moments']} | {shown(losses)} | {shown(metrics)} |",
                      flush=True)


if __name__ == "__main__":
    main()
