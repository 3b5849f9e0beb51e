#!/usr/bin/env bash
# tests/checks/distributed_files.sh with 3 ranks, too, and PyTorch's launcher.
exec tests/checks/distributed_files.sh --full
