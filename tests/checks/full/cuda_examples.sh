#!/usr/bin/env bash
# tests/checks/cuda_examples.sh of every model of examples/.
set -uo pipefail
cases=()
for name in autoencoder bert bytes gpt2 cnn gan llama lstm tabular resnet18; do
    for precision in fp16 bf16 tf32 fp32; do cases+=("$name:$precision"); done
done
for name in unet unet-bilinear resnet50 resnet101; do cases+=("$name:fp32"); done
exec "$(dirname "${BASH_SOURCE[0]}")/../cuda_examples.sh" "${cases[@]}"
