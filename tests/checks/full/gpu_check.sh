#!/usr/bin/env bash
# dist/ as it goes to a machine with a GPU, models and data included.
exec tests/checks/gpu_check.sh --whole
