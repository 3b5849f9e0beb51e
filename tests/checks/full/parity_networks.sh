#!/usr/bin/env bash
# Every dtype decision and cast of all the networks in tests/parity/models/networks, too.
exec "$(dirname "${BASH_SOURCE[0]}")/../../parity/run_check" autocast_decisions --long
