"""sums.py: what the sums of tensor cores do to training (bench/sums). Standard library only.

Each model is trained in FP16 under ieee, sm_80 and sm_90 from the same weights and with the same samples, and under
ieee from weights that are each one unit in the last place off, or not: what any rounding does to a training."""
import argparse
import json
import math
import os
import random
import struct
import subprocess
import tempfile

AMPC, AMPRUN = "bazel-bin/tools/ampc", "bazel-bin/tools/amprun"
FASHION = os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist")
MODELS = {
    "perceptron": {"file": "examples/fashion_mnist/mlp.amp", "options": [], "batch": 128},
    "small GPT": {"file": "examples/gpt/bytes.amp", "options": ["-D", "L=2", "-D", "T=64"], "batch": 8},
}
RUNS = {"nudged": "ieee, weights one unit off", "sm_80": "sm_80", "sm_90": "sm_90"}
COLOURS = {"nudged": "#999999", "sm_80": "#0072b2", "sm_90": "#d55e00"}


def text_file(folder):
    """TEXT, or the King James Bible without chapter and verse."""
    if "TEXT" in os.environ:
        return os.environ["TEXT"]
    path = os.path.join(folder, "text.txt")
    lines = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], check=True, capture_output=True, text=True).stdout
    with open(path, "w") as file:
        file.writelines(line.split(" ", 1)[-1] + "\n" for line in lines.splitlines())
    return path


# ---- weights --------------------------------------------------------------------------------------------------------


def read_weights(path):
    """The header, where the data begins, and all f32 numbers in a row."""
    with open(path, "rb") as file:
        data = file.read()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    return data[:begin], struct.unpack(f"<{(len(data) - begin) // 4}f", data[begin:])


def nudge(path, to):
    head, numbers = read_weights(path)
    draw = random.Random(1)
    bits = [struct.unpack("<I", struct.pack("<f", x))[0] for x in numbers]
    bits = [b + draw.choice((-1, 0, 1)) if b & 0x7FFFFFFF else b for b in bits]
    with open(to, "wb") as file:
        file.write(head + struct.pack(f"<{len(bits)}I", *bits))


def distance(a, b):
    return math.sqrt(math.fsum((x - y) ** 2 for x, y in zip(a, b)))


# ---- training -------------------------------------------------------------------------------------------------------


def train(model, weights, data, batch, steps, seed, folder, name):
    """The losses, and where the weights are."""
    log, saved = (os.path.join(folder, name + end) for end in (".log", ".safetensors"))
    subprocess.run([AMPRUN, "train", model, "--data", data, "--batch", str(batch), "--steps", str(steps),
                    "--seed", str(seed), "--weights", weights, "--save", saved, "--log", log, "--quiet", "--force"],
                   check=True)
    with open(log) as file:
        lines = [json.loads(line) for line in file]
    return [line["loss"] for line in lines if "iteration" in line and "loss" in line], saved


def first_weights(model, data, seed, folder):
    """After one step: amprun initialises weights as it trains them."""
    path = os.path.join(folder, "first.safetensors")
    subprocess.run([AMPRUN, "train", model, "--data", data, "--steps", "1", "--seed", str(seed), "--save", path,
                    "--quiet", "--force"], check=True)
    return path


def measure(name, steps, seed, folder):
    of = MODELS[name]
    data = f"tokens:{text_file(folder)},held=0" if "gpt" in of["file"] else f"idx:{FASHION}"
    models = {}
    for sums in ("ieee", "sm_80", "sm_90"):
        models[sums] = os.path.join(folder, sums + ".so")
        subprocess.run([AMPC, of["file"], *of["options"], "--precision", "fp16", "--target", "cpu", "--sums", sums,
                        "-o", models[sums]], check=True)
    first = first_weights(models["ieee"], data, seed, folder)
    nudged = os.path.join(folder, "nudged.first")
    nudge(first, nudged)
    out = {"model": of["file"], "options": of["options"], "batch": of["batch"], "seed": seed, "losses": {},
           "weights_apart": {}}
    saved = {}
    for run in ("ieee", *RUNS):
        start = nudged if run == "nudged" else first
        model = models["ieee" if run == "nudged" else run]
        out["losses"][run], saved[run] = train(model, start, data, of["batch"], steps, seed, folder, run)
    before, after = read_weights(first)[1], read_weights(saved["ieee"])[1]
    moved = distance(before, after)
    for run in RUNS:
        out["weights_apart"][run] = distance(read_weights(saved[run])[1], after) / moved
    return out


