#!/usr/bin/env bash
# The error of FP16 and BF16 gradients over 256 batches.
exec "$(dirname "${BASH_SOURCE[0]}")/../../parity/run_check" gradients --long
