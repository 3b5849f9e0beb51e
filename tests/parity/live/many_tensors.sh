#!/usr/bin/env bash
# A model of about 500 trained tensors, compiled and trained, against PyTorch.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" many_tensors "$@"
