"""The commands that a page shows with what they print, run in order; is that still so?

    page_outputs.py PAGE[#SECTION]...     SECTION: of this heading alone

A command that several of the pages show is run once.

Of each block the lines from one "$ COMMAND" to the next are what the command prints, in part and in order. Numbers that
depend on the processor may differ, spaces too; a line that ends in "..." is the beginning of one. A line
"pass COMMAND" or "FAIL COMMAND: why" is printed for each command.
"""
import re
import subprocess
import sys

# Of a machine as it is: the first word; of what was measured: the op. In any order.
LOOSE = {"amprun doctor": lambda line: line.split()[0], "--profile": lambda line: line.split("  ")[-1]}
NUMBER = re.compile(r"(?<![\w:./-])-?\d+(\.\d+)?(e[+-]?\d+)?")


def masked(line):
    return " ".join(NUMBER.sub("#", line).split())


def sessions(text):
    """(command, lines shown) of each command."""
    for block in re.findall(r"^```\n(\$ .*?)^```$", text, re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, *shown = part.rstrip("\n").split("\n")
            yield command, [line for line in shown if line.strip()]


def missing(command, shown, printed):
    """The first line that is shown and not printed."""
    for word, part in LOOSE.items():
        if word in command:
            parts = [part(line) for line in printed if line.strip()]
            return next((line for line in shown if part(line) not in parts), None)
    printed = [masked(line) for line in printed]
    for line in shown:
        wanted = masked(line)
        if wanted.endswith("..."):
            wanted = wanted[:-3].rstrip()
            at = next((i for i, line in enumerate(printed) if line.startswith(wanted)), None)
        else:
            at = next((i for i, line in enumerate(printed) if line == wanted), None)
            if at is None:  # throughput and the like, which a page leaves out
                at = next((i for i, line in enumerate(printed)
                           if line.startswith(wanted + " ") and "samples/s" in line), None)
        if at is None:
            return line
        del printed[:at + 1]
    return None


def main(*pages):
    said = {}
    for page, _, section in (page.partition("#") for page in pages):
        with open(page, encoding="utf-8") as file:
            text = file.read()
        if section:
            text = re.search(rf"^## {re.escape(section)}$.*?(?=^## |\Z)", text, re.M | re.S)[0]
        for command, shown in sessions(text):
            if command not in said:
                said[command] = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE,
                                               stderr=subprocess.STDOUT).stdout.decode()
            line = missing(command, shown, said[command].splitlines())
            if line is None:
                print("pass", command)
            else:
                print(f"FAIL {page}: {command}: does not print: {line}\n{said[command]}")


main(*sys.argv[1:])
