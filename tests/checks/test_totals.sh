#!/usr/bin/env bash
# Tests the counting that tools/test and .ci/run share: a failure that it loses is never seen.
set -uo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
good=0 bad=0

# expect WHAT WANTED GOT
expect() {
    if [[ $2 == "$3" ]]; then
        ((good += 1))
    else
        ((bad += 1))
        printf 'FAIL %s\n  wanted: %s\n  got:    %s\n' "$1" "$2" "$3"
    fi
}

# One shard of target $1: its status in the summary ($2) and what its test.xml holds ($3).
event() {
    local xml="$work/${1##*:}.xml"
    printf '<testsuites><testsuite>%s</testsuite></testsuites>\n' "$3" >"$xml"
    printf '{"id":{"testResult":{"label":"%s","run":1}},"testResult":{"testActionOutput":[{"name":"test.xml","uri":"file://%s"}]}}\n' "$1" "$xml"
    printf '{"id":{"testSummary":{"label":"%s"}},"testSummary":{"overallStatus":"%s"}}\n' "$1" "$2"
}

pass='<testcase status="run" result="completed"/>'
skip='<testcase status="run" result="skipped"><skipped message="why"/></testcase>'
fail='<testcase status="run" result="completed"><failure/><failure/></testcase>'
crash='<testcase status="run"><error message="exited with error code 134"/></testcase>'
disabled='<testcase status="notrun" result="suppressed"/>'
{
    event //a:mixed FAILED "$pass$pass$skip$fail$disabled"
    event //a:crash FAILED "$crash"
    event //a:timeout TIMEOUT "$pass"
    event //a:empty PASSED ''
    event //a:half_a_file PASSED '<testcase'
    printf '{"id":{"targetCompleted":{"label":"//a:broken"}},"aborted":{"reason":"ANALYSIS_FAILURE"}}\n'
} >"$work/events"
counts=$(python3 tools/build/count_tests.py "$work/events")
target() { grep -F " //a:$1" <<<"$counts"; }
expect 'each kind of case' '2 passed, 1 failed, 1 skipped  //a:mixed  (failed)' "$(target mixed)"
expect 'a crash' '0 passed, 1 failed  //a:crash  (failed)' "$(target crash)"
expect 'a timeout after a pass' '1 passed, 1 failed  //a:timeout  (timeout)' "$(target timeout)"
expect 'a test without cases' '0 passed, 1 failed  //a:empty  (ran no case)' "$(target empty)"
expect 'a damaged test.xml' '0 passed, 1 failed  //a:half_a_file' "$(target half_a_file)"
expect 'a target that does not build' '0 passed, 1 failed  //a:broken  (failed to build)' "$(target broken)"
expect 'the sum' '3 passed, 6 failed, 1 skipped' "$(tail -n 1 <<<"$counts")"

# The last line and the exit status of a run of one script with this body.
total() {
    printf '#!/bin/sh\n%s\n' "$1" >"$work/script"
    chmod +x "$work/script"
    local output status
    output=$(bash -euo pipefail -c 'source tools/build/test_totals.sh; check_script "$1"; finish' - "$work/script")
    status=$?
    printf '%s, status %d' "$(tail -n 1 <<<"$output")" "$status"
}
expect 'a script that passes' '3 passed, 0 failed, 2 skipped, status 0' "$(total 'echo 3 passed, 0 failed, 2 skipped')"
expect 'a script that fails' '3 passed, 2 failed, status 1' "$(total 'echo 3 passed, 2 failed; exit 1')"
expect 'a failure it does not count' '3 passed, 1 failed, status 1' "$(total 'echo 3 passed, 0 failed; exit 7')"
expect 'a script without a count' '0 passed, 1 failed, status 1' "$(total 'echo done')"
expect 'a count that is not last' '0 passed, 1 failed, status 1' "$(total 'echo 1 passed, 0 failed; echo done')"
expect 'a run of nothing' '0 passed, 0 failed, status 1' "$(total 'echo 0 passed, 0 failed')"

# Of several scripts, which run side by side, each is counted, and the slow ones are waited for.
several() {
    for body in "$@"; do
        printf '#!/bin/sh\n%s\n' "$body" >"$work/script.$((++count))"
        chmod +x "$work/script.$count"
    done
    bash -euo pipefail -c 'source tools/build/test_totals.sh; check_scripts "$@"; finish' - "$work"/script.[0-9]*
    printf 'status %d\n' $?
}
count=0
output=$(several 'sleep 1; echo 1 passed, 0 failed' 'echo 2 passed, 0 failed, 1 skipped' 'echo 3 passed, 0 failed; exit 7' 'echo no')
expect 'several scripts' $'6 passed, 2 failed, 1 skipped\nstatus 1' "$(tail -n 2 <<<"$output")"
expect 'each with its name, failures too' 5 "$(grep -c "^[0-9].* $work/script" <<<"$output")"
expect 'two at a time: the second ends first' "== $work/script.2" "$(grep '^==' <<<"$output" | head -n 1)"
# Each notes how many have begun, and which have ended.
body='all=${0%.*}; touch "$0.begun"; ls "$all".*.begun | wc -l >"$0.saw"; ls "$all".*.ended >"$0.after" 2>&1
sleep 1; touch "$0.ended"; echo 1 passed, 0 failed'
waits=$'# Waits more than it computes\n'$body
count=0
rm -f "$work"/script.*
output=$(several "$body" "$body" "$body" "$waits" "$waits")
expect 'scripts that wait are counted' $'5 passed, 0 failed\nstatus 0' "$(tail -n 2 <<<"$output")"
expect 'the first of them runs beside two others' 3 "$(cat "$work"/script.[124].saw | sort -n | tail -n 1)"
expect 'the next runs after it' 1 "$(grep -c 'script.4.ended$' "$work/script.5.after")"
count=0
rm -f "$work"/script.*
output=$(several "$body" "$body" $'# Takes long\n'"$body")
expect 'one that takes long begins first, the second last' 3 "$(<"$work/script.2.saw")"

