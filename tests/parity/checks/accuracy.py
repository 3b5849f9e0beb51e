"""accuracy.py: FP16 trains as well as FP32: the mean test accuracy over three seeds and five epochs of Fashion-MNIST."""
import json
import os

import ampc_tools as tools
import fashion
import harness

SEEDS, EPOCHS = (1, 2, 3), 5
FLOOR = 0.875       # of the mean accuracy
DISTANCE = 0.005    # between the means


def test_accuracy(options, model, seed):
    log = os.path.join(options.work, "log.jsonl")
    tools.train(model, "--data", f"idx:{fashion.FOLDER}", "--epochs", EPOCHS, "--seed", seed, "--log", log)
    with open(log, encoding="utf-8") as lines:
        return [row["test_acc"] for row in map(json.loads, lines) if "test_acc" in row][-1]


def differences(fp16, fp32):
    """fp16, fp32: accuracies by seed."""
    low, full = (sum(each) / len(each) for each in (fp16, fp32))
    for name, mean in (("fp16", low), ("fp32", full)):
        if not mean >= FLOOR:
            yield f"{name}: mean accuracy {mean:.4f}, wanted {FLOOR:.4f}"
    if not abs(low - full) <= DISTANCE:
        yield f"fp16 {low:.4f} and fp32 {full:.4f} are more than {DISTANCE:.4f} apart"


def check_accuracy(tally, options):
    reached = {}
    for precision in ("fp16", "fp32"):
        model = tools.compile_model(tools.MLP, os.path.join(options.work, precision + ".so"), "--precision", precision)
        reached[precision] = [test_accuracy(options, model, seed) for seed in SEEDS]
        print(f"      {precision}: " + ", ".join(f"{a:.4f}" for a in reached[precision]))
    tally.same(f"fp16 within {DISTANCE:.1%} of fp32, both above {FLOOR:.1%}", differences(reached["fp16"], reached["fp32"]))


def plant(tally, options):
    tally.seen("an FP16 training that is one point worse", differences([0.88] * 3, [0.89] * 3))
    tally.seen("two trainings that learn little", differences([0.86] * 3, [0.86] * 3))


if __name__ == "__main__":
    harness.main(__doc__, [check_accuracy], [plant])
