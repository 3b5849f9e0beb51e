"""Faults of ranks that train together: each ends the others in time and by name, and training goes on to the same bits.

    faults_distributed.py MPI AMPRUN MODEL.so DATA_SPEC FOLDER COUNT SEED [FIRST]

MPI is a function of mpi.bash. FIRST: the number of the first fault, 0. A fault is a signal to one rank of two or three:

    kill    SIGKILL
    stop    SIGSTOP, for good
    pause   SIGSTOP and SIGCONT within the timeout: no rank minds
    late    SIGSTOP and SIGCONT after it

in a phase: start, before the first step; step; checkpoint, while rank 0 writes one; end, while it writes the last one.
Where it falls within start is chance; the others wait for lines of the log, and for the file that is being written.
In half of the cases MPICH's launcher does not end survivors of a rank that fails; of one that is killed it does all the
same, as Open MPI's.

Prints "pass WHAT" or "FAIL WHAT: why" for each, and a line of totals.
"""
import collections
import glob
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

mpi, amprun, model, data, folder, count, seed = sys.argv[1:8]
first = int(sys.argv[8]) if len(sys.argv) > 8 else 0
STEPS, TIMEOUT = 16, 2.0
LATE = TIMEOUT + 2.5
BOUND, BOUND_OF_START = TIMEOUT + 8, 40  # deadline, answers, last words, a busy machine; joining has 30 s
KINDS, PHASES = ("kill", "stop", "pause", "late"), ("start", "step", "checkpoint", "end")
WRAPPER = 'echo $$ >"$0.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"; exec "$@"'


class Wrong(Exception):
    pass


def require(holds, why):
    if not holds:
        raise Wrong(why)


def path(name):
    return os.path.join(folder, name)


def launch(ranks, name, *more, alone=False):
    """Rank r writes its process id to NAME.pid.r before it becomes amprun."""
    for old in glob.glob(path(f"{name}.pid.*")):
        os.remove(old)
    launcher = 'source tests/checks/mpi.bash; "$@"'
    leaves = ["-disable-auto-cleanup"] if alone else []
    train = [amprun, "train", model, "--data", data, "--steps", str(STEPS), "--batch", "8", "--seed", "5", "--threads",
             "1", "--quiet", "--dist", "mpi", "--reduce", "ordered", "--dist-timeout", str(TIMEOUT), "--save",
             path(f"{name}.st"), "--log", path(f"{name}.log"), *more]
    said = open(path(f"{name}.said"), "w")
    return subprocess.Popen(["bash", "-c", launcher, "bash", mpi, str(ranks), *leaves, "bash", "-c", WRAPPER,
                             path(f"{name}.pid"), *train], stdout=said, stderr=subprocess.STDOUT)


def wait_until(what, holds, seconds):
    end = time.monotonic() + seconds
    while not holds():
        require(time.monotonic() < end, f"waited {seconds:.0f} s for {what}")
        time.sleep(0.0005)


def read_pids(name, ranks):
    """By rank, as far as they have begun."""
    pids = {}
    for rank in range(ranks):
        try:
            pids[rank] = int(open(path(f"{name}.pid.{rank}")).read())
        except (OSError, ValueError):
            pass
    return pids


