#!/bin/sh
# Writes C with the text of the layer library to standard output, line by line.
# usage: embed_prelude.sh prelude.amp
set -eu

echo '#include "frontend/frontend.h"'
echo
echo 'const char frontend_prelude_text[] ='
sed -e 's/\\/\\\\/g; s/"/\\"/g; s/^/    "/; s/$/\\n"/' "$1"
echo '    ;'
