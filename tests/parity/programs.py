"""programs.py: runs what the comparisons build. Needs Python alone."""
import json
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Where //tools:ampc and the others were built.
PROGRAMS = os.environ.get("AMP_PROGRAMS", os.path.join(ROOT, "bazel-bin"))


def program(label):
    """The path of a built program: program("tools/ampc")."""
    return os.path.join(PROGRAMS, label)


def run(*command, stdin=None):
    """Runs a program and returns what it wrote to standard output; a failure shows what it wrote to standard error."""
    words = [str(word) for word in command]
    done = subprocess.run(words, input=stdin, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: exit status {done.returncode}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def dump(model, after, *options):
    """The text form of the IR after a pass."""
    return run(program("tools/ampc"), model, f"--dump-ir={after}", *options)


def json_lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]
