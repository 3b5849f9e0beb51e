# Text files as constants of one C file:  awk -v HEADER=codegen/cpu/cpu.h -f embed.awk NAME=cpu_abi a.h b.h NAME=cpu_prelude c.h
# Includes of the project's own headers are left out: the files stand one behind the other.
BEGIN { printf "/* Made by cpu/embed.awk. */\n#include \"%s\"\n", HEADER ? HEADER : "codegen/cpu/cpu.h" }
FNR == 1 && NAME != last { if (last != "") print ";"; printf "\nconst char %s[] =\n", NAME; last = NAME }
/^#include "/ { next }
{ gsub(/["\\]/, "\\\\&"); printf "    \"%s\\n\"\n", $0 }
END { print ";" }
