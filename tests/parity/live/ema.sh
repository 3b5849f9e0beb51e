#!/usr/bin/env bash
# Averages of weights against torch.optim.swa_utils.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" ema "$@"
