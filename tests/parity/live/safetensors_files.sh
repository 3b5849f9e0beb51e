#!/usr/bin/env bash
# Mutated safetensors files: read or refused as the reference library does.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" safetensors_files "$@"
