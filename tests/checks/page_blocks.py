"""The listings and command blocks of a documentation page, as shell scripts that are run in order.

usage: page_blocks.py PAGE FOLDER

A listing that names a file (```c main.c) becomes a script that writes it, ```sh a script of its commands. Other blocks
(output, or ```sh no-run) are for the reader alone.
"""
import os
import re
import sys

page, folder = sys.argv[1:]
with open(page, encoding="utf-8") as file:
    text = file.read()
count = 0
for language, name, body in re.findall(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", text, re.M | re.S):
    if not name and language != "sh":
        continue
    count += 1
    with open(os.path.join(folder, f"{count:02d}"), "w", encoding="utf-8") as out:
        out.write(body if not name else f"cat >{name} <<'END_OF_LISTING'\n{body}END_OF_LISTING\n")
if not count:
    sys.exit(f"{page}: no blocks")
