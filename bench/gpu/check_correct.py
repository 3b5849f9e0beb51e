"""The parts of gpu-check that say whether the GPU path is right."""
import concurrent.futures
import glob
import json
import math
import os
import random
import shutil
import struct

from check_run import NotRun, Skip
from examples import EXAMPLES

# ---- kernels written by hand -------------------------------------------------------------------------------------------


def kernels(c):
    c.need("on_device")
    command = ["bin/on_device", "--dump", os.path.join(c.out, "kernels.txt")]
    done = c.run(command + (["--stand-in"] if c.args.stand_in else []), timeout=180)
    counts = {"pass": 0, "fail": 0, "skip": 0}
    for line in done.stdout.splitlines():
        case, _, detail = line.partition("\t")
        verdict, name = case.split()
        counts[verdict] += 1
        if verdict == "fail":
            c.fail(f"{name}: {detail}")
        elif verdict == "skip":
            c.skip(f"{name}: {detail}")
    if not counts["pass"]:
        raise RuntimeError("no kernel passed")
    c.say(f"{counts['pass']} kernels of {sum(counts.values())} do what the document says")
    return counts


# ---- conformance -------------------------------------------------------------------------------------------------------

TESTS = ["cuda_ops_test", "kernels_test"]
MINUTES = 150  # seconds that the long ones take
LONG = ["CudaAttentionTest.ByChance"]
FIRST = LONG + ["Attention", "SinglePass", "SumsTest", "Reduce", "Joined", "PartsTest", "Bundle"]  # then those for which there is time
FEW = {"cuda_ops_test": "*.Moves", "kernels_test": "*.Random"}  # under the stand-in, which runs all of them elsewhere


def list_tests(c, program):
    only = ["--gtest_filter=" + FEW[program]] if c.args.stand_in else []
    lines = c.run([f"bin/{program}", "--gtest_list_tests", *only], timeout=60).stdout.splitlines()
    suite, names = "", []
    for line in lines:
        if line.startswith("  "):
            names.append((program, suite + line.split("#")[0].strip()))
        elif line.split("#")[0].strip().endswith("."):
            suite = line.split("#")[0].strip()
    return names


def run_test(c, program, name):
    """Each in a process of its own: an error of the device ends what its context can do."""
    if c.left() < c.args.reserve + (MINUTES if name in LONG else 0):
        return program, name, "not run", ""
    env = {"AMP_KERNELS_ON": "driver", "AMP_CUDA_ARCHS": os.environ.get("AMP_CUDA_ARCHS", "90")}
    if not c.args.stand_in:
        env["AMP_KERNELS_AS"] = "cubin"
    try:
        done = c.run([f"bin/{program}", f"--gtest_filter={name}"], timeout=240, must=False, env=env)
    except RuntimeError as late:
        return program, name, "not run" if c.left() < 2 else "failed", str(late)
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if not line.startswith("[")]
        return program, name, "failed", "\n".join(lines[:12]) or f"exit status {done.returncode}"
    if "[  SKIPPED ]" in done.stdout:
        return program, name, "skipped", (done.stdout.split("Skipped\n")[-1].splitlines() or [""])[0]
    return program, name, "passed", ""


def conformance(c):
    for program in TESTS:
        c.need(program)
    tests = [test for program in (FEW if c.args.stand_in else TESTS) for test in list_tests(c, program)]
    random.Random(1).shuffle(tests)  # so that those for which there was time are some of each kind
    tests.sort(key=lambda test: next((i for i, word in enumerate(FIRST) if word in test[1]), len(FIRST)))
    counts = {"passed": 0, "failed": 0, "skipped": 0, "not run": 0}
    with concurrent.futures.ThreadPoolExecutor(max(1, min(14, (os.cpu_count() or 2) - 2))) as pool:
        for program, name, status, why in pool.map(lambda test: run_test(c, *test), tests):
            counts[status] += 1
            if status == "failed":
                c.fail(f"{program} {name}: {why}")
            elif status == "skipped":
                c.skip(f"{program} {name}: {why}")
    if not counts["passed"] and not counts["failed"]:
        raise (NotRun("no time is left") if counts["not run"] else RuntimeError("no test ran"))
    late = f"; {counts['not run']} not run: no time was left" if counts["not run"] else ""
    c.say(f"{counts['passed']} tests of {sum(counts.values())} passed on the device{late}")
    return counts


