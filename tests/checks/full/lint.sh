#!/usr/bin/env bash
# tests/checks/lint.sh, with the large examples under one policy of each kind.
exec tests/checks/lint.sh --full
