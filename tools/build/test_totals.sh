# Runs groups of tests and adds up their counts; sourced by tools/test and .ci/run.
#
#     bazel_tests NAME ARGUMENT...   one `bazel test -k ARGUMENT...`
#     check_script PATH [ARGUMENT...]  one script whose last line is its count
#     check_scripts PATH...          several, two at a time: most of them keep one core busy; beside these, one after
#                                    the other, those with a line that begins with "# Waits more than it computes";
#                                    first those with "# Takes long", lest one runs alone at the end
#     finish                         prints the sum as the last line and exits with 0 only if nothing failed
#
# A count is the line `N passed, N failed` with an optional `, N skipped`. So that only the last line of the whole run
# is one, the counts of the parts are printed with their names after them.

readonly COUNT='([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?'
readonly SCRIPT_LIMIT=${SCRIPT_LIMIT:-25m} # a script that hangs must not hang the run

# What `tools/setup --nvrtc` installed.
[[ -n ${NVRTC_PATH:-} || ! -d .nvrtc ]] || export NVRTC_PATH=$PWD/.nvrtc

passed=0 failed=0 skipped=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Adds the count that is the last line of file $1; $2 is the exit status of what wrote it, $3 its name. An exit status
# that says failure where no failed test was counted, and a missing count, are one failure.
add_count() {
    local file=$1 status=$2 name=$3
    if [[ $(tail -n 1 "$file") =~ ^$COUNT$ ]]; then
        ((passed += BASH_REMATCH[1], failed += BASH_REMATCH[2], skipped += ${BASH_REMATCH[4]:-0})) || true
        if ((status != 0 && BASH_REMATCH[2] == 0)); then
            printf '0 passed, 1 failed  %s  (exit status %d)\n' "$name" "$status"
            ((failed += 1))
        fi
    else
        printf '0 passed, 1 failed  %s  (no count in its last line, exit status %d)\n' "$name" "$status"
        ((failed += 1))
    fi
}

# Copies standard input to file $1, and to standard output with the name $2 after each line that is a count.
record() {
    tee "$1" | sed -uE "s#^$COUNT\$#&  $2#"
}

# took SECOND NAME: how long a part took that began at $SECONDS = SECOND
took() { printf 'took %d s: %s\n' $((SECONDS - $1)) "$2"; }

bazel_tests() {
    local name=$1 status=0 begin=$SECONDS
    shift
    printf '== %s\n' "$name"
    rm -f "$scratch/events"
    bazel test -k --build_event_json_file="$scratch/events" "$@" || status=$?
    # 3: some tests failed, which the cases say more exactly; 4: no test matched the filters.
    [[ $status != 3 && $status != 4 ]] || status=0
    python3 tools/build/count_tests.py "$scratch/events" | record "$scratch/count" "$name" || true
    add_count "$scratch/count" "$status" "$name"
    took "$begin" "$name"
}

check_script() {
    local name=$1 status=0 begin=$SECONDS
    printf '== %s\n' "$*"
    timeout --foreground --kill-after=30 "$SCRIPT_LIMIT" "$@" </dev/null 2>&1 | record "$scratch/output" "$name" ||
        status=${PIPESTATUS[0]}
    add_count "$scratch/output" "$status" "$name"
    took "$begin" "$name"
}

# What script number $1, the file $2, says and how it ends.
run_aside() {
    local begin=$SECONDS status=0
    timeout --kill-after=30 "$SCRIPT_LIMIT" "$2" </dev/null >"$scratch/aside.$1" 2>&1 || status=$?
    printf '%d %d\n' "$status" $((SECONDS - begin)) >"$scratch/ended.$1"
}

# Prints and counts those of the scripts that have ended since the last call.
report_ended() {
    local i status seconds
    for i in "${!scripts[@]}"; do
        [[ -s $scratch/ended.$i ]] || continue
        read -r status seconds <"$scratch/ended.$i"
        rm "$scratch/ended.$i"
        printf '== %s\n' "${scripts[i]}"
        record "$scratch/output" "${scripts[i]}" <"$scratch/aside.$i"
        add_count "$scratch/output" "$status" "${scripts[i]}"
        printf 'took %d s: %s\n' "$seconds" "${scripts[i]}"
    done
}

# in_turn INDEX...: of |scripts|
in_turn() {
    local i
    for i in "$@"; do run_aside "$i" "${scripts[i]}"; done
}

check_scripts() {
    local scripts=("$@") waiters=() busy=() beside='' i
    for i in "${!scripts[@]}"; do
        if grep -q '^# Waits more than it computes' "${scripts[i]}"; then waiters+=("$i")
        elif grep -q '^# Takes long' "${scripts[i]}"; then busy=("$i" "${busy[@]}")
        else busy+=("$i"); fi
    done
    if ((${#waiters[@]})); then
        in_turn "${waiters[@]}" &
        beside=$!
    fi
    for i in "${busy[@]}"; do
        while (($(jobs -rp | grep -vxc "${beside:-none}") >= 2)); do
            wait -n || true
            report_ended
        done
        run_aside "$i" "${scripts[i]}" &
    done
    wait
    report_ended
}

finish() {
    printf '%d passed, %d failed' "$passed" "$failed"
    ((skipped == 0)) || printf ', %d skipped' "$skipped"
    printf '\n'
    ((failed == 0 && passed > 0)) # a run that tested nothing has not passed
    exit
}
