#!/usr/bin/env bash
# The error of the FP16 and BF16 gradients of the models of examples/ against PyTorch doing the same casts.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" example_gradients "$@"
