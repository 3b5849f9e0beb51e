#!/usr/bin/env bash
# tools/sizes counts a repository made here: its work tree, and what was added since a revision.
set -uo pipefail
source tests/checks/checks.bash

sizes=$PWD/tools/sizes
mkdir "$work/tree"
cd "$work/tree" || exit 1
git init -q .
keep() { git add -A && git -c user.name=a -c user.email=a@b commit -qm "$1"; }
# lines COUNT FILE
lines() { mkdir -p "$(dirname "$2")" && seq "$1" >"$2"; }
# row NAME: a line of the last output, with one space between its columns
row() { grep -E "^ *$1 " <<<"$out" | tail -n 1 | tr -s ' ' | sed 's/^ //'; }

lines 3 base/a.c
lines 5 base/deep/b.h
lines 7 ir/ops.def
lines 4 ir/BUILD
lines 11 tests/ir/golden/x.amp
printf 'one\nno end' >tests/ir/y.txt
lines 2 docs/manual.md
lines 99 bench/run
printf 'a\0b\n\n\n' >base/binary
ln -s a.c base/link
keep before
lines 50 base/untracked.c

run 0 "$sizes"
expect 'all folders of a path count as its first' 'base 8 2' "$(row base)"
expect 'any text' 'ir 11 2' "$(row ir)"
expect 'tests by their folder, a last line without an end' 'tests/ir 13 2' "$(row tests/ir)"
expect 'bench is none of it' 'total 34 7' "$(row total)"
expect 'nothing else' 9 "$(wc -l <<<"$out")"

lines 6 base/a.c
rm ir/BUILD
lines 9 docs/design/new.md
git add docs
run 0 "$sizes" HEAD
expect 'grown' 'base 11 2 +3 +0' "$(row base)"
expect 'shrunk' 'ir 7 1 -4 -1' "$(row ir)"
expect 'new' 'docs/design 9 1 +9 +1' "$(row docs/design)"
expect 'the sums' $'product 18 3 -1 -1\ntotal 42 7 +8 +0' "$(row product)"$'\n'"$(row total)"
keep after
rm -r tests
run 0 "$sizes" HEAD~
expect 'all gone' 'tests 0 0 -13 -2' "$(row tests)"

run 2 "$sizes" no-such
says "no-such: there is no such revision"
run 2 "$sizes" HEAD HEAD~
says 'give one revision, or none'
cd "$work" && run 2 "$sizes"
says 'not a git repository'
finish
