#!/usr/bin/env bash
# Sums of rows of 10 to 10^6 numbers, what is made of them, and the gradients, against float64, beside PyTorch.
exec "$(dirname "${BASH_SOURCE[0]}")/../../parity/run_check" sums --long
