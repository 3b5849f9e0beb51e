"""tensorflow_decisions.py: the dtype of every op of a training step, forward and backward, under tf-fp16 and tf-bf16,
against TensorFlow's own graph rewrites, run live on the model's twin; and the committed answers against the live."""
import functools
import json
import os
import re
import sys

import compare_tensorflow
import harness
import programs

sys.path.insert(1, os.path.join(programs.ROOT, "tests/parity/oracle"))
import tensorflow_oracle  # noqa: E402
import tensorflow_twins  # noqa: E402

POLICIES = {"tf-fp16": "f16", "tf-bf16": "bf16"}
EXAMPLES = tensorflow_twins.examples()


@functools.cache
def live(name):
    """TensorFlow's answer, as it is read from a file."""
    return json.loads(json.dumps(tensorflow_oracle.answer(tensorflow_twins.traced_step(EXAMPLES[name].twin()))))


def dump(name, policy):
    return programs.dump(os.path.join(programs.ROOT, EXAMPLES[name].model), "paint", "--policy", policy)


def check_live(tally, options):
    for name in EXAMPLES:
        for policy, low in POLICIES.items():
            text, answer = dump(name, policy), live(name)
            ops = len(list(compare_tensorflow.our_ops(text)))
            casts = "{} casts down and {} up, TensorFlow {} and {}".format(
                *compare_tensorflow.casts(text), *answer["casts"][low])
            tally.same(f"{name} {policy}: dtypes as TensorFlow's", compare_tensorflow.differences(text, answer),
                       f"{ops} ops; {casts}")


def check_committed(tally, options):
    for name, example in EXAMPLES.items():
        with open(tensorflow_oracle.answer_file(name), encoding="utf-8") as file:
            committed, now = json.load(file), {"model": example.model, **live(name)}
        wrong = [key for key in committed.keys() | now.keys() if committed.get(key) != now.get(key)]
        tally.same(f"{name}: the committed answer is what TensorFlow {tensorflow_oracle.VERSION} decides", wrong)


def edited_policy(options, policy, word, line):
    """A copy of a policy with a word taken from its lists, and a line added."""
    with open(os.path.join(programs.ROOT, f"precision/policies/{policy}.policy"), encoding="utf-8") as file:
        text = file.read()
    text, count = re.subn(rf", {word}\b|\b{word}, ", "", text)
    if count != 1:
        raise ValueError(f"{policy} names {word} {count} times beside other ops")
    path = os.path.join(options.work, f"{word}.policy")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{text}op {word} {line}\n")
    return path


class Softened(tensorflow_twins.mlp.Mlp):
    """A twin that is none: its last activation is another."""

    def logits(self, batch):
        h = tensorflow_twins.relu(self.linear(batch["x"], 16, "fc1"), "relu")
        h = tensorflow_twins.op("relu_1", tensorflow_twins.tf.exp, self.linear(h, 16, "fc2"))
        return self.linear(h, tensorflow_twins.CLASSES, "fc3")


def plant(tally, options):
    def seen(fault, name, path, text, answer):
        found = compare_tensorflow.differences(text, answer)
        tally.seen(fault, [line for line in found if line.startswith(f"{path}: ")])

    for name, word, line, path in [
            ("mlp", "relu", "deny", "relu"),
            ("bert_small", "gelu_grad", "infer", "bert.encoder.layer.0.gelu.grad"),
            ("resnet18", "global_avg_pool_grad", "deny", "global_avg_pool.grad"),
            ("cnn", "batch_norm", "none", "bn1.batch_norm"),
            ("bert_small", "sum_to", "deny", "bert.embeddings.add_1.grad.b")]:
        policy = edited_policy(options, "tf-bf16" if word == "sum_to" else "tf-fp16", word, line)
        seen(f"{word} moved to {line}", name, path, dump(name, policy), live(name))
    answer = tensorflow_oracle.answer(tensorflow_twins.traced_step(Softened()))
    seen("a twin that computes something else", "mlp", "relu_1", dump("mlp", "tf-fp16"), answer)


if __name__ == "__main__":
    harness.main(__doc__, [check_live, check_committed], [plant])
