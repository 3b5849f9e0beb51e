#!/usr/bin/env bash
# Painting beside TensorFlow's own decisions, and on 300 random graphs beside tests/parity/oracle/tf_painting.py.
# COUNT=10000, as full/paint.sh has it, takes as many; FIRST=SEED takes others.
set -uo pipefail
source tests/checks/checks.bash
count=${COUNT:-300} first=${FIRST:-1}
build //tests/parity:paint_vectors
vectors=$bin/tests/parity/paint_vectors oracle=tests/parity/oracle decisions=tests/parity/oracle/tf_amp.jsonl

# ---- TensorFlow's decisions ----------------------------------------------------------------------

run 0 "$vectors" $decisions
says '120 graphs agree, 0 differ: 3428 nodes, 783 casts, 0 differences'
run 0 $oracle/tf_painting.py $decisions
says '120 graphs, 3428 nodes, 783 casts: 0 differences'

# a decision that is not TensorFlow's is told by both
sed '0,/"changed":{"T":"low"},/s///' $decisions >"$work/flipped.jsonl"
run 1 "$vectors" "$work/flipped.jsonl"
says 'matmul_bias_relu: node mm (MatMul): low types: expected nothing, ours T' '118 graphs agree, 2 differ'
run 1 $oracle/tf_painting.py "$work/flipped.jsonl"
says "matmul_bias_relu: node mm (MatMul): changed: expected [], ours ['T']" ': 2 differences'

# ---- wrong arguments, bad files ------------------------------------------------------------------

for arguments in '' '--help' "$decisions -x"; do
    run 2 "$vectors" $arguments
    says 'usage: paint_vectors FILE.jsonl...'
done
run 2 "$vectors" "$work/none.jsonl"
says none.jsonl
head -c 200000 $decisions >"$work/cut.jsonl"
run 2 "$vectors" "$work/cut.jsonl"
says "cut.jsonl:$(wc -l <"$work/cut.jsonl" | awk '{ print $1 + 1 }'): byte " 'is the file cut off?'
grep -v '"node":"mm",' $decisions >"$work/lost.jsonl"
run 2 "$vectors" "$work/lost.jsonl"
says 'lost.jsonl:6: node mm_bias (BiasAdd) reads mm:0, but its graph has no such node; is a row missing'

# ---- random graphs -------------------------------------------------------------------------------

# random_graphs FIRST COUNT: one file of them
random_graphs() {
    local agree differ
    tests/parity/random_paint_graphs.py --first "$1" --count "$2" >"$work/random.jsonl"
    "$vectors" "$work/random.jsonl" >"$work/said" 2>&1
    read -r agree _ _ differ _ < <(tail -n 1 "$work/said")
    if [[ $agree =~ ^[0-9]+$ && $((agree + differ)) == "$2" ]]; then
        ((good += agree, bad += differ))
        grep -v ' graphs agree, ' "$work/said" | head -20
    else
        failed "random graphs from seed $1 on" "$(tail -n 3 "$work/said")"
    fi
}
for ((seed = first; seed < first + count; seed += 500)); do
    random_graphs $seed $((first + count - seed < 500 ? first + count - seed : 500))
done

# paint of every pass is in them
marks=$(grep -oE '(UN)?ALLOW@[0-9]|DENY@[0-9]' "$work/random.jsonl" | sort -u | tr '\n' ' ')
expect 'paint in random graphs' 'ALLOW@1 ALLOW@3 ALLOW@4 ALLOW@5 ALLOW@7 ALLOW@8 DENY@2 UNALLOW@6 UNALLOW@7 ' "$marks"
# and one that says otherwise is found
awk '!done && sub(/ALLOW@3/, "ALLOW@5") { done = 1 } 1' "$work/random.jsonl" >"$work/repainted.jsonl"
run 1 "$vectors" "$work/repainted.jsonl"
says ': expected ALLOW@5, ours ALLOW@3' '1 differences'
finish
