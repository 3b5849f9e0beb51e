"""Checks of the text of this repository that no compiler makes: format, columns, names that no longer exist, English.

    style.py format|columns|names|english ALLOWED

Prints one line `FILE:LINE: what is wrong` each, and nothing where all is well. ALLOWED holds what was there before the
check: lines `KIND FILE [NAME]`; a line that allows nothing that is found any more is reported too, so that the list only
shrinks.

names: what comments and Markdown name must exist:
    files         `passes/fuse.c`, session.h, ...: a tracked file, or one that a build makes, whose path ends so
    identifiers   words with an underscore, in Markdown those in backticks: a word of the code, comments left out, or a
                  file without its ending
english: phrases that leave out a noun, and words that the glossary bans: ALLOWED holds how many a file may have, lines
    `english FILE COUNT`. With AMP_BLESS=1 in the environment counts that fell are written there.
"""
import os
import re
import subprocess
import sys

COLUMNS = 120
C = (".c", ".h", ".hpp", ".cc", ".inc", ".cuh", ".y", ".l", ".def")
HASH = (".py", ".sh", ".bash", ".bzl", ".policy", "BUILD", ".bazelrc")
FORMATTED = (".c", ".h", ".hpp", ".cc")
# What a comment may call a file of ours. (Models, data and objects are the reader's.)
FILE = re.compile(r"(?<![\w./{<>%*~$}-])((?:[\w.-]+/)*[\w-]*[a-z0-9][\w-]+\.(?:c|h|hpp|cc|inc|cuh|y|l|def|py|sh|bash|bzl|md))(?![\w*{}]|\.\w)")
QUOTED = re.compile(r"`([^`\n]+)`")
IDENTIFIER = re.compile(r"^([A-Za-z]\w*_\w+)(?:\(\))?$|^([A-Za-z]\w+)\(\)$")
PLAIN = re.compile(r"(?<![\w.%/<-])([a-z][a-z0-9]*(?:_[a-z0-9]+)+)(?!\w|\.(?:c|h|hpp|cc|inc|cuh|y|l|def|py|sh|bash|bzl|md)\b)")
PLACEHOLDER = re.compile(r"(?:^|_)[A-Z]{3,}_[a-z]|[a-z]_[A-Z]{3,}")  # infer_RULE, NAME_grad
WORD = re.compile(r"[A-Za-z_]\w*")
C_TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)
ENGLISH = re.compile(r"\b(that of|those of|of which|so many|nobody|behind|tells|stands|lies|not built yet)\b", re.I)
# Headers of the system and of CUDA, the PTX document, instructions of PTX; words of ELF, POSIX, PyTorch and Random123.
FOREIGN = {"cuda.h", "nvrtc.h", "driver_types.h", "immintrin.h", "unistd.h", "stdatomic.h", "Python.h", "ptx.md",
           "add.cc", "mad.cc", "fc1.h", "e_machine", "posix_spawn", "amp_update_scale_cuda_kernel", "cached_cast",
           "kat_vectors", "gamma_n", "program.c", "AMP_MODEL_RINGS"}
# PyTorch's sources; and records of what was so on a day.
FOREIGN_FOLDER, RECORDS = "aten/", ("bench/results/", "CHANGELOG.md", "docs/moving.md")


def tracked():
    return subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], check=True,
                          stdout=subprocess.PIPE).stdout.decode().split("\0")[:-1]


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def kind_of(path, text):
    if path.endswith(C):
        return "c"
    if path.endswith(HASH) or text.startswith("#!"):
        return "hash"
    return "markdown" if path.endswith(".md") else None


def blank(text):
    """As long as |text| and with its lines, but empty."""
    return re.sub(r"[^\n]", " ", text)


def split(kind, text):
    """The code of a file and its comments, each at the places where the other is blank."""
    if kind == "markdown":
        return "", re.sub(r"^```.*?^```", lambda block: blank(block[0]), text, flags=re.M | re.S)
    if kind == "hash":
        comment = re.compile(r"(?<![^\s])#[^\n]*")
        return comment.sub(lambda found: blank(found[0]), text), re.sub(
            r"[^\n]*\n?", lambda line: (lambda found: blank(line[0][:found.start()]) + line[0][found.start():] if found
                                       else blank(line[0]))(comment.search(line[0])), text)
    code, comments, end = [], [], 0
    for token in C_TOKEN.finditer(text):
        plain = text[end:token.start()]
        is_comment = token[0][0] == "/"
        code += [plain, blank(token[0]) if is_comment else token[0]]
        comments += [blank(plain), token[0] if is_comment else blank(token[0])]
        end = token.end()
    return "".join(code) + text[end:], "".join(comments) + blank(text[end:])


def line_of(text, place):
    return text.count("\n", 0, place) + 1


