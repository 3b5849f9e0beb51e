#!/usr/bin/env bash
# Eight models of about 500 and 1,000 trained tensors, compiled and trained, against PyTorch.
exec "$(dirname "${BASH_SOURCE[0]}")/../../parity/run_check" many_tensors --long
