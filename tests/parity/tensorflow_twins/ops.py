"""ops.py: the TensorFlow twin of tests/parity/models/painted_ops.amp."""
import tensorflow as tf

from tensorflow_twins import BATCH, Example, Model, op, scope

WIDTH = 8


def hard_sigmoid(x):
    return tf.nn.relu6(x + 3.0) / 6.0


def huber(x, y):
    error = tf.abs(x - y)
    return tf.reduce_mean(tf.where(error <= 1.0, 0.5 * tf.square(x - y), error - 0.5))


# In the order of the model: each reads the linear layer before it.
ONE_OPERAND = {
    "sigmoid": tf.sigmoid, "tanh": tf.tanh, "gelu": tf.nn.gelu, "silu": lambda x: x * tf.sigmoid(x), "elu": tf.nn.elu,
    "leaky_relu": lambda x: tf.nn.leaky_relu(x, 0.01), "erf": tf.math.erf, "softplus": tf.nn.softplus,
    "mish": lambda x: x * tf.tanh(tf.nn.softplus(x)), "hard_sigmoid": hard_sigmoid,
    "hard_swish": lambda x: x * hard_sigmoid(x), "exp": tf.exp, "log": tf.math.log, "log1p": tf.math.log1p,
    "expm1": tf.math.expm1, "rsqrt": tf.math.rsqrt, "reciprocal": tf.math.reciprocal, "pow": lambda x: tf.pow(x, 2.5),
    "abs": tf.abs, "neg": tf.negative, "clamp": lambda x: tf.clip_by_value(x, -1.0, 1.0), "softmax": tf.nn.softmax,
    "log_softmax": tf.nn.log_softmax, "sin": tf.sin, "cos": tf.cos, "cumsum": lambda x: tf.cumsum(x, 1)}
TWO_OPERANDS = {
    "maximum": tf.maximum, "minimum": tf.minimum, "where": lambda x, y: tf.where(x > 0.0, x, y), "sub": tf.subtract,
    "mul": tf.multiply, "div": tf.divide, "concat": lambda x, y: tf.concat([x, y], 1)}
BY_ROWS = {"max": tf.reduce_max, "sum": tf.reduce_sum, "mean": tf.reduce_mean, "var": tf.math.reduce_variance}
LOSSES = {
    "mse_loss": lambda x, y: tf.reduce_mean(tf.math.squared_difference(x, y)),
    "l1_loss": lambda x, y: tf.reduce_mean(tf.abs(x - y)), "huber_loss": huber, "smooth_l1_loss": huber}


class Ops(Model):
    inputs = {"ids": tf.TensorSpec([BATCH], tf.int32), "x": tf.TensorSpec([BATCH, WIDTH])}
    targets = tf.TensorSpec([BATCH, WIDTH])

    def rms_norm(self, x, path):
        weight = self.parameter(f"{path}.weight", WIDTH)
        with scope(f"{path}.rms_norm"):
            return x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True) + 1e-6) * weight

    def layer(self, x, name):
        """The next of a row of layers: l0, l1, ..."""
        self.counts[name] = self.counts.get(name, -1) + 1
        return self.linear(x, WIDTH, f"{name}{self.counts[name]}")

    def logits(self, batch):
        self.counts = {}
        h = self.layer(self.embedding(batch["ids"], 10, WIDTH, "table"), "l")
        for path, function in ONE_OPERAND.items():
            h = self.layer(op(path, function, h), "l")
        for path, function in TWO_OPERANDS.items():
            h = self.layer(op(path, function, h, self.layer(batch["x"], "g")), "l")
        h = self.layer(self.rms_norm(h, "norm"), "l")
        for nth, (path, function) in enumerate(BY_ROWS.items(), 1):
            h = self.layer(op(f"concat_{nth}", tf.concat, [h, op(path, function, h, 1, keepdims=True)], 1), "l")
        return self.layer(h, "l"), self.layer(batch["x"], "g"), self.layer(batch["x"], "g")

    def metrics(self, results, targets):
        return ()

    def loss(self, results, targets):
        losses = [op(path, function, result, targets)
                  for (path, function), result in zip(LOSSES.items(), [results[0]] * 2 + [results[1]] * 2)]
        loss = op("add_2", tf.add, op("add", tf.add, *losses[:2]), op("add_1", tf.add, *losses[2:]))
        squares = op("mul_1", tf.multiply, results[2], results[2])
        return op("add_3", tf.add, loss, op("mean_1", tf.reduce_mean, squares))


EXAMPLES = {"ops": Example("tests/parity/models/painted_ops.amp", Ops)}
