#!/usr/bin/env bash
# What README.md, docs/tour.md and docs/seeing-precision.md show of commands is what these print; README.md's program
# compiles and runs; each picture that a document names is there, and what it is made of can still be made
# (docs/pictures/make).
# Takes long.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun //runtime:amp_static
root=$PWD pictures=docs/pictures

# ---- pictures

named=$(git ls-files --cached --others --exclude-standard '*.md' | while read -r page; do
    grep -oE '!\[[^]]*\]\([^)]+\)' "$page" | sed -E 's/.*\(([^)]+)\)$/\1/' | while read -r picture; do
        realpath --relative-to=. -m "$(dirname "$page")/$picture"
    done
done | sort -u)
for picture in $named; do
    holds "$picture, which a document shows, is there" test -s "$picture"
    holds "$picture has less than 150 KB" test "$(stat -c %s "$picture")" -lt 150000
done
expect 'each picture is shown somewhere' "$(find $pictures -name '*.png' -o -name '*.svg' | sort -u)" \
    "$(grep "^$pictures/" <<<"$named")"

# ---- listings

# shown PAGE[#SECTION]...
shown() {
    local line
    while read -r line; do
        case $line in
        'pass '*) passed ;;
        'FAIL '*) failed "${line#FAIL "$root/"}" ;;
        *) printf '  %s\n' "$line" ;;
        esac
    done < <(cd "$work/reader" && python3 -B "$root/tests/checks/page_outputs.py" "${@/#/$root/}")
}
mkdir "$work/reader"
cp examples/fashion_mnist/*.amp $pictures/*.amp "$work/reader"
ln -s "$root/examples" "$work/reader/examples"
export PATH=$bin/tools:$PATH
run 0 python3 $pictures/offers.py "$work/reader/offers.st"
sed -n '/^```c train.c$/,/^```$/{//!p}' README.md >"$work/reader/train.c"
pkg_config_of_archives
shown README.md
quick_models # the others compile more than they train
shown docs/tour.md 'docs/seeing-precision.md#A failure, from a falling loss scale to a fixed policy'

# ---- what pictures are made of

mkdir "$work/text"
run 0 $pictures/make --text "$work/text"
holds 'the report of the training has the log' grep -q '"traced"' "$work/text/prices.html"
holds 'the terminal shows a curve and a table' grep -q 'loss scale' "$work/text/watch.txt"
if [[ -e $work/text/editor.ansi ]]; then
    screen=$(sed 's/\x1b\[[0-9;:]*m//g' "$work/text/editor.ansi")
    holds 'the editor shows hints' grep -qF 'h: f16[N, 64, 14, 14] =' <<<"$screen"
    holds 'and why' grep -qF 'because min-cast.policy:' <<<"$screen"
else
    skipped 'no Neovim with inlay hints, or no tmux (tools/editor-env): no editor is looked at'
fi

# ---- planted: a listing that is not so is found

printf '```\n$ echo one\ntwo\n```\n' >"$work/page.md"
run 0 python3 -B tests/checks/page_outputs.py "$work/page.md"
says "FAIL $work/page.md: echo one: does not print: two"
finish
