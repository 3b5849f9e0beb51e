#!/usr/bin/env bash
# What no compiler checks: .clang-format is followed, no line is too long, comments and documentation name only files and
# identifiers that exist, and say things in whole phrases (docs/glossary.md). style_allowed.txt holds what was there
# before this check, and only shrinks.
set -uo pipefail
source tests/checks/checks.bash

# style KIND WHAT
style() { expect "$2" '' "$(python3 -B tests/checks/style.py "$1" tests/checks/style_allowed.txt 2>&1)"; }
style columns 'lines of at most 120 columns, and nothing left of a merge'
style names 'comments and documentation name what exists'
style english 'no more phrases that lack a noun, and no more banned words'
if answers clang-format --version; then
    style format 'files as clang-format leaves them'
else
    skipped "$lacking"
fi

# faults that are planted are found, and nothing else
mkdir "$work/tree"
cat >"$work/tree/planted.c" <<'PLANTED'
/* planted.c, gone_away.h, and no_such_word; text of the code is none of it, and short_text is a word of the code. */
int main( void ) { return sizeof "not_a_comment.h is text, and so is short_text" > 10; } // a line that is a little too long
PLANTED
printf '%s HEAD\n' '<<<<<<<' >"$work/tree/merged.md"
cp .clang-format "$work/tree"
git init -q "$work/tree"
checker=$PWD/tests/checks/style.py
# planted KIND TEXT...: what the check says of the planted file
planted() { (cd "$work/tree" && python3 -B "$checker" "$1" "${2:-/dev/null}" 2>&1); }
run 0 planted columns
expect 'columns: the long line, and what is left of a merge' \
    $'merged.md:1: is left of a merge\nplanted.c:2: has 124 columns; the most is 120' "$out"
run 0 planted names
expect 'names: both' $'planted.c:1: names gone_away.h, which does not exist\nplanted.c:1: names no_such_word, which does not exist' "$out"
if answers clang-format --version; then
    run 0 planted format
    says 'planted.c:2: is not formatted'
fi
echo 'It is that of a node, behind so many others.' >"$work/tree/words.md"
run 0 planted english
says 'words.md: has 3 of the phrases' 'behind, so many, that of'
echo 'english words.md 4' >"$work/allowed"
run 0 planted english "$work/allowed"
expect 'english: a count that fell' "$work/allowed: lower english words.md 4 to 3, or run with AMP_BLESS=1" "$out"
printf 'columns planted.c\ncolumns other.c\n' >"$work/allowed"
run 0 planted columns "$work/allowed"
expect 'allowed, and what is allowed in vain' \
    "merged.md:1: is left of a merge"$'\n'"$work/allowed: allows what is not there any more: columns other.c" "$out"
finish
