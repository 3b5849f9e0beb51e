#!/usr/bin/env bash
# tests/checks/lsp.sh by itself: a keystroke takes less than 50 ms.
AMP_ALL=1 exec "$(dirname "${BASH_SOURCE[0]}")/../lsp.sh"
