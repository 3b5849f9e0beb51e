#!/usr/bin/env bash
# Models with a size T at ten lengths against PyTorch: results, loss and gradients.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" lengths "$@"
