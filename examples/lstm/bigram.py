"""bigram.py TEXT BITS: what a bigram model that is counted on the first nine tenths of a text needs for a byte of the
last tenth. Exit status 1 where BITS, another model's, are not fewer."""
import math
import sys
from collections import Counter

SYMBOLS = 256


def bits_per_byte(seen, held_out):
    """Counts of pairs, each with one more of every byte (Laplace's rule)."""
    pairs, firsts = Counter(zip(seen, seen[1:])), Counter(seen[:-1])
    of_pairs = Counter(zip(held_out, held_out[1:]))
    total = sum(n * math.log2((pairs[pair] + 1) / (firsts[pair[0]] + SYMBOLS)) for pair, n in of_pairs.items())
    return -total / (len(held_out) - 1)


def main(path, bits):
    with open(path, "rb") as file:
        text = file.read()
    cut = len(text) - len(text) // 10
    bigram = bits_per_byte(text[:cut], text[cut:])
    print(f"a bigram model: {bigram:.4g} bits per byte; this one: {bits}")
    return float(bits) >= bigram


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
