# What the check scripts share; sourced, with the repository root as the current folder.
#
#     run STATUS COMMAND...   runs it, keeps $out and $err, and counts whether it exited with STATUS
#     says TEXT...            the last command's $out$err holds each TEXT
#     expect WHAT WANTED GOT  two texts are the same
#     holds WHAT COMMAND...   COMMAND succeeds
#     finds WHAT TEXT COMMAND...
#                             planted: COMMAND, which checks what has the fault WHAT, fails and says the pattern TEXT
#     told                    counts the lines "pass WHAT" and "FAIL WHAT: why" of the last command, and prints others
#     skipped WHY             some checks cannot run on this machine
#     answers COMMAND...      whether it is here and succeeds; else $lacking says what is wrong with it
#     links COMPILER HEADER.. whether it is here and makes a program that includes them; else $lacking
#     imports PYTHON MODULE.. whether it is here and has them; else $lacking
#     lacks_nvrtc FILE        whether ampc has said there that NVRTC, or a part of it, is missing; $lacking says it
#     numpy_python            prints a Python that has NumPy; nothing where there is none
#     python_libraries        what bindings/python/ampc.py loads, from Bazel's archives
#     pkg_config_of_archives  makes `pkg-config --cflags --libs` name Bazel's archives and our headers
#     quick_models            from here on cc and gcc do not optimise: what ampc compiles computes the same, later
#     finish                  prints the count, which is the script's last line
#
# `work` is a scratch folder, `bin` where Bazel leaves its results.

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
good=0 bad=0 left_out=0
command_line=''

passed() { ((good += 1)); }

# end_of TEXT: what a failure shows of it
end_of() { if ((${#1} > 2000)); then printf '... %s' "${1: -2000}"; else printf '%s' "$1"; fi; }

# skipped WHY: checks that this machine cannot run
skipped() {
    ((left_out += 1))
    printf 'skipped: %s\n' "$1"
}

# What is installed in part is not there: a compiler without headers, a launcher without its library.
lacking=''
# tried NAME COMMAND...: what is said where NAME is here
tried() {
    local name=$1 said
    shift
    lacking="no $name here"
    command -v "$name" >/dev/null || return
    said=$(timeout 60 "$@" </dev/null 2>&1) && return
    said=$(grep -m 1 -iE 'error|cannot|not found|no such' <<<"$said" || tail -n 1 <<<"$said")
    lacking="$name is here, but does not work: ${said:0:200}"
    return 1
}
answers() { tried "$1" "$@"; }
links() {
    local language=c
    [[ $1 != *++ ]] || language=c++
    {
        (($# == 1)) || printf '#include <%s>\n' "${@:2}"
        echo 'int main(void) { return 0; }'
    } >"$work/links"
    tried "$1" "$1" -x $language "$work/links" -o "$work/links.program"
}
imports() {
    local modules=("${@:2}")
    tried "$1" "$1" -c "import $(IFS=,; echo "${modules[*]}")"
}
lacks_nvrtc() {
    local pattern="not installed|was not found|no NVRTC|cannot be used as NVIDIA's NVRTC|libnvrtc-builtins"
    lacking=$(grep -m 1 -iE "$pattern" "$1")
}

# failed WHAT [LINE...]
failed() {
    ((bad += 1))
    printf 'FAIL %s\n' "$1"
    shift
    (($# == 0)) || printf '  %s\n' "$@"
}

expect() {
    if [[ $2 == "$3" ]]; then passed; else failed "$1" "wanted: $2" "got:    $3"; fi
}

holds() {
    local what=$1
    shift
    if "$@" >/dev/null 2>&1; then passed; else failed "$what" "$*"; fi
}

finds() {
    local what=$1 text=$2 said
    shift 2
    if said=$(bad=0; "$@" 2>&1; ((bad > 0))) && [[ $said == *FAIL*$text* ]]; then
        passed
    else
        failed "planted: $what" "should fail and say: $text" "said: $(end_of "$said")"
    fi
}

run() {
    local wanted=$1 status=0
    shift
    command_line="${*//$work\//}"
    "$@" >"$work/.out" 2>"$work/.err" || status=$?
    { out=$(<"$work/.out") err=$(<"$work/.err"); } 2>/dev/null # bash warns where it drops a byte that is 0
    if ((status == wanted)); then
        passed
    else
        failed "$command_line" "wanted exit status $wanted, got $status" "$(end_of "$err")"
    fi
}

says() {
    local text
    for text in "$@"; do
        if [[ $out$err == *"$text"* ]]; then
            passed
        else
            failed "$command_line" "should say: $text" "said: $(end_of "$out$err")"
        fi
    done
}

told() {
    local line
    while read -r line; do
        case $line in
        'pass '*) passed ;;
        'FAIL '*) failed "${line#FAIL }" ;;
        *) printf '%s\n' "$line" ;;
        esac
    done <<<"$out"
}

# build TARGET...: a script cannot go on without. AMP_PROGRAMS, which tools/test sets, is where all are built already.
# A check that is run with another C compiler (CC=clang) is for what it builds itself.
bazel() { env -u CC bazel "$@"; }

build() {
    bin=${AMP_PROGRAMS:-}
    [[ -z $bin ]] || return 0
    bazel build "$@" >"$work/.build" 2>&1 || {
        cat "$work/.build"
        failed "bazel build $*"
        finish
    }
    bin=$(bazel info bazel-bin 2>/dev/null)
}

quick_models() {
    local name
    mkdir "$work/.cc"
    for name in cc gcc; do
        printf '#!/bin/sh\nexec %s "$@" -O0\n' "$(command -v $name)" >"$work/.cc/$name"
    done
    chmod +x "$work/.cc"/*
    PATH=$work/.cc:$PATH
}

numpy_python() {
    local candidate
    for candidate in python3 .torch-env/python; do
        if command -v $candidate >/dev/null && $candidate -c 'import numpy' 2>/dev/null; then
            printf '%s' $candidate
            return
        fi
    done
}

# Of the archives that Bazel leaves; what make builds is tested by install.sh.
python_libraries() {
    local library
    for library in runtime/libamp compiler/libampc; do
        holds "$library.so is linked" cc -shared -o "$work/${library#*/}.so" -Wl,--whole-archive "$bin/$library.a" \
            -Wl,--no-whole-archive -lz -lpthread -ldl -lm
    done
    export AMPC_LIBRARY_PATH=$work
}

pkg_config_of_archives() {
    mkdir -p "$work/programs"
    cat >"$work/programs/pkg-config" <<PROGRAM
#!/bin/sh
case " \$* " in *' ampc '*) echo -I$PWD/compiler/include $bin/compiler/libampc.a -lz ;; esac
echo -I$PWD/runtime/include -I$PWD/base/include $bin/runtime/libamp.a -lpthread -ldl -lm
PROGRAM
    chmod +x "$work/programs/pkg-config"
    PATH=$work/programs:$PATH
}

finish() {
    printf '%d passed, %d failed' "$good" "$bad"
    ((left_out == 0)) || printf ', %d skipped' "$left_out"
    printf '\n'
    ((bad == 0))
    exit
}
