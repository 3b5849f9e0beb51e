#!/usr/bin/env bash
# 10,000 random graphs, painted by us and by tests/parity/oracle/tf_painting.py.
COUNT=10000 exec tests/checks/paint.sh
