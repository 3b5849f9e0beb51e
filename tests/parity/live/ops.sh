#!/usr/bin/env bash
# Every op that has a gradient, through the whole pipeline, against PyTorch in float64.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" ops "$@"
