#!/usr/bin/env bash
# Training steps from PyTorch's own state, 200 of each optimizer.
exec "$(dirname "${BASH_SOURCE[0]}")/../../parity/run_check" steps --long
