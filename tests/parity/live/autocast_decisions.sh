#!/usr/bin/env bash
# Every dtype decision and cast, forward and backward, against PyTorch's CUDA autocast.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" autocast_decisions "$@"
