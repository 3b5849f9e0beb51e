#!/bin/sh
# Writes C with the text of policy files and the list of op names (see ../policy_files.h) to standard output.
# usage: embed.sh op_names.txt FILE.policy...
set -eu
names=$1
shift

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
echo 'const char *const policy_op_names[] = {'
sed -n 's/^\([a-z][a-z0-9_]*\)$/    "\1",/p' "$names"
echo '};'
echo 'const int policy_op_name_count = sizeof policy_op_names / sizeof *policy_op_names;'
