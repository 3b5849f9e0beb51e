#!/usr/bin/env bash
# tests/checks/distributed.sh with 1 to 4 ranks, in every precision, and everything over each MPI.
exec bash tests/checks/distributed.sh --full
