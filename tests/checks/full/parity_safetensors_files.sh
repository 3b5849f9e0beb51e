#!/usr/bin/env bash
# A million mutated safetensors files beside the reference library.
exec "$(dirname "${BASH_SOURCE[0]}")/../../parity/run_check" safetensors_files --long
