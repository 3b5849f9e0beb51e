"""`ampc autocast` on exported networks and random graphs: what its outputs pass, how near they compute, and its peers.

    onnx_zoo.py AMPC [--families A,B|none] [--opsets 18,23] [--random N] [--first SEED] [--policy P] [--peers]
                     [--table FILE.md] [--keep DIR]

Prints a line `pass WHAT` or `FAIL WHAT: why` each; run it with tools/onnx-env's Python. For each graph:
    valid       onnx.checker with full_check, strict shape inference with data propagation, an onnxruntime session: what
                the original passes its outputs pass (fp16, fp16 --keep-io, bf16)
    near        fp16: |y - y of the f32 graph| <= NEAR of the largest |y|, on random inputs, finite where that is
    twice       autocast of an fp16 output changes nothing but numbers that reasons name
"""
import argparse
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter

import numpy as np
import onnx
import onnxruntime

import onnx_graphs
import onnx_models

# Of the largest number of an output, in random graphs at least of LEAST: what is left of numbers near 1 after a
# subtraction may be nothing but their rounding.
NEAR, LEAST = 0.02, 0.1
FLOATS = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}
onnxruntime.set_default_logger_severity(4)


class Failed(Exception):
    pass


# ---- what a file passes ----------------------------------------------------------------------------------------------

def session(path):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 2
    return onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])


def strict(path, scratch):
    onnx.shape_inference.infer_shapes_path(path, scratch, strict_mode=True, data_prop=True)


def problems(path, work):
    """By check: what it says; "" where it passes."""
    found = {}
    for what, check in (("checker", lambda: onnx.checker.check_model(path, full_check=True)),
                        ("strict", lambda: strict(path, os.path.join(work, "inferred.onnx"))),
                        ("session", lambda: session(path))):
        try:
            check()
            found[what] = ""
        except Exception as error:  # each tool has its own kinds
            # A kernel that this runtime has not says nothing of the graph: of bf16 it has few.  It then takes the
            # function of an op, such as Clip's, whose nodes have no names, and which may hold ops without bf16.
            missing = what == "session" and ("NOT_IMPLEMENTED" in str(error) or "in node () is invalid" in str(error))
            found[what] = "" if missing else " ".join(str(error).split())[:300]
    return found


def broken(before, after):
    return [f"{what}: {said}" for what, said in after.items() if said and not before[what]]


# ---- ours ------------------------------------------------------------------------------------------------------------

def autocast(ampc, path, out, *options):
    """What --json says; None where it refused."""
    report = out + ".json"
    done = subprocess.run([ampc, "autocast", path, "-o", out, "--force", "--json", report, *options],
                          capture_output=True, text=True)
    if done.returncode:
        return None, done.stderr.strip()
    with open(report) as file:
        return json.load(file), ""


def outputs(path, inputs):
    run = session(path)
    wanted = {i.name: i.type for i in run.get_inputs()}
    feeds = {name: value.astype(FLOATS[wanted[name]]) if wanted[name] in FLOATS else value
             for name, value in inputs.items() if name in wanted}
    return dict(zip([o.name for o in run.get_outputs()], run.run(None, feeds)))


def without_reasons(path):
    model = onnx.load(path)
    for node in all_nodes(model.graph):
        left = [p for p in node.metadata_props if p.key != "ampc.because"]
        del node.metadata_props[:]
        node.metadata_props.extend(left)
    return model.SerializeToString(deterministic=True)


def distance(before, after, least=0.0):
    """The largest difference of float outputs, of the largest number there; what makes them incomparable instead."""
    worst = 0.0
    for name, x in before.items():
        y = after[name]
        if name.startswith("step_") or not isinstance(x, np.ndarray) or x.dtype.kind not in "fiub":
            continue
        if x.dtype.kind != "f":
            if not np.array_equal(x, y) and x.dtype.kind == "b":
                raise Failed(f"{name} differs, which is {x.dtype}")
            continue
        x, y = x.astype(np.float64), y.astype(np.float64)
        if x.shape != y.shape:
            raise Failed(f"{name} has shape {y.shape}, not {x.shape}")
        finite = np.isfinite(x)
        if not np.isfinite(y[finite]).all():
            raise Failed(f"{name} is not finite")
        if finite.any() and np.abs(x[finite]).max() > 0:
            worst = max(worst, np.abs(x - y)[finite].max() / max(np.abs(x[finite]).max(), least))
    return worst


# ---- peers -----------------------------------------------------------------------------------------------------------

