#!/usr/bin/env bash
# tests/checks/examples.sh with every program as Bazel builds it, too, and the largest networks.
exec tests/checks/examples.sh --full
