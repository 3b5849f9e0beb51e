#!/usr/bin/env bash
# tests/checks/cuda_distributed.sh with 2 to 4 ranks, in every precision, and more faults.
exec bash tests/checks/cuda_distributed.sh --full