# ---- the figure -----------------------------------------------------------------------------------------------------

WIDTH, HEIGHT, LEFT, TOP, GAP = 420, 300, 70, 50, 90
LOWEST, HIGHEST = -8, 0  # powers of ten


def apart(result, run):
    """By step, how far the loss is from that under ieee, of it."""
    return [abs(a - b) / abs(b) for a, b in zip(result["losses"][run], result["losses"]["ieee"])]


def panel(name, result, left):
    losses = result["losses"]["ieee"]
    steps = len(losses)

    def place(step, value):
        power = max(LOWEST, min(HIGHEST, math.log10(value) if value else LOWEST))
        return left + step / steps * WIDTH, TOP + (HIGHEST - power) / (HIGHEST - LOWEST) * HEIGHT

    out = [f'<text x="{left}" y="{TOP - 14}" font-size="15">{name}: loss {losses[0]:.3f} to {losses[-1]:.3f}</text>']
    for power in range(LOWEST, HIGHEST + 1, 2):
        _, y = place(0, 10.0 ** power)
        out.append(f'<path d="M{left} {y:.0f}h{WIDTH}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 8}" y="{y + 4:.0f}" text-anchor="end">1e{power}</text>')
    for step in range(0, steps + 1, max(1, steps // 4)):
        x, _ = place(step, 1)
        out.append(f'<text x="{x:.0f}" y="{TOP + HEIGHT + 20}" text-anchor="middle">{step}</text>')
    for run in RUNS:
        points = " ".join("%.1f,%.1f" % place(i + 1, value) for i, value in enumerate(apart(result, run)))
        out.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[run]}" stroke-width="1.2"/>')
    return out


def figure(results):
    width = LEFT + len(results) * (WIDTH + GAP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{TOP + HEIGHT + 80}" '
           'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="white"/>']
    for i, (name, result) in enumerate(results.items()):
        out += panel(name, result, LEFT + i * (WIDTH + GAP))
    y = TOP + HEIGHT + 55
    out.append(f'<text x="{LEFT}" y="{y}">difference of the loss from that under ieee, of it, by step:</text>')
    for i, (run, words) in enumerate(RUNS.items()):
        x = LEFT + 400 + 130 * i + (70 if i else 0)
        out.append(f'<path d="M{x} {y - 4}h24" stroke="{COLOURS[run]}" stroke-width="3"/>')
        out.append(f'<text x="{x + 30}" y="{y}">{words}</text>')
    return "\n".join(out + ["</svg>", ""])


def median(values):
    return sorted(values)[len(values) // 2]


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--json", default="docs/design/sums.json")
    options.add_argument("--svg", default="docs/design/sums.svg")
    asked = options.parse_args()
    results = {}
    for name in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            results[name] = measure(name, asked.steps, asked.seed, folder)
    with open(asked.json, "w") as file:
        json.dump(results, file, indent=None, separators=(", ", ": "))
        file.write("\n")
    with open(asked.svg, "w") as file:
        file.write(figure(results))
    print("| model | run | median of the last 50 differences | largest | last loss | weights apart, of their way |")
    print("|---|---|--:|--:|--:|--:|")
    for name, result in results.items():
        for run in ("ieee", *RUNS):
            last = f"{result['losses'][run][-1]:.5f}"
            if run == "ieee":
                print(f"| {name} | ieee | | | {last} | |")
                continue
            off = apart(result, run)
            print(f"| | {RUNS[run]} | {median(off[-50:]):.1e} | {max(off):.1e} | {last} | "
                  f"{result['weights_apart'][run]:.1e} |")


main()
