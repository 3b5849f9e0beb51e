#!/usr/bin/env bash
# The loss scaler against torch._amp_update_scale_, bit for bit.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" scaler "$@"