def check_format(files):
    files = [path for path in files if path.endswith(FORMATTED)]
    said = subprocess.run(["clang-format", "--dry-run", *files], check=True, stderr=subprocess.PIPE).stderr.decode()
    seen = set()
    for path, line in re.findall(r"^(\S+?):(\d+):\d+: warning: code should be clang-formatted", said, re.M):
        if path not in seen:
            seen.add(path)
            yield path, "", int(line), "is not formatted; clang-format -i mends it"


def check_columns(files):
    for path in files:
        text = read(path)
        kind = kind_of(path, text)
        for number, line in enumerate(text.splitlines() if kind else (), 1):
            if kind != "markdown" and len(line) > COLUMNS:
                yield path, "", number, f"has {len(line)} columns; the most is {COLUMNS}"
            if line.startswith(("<<<<<<< ", ">>>>>>> ")):
                yield path, "", number, "is left of a merge"


def words_of_code(files):
    """Every word that is in code, in strings too, and in text that is neither code nor a comment."""
    words = set()
    for path in files:
        text = read(path)
        kind = kind_of(path, text)
        if kind != "markdown":
            words.update(WORD.findall(split(kind, text)[0] if kind else text))
    return words


def named(comments, is_markdown):
    """(place, name, is it a file) of each name that must exist."""
    for found in FILE.finditer(comments):
        yield found.start(1), found[1], True
    quoted = list(QUOTED.finditer(comments))
    for found in quoted:
        identifier = IDENTIFIER.match(found[1])
        if identifier and not PLACEHOLDER.search(found[1]):
            yield found.start(1), identifier[1] or identifier[2], False
    if not is_markdown:
        for found in PLAIN.finditer(comments):
            yield found.start(1), found[1], False


def check_names(files):
    words = words_of_code(files)
    made = {line.split('"')[1] for path in files if path.endswith("BUILD") for line in read(path).splitlines()
            if re.match(r'\s*(?:out|name) = "', line)}
    stems = {os.path.splitext(name)[0] for name in made}
    file_stems = {os.path.splitext(os.path.basename(path))[0] for path in files}
    ends = set()
    for path in files:
        parts = path.split("/")
        ends.update("/".join(parts[i:]) for i in range(len(parts)))
    for path in files:
        text = read(path)
        kind = kind_of(path, text)
        if not kind or path.startswith(RECORDS):
            continue
        comments = split(kind, text)[1]
        for place, name, is_file in named(comments, kind == "markdown"):
            if is_file:
                base = name.split("/")[-1]
                good = name.startswith(FOREIGN_FOLDER) or name in ends or os.path.normpath(os.path.join(os.path.dirname(path), name)) in ends or \
                    base in FOREIGN or base in made or (base.endswith((".c", ".h")) and base[:-2] in stems)
            else:
                good = name in words or name in file_stems or name in FOREIGN
            if not good:
                yield path, name, line_of(comments, place), f"names {name}, which does not exist"


def count_english(files):
    counts = {path: len(ENGLISH.findall(text)) for path in files if not path.startswith(RECORDS)
              for text in (read(path),) if kind_of(path, text)}
    return {path: count for path, count in counts.items() if count}


def check_english(files, allowed_path):
    rows = [line.split() for line in read(allowed_path).splitlines()]
    allowed = {row[1]: int(row[2]) for row in rows if row[:1] == ["english"]}
    counts = count_english(files)
    if os.environ.get("AMP_BLESS"):
        fallen = {path: min(counts.get(path, 0), most) for path, most in allowed.items()}
        others = [line for line in read(allowed_path).splitlines() if not line.startswith("english ")]
        with open(allowed_path, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in others)
            file.writelines(f"english {path} {count}\n" for path, count in sorted(fallen.items()) if count)
        return
    for path in sorted(counts.keys() | allowed.keys()):
        count, most = counts.get(path, 0), allowed.get(path, 0)
        if count > most:
            words = ", ".join(sorted({word.lower() for word in ENGLISH.findall(read(path))}))
            print(f"{path}: has {count} of the phrases that lack a noun or are banned, {most} may be: {words}")
        if count < most:
            print(f"{allowed_path}: lower english {path} {most} to {count}, or run with AMP_BLESS=1")


CHECKS = {"format": check_format, "columns": check_columns, "names": check_names}


def main(kind, allowed_path):
    files = [path for path in tracked() if os.path.isfile(path)]
    if kind == "english":
        check_english(files, allowed_path)
        return
    allowed = {tuple(line.split()[1:]) for line in read(allowed_path).splitlines()
               if line.split()[:1] == [kind]}
    used = set()
    for path, name, line, what in CHECKS[kind](files):
        if (path, name) in allowed or (path,) in allowed:
            used.update({(path, name), (path,)} & allowed)
        else:
            print(f"{path}:{line}: {what}")
    for entry in sorted(allowed - used):
        print(f"{allowed_path}: allows what is not there any more: {kind} {' '.join(entry)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
