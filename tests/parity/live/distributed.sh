#!/usr/bin/env bash
# Two ranks over MPI beside DistributedDataParallel: losses, weights, the loss scale where one rank overflows.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" distributed "$@"
