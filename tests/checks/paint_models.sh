#!/usr/bin/env bash
# The dtype of every op of MLP, CNNs, ResNet-18 and a small BERT under tf-fp16 and tf-bf16, forward and backward, beside
# TensorFlow's decisions for their twins, which are committed; full/parity_tensorflow.sh makes them anew.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc
answers=tests/parity/oracle

# painted ANSWER POLICY: the step of the answer's model, into $work/step.ir
painted() {
    local model
    model=$(sed -n 's/^"model": "\(.*\)",$/\1/p' "$answers/tf_model_$1.json")
    run 0 "$bin/tools/ampc" "$model" --policy "$2" --dump-ir=paint
    cp "$work/.out" "$work/step.ir"
}

# compared STATUS ANSWER: with what is committed
compared() { run "$1" python3 -B tests/parity/compare_tensorflow.py "$work/step.ir" "$answers/tf_model_$2.json"; }

for answer in mlp cnn wide_cnn resnet18 bert_small ops; do
    for policy in tf-fp16 tf-bf16; do
        painted $answer $policy
        compared 0 $answer
    done
done

# ---- planted faults: an op on another list is told by its path ---------------------------------------------------

# planted ANSWER OP CLASS TEXT: a copy of tf-fp16 with the op on the list CLASS
planted() {
    sed "s/, $2\\b//" precision/policies/tf-fp16.policy >"$work/planted.policy"
    printf 'op %s %s\n' "$2" "$3" >>"$work/planted.policy"
    painted "$1" "$work/planted.policy"
    compared 1 "$1"
    says "$4"
}
planted mlp relu deny "relu: relu is f32, TensorFlow's Relu f16"
planted cnn batch_norm none "bn1.batch_norm.grad.input: batch_norm_grad is f32, TensorFlow's FusedBatchNormGradV3 f16"
planted bert_small gelu_grad infer "bert.encoder.layer.0.gelu.grad: gelu_grad is f16, TensorFlow's AddN f32"

# a model that is not the twin's
painted cnn tf-fp16
compared 1 wide_cnn
says 'bn1.batch_norm: TensorFlow has no batch_norm there' 'fc1.linear: no op of ours is TensorFlow'
finish
