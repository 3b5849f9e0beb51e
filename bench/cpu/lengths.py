"""lengths.py: what bench/lengths measures: a classifier of texts of any length, a text a call, one thread.

Four sides take turns: its model.so with a size T (`any`), a model.so for each length (`one`), onnxruntime and PyTorch,
eager and compiled with dynamic shapes. Figures are medians of rounds, in microseconds of processor time a call.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

import onnxruntime
import torch

import ampc_tools as tools
from length_models import Texts

MODEL = os.path.join(tools.MODELS, "lengths/texts.amp")
LIBRARY = os.path.join(os.path.dirname(onnxruntime.__file__), "capi", f"libonnxruntime.so.{onnxruntime.__version__}")
ALL = (8, 16, 32, 64, 96, 128, 160, 200)  # whose bits and memory are compared, besides --lengths


def batch(length):
    tokens = torch.arange(length, dtype=torch.int32)[None] * 7919 % 1000
    return tokens, torch.ones_like(tokens)


def export(module, most, path):
    names = ("tokens", "mask")
    length = torch.export.Dim("T", min=2, max=most)
    program = torch.onnx.export(module, batch(16), dynamo=True, input_names=names, output_names=["logits"],
                                dynamic_shapes=({1: length}, {1: length}), verbose=False)
    program.save(path)
    return path


class Ours:
    """bench/server/lengths.c."""

    def __init__(self, *arguments):
        words = [tools.program("bench/server/lengths"), *map(str, arguments)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"lengths: no answer to {words}")
        return line.split()

    def timer(self, side, length, seconds):
        return lambda: float(self.ask(side, length, seconds)[0])


def torch_timer(run, length, seconds):
    inputs = batch(length)

    def timer():
        calls, start = 0, time.thread_time()
        with torch.inference_mode():
            while time.thread_time() - start < seconds:
                for _ in range(4):
                    run(*inputs)
                calls += 4
        return (time.thread_time() - start) * 1e6 / calls

    return timer


def compile_all(work, lengths, most, unit):
    options = ("--target", "cpu", "--isa", "native", "-D", f"MOST={most}", "-D", f"UNIT={unit}")
    any_length = tools.compile_model(MODEL, os.path.join(work, "any.so"), *options)
    each = [f"{t}={tools.compile_model(MODEL, os.path.join(work, f'{t}.so'), *options, '-D', f'T={t}')}"
            for t in lengths]
    return [any_length, *each]


def measure(ours, module, options):
    sides = {side: [ours.timer(side, t, options.seconds) for t in options.lengths]
             for side in ("any", "one", "onnxruntime")}
    sides["eager"] = [torch_timer(module, t, options.seconds) for t in options.lengths]
    if options.compile:
        fast = torch.compile(module, dynamic=True)
        sides["compiled"] = [torch_timer(fast, t, options.seconds) for t in options.lengths]
    for timers in sides.values():
        for timer in timers:
            timer()  # warm
    times = {side: [[] for _ in options.lengths] for side in sides}
    for at in range(options.rounds):
        for where in range(len(options.lengths)):
            for side in list(sides)[:: 1 if at % 2 else -1]:
                times[side][where].append(sides[side][where]())
    return times


def report(times, options):
    rows = []
    print("| T | " + " | ".join(times) + " | any / one | any / onnxruntime | any / eager |")
    print("|--:|" + "--:|" * (len(times) + 3))
    for at, t in enumerate(options.lengths):
        row = {side: statistics.median(of[at]) for side, of in times.items()}
        ratios = [statistics.median(a / b for a, b in zip(times["any"][at], times[side][at]))
                  for side in ("one", "onnxruntime", "eager")]
        print(f"| {t} | " + " | ".join(f"{x:.1f}" for x in row.values()) + " | "
              + " | ".join(f"{x:.2f}" for x in ratios) + " |")
        rows.append({"length": t, **row, "any/one": ratios[0], "any/onnxruntime": ratios[1], "any/eager": ratios[2]})
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--seconds", type=float, default=0.05, help="of processor time in each turn")
    parser.add_argument("--lengths", type=lambda text: [*map(int, text.split(","))], default=[16, 64, 128, 200])
    parser.add_argument("--most", type=int, default=200, help="the model's largest T, and the session's")
    parser.add_argument("--unit", type=int, default=8, help="of the model's T")
    parser.add_argument("--compile", action="store_true", help="PyTorch compiled, too")
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    module = Texts(MOST=options.most).eval().requires_grad_(False)
    checked = sorted({*ALL, *options.lengths})
    with tempfile.TemporaryDirectory() as work:
        weights = tools.write_weights(os.path.join(work, "weights.safetensors"), module)
        exported = export(module, options.most, os.path.join(work, "texts.onnx"))
        ours = Ours(weights, exported, LIBRARY, options.most,
                    *compile_all(work, checked, options.most, options.unit))
        differences = [(t, *ours.ask("difference", t)) for t in checked]
        report(measure(ours, module, options), options)
        *held, taken = map(int, ours.ask("memory"))
    different = [str(t) for t, bits, _ in differences if bits != "equal"]
    print("bits of `any` and `one`: " + ("differ at " + ", ".join(different) if different else "equal"))
    print(f"largest difference from onnxruntime: {max(float(far) for *_, far in differences):.2g}")
    print(f"bytes of a session: any {held[0]}, one of " + ", ".join(f"{t}: {b}" for t, b in zip(checked, held[1:])))
    print(f"allocations by all calls: {taken}")


main()
