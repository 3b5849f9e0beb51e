#!/usr/bin/env bash
# The step of each example moves no more bytes under min-cast than under torch-fp16, nor in bfloat16.
exec bench/policies --check
