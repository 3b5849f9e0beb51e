#!/bin/sh
# Writes C with the text of policy files (see ../policy_files.h) to standard output.
# usage: embed.sh FILE.policy...
set -eu

quoted() { sed -e 's/[\\"]/\\&/g' -e 's/^/    "/' -e 's/$/\\n"/' "$1"; }

echo '#include "passes/precision/policy_files.h"'
echo 'const PolicyFile policy_files[] = {'
for file in "$@"; do
    name=$(basename "$file" .policy)
    printf '    { "%s", "%s.policy",\n' "$name" "$name"
    quoted "$file"
    echo '    },'
done
echo '};'
echo "const int policy_file_count = $#;"
