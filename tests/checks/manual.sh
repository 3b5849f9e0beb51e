#!/usr/bin/env bash
# docs/manual.md as a reader follows it: every listing that names a file is written, every block of commands is run, in order, in an
# empty folder.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun //runtime:amp_static //compiler:ampc_static

mkdir "$work/blocks" "$work/reader"
python3 tests/checks/page_blocks.py docs/manual.md "$work/blocks"

export AMPC=$PWD PATH=$bin/tools:$PATH
# follow FOLDER
follow() {
    local block
    for block in "$1"/*; do
        run 0 bash -c 'cd "$1" && set -euo pipefail && source "$2"' - "$work/reader" "$block"
    done
}
follow "$work/blocks"
mkdir "$work/planted"
printf '```sh\n$ echo one\n```\n\n```text printed\ntwo\n```\n' | sed 's/^\$ //' >"$work/planted.md"
python3 tests/checks/page_blocks.py "$work/planted.md" "$work/planted"
finds 'a page whose block shows other output' 'planted/*wanted exit status 0, got 1' follow "$work/planted"
expect 'the manual builds against the archives that Bazel leaves' "$(realpath bazel-bin)" "$(realpath "$bin")"

# the man pages name exactly the options of --help
# has_options PAGE PROGRAM
has_options() {
    "$2" --help | grep -oE -- '--[a-z-]+' | sort -u >"$work/help"
    sed 's/\\-/-/g' "$1" | grep -oE -- '--[a-z-]+' | sort -u >"$work/page"
    expect "docs/man/$2.1 has the options of $2 --help" "$(<"$work/help")" "$(<"$work/page")"
}
for program in ampc amprun; do
    has_options "docs/man/$program.1" $program
    finds 'an option of another name' "has the options of $program" \
        has_options <(sed 's/\\-version/\\-edition/' "docs/man/$program.1") $program
    if answers groff -man -Tutf8 /dev/null; then
        run 0 groff -ww -man -Tutf8 "docs/man/$program.1"
        expect "docs/man/$program.1 formats without warnings" '' "$err"
    else
        skipped "docs/man/$program.1 is not formatted: $lacking"
    fi
done
finish
