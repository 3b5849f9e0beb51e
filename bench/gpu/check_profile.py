"""The part of gpu-check that looks into kernels, by Nsight Compute."""
import csv
import glob
import os
import re
import shutil
import time

from check_run import Skip
from check_speed import kernel_times

OF_A_MODEL, SECONDS = 6, 90
# Of these the longest of each, before other models: epilogues that read a matrix, rows, elements, attention.
WANTED = {"gpt2-fp16": [r"cross_entropy", r"attn: .*attention$", r"attention_grad", r"c_proj: linear \+ bias \+ add"],
          "resnet50-fp16": [r"^[^;]*conv2d_input_grad \+ add", r"^[^;]*bn\d[^;]*batch_norm_grad$"]}
SECTIONS = ["MemoryWorkloadAnalysis", "WarpStateStats", "InstructionStats"]
SHOWN = ["Duration", "DRAM Throughput", "Memory Throughput", "Compute (SM) Throughput", "Achieved Occupancy",
         "Registers Per Thread"]


def find_ncu():
    places = sorted(glob.glob("/usr/local/cuda*/bin/ncu") + glob.glob("/opt/nvidia/nsight-compute/*/ncu"))
    return shutil.which("ncu") or (places[-1] if places else None)


def slowest(c):
    """[(model, n, kernels)]: the wanted or the longest kernels of what `tables` measured, in the program's order."""
    if not c.tables:
        model, n = ("small-fp16", 16) if c.args.stand_in else ("mlp512-fp16", 128)
        run = kernel_times(c, f"models/{model}.so", "train_step", n, 1)
        c.tables.append({"model": model, "n": n, "run": run})
    found = []
    for table in c.tables:
        kernels = table["run"]["kernels"]
        longest = sorted(range(len(kernels)), key=lambda i: -kernels[i]["us_in_a_row"])
        wanted = [next((i for i in longest if re.search(pattern, kernels[i]["title"])), None)
                  for pattern in WANTED.get(table["model"], [])]
        chosen = {i for i in wanted if i is not None} or longest[:OF_A_MODEL]
        found.append((table["model"], table["n"], [kernels[i] for i in sorted(chosen)]))
    return sorted(found, key=lambda one: one[0] not in WANTED)


def read_metrics(path):
    """[{metric: "value unit"}] of ncu's file, a dict for each launch: CSV among lines of its own."""
    launches = {}
    with open(path, encoding="utf-8", errors="replace") as file:
        for row in csv.DictReader(line for line in file if line.startswith('"')):
            if row["Metric Name"]:
                value = f"{row['Metric Value']} {row['Metric Unit']}".strip()
                launches.setdefault(row["ID"], {})[row["Metric Name"]] = value
    return list(launches.values())


def profile_kernels(c, ncu, model, n, kernels):
    """The metrics of each of the |kernels|."""
    log = c.file("ncu.csv")
    sections = [word for section in SECTIONS for word in ("--section", section)]
    options = ["--clock-control", "none", "--set", "basic", *sections, "--csv", "--log-file", log]
    bench = ["bin/kernel_bench", f"models/{model}.so", "train_step", str(n), "0"]
    done = c.run([ncu, *options, *bench, *(kernel["name"] for kernel in kernels)], timeout=60, must=False)
    said = done.stdout + done.stderr
    launches = []
    if os.path.exists(log):
        launches = read_metrics(log)
        with open(log, encoding="utf-8", errors="replace") as file:
            said += file.read()
        os.remove(log)
    if len(launches) == len(kernels):
        return launches
    refused = next((line for line in said.splitlines() if "==ERROR==" in line), None)
    if refused:
        raise Skip(f"ncu cannot profile here: {refused}")
    raise RuntimeError(f"{model}: ncu gave {len(launches)} launches of {len(kernels)} (exit status {done.returncode})")


def profile(c):
    """The longest kernels of each model under ncu: all its metrics are in report.json."""
    ncu = find_ncu()
    if not ncu:
        raise Skip("ncu is not here")
    rows, end = [], time.monotonic() + SECONDS
    for model, n, kernels in slowest(c):
        if time.monotonic() > end:
            c.say(f"{model}: not run, no time is left")
            continue
        try:
            launches = profile_kernels(c, ncu, model, n, kernels)
        except RuntimeError as error:
            c.fail(str(error))
            continue
        for kernel, metrics in zip(kernels, launches):
            row = {"model": model, "n": n, "kernel": kernel["name"], "title": kernel["title"], "metrics": metrics}
            rows.append(row)
            shown = "; ".join(f"{name} {metrics[name]}" for name in SHOWN if name in metrics)
            c.say(f"{model} {kernel['name']}, {kernel['title']}\n    {shown}")
    return rows
