#!/usr/bin/env bash
# The error of the FP16 and BF16 gradients of the examples over 256 batches.
exec "$(dirname "${BASH_SOURCE[0]}")/../../parity/run_check" example_gradients --long