def by_onnxconverter(path, out):
    from onnxconverter_common import float16
    onnx.save(float16.convert_float_to_float16(onnx.load(path), keep_io_types=True), out)


def by_modelopt(path, out):
    from modelopt.onnx.autocast import convert_to_mixed_precision
    onnx.save(convert_to_mixed_precision(onnx_path=path, low_precision_type="fp16", keep_io_types=True), out)


PEERS = {"onnxconverter-common": by_onnxconverter, "ModelOpt": by_modelopt}
FLOAT_TYPES = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}


def all_nodes(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in [attribute.g] * attribute.HasField("g") + list(attribute.graphs):
                yield from all_nodes(inner)


def casts_and_bytes(path):
    model = onnx.load(path)
    casts = sum(node.op_type == "Cast" and any(a.name == "to" and a.i in FLOAT_TYPES for a in node.attribute)
                for node in all_nodes(model.graph))
    return casts, sum(len(w.raw_data) or w.ByteSize() for w in model.graph.initializer)


def peer(convert, path, out, before, inputs, expected, work):
    """A cell of the table: casts, bytes of weights, and "fails" with what failed first."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            convert(path, out)
    except Exception as error:
        return {"fails": f"no output: {type(error).__name__}"}
    cell = dict(zip(("casts", "bytes"), casts_and_bytes(out)))
    wrong = broken(before, problems(out, work))
    if wrong:
        cell["fails"] = wrong[0]
    elif expected:
        try:
            cell["error"] = distance(expected, outputs(out, inputs))
        except Exception as error:
            cell["fails"] = f"numbers: {str(error)[:100]}"
    return cell


# ---- one graph -------------------------------------------------------------------------------------------------------

class Zoo:
    def __init__(self, options, work):
        self.o, self.work = options, work
        self.rows, self.seconds, self.refused = [], 0.0, {}

    def check(self, what, wrong):
        print(f"FAIL {what}: {wrong}" if wrong else f"pass {what}", flush=True)
        if wrong and self.o.keep:
            os.makedirs(self.o.keep, exist_ok=True)
            name = what.split(":")[0].replace(" ", "_")
            for file in os.listdir(self.work):
                if file.startswith("model."):
                    shutil.copy(os.path.join(self.work, file), os.path.join(self.o.keep, f"{name}.{file[6:]}"))

    def cast(self, name, path, mode, *options):
        """A path and the report, or None twice where nothing can be lowered."""
        out = os.path.join(self.work, f"{mode}.onnx")
        for file in (out, out + ".data"):
            if os.path.exists(file):
                os.remove(file)
        start = time.monotonic()
        policy = ["--policy", self.o.policy.replace("fp16", "bf16")] if self.o.policy and mode == "bf16" else \
            ["--policy", self.o.policy] if self.o.policy else []
        report, refused = autocast(self.o.ampc, path, out, *policy, *options)
        self.seconds += time.monotonic() - start
        if report is None and "was lowered" in refused:
            self.refused[mode] = self.refused.get(mode, 0) + 1
        else:
            self.check(f"{name}: {mode} is made", refused)
        return (out, report) if report else (None, None)

    def graph(self, name, path, inputs, runs=True, peers=False):
        before = problems(path, self.work)
        expected = self.outputs_of_original(name, path, inputs) if runs and not before["session"] else None
        row = {"name": name, "opset": max(o.version for o in onnx.load(path, load_external_data=False).opset_import
                                          if o.domain in ("", "ai.onnx"))}
        for mode, options in (("fp16", []), ("keep-io", ["--keep-io"]), ("bf16", ["--precision", "bf16"])):
            out, report = self.cast(name, path, mode, *options)
            if not out:
                continue
            self.check(f"{name}: {mode} is valid", "; ".join(broken(before, problems(out, self.work))))
            row[mode] = report
            if mode != "bf16" and expected:
                self.near(name, mode, out, inputs, expected, report)
            if mode == "fp16":
                self.twice(name, out)
        for which, convert in PEERS.items() if peers else []:
            row[which] = peer(convert, path, os.path.join(self.work, "peer.onnx"), before, inputs, expected, self.work)
        self.rows.append(row)
        if self.o.table:
            write_table(self, self.o.table)

    def outputs_of_original(self, name, path, inputs):
        try:
            return outputs(path, inputs)
        except onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument as error:
            print(f"{name}: onnxruntime does not run the original: {' '.join(str(error).split())[:200]}")
            return None

    def near(self, name, mode, out, inputs, expected, report):
        try:
            least = LEAST if name.startswith("random") else 0.0
            error = report["error"] = distance(expected, outputs(out, inputs), least)
            wrong = "" if error <= NEAR else f"{error:.3g} of the largest number; the bound is {NEAR}"
        except Exception as error:
            wrong = str(error)[:300]
        self.check(f"{name}: {mode} computes the same", wrong)

    def twice(self, name, path):
        again, _ = self.cast(name, path, "twice")
        same = again and without_reasons(path) == without_reasons(again)
        self.check(f"{name}: twice is once", "" if same else "the second output differs")

    # ---- all of them

    def networks(self):
        for family in onnx_models.FAMILIES:
            for opset in onnx_models.OPSETS:
                if (self.o.families and family not in self.o.families) or opset not in self.o.opsets or \
                        (opset == 17 and family in onnx_models.WITHOUT_LEGACY):
                    continue
                path = os.path.join(self.work, "model.onnx")
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                    given, _ = onnx_models.export(family, opset, path)
                names = [i.name for i in onnx.load(path, load_external_data=False).graph.input]
                self.graph(f"{family} {opset}", path, {n: t.numpy() for n, t in zip(names, given)}, True, self.o.peers)
        for name, pipeline, samples in onnx_models.pipelines() if not self.o.families else []:
            path = os.path.join(self.work, "model.onnx")
            onnx_models.export_pipeline(pipeline, samples, path)
            entry = onnx.load(path).graph.input[0].name
            self.graph(f"sklearn {name}", path, {entry: samples}, True, self.o.peers)

    def random(self):
        for seed in range(self.o.first, self.o.first + self.o.random):
            model, runs = onnx_graphs.graph(seed)
            path = os.path.join(self.work, "model.onnx")
            onnx.save(model, path)
            self.graph(f"random {seed}", path, random_inputs(model, seed), runs, self.o.peers)


def random_inputs(model, seed):
    rng, made = np.random.default_rng(seed), {}
    for i in model.graph.input:
        shape = [d.dim_value for d in i.type.tensor_type.shape.dim]
        kind = i.type.tensor_type.elem_type
        made[i.name] = (rng.normal(size=shape).astype(np.float32) if kind == onnx.TensorProto.FLOAT else
                        rng.choice(["red", "blue"], size=shape).astype(object) if kind == onnx.TensorProto.STRING else
                        rng.integers(0, 2, size=shape))
    return made


# ---- the table -------------------------------------------------------------------------------------------------------

def cell(c, casts, size):
    if not c:
        return ["-"] * 3
    if "fails" in c:
        return [str(c.get("casts", "-")), f"{c['bytes'] / 1e6:.2f}" if "bytes" in c else "-",
                "fails: " + c["fails"].replace("|", "/")[:60]]
    return [str(c[casts]), f"{c[size] / 1e6:.2f}", f"{c['error']:.1e}" if "error" in c else "valid"]


def write_table(zoo, path):
    lines = ["| graph | nodes | lowered | " + " | ".join(f"{n}: casts | MB | error" for n in ("ampc", *PEERS)) + " |",
             "|---|--:|--:|" + "--:|--:|---|" * (1 + len(PEERS))]
    rows = [r for r in zoo.rows if not r["name"].startswith("random")]
    for r in rows:
        ours = r.get("keep-io")
        lines.append("| " + " | ".join([r["name"], *([str(ours["nodes"]), str(ours["lowered"])] if ours else "--"),
                                        *cell(ours, "casts", "weight_bytes"),
                                        *[x for n in PEERS for x in cell(r.get(n), "casts", "bytes")]]) + " |")
    lines.append("")
    for what, chosen in (("networks", rows), ("random graphs", [r for r in zoo.rows if r not in rows])):
        for n in PEERS:
            tried = [r[n] for r in chosen if n in r]
            fails = Counter(t["fails"].split(":")[0] for t in tried if "fails" in t)
            if tried:
                kinds = ", ".join(f"{kind} {count}" for kind, count in fails.most_common())
                lines.append(f"- {n}, {what}: {fails.total()} of {len(tried)} outputs fail ({kinds}).")
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ampc")
    parser.add_argument("--families", type=lambda s: s.split(","))
    parser.add_argument("--opsets", type=lambda s: [int(x) for x in s.split(",")], default=onnx_models.OPSETS)
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--policy")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--table")
    parser.add_argument("--keep")
    with tempfile.TemporaryDirectory() as work:
        zoo = Zoo(parser.parse_args(), work)
        zoo.networks()
        zoo.random()
    print(f"{len(zoo.rows)} graphs, ampc took {zoo.seconds:.1f} s; nothing to lower: {zoo.refused}")


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
