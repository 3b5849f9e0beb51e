#!/usr/bin/env bash
# Tables of which a step updates the rows that it has read, against PyTorch's optimizers of sparse gradients.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" lazy "$@"
