"""The part of gpu-check that looks into kernels, by Nsight Compute."""
import csv
import glob
import os
import shutil
import time

from check_run import Skip
from check_speed import kernel_times

MOST, OF_A_MODEL, SECONDS = 6, 2, 90
SECTIONS = ["MemoryWorkloadAnalysis", "WarpStateStats", "InstructionStats"]
SHOWN = ["Duration", "DRAM Throughput", "Memory Throughput", "Compute (SM) Throughput", "Achieved Occupancy",
         "Registers Per Thread"]


def find_ncu():
    places = sorted(glob.glob("/usr/local/cuda*/bin/ncu") + glob.glob("/opt/nvidia/nsight-compute/*/ncu"))
    return shutil.which("ncu") or (places[-1] if places else None)


def slowest(c):
    """[(model, n, kernel)]: the longest kernels of what `tables` measured, few of each model."""
    if not c.tables:
        model, n = ("small-fp16", 16) if c.args.stand_in else ("mlp512-fp16", 128)
        run = kernel_times(c, f"models/{model}.so", "train_step", n, 1)
        c.tables.append({"model": model, "n": n, "run": run})
    found = []
    for table in c.tables:
        kernels = sorted(table["run"]["kernels"], key=lambda kernel: -kernel["us_in_a_row"])
        found += [(table["model"], table["n"], kernel) for kernel in kernels[:OF_A_MODEL]]
    return sorted(found, key=lambda row: -row[2]["us_in_a_row"])[:MOST]


def read_metrics(path):
    """{metric: "value unit"} of ncu's file: CSV among lines of its own."""
    with open(path, encoding="utf-8", errors="replace") as file:
        rows = csv.DictReader(line for line in file if line.startswith('"'))
        metrics = [(row["Metric Name"], row["Metric Value"], row["Metric Unit"]) for row in rows]
    return {name: f"{value} {unit}".strip() for name, value, unit in metrics if name}


def profile_kernel(c, ncu, model, n, name):
    log = os.path.join(c.out, f"ncu-{model}-{name}.csv")
    sections = [word for section in SECTIONS for word in ("--section", section)]
    bench = ["bin/kernel_bench", f"models/{model}.so", "train_step", str(n), "1", name]
    done = c.run([ncu, "--clock-control", "none", "--set", "basic", *sections, "--csv", "--log-file", log,
                  "--launch-skip", "1", "--launch-count", "1", *bench], timeout=45, must=False)
    metrics = read_metrics(log) if os.path.exists(log) else {}
    if metrics:
        return metrics
    said = done.stdout + done.stderr
    if os.path.exists(log):
        with open(log, encoding="utf-8", errors="replace") as file:
            said += file.read()
    refused = next((line for line in said.splitlines() if "==ERROR==" in line), None)
    if refused:
        raise Skip(f"ncu cannot profile here: {refused}")
    raise RuntimeError(f"{name} of {model}: ncu gave nothing (exit status {done.returncode})")


def profile(c):
    """The longest kernels under ncu, whose files are beside the report."""
    ncu = find_ncu()
    if not ncu:
        raise Skip("ncu is not here")
    rows, end = [], time.monotonic() + SECONDS
    for model, n, kernel in slowest(c):
        if time.monotonic() > end:
            c.say(f"{model} {kernel['name']}: not run, no time is left")
            continue
        try:
            metrics = profile_kernel(c, ncu, model, n, kernel["name"])
        except RuntimeError as error:
            c.fail(str(error))
            continue
        rows.append({"model": model, "n": n, "kernel": kernel["name"], "title": kernel["title"], "metrics": metrics})
        shown = "; ".join(f"{name} {metrics[name]}" for name in SHOWN if name in metrics)
        c.say(f"{model} {kernel['name']}, {kernel['title']}\n    {shown}")
    return rows
