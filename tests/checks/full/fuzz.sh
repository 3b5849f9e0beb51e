#!/usr/bin/env bash
# Each fuzz target for ten minutes, three at a time.
exec tests/fuzz/run 600
