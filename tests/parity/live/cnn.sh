#!/usr/bin/env bash
# Training steps of the convolutional example from PyTorch's own state: loss, update and running statistics against PyTorch's.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" cnn "$@"
