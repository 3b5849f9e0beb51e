"""The listings and command blocks of a documentation page, as shell scripts that are run in order.

usage: page_blocks.py PAGE FOLDER

A listing that names a file (```c main.c) becomes a script that writes it, ```sh a script of its commands.
```text printed is what the commands of the block before it print, to the letter. Other blocks (other output, or
```sh no-run) are for the reader alone.
"""
import os
import re
import sys

page, folder = sys.argv[1:]
with open(page, encoding="utf-8") as file:
    text = file.read()
scripts, commands = [], None
for language, name, body in re.findall(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", text, re.M | re.S):
    if (language, name) == ("text", "printed"):
        if commands is None:
            sys.exit(f"{page}: there are no commands before what is printed:\n{body}")
        scripts[-1] = f"{{\n{commands}}} >printed\ndiff -u - printed <<'END_OF_LISTING'\n{body}END_OF_LISTING\n"
    elif name:
        scripts.append(f"cat >{name} <<'END_OF_LISTING'\n{body}END_OF_LISTING\n")
    elif language == "sh":
        scripts.append(body)
    commands = body if language == "sh" and not name else None
for number, script in enumerate(scripts, 1):
    with open(os.path.join(folder, f"{number:02d}"), "w", encoding="utf-8") as out:
        out.write(script)
if not scripts:
    sys.exit(f"{page}: no blocks")
