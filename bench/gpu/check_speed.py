"""The parts of gpu-check that measure, beside PyTorch on the same machine.

Both sides stay alive and take turns; figures are medians over the turns, by device events where nothing else is said.  An
aim that is missed is said and does not make gpu-check fail."""
import json
import os
import statistics
import sys
import threading
import time

from check_run import Server, Skip
from examples import EXAMPLES

ADAMW_BYTES = 30  # a parameter: master, m and v read and written, an f32 gradient read, a 16-bit copy written


def median(rows, key):
    return round(statistics.median(row[key] for row in rows), 3)


def prepare(c):
    """Starts to compile all that PyTorch's side will train, in processes beside one another; the parts that follow do not wait for
    it.  What they leave in the caches of torch.compile is what the one that is timed takes from there."""
    if c.args.stand_in or c.args.no_peer:
        raise Skip("there is no PyTorch's side")
    c.env["TORCHINDUCTOR_CACHE_DIR"] = c.file("torch")
    c.env["TORCHINDUCTOR_FX_GRAPH_CACHE"] = c.env["TORCHINDUCTOR_AUTOGRAD_CACHE"] = "1"
    asked = [{**network, "precision": precision, "batch": batch} for _, network, precision, batch in step_cases(c)]
    asked += [{**network, "precision": precision, "batch": batch} for _, network, precision, batch, _ in example_cases(c)]
    c.preparing = [threading.Thread(target=prepare_one, args=(c, one), daemon=True) for one in asked]
    for thread in c.preparing:
        thread.start()
    c.say(f"{len(asked)} networks are being compiled by PyTorch")


def prepare_one(c, asked):
    try:
        command, env = [sys.executable, os.path.join(c.beside, "torch_peer.py")], {"TORCHINDUCTOR_COMPILE_THREADS": "2"}
        with Server(c, command, env, c.end - time.monotonic()) as server:
            server.read()
            server.ask(json.dumps(asked))
    except (RuntimeError, OSError, ValueError) as error:  # then the one that is timed compiles it
        c.say(f"not prepared: {error}")


def settle(c, seconds):
    """Waits for what compiles in the background, whose first steps would be on the device beside what is measured."""
    until = time.monotonic() + min(seconds, c.left())
    for thread in c.preparing:
        thread.join(max(0, until - time.monotonic()))
    running = sum(thread.is_alive() for thread in c.preparing)
    if running:
        c.say(f"{running} networks are still being compiled by PyTorch, beside what follows")


def peer(c):
    while c.preparing and c.left() > 0:
        c.preparing.pop().join(max(1, c.left()))
    if c.args.stand_in:
        c.skip("PyTorch's side")
        return None
    if c.args.no_peer:
        c.skip("PyTorch's side: --no-peer")
        return None
    if not c.torch_version:
        c.fail("python3 has no PyTorch: nothing to compare with")
        return None
    server = Server(c, [sys.executable, os.path.join(c.beside, "torch_peer.py")])
    c.say(f"PyTorch {server.read()['torch']}")
    return server


AIMS = {"cnn": 1, "resnet18": 1, "resnet50": 0.7, "bert": 0.8, "gpt2": 0.5, "bytes": 0.5, "unet": 0.7, "tabular": 1}  # times PyTorch's speed; else 3

# ---- training steps ------------------------------------------------------------------------------------------------------


def mlp(hidden):
    return {"mlp": [784, hidden, hidden, 10]}


def step_cases(c):
    """(model, what the peer builds, precision, samples)"""
    if c.args.stand_in:
        return [("small", mlp(32), "fp16", 16)]
    few = [("mlp512", mlp(512), "fp16", 128), ("cnn", {"cnn": 32}, "fp16", 128), ("mlp512", mlp(512), "bf16", 128)]
    more = [("mlp512", mlp(512), "fp16", 4096), ("mlp512", mlp(512), "fp32", 128), ("mlp1024", mlp(1024), "fp16", 128)]
    return [case for case in (few if c.small else few + more) if c.wants(case[0])]


def block_of(c, name):
    """Steps of a block, rounds, steps before the first that counts."""
    if c.args.stand_in:
        return 2, 1, 1
    if name in [example.name for example in EXAMPLES]:
        return 20, 3, 10
    return 200, 3, 100


# where our inputs are: where the inputs of the peer are that takes turns with us
PLACES = {"pageable": None, "pinned": "copied", "device": "resident"}


