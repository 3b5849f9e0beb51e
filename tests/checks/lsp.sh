#!/usr/bin/env bash
# The language server: by a client of the tests, on all examples (lsp.py), and by Neovim without a window.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc
ampc=$bin/tools/ampc

# told: the lines "pass" and "FAIL" of a program that checks
told() {
    local line
    while read -r line; do
        case $line in
        'pass '*) passed ;;
        'FAIL '*) failed "${line#FAIL }" ;;
        *) printf '%s\n' "$line" ;;
        esac
    done <<<"$out"
}

run 0 python3 -B tests/checks/lsp.py "$ampc" $(git ls-files 'examples/*.amp')
told
expect 'nothing but the checks is said' '' "$err"
finish
