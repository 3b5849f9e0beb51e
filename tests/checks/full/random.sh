#!/usr/bin/env bash
# 10,000 random programs: tests/random/README.md.
COUNT=10000 exec tests/checks/random.sh
