"""Ends trainings at random moments, by SIGINT, SIGTERM, SIGHUP and SIGKILL, and goes on until they are done.

    interrupted.py AMPRUN MODEL.so DATA_SPEC FOLDER MOMENTS [SEED]

After each end the log is whole lines of JSON with each step once; the checkpoint is of the last step where the
signal can be caught, and at most --checkpoint-every steps older where it cannot. At last weights and log are as
without an interruption, to the bit; of the log all but rate and memory. Prints "ok" and how the trainings
ended.
"""

import collections
import json
import os
import random
import signal
import struct
import subprocess
import sys
import time

amprun, model, data, folder, moments, seed = (sys.argv[1:] + ["1"])[:6]
chance = random.Random(int(seed))
STEPS, EVERY = 1500, 100
paths = {name: os.path.join(folder, name) for name in ("whole.st", "whole.log", "part.st", "part.log", "part.ck")}


def command(name, *more):
    return [amprun, "train", model, "--data", data, "--steps", str(STEPS), "--batch", "16", "--seed", "5", "--threads",
            str(chance.choice([1, 2])), "--quiet", "--save", paths[name + ".st"], "--log", paths[name + ".log"], *more]


def log_of(name):
    """The log's lines, less rate and memory; each must be whole."""
    if not os.path.exists(paths[name + ".log"]):
        return []
    text = open(paths[name + ".log"]).read()
    assert text == "" or text.endswith("\n"), f"half a line: {text[-80:]!r}"
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        for name in "samples_per_s", "peak_bytes", "threads":  # of the machine, of the number of threads
            line.pop(name, None)
    return lines


def iterations(lines):
    return [line["iteration"] for line in lines if "iteration" in line]


def checkpoint_iteration():
    if not os.path.exists(paths["part.ck"]):
        return 0
    with open(paths["part.ck"], "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(size))
        f.seek(8 + size + header["counter/iteration"]["data_offsets"][0])
        return struct.unpack("<q", f.read(8))[0]


started = time.monotonic()
subprocess.run(command("whole"), check=True)
duration = time.monotonic() - started
whole = log_of("whole")
assert iterations(whole) == list(range(1, STEPS + 1))

ends = collections.Counter()
done = 0
while done < int(moments):
    for name in ("part.st", "part.log", "part.ck"):
        if os.path.exists(paths[name]):
            os.remove(paths[name])
    while True:  # one training, interrupted until it is done
        number = chance.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
        resume = ["--resume", paths["part.ck"]] if os.path.exists(paths["part.ck"]) else []
        keep = ["--checkpoint", paths["part.ck"], "--checkpoint-every", str(EVERY)]
        child = subprocess.Popen(command("part", *keep, *resume), stderr=subprocess.PIPE, text=True)
        time.sleep(chance.uniform(0, duration))
        child.send_signal(number)
        said = child.communicate()[1]
        done += 1
        steps = iterations(log_of("part"))
        assert steps == list(range(1, len(steps) + 1)), "a step is missing or twice"
        if child.returncode == 0:
            ends["ended before"] += 1
            break
        caught = child.returncode == 128 + number
        assert caught or child.returncode == -number, (child.returncode, said)
        assert not caught or f"training ended after step {len(steps)} of {STEPS}; go on with --resume" in said, said
        assert caught or not said, said
        lost = len(steps) - checkpoint_iteration()
        assert (lost == 0 if caught else lost <= EVERY), f"{number}: {lost} steps are lost"
        ends[signal.Signals(number).name + ("" if caught else ", at once")] += 1
    assert open(paths["part.st"], "rb").read() == open(paths["whole.st"], "rb").read(), "other weights"
    parts = log_of("part")
    differing = [pair for pair in zip(parts, whole) if pair[0] != pair[1]][:1] or (len(parts), len(whole))
    assert parts == whole, f"another log: {differing}"
print("ok", ", ".join(f"{count} {name}" for name, count in sorted(ends.items())))