def lives(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def end_tree(pid):
    """A process and all that it has started."""
    for child in open(f"/proc/{pid}/task/{pid}/children").read().split():
        end_tree(int(child))
    os.kill(pid, signal.SIGKILL)


def end_of(job, pids, totals):
    """The launcher's status.  Open MPI's now and then waits for ever for a process that it has ended itself."""
    wait_until("every process to end", lambda: not any(map(lives, pids)), 10)
    try:
        return job.wait(15)
    except subprocess.TimeoutExpired:
        totals["launchers that hung after all ranks had ended"] += 1
        end_tree(job.pid)
        return job.wait()


def lines(name):
    """The log's, less what depends on the machine; each is whole."""
    try:
        text = open(path(f"{name}.log")).read()
    except FileNotFoundError:
        return []
    require(text == "" or text.endswith("\n"), "half a line in the log")
    found = [json.loads(line) for line in text.splitlines()]
    for line in found:
        for key in ("samples_per_s", "peak_bytes", "threads"):
            line.pop(key, None)
    return found


def steps(name):
    try:
        return open(path(f"{name}.log")).read().count('{"iteration"')
    except FileNotFoundError:
        return 0


def bytes_of(name):
    with open(path(name), "rb") as file:
        return file.read()


def is_writing():
    """A file beside the checkpoint, which it will become."""
    return any(name.startswith("part.ck") and name != "part.ck" for name in os.listdir(folder))


def place(phase, rank, ranks, early, chance):
    """Waits for the moment of the fault; the process of the rank."""
    wait_until("the rank to begin", lambda: rank in read_pids("part", ranks), 20)
    if phase == "start":
        time.sleep(0 if early else chance.uniform(0.05, 0.5))
        return
    if phase == "step":
        wanted = chance.randrange(1, STEPS - 2)
    elif phase == "checkpoint":
        wanted = chance.randrange(1, STEPS // 2)
    else:
        wanted = STEPS
    wait_until(f"step {wanted}", lambda: steps("part") >= wanted, 60)
    if phase != "step":
        wait_until("a checkpoint", lambda: is_writing() or not lives(read_pids("part", ranks)[0]), 60)


def strike(kind, pid, chance):
    if not lives(pid):
        return
    os.kill(pid, signal.SIGKILL if kind == "kill" else signal.SIGSTOP)
    if kind == "pause":
        time.sleep(chance.uniform(0.05, 0.4) * TIMEOUT)
        os.kill(pid, signal.SIGCONT)


def wait_for(survivors, late, bound):
    """Seconds until they have ended.  |late|: the process that goes on meanwhile; None: none does."""
    begin, took = time.monotonic(), None
    while took is None or late:
        now = time.monotonic() - begin
        if took is None and not any(map(lives, survivors)):
            took = now
        if late and now >= LATE:
            if lives(late):
                os.kill(late, signal.SIGCONT)
            late, bound = None, now + bound
        require(took is not None or late or now < bound, f"waited {now:.0f} s for the other ranks to end")
        time.sleep(0.0005)
    return took


def check_words(rank, survivors, phase):
    """Survivors that speak name the rank; how many do."""
    said, told = open(path("part.said"), errors="replace").read(), 0
    for other in survivors:
        mine = [line for line in said.splitlines() if re.match(rf".*amprun: rank {other}: ", line)]
        if not mine:
            continue
        named = any(re.search(rf"rank(s [\d, ]*| ){rank}\b|has not disconnected this rank",
                              line.split(f"amprun: rank {other}: ", 1)[1]) for line in mine)
        require(named, f"rank {other} does not name rank {rank}: {mine}")
        told += 1
    if not told and phase == "start" and "the ranks did not connect" in said:
        told = len(survivors)
    return told


def go_on(ranks):
    """To the end, from the checkpoint if there is one: the bits of the run without a fault."""
    resume = []
    if os.path.exists(path("part.ck")):
        resume = ["--resume", path("part.ck")]
    job = launch(ranks, "part", "--checkpoint", path("part.ck"), *resume)
    require(job.wait(60) == 0, "going on fails: " + open(path("part.said"), errors="replace").read()[-600:])
    check_bits(ranks)


def check_bits(ranks):
    require(bytes_of("part.st") == bytes_of(f"whole{ranks}.st"), "other weights")
    parts, whole = lines("part"), lines(f"whole{ranks}")
    require(parts == whole, f"another log: {next((p for p in zip(parts, whole) if p[0] != p[1]), len(parts))}")


def fault(ranks, rank, phase, kind, alone, early, chance, totals):
    for old in glob.glob(path("part.*")):
        os.remove(old)
    every = "4" if phase in ("start", "step") else "1" if phase == "checkpoint" else "100"
    job = launch(ranks, "part", "--checkpoint", path("part.ck"), "--checkpoint-every", every, alone=alone)
    pids = {}
    try:
        place(phase, rank, ranks, early, chance)
        wait_until("all ranks to begin", lambda: len(read_pids("part", ranks)) == ranks, 20)
        pids = read_pids("part", ranks)
        before = steps("part")
        hit = lives(pids[rank])
        strike(kind, pids[rank], chance)
        in_time = before < STEPS or rank == 0 and is_writing()  # others have brought all by then
        survivors = [other for other in pids if other != rank]
        bound = BOUND_OF_START if phase == "start" else BOUND
        took = wait_for([pids[r] for r in survivors], pids[rank] if kind == "late" else None, bound)
        if kind in ("stop", "late"):  # the launcher cannot end what is stopped, and one that goes on ends by itself
            if kind == "late":
                wait_until("the rank that was late to end", lambda: not lives(pids[rank]), bound)
            elif lives(pids[rank]):
                os.kill(pids[rank], signal.SIGKILL)
        status = end_of(job, pids.values(), totals)
    finally:
        for pid in pids.values():
            if lives(pid):
                os.kill(pid, signal.SIGKILL)
        end_of(job, pids.values(), totals)
    totals["seconds"] = max(totals["seconds"], took)
    if kind == "pause" or not hit:
        require(status == 0, f"status {status}: " + open(path("part.said"), errors="replace").read()[-600:])
        check_bits(ranks)
        totals["went on" if hit else "had ended before"] += 1
        return
    if status == 0:  # the ranks had time to come together, or had met for the last time
        require(phase == "start" and kind == "late" or not in_time, "the job succeeds")
        check_bits(ranks)
        totals["went on"] += 1
        return
    told = check_words(rank, survivors, phase)
    left = not in_time and took < TIMEOUT  # together with the rank; who waits for it says so
    require(told == len(survivors) or kind == "kill" or told and not alone or left,
            f"{told} of {len(survivors)} ranks say why: " + open(path("part.said"), errors="replace").read()[-600:])
    totals["told" if told == len(survivors) else "ended by the launcher"] += 1
    totals["before the first step"] += before == 0
    go_on(ranks)


each = [(ranks, rank, phase) for ranks in (2, 3) for rank in range(ranks) for phase in PHASES]
order = random.Random(int(seed))
cases = [(*where, kind) for many in zip(*(order.sample(each, len(each)) for _ in KINDS))
         for where, kind in zip(many, KINDS)]  # all of them, and any four in a row are of all kinds
totals = collections.Counter(seconds=0)
some = list(itertools.islice(itertools.cycle(cases), first, first + int(count)))
for ranks in sorted({case[0] for case in some}):
    job = launch(ranks, f"whole{ranks}")
    if job.wait():
        sys.exit(open(path(f"whole{ranks}.said"), errors="replace").read())
for number, (ranks, rank, phase, kind) in enumerate(some, first):
    alone, early = mpi == "mpich" and number // 4 % 2 == 1, number // 4 % 4 == 0  # with every kind
    name = f"{mpi}: {kind} of rank {rank} of {ranks}, {phase}, fault {number} of seed {seed}"
    try:
        fault(ranks, rank, phase, kind, alone, early, random.Random(f"{seed} {number}"), totals)
        print("pass", name, flush=True)
    except Wrong as wrong:
        print(f"FAIL {name}{' alone' if alone else ''}: {' '.join(str(wrong).split())}", flush=True)
seconds = totals.pop("seconds")
print(f"total {mpi}: {count} faults, at most {seconds:.1f} s to the end;",
      ", ".join(f"{n} {what}" for what, n in sorted(totals.items())), flush=True)
