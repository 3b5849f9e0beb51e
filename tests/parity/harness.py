"""harness.py: counts single checks, and runs a comparison a second time with a fault planted in what it compares.

A check script defines `checks(tally, options)` and `plants(tally, options)` and ends with `harness.main(...)`:

    SCRIPT           both, then the line `N passed, N failed`
    SCRIPT --plant   only the planted faults
    SCRIPT --long    the long form of the checks

A comparison is a function that returns the differences it found, as text; none: equal. So the same function serves the check, where
nothing may be found, and the planted fault, where something must be.
"""
import argparse
import sys
import tempfile
import traceback

SHOWN = 5  # differences of one comparison that are printed


class Tally:
    def __init__(self):
        self.passed = self.failed = self.left_out = 0

    def _count(self, good, line):
        self.passed += good
        self.failed += not good
        print(("ok    " if good else "FAIL  ") + line, flush=True)

    def same(self, name, differences, note=""):
        """Passes where a comparison found nothing."""
        differences = list(differences)
        self._count(not differences, name + (f": {note}" if note else ""))
        for text in differences[:SHOWN]:
            print(f"        {text}")
        if len(differences) > SHOWN:
            print(f"        and {len(differences) - SHOWN} more")

    def seen(self, fault, differences):
        """Passes where a comparison found the fault that was planted."""
        differences = list(differences)
        self._count(bool(differences), f"planted: {fault}: " + (f"seen ({differences[0]})" if differences else "not seen"))

    def skipped(self, why):
        """For what this machine cannot run."""
        self.left_out += 1
        print(f"skipped: {why}", flush=True)

    def attempt(self, function, *args):
        """Runs a group of checks; an exception is one failure, and the groups after it still run."""
        try:
            function(self, *args)
        except Exception as error:  # noqa: BLE001  whatever it is, it is counted and shown
            traceback.print_exc()
            self._count(False, f"{function.__name__}: {type(error).__name__}: {error}")


def main(description, checks, plants):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--plant", action="store_true", help="only show that planted faults are seen")
    parser.add_argument("--long", action="store_true", help="more batches, steps and sequences")
    options = parser.parse_args()
    tally = Tally()
    with tempfile.TemporaryDirectory() as options.work:
        for group in ([] if options.plant else checks) + plants:
            tally.attempt(group, options)
    print(f"{tally.passed} passed, {tally.failed} failed" + (f", {tally.left_out} skipped" if tally.left_out else ""))
    sys.exit(tally.failed > 0)
