#!/usr/bin/env bash
# The error of FP16 and BF16 gradients against the error of PyTorch doing the same casts.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" gradients "$@"
