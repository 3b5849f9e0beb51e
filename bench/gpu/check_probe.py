"""The parts of gpu-check that ask what products could be: by wgmma, and by cuBLASLt.

Each question goes to a process of its own (driver_peer.py) and has a limit, since a kernel that waits for ever would
take the time of all."""
import json
import os
import re
import sys

from check_run import NotRun, Server
from check_speed import gpu_of, say_clocks, settle, times_of
from examples import EXAMPLES

TILES = [(256, 3), (192, 4), (128, 6)]  # columns of 128 rows, stages
TERMS = [16, 48, 64, 256, 768, 1024, 4096]
ORDERS = [(0, 0), (0, 1), (1, 0), (1, 1)]  # whether A, B are stored down
SECONDS = 30  # of a question
SETTLE = 30  # before times

# rows, cols, k: two that are large, then of GPT-2 (16 x 1024), BERT (32 x 128) and ResNet-50 (64)
SHAPES = [(4096, 4096, 4096), (8192, 8192, 8192),
          (16384, 2304, 768), (16384, 768, 768), (16384, 3072, 768), (16384, 768, 3072), (16384, 50304, 768),
          (768, 3072, 16384), (4096, 768, 768), (4096, 3072, 768), (4096, 768, 3072), (768, 3072, 4096),
          (50176, 512, 128), (12544, 1024, 256)]
STORED = "by rows", "down"


def same_cases():
    """(question, what is said of it)"""
    for kind in ("f16", "bf16", "tf32"):
        for down in ORDERS if kind != "tf32" else ORDERS[:1]:
            for columns, stages in TILES if kind == "f16" and down == (0, 0) else TILES[-1:]:
                ask = {"same": kind, "down": down, "columns": columns, "stages": stages, "k": TERMS}
                yield ask, f"{kind}, A {STORED[down[0]]}, B {STORED[down[1]]}, 128 x {columns}"


class Peer:
    """driver_peer.py, begun again after what ended it; after two such ends there is no third."""

    def __init__(self, c):
        self.c, self.server, self.ends = c, None, 0
        self.command = [sys.executable, os.path.join(c.beside, "driver_peer.py")]
        self.command += ["--ptx"] if c.args.stand_in else []

    def ask(self, question, seconds=SECONDS):
        if self.ends > 1:
            raise NotRun("two questions had no answer")
        if self.c.left() < 5:
            raise NotRun("no time is left")
        try:
            if not self.server:
                self.server = Server(self.c, self.command)
                self.server.read()
            return self.server.ask(json.dumps(question), seconds)
        except RuntimeError:  # of a process that lives the device may have failed for good
            self.ends += self.server.ended()
            self.close()
            raise

    def close(self):
        if self.server:
            self.server.__exit__()
        self.server = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def answers(c, peer, cases):
    """(what is said, answer) of each; what has none is a failure, or not run."""
    for question, text in cases:
        try:
            yield text, peer.ask(question)
        except NotRun as late:
            c.say(f"{text}: not run, {late}")
        except RuntimeError as error:
            c.fail(f"{text}: {error}")


def probe(c):
    """Whether wgmma sums as mma.sync does, and how fast it is."""
    data = {"same": {}, "corners": None, "speed": {}}
    with Peer(c) as peer:
        if c.args.stand_in:
            found = peer.ask({"same": "f16", "down": (0, 1), "columns": 0, "stages": 0, "k": TERMS[:1]})["sums"]
            if any(row.get("differing") != 0 for row in found):
                c.fail(f"mma.sync beside itself: {found}")
            raise NotRun("the stand-in has no wgmma")
        if gpu_of(c) not in ("H100", "H200"):
            raise NotRun("wgmma is of sm_90 alone")
        for text, answer in answers(c, peer, same_cases()):
            data["same"][text] = answer["sums"]
            say_same(c, text, answer["sums"])
        for text, answer in answers(c, peer, [({"corners": True}, "corners of im2col maps")]):
            data["corners"] = answer
            c.say(f"{text}: {' and '.join(answer['right']) or 'neither order gives what was wanted'}")
        settle(c, SETTLE)
        clocks = c.sampler.during(probe_speed, c, peer, data["speed"])
        c.say(f"the products{say_clocks(clocks)}")
    return {**data, **clocks}