# ---- training ----------------------------------------------------------------------------------------------------------


CODES = {"f32": "f", "i32": "i", "i64": "q", "u8": "B"}


def write_samples(c, model, path, count, below=None):
    """A safetensors file of random samples for a model; ids are less than |below| says by name, else than 10."""
    rng, head, data = random.Random(1), {}, b""
    told = json.loads(c.run(["bin/amprun", "info", model, "--batch", str(count), "--json"]).stdout)
    for tensor in told["tensors"]:
        if tensor["kind"] not in ("input", "target"):
            continue
        numbers = math.prod(tensor["shape"])
        draw = rng.random if tensor["dtype"] == "f32" else lambda: rng.randrange((below or {}).get(tensor["name"], 10))
        drawn = struct.pack(f"<{numbers}{CODES[tensor['dtype']]}", *(draw() for _ in range(numbers)))
        head[tensor["name"]] = {"dtype": tensor["dtype"].upper(), "shape": tensor["shape"],
                                "data_offsets": [len(data), len(data) + len(drawn)]}
        data += drawn
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def model_name(c, precision):
    return f"models/{'small' if c.args.stand_in else 'mlp512'}-{precision}.so"


PRECISIONS = ["fp16", "bf16", "fp32"]
# What follow compares: model, samples, what ids are below. After the perceptrons, models with launches that wait for blocks of their own
# (supersteps, sums in one pass), which overlap: they have a limit each, since what hangs would take the time of all.
TABULAR = next(example.bounds for example in EXAMPLES if example.name == "tabular")
FOLLOWED = [*((f"mlp512-{precision}", 128, {}) for precision in PRECISIONS), ("small-fp16", 64, {}), ("gan-fp16", 64, {}),
            ("tabular-fp16", 4096, TABULAR)]
SMALL_FOLLOWED = [("small-fp16", 16, {}), ("gan-fp16", 16, {})]
SECONDS = 30


def step_lines(c, model, device, steps):
    command = ["bin/amprun", "step", f"models/{model}.so", "--weights", c.file("first.safetensors")]
    command += ["--inputs", c.file("samples.safetensors"), "--steps", str(steps), "--device", device]
    return [json.loads(line) for line in c.run(command, timeout=SECONDS).stdout.splitlines()]


def follow_model(c, model, samples, below, steps):
    """How far apart the losses are at most."""
    path = f"models/{model}.so"
    write_samples(c, path, c.file("samples.safetensors"), samples, below)
    c.run(["bin/amprun", "train", path, "--data", f"safetensors:{c.file('samples.safetensors')}", "--steps", "1", "--batch", str(samples),
           "--quiet", "--device", "cpu", "--seed", "1", "--save", c.file("first.safetensors")])
    cpu, cuda = (step_lines(c, model, device, steps) for device in ("cpu", "cuda"))
    if len(cpu) != steps or len(cuda) != steps:
        raise RuntimeError(f"{len(cpu)} steps on the CPU, {len(cuda)} on CUDA; {steps} were asked for")
    for key in ("step", "iteration", "scale", "skipped"):
        if [line[key] for line in cpu] != [line[key] for line in cuda]:
            raise RuntimeError(f"{key} differs")
    worst = max(abs(a["loss"] - b["loss"]) / max(abs(a["loss"]), 0.1) for a, b in zip(cpu, cuda))
    bound = 1e-4 if model.endswith("fp32") else 5e-3
    if not worst <= bound:
        raise RuntimeError(f"losses differ by {worst:.3g}, more than {bound}")
    c.say(f"{model}, {samples} samples: {steps} steps follow the CPU, losses within {worst:.2e} (bound {bound})")
    return worst


def follow(c):
    """The same steps on both devices: losses near, everything that is counted equal."""
    worst = {}
    for model, samples, below in SMALL_FOLLOWED if c.args.stand_in else FOLLOWED:
        try:
            worst[model] = follow_model(c, model, samples, below, 2 if c.args.stand_in else 20)
        except RuntimeError as error:
            c.fail(f"{model}: {error}")
    return worst