def take_turns(c, torch, command, mode, steps, rounds, warm):
    """One process of ours, and the peer in that mode; None: alone."""
    ours, theirs = [], []
    with Server(c, command) as bench:
        library = bench.read()["library"]
        bench.ask(warm)
        if mode:
            torch.ask(json.dumps({"steps": warm, "mode": mode}))
        for _ in range(rounds):
            ours.append(c.sampler.during(bench.ask, steps))
            if mode:
                theirs.append(c.sampler.during(torch.ask, json.dumps({"steps": steps, "mode": mode})))
    return ours, theirs, library


def time_steps(c, torch, name, network, precision, batch, bounds=()):
    """The peer is torch.compile(mode="reduce-overhead") with autocast, a fused AdamW and, in fp16, a GradScaler, beside our default
    policy of that precision.  `copied`: its batch comes from pinned memory in each step, beside ours with `pinned_inputs`;
    `resident`: it is on the device, beside ours with `device_inputs`."""
    command = [f"models/{name}-{precision}.so", str(batch), *bounds]
    steps, rounds, warm = block_of(c, name)
    row = {"model": name, "precision": precision, "batch": batch, "rounds": rounds, "steps": steps}
    row.update(ampc={}, torch={}, ratio={}, all={"ampc": {}, "torch": {}})
    if torch:
        torch.ask(json.dumps({**network, "precision": precision, "batch": batch}))
    for place, mode in PLACES.items():
        mode = mode if torch else None
        ours, theirs, row["library"] = take_turns(c, torch, ["bin/step_bench", "--inputs", place, *command], mode, steps, rounds, warm)
        row["all"]["ampc"][place] = ours
        row["ampc"][place] = {key: median(ours, key) for key in ("wall_us", "device_us", "host_cpu_us", "host_us", *clocks_of(ours))}
        if mode:
            row["all"]["torch"][mode] = theirs
            row["torch"][mode] = {key: median(theirs, key) for key in ("wall_us", "device_us", *clocks_of(theirs))}
            row["ratio"][mode] = round(row["torch"][mode]["wall_us"] / row["ampc"][place]["wall_us"], 2)
    if torch and name in [example.name for example in EXAMPLES]:
        row["torch"]["kernels"] = torch.ask(json.dumps({"kernels": 3}))["kernels"]
    return row


def clocks_of(blocks):
    """What the sampler saw in every block: the SM clock, the power, and the share of time in which a limit held them down."""
    return [key for key in ("sm_mhz", "watt", "limited") if all(key in block for block in blocks)]


def say_clocks(side):
    return f" at {side['sm_mhz']:.0f} MHz, {side['watt']:.0f} W, limited {side['limited']:.0%}" if "sm_mhz" in side else ""


def say_steps(c, row):
    c.say(f"{row['model']} {row['precision']} batch {row['batch']}, us a step (on the device; host, of processor time a call):")
    for place, mode in PLACES.items():
        ours, text = row["ampc"][place], ""
        if mode in row["torch"]:
            text = (f"   PyTorch {mode} {row['torch'][mode]['wall_us']:.1f}, {row['ratio'][mode]} times ours "
                    f"(aim: {AIMS.get(row['model'], 3)}){say_clocks(row['torch'][mode])}")
        aim = ", aim: under 10" if place == "pinned" else ""
        c.say(f"    {place:8} {ours['wall_us']:9.1f} ({ours['device_us']:.1f}; {ours['host_cpu_us']:.1f}{aim}){say_clocks(ours)}{text}")


def run_cases(c, cases, seconds=0):
    """As many as there is time for, if each takes |seconds|."""
    rows = []
    torch = peer(c)
    try:
        for case in cases:
            if c.left() < seconds and not c.args.stand_in:
                c.say(f"{case[0]}: not run, no time is left")
                continue
            try:
                row = time_steps(c, torch, *case)
            except RuntimeError as error:
                c.fail(f"{case}: {error}")
                continue
            rows.append(row)
            say_steps(c, row)
    finally:
        if torch:
            torch.__exit__()
    return rows


def steps(c):
    return run_cases(c, step_cases(c))


SECONDS, PREPARED, ALONE = 65, 30, 20  # of an example, most of it torch.compile; that is prepared; without PyTorch


def example_case(c, example):
    network = {"twin": example.twin, "arguments": example.arguments, "optimizer": example.optimizer}
    bounds = [f"{name}={count}" for name, count in example.bounds.items()]
    return example.name, network, "fp16", 16 if c.args.stand_in else example.batch, bounds


