#!/usr/bin/env bash
# many_tensors.sh with every count of trained tensors.
exec tests/checks/many_tensors.sh --full
