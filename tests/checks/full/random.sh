#!/usr/bin/env bash
# 10,000 random programs, and 20,000 with a T: tests/random/README.md.
COUNT=10000 LENGTHS=20000 exec tests/checks/random.sh
