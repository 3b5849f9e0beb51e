#!/usr/bin/env bash
# FP16 trains as well as FP32: three seeds, five epochs.
exec "$(dirname "${BASH_SOURCE[0]}")/../../parity/run_check" accuracy
