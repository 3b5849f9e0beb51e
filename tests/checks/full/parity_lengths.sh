#!/usr/bin/env bash
# Models with a size T at ten lengths in every precision against PyTorch: results, loss and gradients.
exec "$(dirname "${BASH_SOURCE[0]}")/../../parity/run_check" lengths --long
