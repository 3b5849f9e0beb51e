#!/usr/bin/env bash
# docs/manual.md as a reader follows it: every listing that names a file is written, every block of commands is run, in order, in an
# empty folder.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun //runtime:amp_static //compiler:ampc_static

mkdir "$work/blocks" "$work/reader"
python3 tests/checks/page_blocks.py docs/manual.md "$work/blocks"

export AMPC=$PWD PATH=$bin/tools:$PATH
for block in "$work"/blocks/*; do
    run 0 bash -c 'cd "$1" && set -euo pipefail && source "$2"' - "$work/reader" "$block"
done
expect 'the manual builds against the archives that Bazel leaves' "$(realpath bazel-bin)" "$(realpath "$bin")"

# the man pages name exactly the options of --help
for program in ampc amprun; do
    "$program" --help | grep -oE -- '--[a-z-]+' | sort -u >"$work/help"
    sed 's/\\-/-/g' "docs/man/$program.1" | grep -oE -- '--[a-z-]+' | sort -u >"$work/page"
    expect "docs/man/$program.1 has the options of $program --help" "$(<"$work/help")" "$(<"$work/page")"
    if answers groff -man -Tutf8 /dev/null; then
        run 0 groff -ww -man -Tutf8 "docs/man/$program.1"
        expect "docs/man/$program.1 formats without warnings" '' "$err"
    else
        skipped "docs/man/$program.1 is not formatted: $lacking"
    fi
done
finish
