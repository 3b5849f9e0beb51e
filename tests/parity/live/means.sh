#!/usr/bin/env bash
# Losses and metrics of several batches, micro-batches and ranks, against PyTorch on all samples at once.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" means "$@"
