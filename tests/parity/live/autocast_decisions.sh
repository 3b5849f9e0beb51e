#!/usr/bin/env bash
# Every dtype decision and cast, forward and backward, against PyTorch's autocast, CUDA's and the CPU's.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" autocast_decisions "$@"
