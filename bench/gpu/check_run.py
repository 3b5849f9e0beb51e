"""What the parts of gpu-check share: running programs within the time that is left, noting failures, writing reports."""
import glob
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import threading
import time


class Skip(Exception):
    """A part that cannot run on this machine."""


class NotRun(Exception):
    """A part for which no time was left."""


def nvrtc_folder():
    """Where NVIDIA's wheels, which PyTorch brings, have NVRTC; None."""
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or []) if spec else []:
        for found in sorted(glob.glob(os.path.join(place, "*", "lib", "libnvrtc.so.1*"))):
            return os.path.dirname(found)
    return None


class Context:
    def __init__(self, args, home):
        self.args, self.beside, self.out = args, home, os.path.abspath(args.out)
        self.preparing = []  # threads that compile PyTorch's side
        self.tables = []  # what the part of that name measured
        self.measured = {}  # by kernel_bench: of models that two parts want
        os.makedirs(self.out, exist_ok=True)
        self.end = self.part_end = time.monotonic() + args.limit
        self.small = args.stand_in or args.quick
        self.text = open(os.path.join(self.out, "report.txt"), "w", encoding="utf-8")
        self.scratch = tempfile.mkdtemp(prefix="gpu-check-")
        self.home = os.path.join(self.scratch, "programs")
        with tarfile.open(os.path.join(home, "programs.tar.xz")) as programs:
            programs.extractall(self.home)
        self.nvrtc = nvrtc_folder()
        self.env = dict(os.environ)
        # Images are compiled anew, and nothing is left afterwards.
        self.env["AMPC_CACHE_DIR"] = os.path.join(self.scratch, "cache")
        if self.nvrtc:
            self.env["LD_LIBRARY_PATH"] = ":".join(filter(None, [os.environ.get("LD_LIBRARY_PATH"), self.nvrtc]))
        self.built_here = self.build_programs()
        self.context = None if args.stand_in else self.keep_context()
        self.sampler = Sampler(self)
        self.torch_said = None
        self.begin("")

    def __del__(self):
        if getattr(self, "context", None):
            self.context.kill()
        if getattr(self, "sampler", None):
            self.sampler.stop()
        shutil.rmtree(getattr(self, "scratch", ""), ignore_errors=True)

    def wants(self, model):
        return not self.args.models or model in self.args.models.split(",")

    def begin(self, name, seconds=float("inf")):
        """A part, which has |seconds| of what is left."""
        self.failures, self.skips, self.late = [], [], []
        self.part_end = min(self.end, time.monotonic() + seconds)
        if name:
            self.say(f"\n== {name}")

    def build_programs(self):
        """Builds what gpu-check measures with in place of programs that do not start on this machine.  Why; None: they start."""
        try:
            started = self.run(["bin/amprun", "--version"], timeout=30, must=False)
            if started.returncode == 0:
                return None
            why = (started.stderr.strip().splitlines() or [f"exit status {started.returncode}"])[-1]
        except OSError as error:
            why = str(error)
        tree, built = os.path.dirname(self.beside), self.file("build")
        made = self.run(["make", "-k", "-j", str(os.cpu_count() or 2), "-C", tree, f"OUT={built}", "gpu-benches"], timeout=300, must=False)
        shutil.rmtree(os.path.join(self.home, "bin"))
        os.mkdir(os.path.join(self.home, "bin"))
        for name in ("amprun", "step_bench", "kernel_bench"):
            if os.path.exists(os.path.join(built, name)):
                shutil.copy(os.path.join(built, name), os.path.join(self.home, "bin"))
            else:
                self.say(f"{name} could not be built here: " + " / ".join(made.stderr.strip().splitlines()[-3:]))
        return f"bin/amprun does not start ({why}): amprun, step_bench and kernel_bench were built here by make"

    def need(self, program):
        """Skips a part whose program make does not build."""
        if not os.path.exists(os.path.join(self.home, "bin", program)):
            raise Skip(f"{program} is not built here")

    def keep_context(self):
        """A process that holds the device: without one the driver starts it anew for each program.  PyTorch's files are read meanwhile."""
        hold = "import torch, time; torch.zeros(1, device='cuda'); print(torch.__version__, flush=True); time.sleep(86400)"
        return subprocess.Popen([sys.executable, "-c", hold], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    @property
    def torch_version(self):
        """PyTorch's; None: there is none here.  Waits until it has been imported."""
        if self.torch_said is None and self.context:
            self.torch_said = self.context.stdout.readline().strip()
        return self.torch_said or None

    def say(self, text):
        print(text, flush=True)
        self.text.write(text + "\n")
        self.text.flush()

    def fail(self, text):
        """What ends when the part's time does was stopped, and has not failed."""
        if self.left() < 1:
            self.late.append(text)
            self.say(f"not run: {text}")
            return
        self.failures.append(text)
        self.say(f"FAIL {text}")

    def skip(self, text):
        self.skips.append(text)
        self.say(f"skipped: {text}")

    def write(self, data):
        with open(os.path.join(self.out, "report.json"), "w", encoding="utf-8") as file:
            json.dump(data, file, indent=1)
            file.write("\n")

    def left(self):
        """Seconds of this part."""
        return self.part_end - time.monotonic()

    def file(self, name):
        return os.path.join(self.scratch, name)

    def run(self, command, timeout=300, must=True, env=None):
        """A finished process; RuntimeError where it fails and |must|, or takes too long."""
        limit = max(1, min(timeout, self.left()))
        try:
            done = subprocess.run(
                command, cwd=self.home, env={**self.env, **(env or {})}, timeout=limit, capture_output=True, text=True,
                errors="replace", check=False,
            )
        except FileNotFoundError:
            done = subprocess.CompletedProcess(command, 127, "", f"there is no {command[0]}")
        except subprocess.TimeoutExpired as late:
            raise RuntimeError(f"{' '.join(command)}: stopped after {limit:.0f} s") from late
        if must and done.returncode:
            lines = (done.stderr.strip() or done.stdout.strip()).splitlines()[-5:]
            raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}: " + " / ".join(lines))
        return done