def say_same(c, text, rows):
    failed = {row["k"]: row["error"] for row in rows if "error" in row}
    differing = [row for row in rows if row.get("differing")]
    same = sorted({row["k"] for row in rows} - set(failed) - {row["k"] for row in differing})
    for k, error in failed.items():
        c.fail(f"{text}, k = {k}: {error}")
    if differing:
        most = max(row["differing"] / row["of"] for row in differing)
        terms = sorted({row["k"] for row in differing})
        c.say(f"{text}: sums differ from mma.sync's at k = {terms}, {most:.1%} at most")
    c.say(f"{text}: the bits of mma.sync at k = {same}")


def probe_speed(c, peer, data):
    cases = [({"speed": shape, "tiles": TILES}, " x ".join(map(str, shape))) for shape in SHAPES]
    for text, answer in answers(c, peer, cases):
        data[text] = answer["times"]
        for with_residual in (False, True):
            rows = [row for row in answer["times"] if row["residual"] == with_residual]
            c.say(f"{text}{' + residual' if with_residual else ''}: " + ", ".join(
                f"128 x {row['tile'][0]} {row['us']:.1f} us {row['tflops']:.0f} TFLOP/s"
                f"{' (%d results differ)' % row['differing'] if row['differing'] else ''}" for row in rows))
    return {}


# ---- cuBLASLt --------------------------------------------------------------------------------------------------------

MODELS = ["bert", "gpt2", "resnet50"]
MOST = 40  # products, those with most FLOP
NAMES = {(0, 0): "forward", (0, 1): "data", (1, 1): "weight"}


def order_of(title):
    """Whether A, B of a product are stored down, by the title of its kernel."""
    if "grad.weight" in title:
        return (1, 1)
    return (0, 1) if "grad." in title else (0, 0)


