#!/usr/bin/env bash
# tests/checks/policies.sh, with every line of every policy that decides an op of an example changed, one by one.
AMP_ALL=1 exec "$(dirname "${BASH_SOURCE[0]}")/../policies.sh"
