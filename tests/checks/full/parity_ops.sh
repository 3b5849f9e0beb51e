#!/usr/bin/env bash
# The gradients of every op in every precision against PyTorch's.
exec "$(dirname "${BASH_SOURCE[0]}")/../../parity/run_check" ops "$@"
