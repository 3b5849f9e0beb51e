"""states.py: examples trained with f32 states, and with masters and moments of bf16 by both roundings (bench/states);
with --policies, under every built-in policy beside fp32's seeds, for fewer steps and one seed each.

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
    "masters bf16, nearest": "masters = bf16(nearest)",
    "masters bf16": "masters = bf16",
    "both bf16": "masters = bf16\n    moments = bf16",
}
IMAGES = "idx:" + os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist")
# name: file, consts, what amprun train gets, metric
MODELS = {
    "mlp": ("examples/fashion_mnist/mlp.amp", [], ["--data", IMAGES, "--epochs", "5"], "acc"),
    "cnn": ("examples/fashion_mnist/cnn.amp", ["STEPS=938"], ["--data", IMAGES, "--epochs", "2"], "acc"),
    "gpt": ("examples/gpt/bytes.amp", ["T=64", "C=64", "L=2", "STEPS=500"],
            ["--data", "tokens:{text}", "--batch", "32", "--steps", "500"], "bits_per_byte"),
}
# The same for --policies.
SHORT = {
    "mlp": (*MODELS["mlp"][:2], ["--data", IMAGES, "--epochs", "2"], "acc"),
    "cnn": ("examples/fashion_mnist/cnn.amp", ["STEPS=200"], ["--data", IMAGES, "--steps", "200"], "acc"),
    "resnet18": ("examples/resnet/resnet18.amp", ["CHANNELS=1", "SIZE=28", "MARGIN=2", "W=8", "STEPS=150"],
                 ["--data", IMAGES, "--batch", "64", "--steps", "150"], "acc"),
    "gpt": ("examples/gpt/bytes.amp", ["T=64", "C=64", "L=2", "STEPS=300"],
            ["--data", "tokens:{text}", "--batch", "32", "--steps", "300"], "bits_per_byte"),
}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def find_text(work):
    """TEXT, or Debian's King James Bible without chapter and verse."""
    if "TEXT" in os.environ:
        return os.environ["TEXT"]
    path = os.path.join(work, "text.txt")
    with open(path, "w", encoding="utf-8") as file:
        for line in run("bible", "-f", "gen1:1-rev22:21").splitlines():
            file.write(line.split(" ", 1)[-1] + "\n")
    return path


def compile_with(work, source, consts, lines):
    """The model in BF16, with |lines| in place of what its precision block says."""
    with open(source, encoding="utf-8") as file:
        text = file.read().split("\nprecision ")[0]
    path = os.path.join(os.path.dirname(source), ".states.amp")  # beside the files that it includes
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{text}\nprecision bf16 {{\n    {lines}\n}}\n")
        model = os.path.join(work, "model.so")
        defines = [word for const in consts for word in ("-D", const)]
        run(f"{PROGRAMS}/ampc", path, *defines, "--target", "cpu", "--force", "-o", model)
    finally:
        os.remove(path)
    return model


def compile_under(work, source, consts, policy):
    """The model as it is, under a policy."""
    model = os.path.join(work, "model.so")
    defines = [word for const in consts for word in ("-D", const)]
    run(f"{PROGRAMS}/ampc", source, *defines, "--policy", policy, "--target", "cpu", "--force", "-o", model)
    return model


def policy_names():
    """Those that ampc lists, but for older versions; fp32 first."""
    rows = json.loads(run(f"{PROGRAMS}/ampc", "policy", "list", "--json", "-"))["policies"]
    names = [row["policy"] for row in rows if "@" not in row["policy"]]
    return ["fp32", *(name for name in names if name != "fp32")]


def compare_policies(work, models, seeds):
    """A line for each policy: |seeds| of fp32, whose spread is the noise, and the first seed of each other."""
    for name in models:
        source, consts, how, metric = SHORT[name]
        text = find_text(work) if "tokens:{text}" in how else ""
        how = [word.format(text=text) for word in how]
        print(f"\n| {name} | loss | of fp32 | {metric} |\n|---|---|---|---|", flush=True)
        base = None
        for policy in policy_names():
            model = compile_under(work, source, consts, policy)
            losses, metrics = zip(*(train(work, model, how, seed, metric)
                                    for seed in range(1, 1 + (seeds if policy == "fp32" else 1))))
            base = base or losses[0]
            told = shown(losses) if policy == "fp32" else f"{losses[0]:.4f}"
            print(f"| {policy} | {told} | {losses[0] / base:.3f} | {metrics[0]:.4f} |", flush=True)


def train(work, model, options, seed, metric):
    """The loss and the metric of the last evaluation."""
    log = os.path.join(work, "log.jsonl")
    run(f"{PROGRAMS}/amprun", "train", model, "--seed", str(seed), "--log", log, "--force", *options)
    with open(log, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    last = [line for line in lines if "test_loss" in line][-1]
    return last["test_loss"], last["test_" + metric]


def bytes_of(model):
    words = run(f"{PROGRAMS}/amprun", "info", model).split()
    return {kind: int(words[words.index(kind) + 1]) for kind in ("weights", "moments")}


def shown(values):
    return f"{statistics.mean(values):.4f} ± {statistics.stdev(values):.4f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--policies", action="store_true")
    options = parser.parse_args()
    options.models = options.models or ",".join(SHORT if options.policies else MODELS)
    with tempfile.TemporaryDirectory() as work:
        if options.policies:
            compare_policies(work, options.models.split(","), options.seeds)
            return
        for name in options.models.split(","):
            source, consts, how, metric = MODELS[name]
            text = find_text(work) if "tokens:{text}" in how else ""
            how = [word.format(text=text) for word in how]
            print(f"\n| {name} | weights | moments | loss | {metric} |\n|---|---|---|---|---|", flush=True)
            for choice, lines in CHOICES.items():
                model = compile_with(work, source, consts, lines)
                losses, metrics = zip(*(train(work, model, how, seed, metric) for seed in range(1, options.seeds + 1)))
                size = bytes_of(model)
                print(f"| {choice} | {size['weights']} | {size['moments']} | {shown(losses)} | {shown(metrics)} |",
                      flush=True)


if __name__ == "__main__":
    main()
