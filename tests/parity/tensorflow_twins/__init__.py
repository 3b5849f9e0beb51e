"""TensorFlow twins of models of ours, of plain ops: each op of ours is one scope, whose name is that op's path.

A file has EXAMPLES: by a name, the file of the model and the class of its twin.  That has `inputs`, the batch's specs
by name without the targets, and `logits(batch)`.  Sizes are small, because no decision depends on them.  Layouts are
ours: images [N, C, H, W], weights of linear layers [out, in].
"""
import importlib
import pkgutil
from collections import namedtuple

import tensorflow as tf

# model: its file; twin: a class
Example = namedtuple("Example", "model twin")

BATCH = 4
CLASSES = 10


def scope(path):
    """Of one op, or what precedes the names of many: the whole path, whatever scope is open."""
    return tf.name_scope(path + "/")


class Model:
    """Has the parameters that its ops ask for, by name, and the running statistics."""

    targets = tf.TensorSpec([BATCH], tf.int32)

    def __init__(self):
        self.parameters, self.buffers = {}, {}

    @staticmethod
    def _state(states, name, shape):
        if name not in states:
            with tf.init_scope():  # it outlives the trace
                states[name] = tf.Variable(tf.zeros(shape), name=name)
        return states[name]

    def parameter(self, name, *shape):
        return self._state(self.parameters, name, shape)

    def buffer(self, name, *shape):
        return self._state(self.buffers, name, shape)

    # ---- what follows the logits, where these are of classes -----------------------------------------------------

    def loss(self, logits, targets):
        with scope("cross_entropy.log_softmax"):
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
        with scope("cross_entropy.nll_loss"):
            return tf.reduce_mean(losses)

    def metrics(self, logits, targets):
        with scope("accuracy"):
            hits = tf.equal(tf.argmax(logits, -1, output_type=tf.int32), targets)
            return tf.reduce_mean(tf.cast(hits, tf.float32))

    # ---- layers: PATH is the layer's, and the op has one below it ------------------------------------------------

    def linear(self, x, out, path):
        features = x.shape[-1]
        weight, bias = self.parameter(f"{path}.weight", out, features), self.parameter(f"{path}.bias", out)
        with scope(f"{path}.linear"):
            if len(x.shape) == 2:
                y = tf.matmul(x, weight, transpose_b=True)
            else:
                y = tf.einsum("ntc,oc->nto", x, weight)
            return tf.nn.bias_add(y, bias)

    def conv2d(self, x, out, kernel, path, stride=1, bias=False):
        pad = (kernel - 1) // 2
        weight = self.parameter(f"{path}.weight", kernel, kernel, x.shape[1], out)
        offset = self.parameter(f"{path}.bias", out) if bias else None
        with scope(f"{path}.conv2d"):
            y = tf.nn.conv2d(x, weight, stride, [[0, 0], [0, 0], [pad, pad], [pad, pad]], data_format="NCHW")
            return tf.nn.bias_add(y, offset, data_format="NCHW") if bias else y

    def batch_norm(self, x, path, momentum=0.1):
        """And the running statistics: mul, mul_1 and add make the mean, mul_2, mul_3 and add_1 the variance."""
        channels = x.shape[1]
        weight, bias = self.parameter(f"{path}.weight", channels), self.parameter(f"{path}.bias", channels)
        with scope(f"{path}.batch_norm"):
            y, *of_batch = tf.compat.v1.nn.fused_batch_norm(x, weight, bias, epsilon=1e-5, data_format="NCHW")
        ops = [("mul", "mul_1", "add"), ("mul_2", "mul_3", "add_1")]
        for name, batch, (of_old, of_new, total) in zip(("running_mean", "running_var"), of_batch, ops):
            running = self.buffer(f"{path}.{name}", channels)
            with scope(f"{path}.{of_old}"):
                old = (1.0 - momentum) * running
            with scope(f"{path}.{of_new}"):
                new = momentum * batch
            with scope(f"{path}.{total}"):
                running.assign(old + new)
        return y

    def layer_norm(self, x, path, eps=1e-12):
        features = x.shape[-1]
        weight, bias = self.parameter(f"{path}.weight", features), self.parameter(f"{path}.bias", features)
        with scope(f"{path}.layer_norm"):
            mean, variance = tf.nn.moments(x, [-1], keepdims=True)
            return tf.nn.batch_normalization(x, mean, variance, bias, weight, eps)

    def embedding(self, ids, count, dim, path):
        table = self.parameter(f"{path}.weight", count, dim)
        with scope(f"{path}.embedding"):
            return tf.nn.embedding_lookup(table, ids)


# ---- ops ---------------------------------------------------------------------------------------------------------


def op(path, function, *operands, **attributes):
    with scope(path):
        return function(*operands, **attributes)


def relu(x, path):
    return op(path, tf.nn.relu, x)


def add(x, y, path):
    return op(path, tf.add, x, y)


def max_pool2d(x, kernel, path):
    return op(path, tf.nn.max_pool2d, x, kernel, kernel, "VALID", data_format="NCHW")


# ---- the step ----------------------------------------------------------------------------------------------------


def _dense(gradient, name):
    """The rows of an embedding's gradient that repeat are added up."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    with scope(f"gradient_tape/{name.removesuffix('.weight')}.embedding"):
        return tf.convert_to_tensor(gradient)


def traced_step(model):
    """A training step without its update, as a concrete function: loss and metrics, and each parameter's gradient."""

    def step(**batch):
        targets = batch.pop("targets")
        with tf.GradientTape() as tape:
            logits = model.logits(batch)
            loss = model.loss(logits, targets)
        gradients = tape.gradient(loss, model.parameters)
        return loss, model.metrics(logits, targets), {name: _dense(g, name) for name, g in gradients.items()}

    return tf.function(step, autograph=False).get_concrete_function(**model.inputs, targets=model.targets)


def examples():
    """By the name of each twin."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        found.update(importlib.import_module(f"{__name__}.{module.name}").EXAMPLES)
    return found
