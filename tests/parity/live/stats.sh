#!/usr/bin/env bash
# The counts of --stats are PyTorch's and NumPy's of the same tensors.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" stats "$@"
