#!/usr/bin/env bash
# docs/design/fuse.md: its listings are what the compiler prints for its model, before and after fuse.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc

# listing FENCE: the block of the page that begins with ```FENCE
listing() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" docs/design/fuse.md | sed '1d;$d'; }

# train_step PASS: its ops and kernels after a pass, without paths, places, reasons and alignment
train_step() {
    "$bin/tools/ampc" "$work/tiny.amp" --dump-ir="$1" --emit c -o "$work/tiny.c" |
        sed -n '/^func train_step/,/^}/p' | sed '1d;$d' | grep -Ev '^  (input|state|region|result) ' |
        sed -E 's/ +because .*//; s/ at [^ ]+:[0-9:]+//; s/ +(#[0-9]+|@.*)? *$//; s/([^ ])  +/\1 /g; s/^  //'
}

listing 'amp tiny.amp' >"$work/tiny.amp"
# shows PASS LISTING
shows() { expect "docs/design/fuse.md shows the function after $1" "$(train_step "$1")" "$2"; }
for pass in lower fuse; do shows $pass "$(listing "ir $pass")"; done
finds 'another listing' 'shows the function after fuse' shows fuse "$(listing 'ir fuse' | sed '0,/f32/s//f16/')"
finish
