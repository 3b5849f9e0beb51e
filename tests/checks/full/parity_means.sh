#!/usr/bin/env bash
# Losses and metrics of several batches, micro-batches and ranks, against PyTorch on all samples at once: 200 models.
exec "$(dirname "${BASH_SOURCE[0]}")/../../parity/run_check" means --long
