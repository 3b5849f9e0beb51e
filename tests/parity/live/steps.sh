#!/usr/bin/env bash
# Training steps from PyTorch's own state: loss and update against PyTorch's.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" steps "$@"
