#!/usr/bin/env bash
# tests/checks/sass.sh, every model for every architecture.
AMP_ALL=1 exec "$(dirname "${BASH_SOURCE[0]}")/../sass.sh"
