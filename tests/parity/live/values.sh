#!/usr/bin/env bash
# Roundings, passes left out, threads and resumed training: equal bits.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" values "$@"
