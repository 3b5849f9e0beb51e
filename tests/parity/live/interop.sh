#!/usr/bin/env bash
# safetensors files in both directions.
exec "$(dirname "${BASH_SOURCE[0]}")/../run_check" interop "$@"