def products_of(kernel):
    """[{rows, cols, k, down, batch, bias}]: the dense products of a launch; a window has more sizes."""
    products, sizes, titles = kernel["products"], kernel["sizes"], kernel["title"].split("; ")
    if len(sizes) in (3, 4) and products and all(product == products[0] for product in products):
        # several of one shape: for each a title, or a sum of them, or layers, whose elements are counted together
        elements, titles, products = sum(product[0] for product in products), titles[:1], products[:1]
        batch = elements // (sizes[0] * sizes[2])
        products = [[elements // batch if batch else 0, products[0][1]]]
    elif len(sizes) == 3 * len(products) == 3 * len(titles):
        batch = 1
    else:
        return []
    found = []
    for i, (elements, terms) in enumerate(products):
        rows, k, cols = sizes[3 * i:3 * i + 3]
        if rows * cols != elements or k != terms:
            return []
        found.append({"rows": rows, "cols": cols, "k": k, "down": order_of(titles[i]), "batch": batch,
                      "bias": bool(re.search(r"\+ bias", titles[i]))})
    return found


def list_products(c):
    """Of the models' tables, each once, with the most FLOP first, and what ours takes. Of layers together, which
    differ in their number alone, the one with the most launches."""
    found = {}
    models = [("small", 16)] if c.args.stand_in else [(one.name, one.batch) for one in EXAMPLES if one.name in MODELS]
    for model, n in models:
        if not c.wants(model):
            continue
        try:
            run = times_of(c, f"{model}-fp16", n)
        except RuntimeError as error:
            c.fail(f"{model}: {error}")
            continue
        for kernel in run["kernels"]:
            products = products_of(kernel)
            for product in products:
                row = found.setdefault(json.dumps(product), {**product, "launches": 0, "ours": [], "models": []})
                row["launches"] += 1
                row["models"] += [model] if model not in row["models"] else []
                if len(products) == 1:
                    row["ours"].append({"us": kernel["us_in_a_row"], "title": kernel["title"]})
    kept = {}
    for row in sorted(found.values(), key=lambda row: row["launches"]):
        kept[row["rows"], row["cols"], row["k"], row["down"], row["bias"], row["batch"] > 1] = row
    rows = sorted(kept.values(), key=lambda row: -row["rows"] * row["cols"] * row["k"] * row["batch"])
    if not rows:
        raise RuntimeError("no dense product was found in the models' kernels")
    return rows[-3:] if c.args.stand_in else rows[:MOST]


PROGRAM = "cublaslt_conformance_test"  # finds its library as a session does
VERDICT = re.compile(r"^\[ +(OK|SKIPPED|FAILED) +\] ([\w./]+).* \(\d+ ms\)$", re.MULTILINE)


def conformance(c):
    """Each algorithm against float64.  {test: OK, SKIPPED or FAILED}; None: not run."""
    if not os.path.exists(os.path.join(c.home, "bin", PROGRAM)):
        return c.say(f"conformance of cuBLASLt: not run: {PROGRAM} is not built here")
    done = c.run([f"bin/{PROGRAM}"], timeout=SECONDS, must=False)
    verdicts = {name: verdict for verdict, name in VERDICT.findall(done.stdout)}
    passed, failed = (sum(one == verdict for one in verdicts.values()) for verdict in ("OK", "FAILED"))
    if done.returncode or failed:
        lines = [line for line in done.stdout.splitlines() if not re.match(r"\[[-=]|\[ +(OK|RUN|SKIPPED) ", line)]
        c.fail(f"conformance of cuBLASLt: exit status {done.returncode}\n" + "\n".join(lines[:12] + [done.stderr]))
    elif passed < len(verdicts) or not passed:
        why = re.findall(r"NOT TESTED, because (.*)", done.stdout) or ["no test was found"]
        return c.say(f"conformance of cuBLASLt: not run: {why[-1]}")
    c.say(f"conformance of cuBLASLt: {passed} of {len(verdicts)} tests passed")
    return verdicts


def library(c):
    """What cuBLASLt computes, against float64; each product by the best of its 16 algorithms, beside ours, and the best
    with the bits of mma.sync."""
    verdicts = conformance(c)
    return {"conformance": verdicts, "products": time_products(c)}


def time_products(c):
    rows = list_products(c)
    with Peer(c) as peer:
        for row in rows:
            question = {"library": (row["rows"], row["cols"], row["k"]), "down": row["down"], "batch": row["batch"],
                        "bias": row["bias"]}
            text = (f"{row['batch']} of " if row["batch"] > 1 else "") + " x ".join(map(str, question["library"]))
            text += f" {NAMES[row['down']]}{' + bias' if row['bias'] else ''}"
            for _, answer in answers(c, peer, [(question, text)]):
                if "missing" in answer:
                    raise NotRun(f"{answer['missing']}; {len(rows)} products of the models")
                row.update(answer)
                say_library(c, text, row)
    return rows


def say_library(c, text, row):
    timed = sorted((one for one in row["algorithms"] if "us" in one), key=lambda one: one["us"])
    same = [one for one in timed if not one["differing"]]
    ours = min((one["us"] for one in row["ours"]), default=None)
    if not timed:
        c.say(f"{text}: cuBLASLt has no algorithm ({row['why'] or len(row['algorithms'])})")
        return
    best = timed[0]
    told = f"{text}: cuBLASLt {best['us']:.1f} us (algorithm {best.get('algorithm')}, split {best.get('split_k')}, "
    told += f"{best['workspace']} bytes), with our bits {format(same[0]['us'], '.1f') if same else 'none'} "
    told += f"({len(same)} of {len(timed)})"
    c.say(told + (f"; ours {ours:.1f} = {best['us'] / ours:.2f} of its speed" if ours else ""))