def example_cases(c):
    few = ["tabular"] if c.args.stand_in else [example.name for example in EXAMPLES]
    wanted = [example for example in EXAMPLES if example.name in few and c.wants(example.name)]
    if c.args.models:
        wanted.sort(key=lambda example: c.args.models.split(",").index(example.name))
    return [example_case(c, example) for example in wanted]


def examples(c):
    """The programs of examples/ beside their twins."""
    seconds = ALONE if c.args.no_peer else PREPARED if "TORCHINDUCTOR_CACHE_DIR" in c.env else SECONDS
    return run_cases(c, example_cases(c), seconds)


def precisions(c):
    """One network's steps in each precision, ours beside PyTorch's: what mixed precision is worth to either."""
    name, network, _, batch, bounds = example_case(c, next(example for example in EXAMPLES if example.name == "resnet50"))
    if c.args.stand_in:
        name, network, bounds = "small", mlp(32), []
    rows = run_cases(c, [(name, network, precision, batch, bounds) for precision in ("fp32", "tf32", "bf16", "fp16")], ALONE)
    for side, place in ("ampc", "device"), ("torch", "resident"):
        times = {row["precision"]: row[side][place]["wall_us"] for row in rows if place in row[side]}
        if "fp32" in times:
            told = ", ".join(f"{precision} {times['fp32'] / us:.2f}" for precision, us in times.items() if precision != "fp32")
            c.say(f"{'ours' if side == 'ampc' else 'PyTorch'}, {name}: times the speed of its own FP32: {told}")
    return rows


# ---- what sharing launches is worth ---------------------------------------------------------------------------------------

# --no-pass of ampc: tools/make-dist compiles these variants; and what a session is asked by its options or environment.
SWITCHES = ["supersteps", "batch", "chain", "single_pass", "bundle", "launch", "gather,gather_sums,gather_chains",
            "merge_columns,merge_lone_columns,merge_scalars"]
SETTINGS = {  # options of step_bench, environment
    "library": (["--products", "1"], {}),
    "own-bits": (["--products", "2"], {}),  # whatever is fastest
    "overlap": ([], {"AMPC_OVERLAP": "0"}),
    "carveouts": ([], {"AMPC_OVERLAP": "equal"}),
}
BY_LIBRARY = {"gpt2-fp16": ("gpt2", 16), "resnet50-fp16": ("resnet50", 64)}  # beside VARIED, for settings of the library
VARIED = {"mlp512-fp16": ("mlp512", 128), "cnn-fp16": ("cnn", 128), "bert-fp16": ("bert", 32)}  # model: what c.wants asks, samples


def variant(model, switch):
    return f"{model}.without-{switch.split(',')[0]}"


def bench_of(c, model, batch, bounds, options=(), env=None):
    return Server(c, ["bin/step_bench", "--inputs", "device", *options, f"models/{model}.so", str(batch), *bounds], env)


def time_switch(c, whole, steps, rounds, *without):
    """Steps of |whole|, which stays alive, and of a process of |without|, in turns."""
    times = {"all": [], "without": []}
    for _ in range(rounds):
        with bench_of(c, *without) as bench:
            bench.read()
            for which, one in (("all", whole), ("without", bench)):
                one.ask(steps)
                times[which].append(c.sampler.during(one.ask, steps))
    return times


def forms(c):
    """Steps without each of the passes that let kernels share a launch, beside steps with all of them."""
    rows, wholes = [], {}
    models = {"small-fp16": ("small", 16)} if c.args.stand_in else VARIED
    steps, rounds = (2, 1) if c.args.stand_in else (50, 3)
    switches = list(SETTINGS) + (SWITCHES[:1] if c.args.stand_in else SWITCHES)
    large = {} if c.args.stand_in else BY_LIBRARY
    cases = [(switch, model, *asked) for switch in switches
             for model, asked in {**models, **(large if switch in ("library", "own-bits") else {})}.items() if c.wants(asked[0])]
    for switch, model, name, batch in cases:
        bounds = [f"{key}={count}" for example in EXAMPLES if example.name == name for key, count in example.bounds.items()]
        if switch in SETTINGS:
            without = model, batch, bounds, *SETTINGS[switch]
        else:
            without = variant(model, switch), batch, bounds
        try:
            if model not in wholes:
                wholes[model] = bench_of(c, model, batch, bounds)
                library = wholes[model].read()["library"]
                for line in library:
                    c.say(f"{model}: {line}")
            times = time_switch(c, wholes[model], steps, rounds, *without)
        except RuntimeError as error:
            c.fail(f"{model} without {switch}: {error}")
            wholes.pop(model, None)
            continue
        with_us, without_us = (median(times[which], "wall_us") for which in ("all", "without"))
        rows.append({"model": model, "switch": switch, "library": library, "with_us": with_us, "without_us": without_us, "runs": times})
        c.say(f"{model} without {switch}: {without_us:.1f} us a step, {without_us / with_us:.3f} times {with_us:.1f} us")
    for whole in wholes.values():
        whole.__exit__()
    return rows


