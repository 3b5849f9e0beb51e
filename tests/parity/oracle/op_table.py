#!/usr/bin/env python3
"""op_table.py: torch_ops.jsonl, what PyTorch says of every op of the language in each of MODES.

    $(tools/torch-env) tests/parity/oracle/op_table.py -o tests/parity/oracle/torch_ops.jsonl

Runs torch_autocast_oracle.py in each mode. A row is its row in the first mode, without "autocast" and with "$" for the
mode's low type; by the name of another mode, it has the fields that are other there; null: such a field is left out.
"""
import json
import os
import subprocess
import sys

MODES = ("f16", "bf16", "off", "cpu f16", "cpu bf16")
ORACLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_autocast_oracle.py")


def low(mode):
    return mode.rpartition(" ")[2].replace("off", "f16")


def live(mode):
    """The oracle's rows in a mode, as lines."""
    device, _, autocast = mode.rpartition(" ")
    words = ["ops", "--language", "--device", device or "cuda", "--autocast", autocast]
    return subprocess.run([sys.executable, ORACLE, *words], text=True, check=True, capture_output=True,
                          env={**os.environ, "ORACLE_REAL": "1" if device else "0"}).stdout.splitlines()


def merged(answers):
    """The table's rows; |answers|: of each mode the oracle's lines."""
    for lines in zip(*(answers[mode] for mode in MODES), strict=True):
        first, *others = [json.loads(line.replace(low(mode), "$")) for mode, line in zip(MODES, lines)]
        for row in (first, *others):
            del row["autocast"]
        table = dict(first)
        for mode, row in zip(MODES[1:], others):
            if row != first:
                table[mode] = {key: row.get(key) for key in {**first, **row} if row.get(key) != first.get(key)}
        yield table


def rows(path, mode):
    """The oracle's rows in a mode, from the table."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = json.loads(line.replace("$", low(mode)))
            row.update(row.get(mode, {}), autocast=mode.rpartition(" ")[2])
            yield {key: value for key, value in row.items() if key not in MODES and value is not None}


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "-o":
        sys.exit(__doc__)
    table = [json.dumps(row) + "\n" for row in merged({mode: live(mode) for mode in MODES})]
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.writelines(table)
