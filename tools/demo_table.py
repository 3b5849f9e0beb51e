"""The closing table of tools/demo: demo_table.py FOLDER JSON MODEL...

FOLDER/MODEL-PRECISION.jsonl are the training logs; JSON is a file for the rows, or empty.
"""
import json
import os
import sys

COLUMNS = {  # name: how the table shows it
    "model": str,
    "precision": str,
    "test_accuracy": "{:.4f}".format,
    "skipped": str,
    "scale": "{:g}".format,
    "samples_per_s": "{:.0f}".format,
    "peak_bytes": str,
}


def row_of(model, precision, path):
    with open(path, encoding="utf-8") as log:
        lines = [json.loads(line) for line in log]
    steps = [line for line in lines if "iteration" in line]
    epochs = [line for line in lines if "epoch" in line]
    return {
        "model": model,
        "precision": precision,
        "test_accuracy": epochs[-1]["test_acc"],
        "skipped": sum(step["skipped"] for step in steps),
        "scale": steps[-1]["scale"],
        "samples_per_s": epochs[-1]["samples_per_s"],
        "peak_bytes": lines[0]["peak_bytes"],
    }


def main(folder, out, *models):
    rows = []
    for model in models:
        for precision in ("fp16", "fp32"):
            rows.append(row_of(model, precision, os.path.join(folder, f"{model}-{precision}.jsonl")))
    print("  ".join(f"{name:>13}" for name in COLUMNS))
    for row in rows:
        print("  ".join(f"{show(row[name]):>13}" for name, show in COLUMNS.items()))
    if out:
        with open(out, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