# ---- single kernels --------------------------------------------------------------------------------------------------------


def times_of(c, model, n):
    """Each kernel of a model's step, with the clocks while they ran; measured once."""
    if (model, n) not in c.measured:
        repeats = 1 if c.args.stand_in else 20
        c.measured[model, n] = c.sampler.during(kernel_times, c, f"models/{model}.so", "train_step", n, repeats)
    return c.measured[model, n]


def kernel_times(c, model, program, n, repeats):
    return json.loads(c.run(["bin/kernel_bench", model, program, str(n), str(repeats)], timeout=45).stdout)


def optimizer(c):
    model = "models/wide-small.so" if c.args.stand_in else "models/wide.so"
    runs = [kernel_times(c, model, "train_step", 8, 1 if c.args.stand_in else 30) for _ in range(1 if c.args.stand_in else 3)]
    found = [[k for k in run["kernels"] if "adamw" in k["title"] and k["batch_elements"]] for run in runs]
    if any(len(kernels) != 1 for kernels in found):
        raise RuntimeError("there is not one kernel of the optimizer over all parameters")
    us = statistics.median(kernels[0]["us_in_a_row"] for kernels in found)
    copy = statistics.median(run["copy_bytes"] / run["copy_us"] for run in runs) * 1e6
    count = found[0][0]["batch_elements"]
    rate = ADAMW_BYTES * count / us * 1e6
    c.say(f"AdamW over {count} parameters in bf16: {us:.1f} us, {rate / 1e9:.0f} GB/s; a device copy {copy / 1e9:.0f} GB/s: "
          f"{rate / copy:.0%} (aim: 85 %)")
    return {"parameters": count, "us": us, "bytes_per_parameter": ADAMW_BYTES, "bytes_per_s": rate, "copy_bytes_per_s": copy,
            "share": rate / copy, "registers": found[0][0]["registers"], "spill_bytes": found[0][0]["spill_bytes"], "runs": runs}


# The middle one of three layers of one size: its operands and results are f16.  By the beginning of the kernel's title.
ORDERS = {"forward": "fc2: linear", "data": "fc2.linear.grad.input", "weight": "fc2.linear.grad.weight"}
MATMULS = [(128, 512), (128, 1024), (1024, 1024), (4096, 4096), (8192, 8192)]  # samples, size


def products(run, n, size):
    """[(orders, kernel)]: the launches that make the middle layer's products, one order each, or both gradients."""
    found = []
    for kernel in run["kernels"]:
        titles = kernel["title"].split("; ")
        orders = [order for order, begin in ORDERS.items() if any(title.startswith(begin) for title in titles)]
        if orders and kernel["tensor_cores"]:
            found.append((orders, kernel))
    if sorted(sum((orders for orders, _ in found), [])) != sorted(ORDERS):
        raise RuntimeError(f"{n} x {size} x {size}: there is not one product in tensor cores for each order")
    return found


def torch_times(theirs, orders):
    """Of the orders that one of our launches makes, one after the other."""
    return {key: round(sum(median(theirs[order], key) for order in orders), 3) for key in ("us", "us_in_a_row")}


