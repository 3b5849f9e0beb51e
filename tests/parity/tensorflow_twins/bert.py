"""bert.py: the TensorFlow twin of examples/bert/small.amp."""
import tensorflow as tf

from tensorflow_twins import BATCH, Example, Model, add, op, scope

WORDS, LONGEST, LENGTH = 20, 10, 6
WIDTH, LAYERS, HEADS = 8, 2, 2
CLASSES = 3


def split(x, path, nth):
    """[N, heads, T, features]; nth: "", "_1" or "_2" """
    x = op(f"{path}.reshape{nth}", tf.reshape, x, [BATCH, LENGTH, HEADS, WIDTH // HEADS])
    return op(f"{path}.transpose{nth}", tf.transpose, x, [0, 2, 1, 3])


def attention(q, k, v, seen, path):
    with scope(path):
        scores = tf.matmul(q, k, transpose_b=True) * (WIDTH // HEADS) ** -0.5
        return tf.matmul(tf.nn.softmax(tf.where(seen, scores, float("-inf"))), v)


class SmallBert(Model):
    inputs = {name: tf.TensorSpec([BATCH, LENGTH], tf.int32)
              for name in ("input_ids", "token_type_ids", "attention_mask")}

    def embeddings(self, ids, types, path):
        x = add(self.embedding(ids, WORDS, WIDTH, f"{path}.word_embeddings"),
                self.embedding(types, 2, WIDTH, f"{path}.token_type_embeddings"), f"{path}.add")
        position = self.parameter(f"{path}.position_embeddings.weight", LONGEST, WIDTH)
        x = add(x, op(f"{path}.slice", tf.slice, position, [0, 0], [LENGTH, WIDTH]), f"{path}.add_1")
        return self.layer_norm(x, f"{path}.LayerNorm")

    def attend(self, x, seen, path):
        q, k, v = (split(self.linear(x, WIDTH, f"{path}.self.{part}"), path, nth)
                   for part, nth in (("query", ""), ("key", "_1"), ("value", "_2")))
        y = op(f"{path}.transpose_3", tf.transpose, attention(q, k, v, seen, f"{path}.attention"), [0, 2, 1, 3])
        y = self.linear(op(f"{path}.reshape_3", tf.reshape, y, x.shape), WIDTH, f"{path}.output.dense")
        return self.layer_norm(add(x, y, f"{path}.add"), f"{path}.output.LayerNorm")

    def layer(self, x, seen, path):
        x = self.attend(x, seen, f"{path}.attention")
        y = op(f"{path}.gelu", tf.nn.gelu, self.linear(x, 4 * WIDTH, f"{path}.intermediate.dense"))
        x = add(x, self.linear(y, WIDTH, f"{path}.output.dense"), f"{path}.add")
        return self.layer_norm(x, f"{path}.output.LayerNorm")

    def logits(self, batch):
        x = self.embeddings(batch["input_ids"], batch["token_type_ids"], "bert.embeddings")
        mask = op("bert.reshape", tf.reshape, batch["attention_mask"], [BATCH, 1, 1, LENGTH])
        seen = op("bert.ne", tf.not_equal, mask, 0)
        for at in range(LAYERS):
            x = self.layer(x, seen, f"bert.encoder.layer.{at}")
        first = op("bert.slice", tf.slice, x, [0, 0, 0], [BATCH, 1, WIDTH])
        first = op("bert.reshape_1", tf.reshape, first, [BATCH, WIDTH])
        pooled = op("bert.tanh", tf.tanh, self.linear(first, WIDTH, "bert.pooler.dense"))
        return self.linear(pooled, CLASSES, "classifier")


EXAMPLES = {"bert_small": Example("examples/bert/small.amp", SmallBert)}
