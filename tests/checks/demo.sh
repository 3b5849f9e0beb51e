#!/usr/bin/env bash
# tools/demo as a newcomer runs it, for one epoch: it shows casts, scaling nodes and reasons, trains, and ends with a
# table.
set -uo pipefail
source tests/checks/checks.bash

run 0 tools/demo --epochs 1 --json "$work/rows.json"
says 'cast(%fc1.weight)  : f16[512, 784]' 'because {lower, min-cast:' 'scale_loss(' 'all_finite(' 'unscale(' \
    'update_scale(' 'assign(%fc1.weight, %fc1.weight.next) if %ok' 'epoch 1: train loss'
expect 'the last line is the last row of the table' 'cnn fp32' "$(tail -n 1 "$work/.out" | awk '{ print $1, $2 }')"
holds 'no control characters in a file' bash -c '! grep -q "$1" "$2"' - $'[\x01-\x08\x0b-\x1f\x7f]' "$work/.out"
holds 'rows with every column, and both precisions learn' python3 -c '
import json, sys
rows = json.load(open(sys.argv[1]))
assert [(r["model"], r["precision"]) for r in rows] == [(m, p) for m in ("mlp", "cnn") for p in ("fp16", "fp32")]
least = {"mlp": 0.82, "cnn": 0.85}
for r in rows:
    assert set(r) == {"model", "precision", "test_accuracy", "skipped", "scale", "samples_per_s", "peak_bytes"}, r
    assert r["test_accuracy"] > least[r["model"]] and r["samples_per_s"] > 0 and r["peak_bytes"] > 5e6, r
for half, full in (rows[:2], rows[2:]):
    assert abs(half["test_accuracy"] - full["test_accuracy"]) < 0.02, rows
' "$work/rows.json"
run 2 tools/demo --nonsense
says 'usage: tools/demo'
finish