def matmul(c):
    """`us`: launch by launch; `us_in_a_row`: many one after the other, as in a graph.  Operands take turns on both sides."""
    rows = []
    torch = peer(c)
    try:
        for n, size in [(32, 160)] if c.args.stand_in else MATMULS[:4] if c.small else MATMULS:
            repeats, rounds = (1, 1) if c.args.stand_in else (20, 3)
            runs, theirs = [], {order: [] for order in ORDERS}
            for _ in range(rounds):
                runs.append(kernel_times(c, f"models/chain-{size}.so", "train_step", n, repeats))
                for order in ORDERS if torch else ():
                    theirs[order].append(torch.ask(json.dumps({"matmul": [n, size, size], "order": order, "repeats": repeats})))
            all_found = [products(run, n, size) for run in runs]
            for number, (orders, _) in enumerate(all_found[0]):
                row = {"n": n, "k": size, "m": size, "orders": orders}
                ours = [found[number][1] for found in all_found]
                row["ampc"] = {key: median(ours, key) for key in ("us", "us_in_a_row", "registers")}
                row["torch"] = torch_times(theirs, orders) if torch else None
                us, flops = row["ampc"]["us_in_a_row"], 2 * n * size * size * len(orders)
                text = f"{n} x {size} x {size} fp16, {' and '.join(orders)}: {us:.1f} us, {flops / us / 1e6:.1f} TFLOP/s"
                if torch:
                    row["share"] = round(row["torch"]["us_in_a_row"] / us, 3)
                    text += f"; PyTorch {row['torch']['us_in_a_row']:.1f} us: {row['share']:.0%} of its speed (aim: 45 %)"
                c.say(text)
                rows.append(row)
    finally:
        if torch:
            torch.__exit__()
    return rows


# ---- all kernels of a step --------------------------------------------------------------------------------------------------

TABLES = [("mlp512-fp16", 128), ("mlp1024-fp16", 128), ("cnn-fp16", 128)]  # model, samples
SHOWN = 12
WITHIN = 1.5  # times what was measured, either way, is what the model of time aims at


def gpu_of(c):
    """Its name for `amprun info --roofline`; None: one that is not known there."""
    if c.args.stand_in:
        return "H100"
    done = c.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], timeout=30, must=False)
    return next((name for name in ("H200", "H100", "A100", "RTX 4090", "T4") if name in done.stdout), None)


def modelled(c, model, n, gpu):
    """{kernel: its row}, by `amprun info --roofline`."""
    if not gpu:
        return {}
    command = ["bin/amprun", "info", f"models/{model}.so", "--roofline", gpu, "--batch", str(n), "--json"]
    told = json.loads(c.run(command, timeout=60).stdout)
    return {kernel["name"]: kernel for kernel in told["roofline"]["kernels"]}


def compare_model(c, run, rows):
    """How far the model of time is from what was measured: modelled / measured."""
    model_us = {name: row["microseconds"] for name, row in rows.items()}
    ratios = {kernel["name"]: model_us[kernel["name"]] / max(kernel["us_in_a_row"], 1e-3)
              for kernel in run["kernels"] if kernel["name"] in model_us}
    if not ratios:
        return None
    near = sum(1 / WITHIN <= ratio <= WITHIN for ratio in ratios.values())
    total, measured = sum(model_us.values()), sum(kernel["us_in_a_row"] for kernel in run["kernels"])
    c.say(f"    the model of time: {total:.1f} us; {near} of {len(ratios)} kernels within {WITHIN} of what was measured (aim: 90 %)")
    return {"us": total, "of_measured": total / max(measured, 1e-3), "near": near, "kernels": list(rows.values())}


def tables(c):
    """Each kernel of a training step by itself; the largest are said, the others are in report.json."""
    results, gpu = [], gpu_of(c)
    examples = [(f"{example.name}-fp16", example.batch) for example in EXAMPLES]
    for model, n in [("small-fp16", 16)] if c.args.stand_in else TABLES if c.small else TABLES + examples:
        if not c.wants(model.rsplit("-", 1)[0]):
            continue
        try:
            run = times_of(c, model, n)
            rows = modelled(c, model, n, gpu)
        except RuntimeError as error:
            c.fail(f"{model}: {error}")
            continue
        total, copy = sum(kernel["us_in_a_row"] for kernel in run["kernels"]), run["copy_bytes"] / run["copy_us"]
        c.say(f"{model}, {n} samples: {len(run['kernels'])} kernels, {total:.1f} us{say_clocks(run)}")
        for kernel in sorted(run["kernels"], key=lambda kernel: -kernel["us_in_a_row"])[:SHOWN]:
            us, told = max(kernel["us_in_a_row"], 1e-3), rows.get(kernel["name"], {}).get("microseconds")
            c.say(f"    {us:9.1f} us {us / total:6.1%}  {'' if told is None else f'modelled {told:7.1f}  '}"
                  f"{kernel['operand_bytes'] / us / copy:6.1%} of a copy's bytes a second  "
                  f"{kernel['registers']:3} registers  {kernel['title']}")
        results.append({"model": model, "n": n, "us": total, "run": run, "modelled": compare_model(c, run, rows)})
    c.tables = results
    return results
