#!/bin/sh
# Writes C with the text of policy files (see ../policy.h) to standard output.
# usage: embed.sh FILE.policy...
set -eu

quoted() { sed -e 's/[\\"]/\\&/g' -e 's/^/    "/' -e 's/$/\\n"/' "$1"; }

echo '#include "precision/policy.h"'
echo 'const PolicyFile policy_files[] = {'
for file in "$@"; do
    name=$(basename "$file" .policy)
    version=$(sed -n 's/^version *\([^ #]*\).*/\1/p' "$file")
    printf '    { "%s", "%s.policy", "%s",\n' "$name" "$name" "$version"
    quoted "$file"
    echo '    },'
done
echo '};'
echo "const int policy_file_count = $#;"
