#!/usr/bin/env bash
# The loss scaler over 100,000 random sequences.
exec "$(dirname "${BASH_SOURCE[0]}")/../../parity/run_check" scaler --long
