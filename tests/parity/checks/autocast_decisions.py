"""autocast_decisions.py: the training step before simplify against PyTorch's own autocast layer, run live on the model's twin:
every decision and cast, forward and backward, in FP16 and BF16, on CUDA (its layer over tensors without storage) and on the
CPU (run); and every op and cast says why. Of the networks in models/networks, LIVE alone, and of the models with a size T
one; with --long all."""
import functools
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile

import ampc_tools as tools
import compare_autocast
import harness
import length_models
import networks
import twins

sys.path.insert(0, os.path.join(tools.ROOT, "tests/parity/oracle"))
import op_table

ORACLE = os.path.join(tools.ROOT, "tests/parity/oracle/torch_autocast_oracle.py")
TWIN = os.path.join(tools.ROOT, "tests/parity/twin.py")
# model: builder of its twin
SMALL = os.path.join(tools.MODELS, "mlp_16_32_10.amp")
SMALL_CNN = os.path.join(tools.MODELS, "cnn_16.amp")
MODELS = {tools.MLP: "mlp", SMALL: "small", tools.CNN: "cnn", SMALL_CNN: "small_cnn",
          os.path.join(tools.MODELS, "tied_tokens.amp"): "tied_tokens"}
# name of an example: (model, builder of its twin, -D)
EXAMPLES = {name: (os.path.join(tools.ROOT, "examples", example.model), f"{file}:{example.trace}", example.defines)
            for name, file, example in twins.examples() if example.trace}
# name of a network: the same
NETWORKS = {name: (os.path.join(tools.MODELS, "networks", f"{name}.amp"), f"{networks.__file__}:{twin}", {})
            for name, twin in networks.NETWORKS.items()}
# the same of a model with a size T, which has at any length what its twin has at one
LENGTHS = {f"{name} of any length": (length_models.path_of(name), f"{length_models.__file__}:of_{name}", {})
           for name in length_models.MODELS}
LIVE = ("densenet", "style_transfer", "siamese", "distillation", "activations", "linear_attention")
ALWAYS = (*MODELS, *EXAMPLES, *LIVE, "texts of any length")
COMMITTED = {"mlp": SMALL, "cnn": SMALL_CNN}
LOW = {"torch-fp16": "f16", "torch-bf16": "bf16"}
CPU_LOW = {"torch-cpu-fp16": "f16", "torch-cpu-bf16": "bf16"}
RMS_NORM = "PyTorch's rms_norm on the CPU is a row of ops, which no one op of ours can be compared with"
NOT_ON_THE_CPU = {"llama": RMS_NORM, "llama of any length": RMS_NORM}
# CUDA's ops whose table says otherwise than calling them: bf16 is cast first, and the norms differ by overloads.
BY_CALLING = {"aten::softmax.int": ["fp32"], "aten::log_softmax.int": ["fp32"],
              "aten::norm.Scalar": ["fp32_set_opt_dtype"], "aten::norm.ScalarOpt_dim": ["fp32_set_opt_dtype"]}
DEVICES = {"cuda": LOW, "cpu": CPU_LOW}


def sources(model):
    """(model text, builder of its twin, -D)"""
    return {**EXAMPLES, **NETWORKS, **LENGTHS}.get(model, (model, f"{TWIN}:{MODELS.get(model)}", {}))


def oracle_env(device):
    return {**os.environ, "ORACLE_REAL": "1" if device == "cpu" else "0"}


@functools.cache
def oracle(device, models):
    """{(model, policy): the oracle's rows}, of the policies for |device|"""
    low = DEVICES[device]
    with tempfile.TemporaryDirectory() as folder:
        files = {case: os.path.join(folder, str(at))
                 for at, case in enumerate(itertools.product(models, low))}
        lines = [f"{sources(model)[1]}\t{low[policy]}\t{file}\n" for (model, policy), file in files.items()]
        subprocess.run([sys.executable, ORACLE, "graphs", "--device", device], input="".join(lines), text=True, check=True,
                       env=oracle_env(device))
        return {case: tools.json_lines(file) for case, file in files.items()}


@functools.cache
def both_sides(model, policy, among=ALWAYS):
    """(our dump, the oracle's rows, which it answers for |among| at once)"""
    path, _, defines = sources(model)
    options = [word for name, value in defines.items() for word in ("-D", f"{name}={value}")]
    rows = oracle("cpu" if policy in CPU_LOW else "cuda", among)[model, policy]
    return tools.dump(path, "autodiff", "--policy", policy, *options), rows


def compare_each(tally, models):
    for model in models:
        for policy in [*LOW, *(CPU_LOW if model not in NOT_ON_THE_CPU else [])]:
            text, rows = both_sides(model, policy, models)
            ours, theirs = compare_autocast.both_graphs(text, rows)
            name = f"{os.path.basename(model)} {policy}"
            tally.same(f"{name}: decisions and casts as PyTorch's", compare_autocast.graph_differences(ours, theirs),
                       f"{len(theirs.ops)} ops, {sum(theirs.casts.values())} casts")
            tally.same(f"{name}: every op and cast has a reason", compare_autocast.missing_reasons(text))