# The tests of the stand-in for the driver run where it has changed, and a run that passes is remembered.
stand_in() {
    mkdir -p "$work/tree/fakecuda" "$work/tree/runtime/device/cuda"
    cp -r tools "$work/tree"
    (
        cd "$work/tree"
        bazel() { printf '%s\n' "$*" >>called && return "$status"; }
        python3() { printf '%s\n' "$count"; }
        source tools/build/test_totals.sh
        source tools/build/stand_in.sh
        NVRTC_PATH=${nvrtc-here}
        : >called
        "$@" >/dev/null
        wc -l <called
    )
}
touch_file() { printf '%s\n' "$2" >"$work/tree/$1"; }
status=0 count='5 passed, 0 failed'
mkdir -p "$work/tree/fakecuda/exec" "$work/tree/runtime/device/cuda"
touch_file runtime/device/cuda/driver_api.h 1
touch_file fakecuda/exec/exec.c 1
expect 'no stamp: they run' 1 "$(nvrtc='' stand_in stand_in_tests changed)"
expect 'a run without NVRTC does not count' 1 "$(status=3 count='4 passed, 1 failed' stand_in stand_in_tests changed)"
expect 'nor does one that fails' 1 "$(stand_in stand_in_tests changed)"
expect 'one that passes does' 0 "$(stand_in stand_in_tests changed)"
touch_file fakecuda/README.md 1
expect 'a page has changed' 0 "$(stand_in stand_in_tests changed)"
touch_file fakecuda/exec/exec.c 2
expect 'the code has changed' 1 "$(stand_in stand_in_tests changed)"
touch_file runtime/device/cuda/driver_api.h 2
expect 'the table of calls has changed' 1 "$(stand_in stand_in_tests changed)"
expect 'nothing has changed' 0 "$(stand_in stand_in_tests changed)"
expect 'all is asked for' 1 "$(stand_in stand_in_tests always)"

# ---- programs that are there in part --------------------------------------------------------------

half=$work/half
mkdir "$half"
# stub NAME TEXT: a program of that name
stub() {
    printf '#!/bin/sh\n%s\n' "$2" >"$half/$1"
    chmod +x "$half/$1"
}
stub mpirun.openmpi '[ "$1" = --version ]'
stub mpicc.openmpi 'echo "links.c:1:10: fatal error: mpi.h: No such file or directory" >&2; exit 1'
stub nvim 'echo "nvim: error while loading shared libraries: libluajit-5.1.so.2" >&2; exit 127'
stub python 'echo "Traceback" >&2; echo "ModuleNotFoundError: No module named $2" >&2; exit 1'
stub apt-get 'exit 1'
# asked COMMAND...: "yes", or what checks.bash says is lacking
asked() { (source tests/checks/checks.bash && PATH=$half:$PATH && if "$@"; then echo yes; else echo "$lacking"; fi); }
expect 'a compiler that works' yes "$(asked links cc stdio.h)"
expect 'one without a header' 'mpicc.openmpi is here, but does not work: links.c:1:10: fatal error: mpi.h: No such file or directory' \
    "$(asked links mpicc.openmpi mpi.h)"
expect 'a header that is not there' 'cc is here, but does not work' "$(asked links cc no_such.h | cut -d: -f1)"
expect 'no compiler' 'no no-such-cc here' "$(asked links no-such-cc stdio.h)"
expect 'a program that works' yes "$(asked answers python3 --version)"
expect 'one without a library' \
    'nvim is here, but does not work: nvim: error while loading shared libraries: libluajit-5.1.so.2' \
    "$(asked answers nvim --version)"
expect 'modules' yes "$(asked imports python3 json sys)"
expect 'one that is missing' "python is here, but does not work: ModuleNotFoundError: No module named import a,b" \
    "$(asked imports python a b)"
# mpis: what mpi.bash finds, and why there is not more
mpis() { (source tests/checks/checks.bash && PATH=$half:$PATH && source tests/checks/mpi.bash && echo "$found_mpis$no_mpi"); }
expect 'a launcher that starts nothing is no MPI' 'mpirun.openmpi is here, but' \
    "$(mpis | grep -oE '^openmpi|mpirun.openmpi is here, but')"
installs=$(PATH=$half:$PATH tools/setup --mpi 2>&1)
expect 'tools/setup misses the header' libopenmpi-dev "$(grep -o 'libopenmpi-dev' <<<"$installs" | head -n 1)"
expect 'and not the launcher' '' "$(grep -o 'openmpi-bin' <<<"$installs")"
expect 'tools/setup misses an editor that does not start' neovim \
    "$(PATH=$half:$PATH tools/setup --editors 2>&1 | grep -o neovim | head -n 1)"

printf '%d passed, %d failed\n' "$good" "$bad"
((bad == 0))
