#!/usr/bin/env bash
# Trainings with schedules, groups, clipping and micro-batches, and every schedule, against PyTorch.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" training "$@"
