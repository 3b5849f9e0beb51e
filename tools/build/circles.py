#!/usr/bin/env python3
"""Circles of .c files: files that all reach one another through the functions and tables that they use of each other.

  tools/build/circles.py [--limit N] [--except FILE]... [--down ROOM,ROOM...]... [--all] FOLDER|FILE.o|FILE.a...

A folder means all .c files below it, which are compiled for their symbols alone; object files and archives are
read as they are. Prints every circle of at least two files, the largest first; exits with 1 where one is larger than
--limit (default 6) and holds no file that --except names (a recursive walker is one concept in several files), or
where a file of a room, a folder, uses one of a room before it in --down, which names rooms from the top to the bottom.
--all prints what each file of a circle uses of the others.
"""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

INCLUDES = [".", "base/include", "runtime/include", "compiler/include", "bazel-bin", "bazel-bin/frontend"]
MACHINE = ["-mavx2", "-mfma", "-mavx512f", "-mavx512bf16"]  # kernels of single instruction sets; nothing is run


def compile_file(source, out):
    flags = ["-std=c11", "-D_GNU_SOURCE", "-w", "-O0", "-fPIC"] + MACHINE + ["-I" + folder for folder in INCLUDES]
    subprocess.run(["cc", "-c", str(source), "-o", str(out)] + flags, check=True)


def compile_folders(folders, to):
    """Pairs of a source and its object file."""
    sources = sorted(source for folder in folders for source in pathlib.Path(folder).rglob("*.c"))
    pairs = [(source, to / (str(source).replace("/", "@") + ".o")) for source in sources]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda pair: compile_file(*pair), pairs))
    return pairs


class File:
    def __init__(self, name, origin):
        self.name, self.origin = name, origin
        self.defines, self.uses = set(), set()


def read_symbols(path, name):
    """The files of an object file or archive; members of an archive may share a name, as their folders are lost."""
    files = []
    listing = subprocess.run(["nm", "--extern-only", str(path)], check=True, capture_output=True, text=True).stdout
    if not str(path).endswith(".a"):
        files.append(File(name, str(path)))
    for line in listing.splitlines():
        words = line.split()
        if line.endswith(":"):
            member = line[:-1].replace(".pic.o", ".c").replace(".o", ".c")
            files.append(File(f"{name}:{member}", str(path)))
        elif words and words[-2] == "U":
            files[-1].uses.add(words[-1])
        elif words and words[-2] not in "wv":
            files[-1].defines.add(words[-1])
    return files


def link(files):
    """file -> {file that it uses: symbols}. A name that several libraries define is that of the file's own."""
    definers = {}
    for file in files:
        for symbol in file.defines:
            definers.setdefault(symbol, []).append(file)
    edges = {}
    for file in files:
        edges[file] = {}
        for symbol in file.uses:
            found = definers.get(symbol, [])
            for other in [f for f in found if f.origin == file.origin] or found:
                edges[file].setdefault(other, set()).add(symbol)
    return edges


def circles(edges):
    """Strongly connected components (Tarjan) of at least two files, the largest first."""
    index, low, stack, found = {}, {}, [], []

    def visit(file):
        index[file] = low[file] = len(index)
        stack.append(file)
        for other in edges[file]:
            if other not in index:
                visit(other)
                low[file] = min(low[file], low[other])
            elif other in stack:
                low[file] = min(low[file], index[other])
        if low[file] == index[file]:
            at = stack.index(file)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:], key=lambda f: f.name))
            del stack[at:]

    sys.setrecursionlimit(10000)
    for file in edges:
        if file not in index:
            visit(file)
    return sorted(found, key=lambda circle: (-len(circle), circle[0].name))


def print_circle(circle, edges, in_full):
    print(f"{len(circle)} files: " + " ".join(file.name for file in circle))
    for file in circle if in_full else []:
        for other, symbols in sorted(edges[file].items(), key=lambda item: item[0].name):
            if other in circle:
                print(f"    {file.name} -> {other.name}: {' '.join(sorted(symbols))}")


def print_arrows(edges, rooms):
    """Arrows between |rooms|, from the top to the bottom; how many of them go up."""
    def place(file):
        folder = os.path.dirname(file.name.split(":")[0])
        return next((i for i, room in enumerate(rooms) if folder == room or folder.endswith("/" + room)), None)

    count = ups = 0
    for file, uses in edges.items():
        for other, symbols in uses.items():
            start, end = place(file), place(other)
            if start is None or end is None or start == end:
                continue
            count += 1
            if end < start:
                ups += 1
                print(f"up: {file.name} uses {' '.join(sorted(symbols))} of {other.name}")
    seen = {place(file) for file in edges}
    for i, room in enumerate(rooms):
        if i not in seen:
            sys.exit(f"circles.py: --down: no file lies in {room}")
    print(f"{len(rooms)} rooms, {count} arrows between their files, {ups} up")
    return ups


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="+", metavar="FOLDER|FILE.o|FILE.a")
    parser.add_argument("--limit", type=int, default=6)
    parser.add_argument("--except", dest="walkers", action="append", default=[], metavar="FILE")
    parser.add_argument("--down", action="append", default=[], metavar="ROOM,ROOM...")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folders = [name for name in options.inputs if pathlib.Path(name).is_dir()]
        pairs = compile_folders(folders, pathlib.Path(folder))
        pairs += [(name, name) for name in options.inputs if name not in folders]
        files = [file for name, path in pairs for file in read_symbols(path, str(name))]
    edges = link(files)
    found = circles(edges)
    for circle in found:
        print_circle(circle, edges, options.all)
    too_large = [c for c in found if len(c) > options.limit
                 and not any(file.name.endswith(name) for file in c for name in options.walkers)]
    largest = len(found[0]) if found else 1
    print(f"{len(files)} files, {len(found)} circles, the largest of {largest} files; "
          f"{len(too_large)} beyond the limit of {options.limit}")
    ups = sum(print_arrows(edges, rooms.split(",")) for rooms in options.down)
    return 1 if too_large or ups else 0


if __name__ == "__main__":
    sys.exit(main())
