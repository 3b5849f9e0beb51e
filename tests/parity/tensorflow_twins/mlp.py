"""mlp.py: the TensorFlow twin of examples/fashion_mnist/mlp.amp."""
import tensorflow as tf

from tensorflow_twins import BATCH, CLASSES, Example, Model, relu


class Mlp(Model):
    inputs = {"x": tf.TensorSpec([BATCH, 28])}

    def logits(self, batch):
        h = relu(self.linear(batch["x"], 16, "fc1"), "relu")
        h = relu(self.linear(h, 16, "fc2"), "relu_1")
        return self.linear(h, CLASSES, "fc3")


EXAMPLES = {"mlp": Example("examples/fashion_mnist/mlp.amp", Mlp)}