def training(c):
    """Fashion-MNIST on the device; then the weights that came out, on the CPU."""
    rows = []
    fashion = os.path.join(c.beside, "data", "fashion-mnist")
    if not c.args.stand_in and not os.path.isdir(fashion):
        raise Skip("there is no Fashion-MNIST beside gpu-check")
    if c.args.stand_in:
        write_samples(c, model_name(c, "fp16"), c.file("samples.safetensors"), 16)
    epochs = 1 if c.small else 5
    trained = [(precision, model_name(c, precision), 0.875) for precision in PRECISIONS]
    trained.append(("cnn fp16", "models/cnn-fp16.so", 0.9))
    for what, model, wanted in trained[:1] if c.args.stand_in else trained:
        weights, log = c.file("trained.safetensors"), c.file("log.jsonl")
        command = ["bin/amprun", "train", model, "--device", "cuda", "--quiet", "--seed", "1", "--save", weights, "--log", log]
        if c.args.stand_in:
            c.run([*command, "--data", f"safetensors:{c.file('samples.safetensors')}", "--batch", "16", "--steps", "2"])
        else:
            c.run([*command, "--data", f"idx:{fashion}", "--epochs", str(epochs)], timeout=120)
        with open(log, encoding="utf-8") as file:
            last = [json.loads(line) for line in file][-1]
        row = {"model": what, "epochs": epochs, "log": last}
        rows.append(row)
        if c.args.stand_in:
            c.say(f"{what}: loss {last['loss']:.4f} after 2 steps")
            if not last["loss"] < 10:
                c.fail(f"{what}: the loss is {last['loss']}")
            continue
        on_cpu = json.loads(c.run(["bin/amprun", "eval", model, "--data", f"idx:{fashion}", "--weights", weights, "--device", "cpu"]).stdout)
        row["cpu_accuracy"] = on_cpu["acc"]
        c.say(f"{what}: accuracy {last['test_acc']:.4f} after {epochs} epochs, {on_cpu['acc']:.4f} by the CPU; "
              f"{last['samples_per_s']:.0f} samples/s")
        least = 0.8 if c.small else wanted
        if not last["test_acc"] >= least:
            c.fail(f"{what}: accuracy {last['test_acc']:.4f}; at least {least} is wanted")
        if not abs(last["test_acc"] - on_cpu["acc"]) <= 0.002:
            c.fail(f"{what}: the CPU says {on_cpu['acc']:.4f}, the device {last['test_acc']:.4f}, of the same weights")
    return rows


# ---- compute-sanitizer ---------------------------------------------------------------------------------------------------


def sanitizer(c):
    program = shutil.which("compute-sanitizer") or next(iter(glob.glob("/usr/local/cuda*/bin/compute-sanitizer")), None)
    if c.args.stand_in:
        raise Skip("the stand-in checks by itself")
    if not program:
        raise Skip("compute-sanitizer is not here")
    weights = c.file("sanitized.safetensors")
    model = "models/small-fp16.so"
    write_samples(c, model, c.file("samples.safetensors"), 16)
    c.run(["bin/amprun", "train", model, "--data", f"safetensors:{c.file('samples.safetensors')}", "--steps", "1", "--batch", "16",
           "--quiet", "--device", "cpu", "--save", weights])
    results = {}
    for tool in ["memcheck"] if c.small else ["memcheck", "racecheck", "initcheck", "synccheck"]:
        try:
            done = c.run([program, "--tool", tool, "--error-exitcode", "99", "bin/amprun", "step", model, "--weights", weights,
                          "--inputs", c.file("samples.safetensors"), "--steps", "2", "--device", "cuda"], timeout=90, must=False)
        except RuntimeError as late:
            c.skip(f"{tool} is not finished: {late}")
            continue
        text = done.stdout + done.stderr
        if "not supported" in text:
            raise Skip("compute-sanitizer does not support this device")
        results[tool] = [line for line in text.splitlines() if "SUMMARY" in line]
        if done.returncode:
            c.fail(f"{tool}: exit status {done.returncode}\n" + "\n".join(text.splitlines()[:20]))
        else:
            c.say(f"{tool}: {' '.join(results[tool])}")
    return results
