#!/usr/bin/env bash
# Weights with the names and shapes of ResNet-50, BERT-base and GPT-2, at full size: loaded, tuned, and back in PyTorch.
exec "$(dirname "${BASH_SOURCE[0]}")/../../parity/run_check" published