class Sampler:
    """Reads the SM clock, the power and what limits them while something runs on the device."""

    LIMITED = 0x4 | 0x8 | 0x20 | 0x40 | 0x80  # nvmlClocksEventReason...: power, slowdown, heat, brakes

    def __init__(self, context):
        self.samples, self.process = [], None
        if context.args.stand_in or not shutil.which("nvidia-smi"):
            return
        for reasons in (",clocks_event_reasons.active", ",clocks_throttle_reasons.active", ""):  # new, old name
            query = ["nvidia-smi", f"--query-gpu=clocks.sm,power.draw{reasons}", "--format=csv,noheader,nounits"]
            if subprocess.run(query, capture_output=True, check=False).returncode == 0:
                break
        self.process = subprocess.Popen([*query, "-lms", "50"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            try:
                mhz, watt, *reasons = line.split(",")
                limited = any(int(reason, 16) & self.LIMITED for reason in reasons)
                self.samples.append((time.monotonic(), float(mhz), float(watt), limited))
            except ValueError:  # "[N/A]"
                continue

    def during(self, call, *arguments):
        """What the call returns, a dict, with the medians of what was sampled meanwhile."""
        began = time.monotonic()
        answer = call(*arguments)
        seen = [sample for sample in list(self.samples) if sample[0] >= began]
        if seen:
            answer = {**answer, "sm_mhz": statistics.median(one[1] for one in seen), "watt": statistics.median(one[2] for one in seen),
                      "limited": round(sum(one[3] for one in seen) / len(seen), 3)}
        return answer

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()


class Server:
    """A process that answers each line with a line of JSON."""

    def __init__(self, context, command, env=None, seconds=None):
        """|seconds|: after which it ends; else with the part."""
        self.command, self.log = command, context.file(f"stderr-{id(self)}")
        self.process = subprocess.Popen(
            command, cwd=context.home, env={**context.env, **(env or {})}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=open(self.log, "w", encoding="utf-8"), text=True,
        )
        self.limit = threading.Timer(seconds or max(1, context.left()), self.process.kill)
        self.limit.daemon = True
        self.limit.start()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            with open(self.log, encoding="utf-8", errors="replace") as file:
                last = file.read().strip().splitlines()[-3:]
            raise RuntimeError(f"{' '.join(self.command[:4])} died: " + " / ".join(last))
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def ask(self, line, seconds=None):
        """|seconds|: after which the process is ended, since what it waits for may never come."""
        late = threading.Timer(seconds or 1e6, self.process.kill)
        late.daemon = True
        late.start()
        try:
            try:
                self.process.stdin.write(f"{line}\n")
                self.process.stdin.flush()
            except BrokenPipeError:  # then reading says why
                pass
            return self.read()
        except RuntimeError as error:
            raise RuntimeError(str(error) if late.is_alive() else f"no answer within {seconds} s") from error
        finally:
            late.cancel()

    def ended(self):
        try:
            self.process.wait(1)
        except subprocess.TimeoutExpired:
            return False
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.limit.cancel()
        self.process.kill()
        self.process.wait()