def check_live(tally, options):
    compare_each(tally, ALWAYS)
    if options.long:
        compare_each(tally, tuple(name for name in (*NETWORKS, *LENGTHS) if name not in ALWAYS))


def other_lines(live, committed):
    return [f"line {at + 1}" for at, pair in enumerate(itertools.zip_longest(committed, live)) if pair[0] != pair[1]]


def check_committed(tally, options):
    """The answers that tests without Python read are this PyTorch's."""
    for name, model in COMMITTED.items():
        for policy, low in LOW.items():
            answer = f"torch_graph_{name}_{low}.jsonl"
            committed = tools.json_lines(os.path.join(os.path.dirname(ORACLE), answer))
            live = both_sides(model, policy)[1]
            tally.same(f"{answer} is what the oracle answers now", other_lines(live, committed))


def oracle_lines(device, script, *args):
    out = subprocess.run([sys.executable, os.path.join(os.path.dirname(ORACLE), script), *args], text=True, check=True,
                         capture_output=True, env=oracle_env(device)).stdout
    return [json.loads(line) for line in out.splitlines()]


def check_tables(tally, options):
    """The tables of the CPU are what this PyTorch does; CUDA's is what its ops do when they are called."""
    def committed(name):
        return tools.json_lines(os.path.join(os.path.dirname(ORACLE), name))

    for low in CPU_LOW.values():
        live = [json.loads(line) for line in op_table.live(f"cpu {low}")]
        kept = [*op_table.rows(os.path.join(os.path.dirname(ORACLE), "torch_ops.jsonl"), f"cpu {low}")]
        tally.same(f"torch_ops.jsonl is what PyTorch does now in {low} on the CPU", other_lines(live, kept),
                   f"{len(live)} calls")
    live = oracle_lines("cuda", "autocast_classes.py", "cpu")
    tally.same("the CPU's table is what its ops do now", other_lines(live, committed("torch_autocast_cpu_table.jsonl")),
               f"{len(live)} ops")
    table = {row["op"]: row["policy"] for row in committed("torch_autocast_table.jsonl") if row["policy"] != "?"}
    live = {row["op"]: row["policy"] for row in oracle_lines("cuda", "autocast_classes.py", "cuda")}
    tally.same("CUDA's table is what its ops do now",
               [op for op, policy in table.items() if live[op] not in BY_CALLING.get(op, [policy])], f"{len(table)} ops")


def replace_one(pattern, replacement, text):
    changed, count = re.subn(pattern, replacement, text, count=1)
    if count != 1:
        raise ValueError(f"nothing to plant: no {pattern}")
    return changed


def plant(tally, options):
    text, rows = both_sides(tools.MLP, "torch-fp16")

    def compare(pattern, replacement):
        return compare_autocast.differences(replace_one(pattern, replacement, text), rows)

    tally.seen("one decision changed (relu in f32)", compare(r"(= relu\([^)]*\)\s*: )f16", r"\1f32"))
    tally.seen("one backward decision changed", compare(r"(= matmul\([^)]*\)\s*: )f16", r"\1f32"))
    tally.seen("one cast to another type", compare(r"(= cast\([^)]*\)\s*: )f16", r"\1bf16"))
    tally.seen("one op without its reason", compare(r" because \{[^}]*\}", ""))
    cnn, cnn_rows = both_sides(SMALL_CNN, "torch-fp16")
    changed = replace_one(r"(= conv2d_weight_grad\([^)]*\([^)]*\)\)\s*: )f16", r"\1f32", cnn)
    tally.seen("one gradient of a convolution changed", compare_autocast.differences(changed, cnn_rows))
    changed = replace_one(r"(= batch_norm\([^)]*\)\s*: )f16", r"\1f32", cnn)
    tally.seen("batch norm in f32", compare_autocast.differences(changed, cnn_rows))
    wrong = [dict(row, out=["f32"]) if row["op"] == "aten._log_softmax.default" else row for row in rows]
    tally.seen("an oracle that answers otherwise", compare_autocast.differences(text, wrong))


def plant_in_networks(tally, options):
    def planted(fault, model, policy, pattern, replacement):
        text, rows = both_sides(model, policy)
        tally.seen(fault, compare_autocast.differences(replace_one(pattern, replacement, text), rows))

    planted("kl_div in f16, several ops of PyTorch's", "distillation", "torch-fp16", r"(= kl_div\([^)]*\)\s*: )f32", r"\1f16")
    planted("softmax of bf16 that stays bf16", "distillation", "torch-bf16", r"(= softmax\([^)]*\)\s*: )f32", r"\1bf16")
    planted("instance norm in f32", "style_transfer", "torch-fp16", r"(= instance_norm\([^)]*\)\s*: )f16", r"\1f32")
    planted("prelu's gradient in f32", "activations", "torch-fp16", r"(= prelu_grad\([^)]*\)\s*: )f16", r"\1f32")
    text, rows = both_sides("style_transfer", "torch-fp16")
    wrong = [dict(row, out=["f16"]) if row["op"] == "aten.abs.default" else row for row in rows]
    tally.seen("one op of PyTorch's l1_loss in f16", compare_autocast.differences(text, wrong))


if __name__ == "__main__":
    harness.main(__doc__, [check_live, check_committed, check_tables], [plant, plant_in_networks])
