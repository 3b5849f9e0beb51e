#!/usr/bin/env bash
# Weights that PyTorch saved under published names: loaded, fine-tuned, and back with strict=True.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" weights "$@"
