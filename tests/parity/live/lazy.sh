#!/usr/bin/env bash
# Tables whose rows that a step has read are updated, against PyTorch's optimizers of sparse gradients.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" lazy "$@"
