#!/usr/bin/env bash
# tools/replay reports a planted difference. It compares folders made here; no other revision is built.
set -uo pipefail
source tests/checks/checks.bash

replay() { run "$1" tools/replay --compare "$work/old" "$work/new" "${@:2}"; }

for side in old new; do
    for name in a b; do
        mkdir -p "$work/$side/models/$name.amp@fp16"
        printf 'module m\n%%1  = relu(%%0) : f32[N, 4]\n' >"$work/$side/models/$name.amp@fp16/c.ir.lower"
        printf 'int x;\n' >"$work/$side/models/$name.amp@fp16/c.code"
        printf 'exit status 0\n' >"$work/$side/models/$name.amp@fp16/c.messages"
    done
done

replay 0
says '2 inputs, 6 files compared, 0 differ, 0 differ as allowed'

b=models/b.amp@fp16
printf 'module m\n%%1 = rectify(%%0) : f32[N, 4]\n' >"$work/new/$b/c.ir.lower"
printf 'exit status 1\n' >"$work/new/$b/c.messages"
rm "$work/new/$b/c.code"
replay 1
says '2 inputs, 6 files compared, 3 differ' 'c.ir.lower: 1 differ, the first models/b.amp@fp16' 'c.messages: 1 differ' "$b:c." \
    'only in the old outputs'

printf '%s\n' "*:c.code    # no code any more" '' '*/b.amp*:c.messages # refused' >"$work/allow"
replay 1 --allow "$work/allow"
says '6 files compared, 1 differ, 2 differ as allowed' '1 files  *:c.code  # no code any more' '-%1  = relu(%0)' '+%1 = rectify(%0)'

printf 'rename relu rectify # as the language has it\n' >>"$work/allow"
replay 0 --allow "$work/allow"
says '0 differ, 3 differ as allowed' '1 files  rename relu rectify  # as the language has it'

printf '%s\n' 'x/*:* # matches nothing' >>"$work/allow"
replay 1 --allow "$work/allow"
says '0 differ, 3 differ as allowed' 'allowed, but nothing differs so: x/*:*'

printf '*:c.code\n' >"$work/allow"
replay 2 --allow "$work/allow"
says 'allow:1: write GLOB:GLOB # reason'

run 2 tools/replay
says 'give a revision'
run 2 tools/replay no-such-revision
says 'no-such-revision'

# A comment of emitted code, on a line of its own or in a string that holds CUDA code, is of the kind NAME.comments.
run 0 python3 -c '
import runpy
tool = runpy.run_path("tools/replay")
text = b"""int a; /* one */
#ifdef AMP_TABLES
const char s[] = "//";
    "/* two */\\n"
    "b = \\"x\\"; // three\\n";
"""
print(tool["parts_of"]({"c.raw": b"\n" + text}))
'
says "'c.code': b'int a;'" "'c.comments': b'/* one *//* two */\\n// three'" 'const char s[] = "//";\nb = "x";'

# The functions before the kernels are of the kind NAME.prelude.
run 0 python3 -c '
import runpy
tool = runpy.run_path("tools/replay")
c = b"int abi;\nextern \"C\" {\n#define OPTIONAL_OPERAND(T) T\nint function;\n/* ---- kernels ---- */\nint kernel;\n"
cuda = b"int function;\n\nextern \"C\" int kernel;\n"
print(tool["parts_of"]({"c.raw": c, "cu.raw": cuda}))
'
says "'c.code': b'int abi;\nextern \"C\" {\n#define OPTIONAL_OPERAND(T) T\nint kernel;'" "'c.prelude': b'int function;'" \
    "'cu.code': b'extern \"C\" int kernel;'" "'cu.prelude': b'int function;'"
finish
