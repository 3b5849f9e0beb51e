"""demo_table.py FOLDER JSON MODEL...: the closing table of tools/demo, from the training logs FOLDER/PRECISION.jsonl (or FOLDER/MODEL-PRECISION.jsonl)."""
import json
import os
import sys

COLUMNS = ["model", "precision", "test_accuracy", "skipped", "scale", "samples_per_s", "peak_bytes"]


def row_of(model, precision, path):
    lines = [json.loads(line) for line in open(path)]
    steps = [l for l in lines if "iteration" in l]
    epochs = [l for l in lines if "epoch" in l]
    return {
        "model": model,
        "precision": precision,
        "test_accuracy": epochs[-1]["test_acc"],
        "skipped": sum(l["skipped"] for l in steps),
        "scale": steps[-1]["scale"],
        "samples_per_s": epochs[-1]["samples_per_s"],
        "peak_bytes": lines[0]["peak_bytes"],
    }


def main():
    folder, out, models = sys.argv[1], sys.argv[2], sys.argv[3:]
    rows = []
    for model in models:
        for precision in ("fp16", "fp32"):
            for name in (f"{model}-{precision}.jsonl", f"{precision}.jsonl"):
                path = os.path.join(folder, name)
                if os.path.exists(path):
                    rows.append(row_of(model, precision, path))
                    break
    print("  ".join(f"{c:>13}" for c in COLUMNS))
    for r in rows:
        shown = [r["model"], r["precision"], f"{r['test_accuracy']:.4f}", r["skipped"], f"{r['scale']:g}", f"{r['samples_per_s']:.0f}", r["peak_bytes"]]
        print("  ".join(f"{v:>13}" for v in shown))
    if out:
        with open(out, "w") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
