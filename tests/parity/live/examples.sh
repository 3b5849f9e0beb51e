#!/usr/bin/env bash
# The models of examples/ at small sizes against PyTorch: results, gradients, training steps.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" examples "$@"
