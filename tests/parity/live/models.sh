#!/usr/bin/env bash
# Many small models: loss and gradients against PyTorch in float64.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" models "$@"
