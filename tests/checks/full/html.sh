#!/usr/bin/env bash
# tests/checks/html.sh, every example, and a model of 10,000 ops.
AMP_ALL=1 exec "$(dirname "${BASH_SOURCE[0]}")/../html.sh"
