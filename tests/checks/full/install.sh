#!/usr/bin/env bash
# Installing as a stranger does it: on an empty Debian 12 by packages and by tools/install of a release archive, used
# from CMake, pkg-config and make with gcc and with clang; from Bazel outside; the Makefile's optimised builds by both
# compilers. Needs root, debootstrap and a network for the first part.
#
# DEBIAN_MIRROR: where Debian comes from (default: http://deb.debian.org/debian).
set -uo pipefail
source tests/checks/checks.bash
readonly LIMIT=180 # seconds from an empty system with a mirror to a network that was trained

# ---- both compilers, optimised -------------------------------------------------------------------

for cc in ${COMPILERS-gcc clang}; do
    if ! links $cc stdio.h; then
        skipped "$lacking"
        continue
    fi
    # rows of tables leave out what is zero in them, which clang remarks
    run 0 env CC=$cc CFLAGS='-O2 -Wall -Wextra -Wno-missing-field-initializers -Werror' tests/checks/install.sh
    says ' 0 failed'
done

# ---- release archive and packages ----------------------------------------------------------------

run 0 tools/make-release
archive=$out
cp "$archive" "$work/first.tar.gz"
run 0 tools/make-release
holds 'the archive is the same bytes again' cmp "$archive" "$work/first.tar.gz"
run 0 tools/make-deb
packages=(out/deb/*.deb)
if command -v lintian >/dev/null; then
    tags=$(lintian --display-info --tag-display-limit 0 out/deb/*.changes 2>/dev/null)
    expect 'lintian knows of nothing but the lack of a place to watch' \
        'I: ampc source: debian-watch-file-is-missing' "$tags"
else
    skipped 'no lintian here'
fi

# ---- Bazel from outside --------------------------------------------------------------------------

mkdir "$work/bazel"
run 0 tools/install --prefix "$work/prefix"
python3 tests/checks/page_blocks.py docs/guides/cmake.md "$work/bazel"
(cd "$work/bazel" && for block in [0-9]*; do if grep -q '^cat >' "$block"; then bash "$block"; fi; done)
cat >"$work/bazel/WORKSPACE" <<STARLARK
local_repository(name = "ampc", path = "$work/prefix/share/ampc/bazel")
local_repository(name = "rules_cc", path = "$PWD/third_party/rules_cc")
local_repository(name = "remote_coverage_tools", path = "$PWD/third_party/remote_coverage_tools")
local_repository(name = "rules_java", path = "/usr/share/bazel/rules/java")
STARLARK
cat >"$work/bazel/BUILD" <<'STARLARK'
load("@ampc//:amp.bzl", "amp_model", "amp_static_model")

amp_model(
    name = "model",
    src = "rings.amp",
    includes = ["part.amp"],
    precision = "fp16",
    defines = {"WIDTH": "16"},
)

cc_binary(
    name = "rings",
    srcs = ["main.c"],
    copts = ['-DAMP_MODEL_RINGS=\\"model.so\\"'],
    data = [":model"],
    deps = ["@ampc//:amp"],
)

[amp_static_model(
    name = "net_" + emit,
    src = "rings.amp",
    includes = ["part.amp"],
    symbol = "net",
    emit = emit,
    options = ["--target", "cpu"],
) for emit in ["o", "c"]]

[cc_binary(
    name = "linked_" + kind + "_" + emit,
    srcs = ["linked.c"],
    linkstatic = kind == "static",
    deps = [":net_" + emit, "@ampc//:amp"],
) for emit in ["o", "c"] for kind in ["static", "dynamic"]]
STARLARK
sed -e 's/^int main/AMP_STATIC_MODEL(net);\n\n&/' -e 's/amp_model_load(AMP_MODEL_RINGS, /amp_model_from_static(net, /' \
    "$work/bazel/main.c" >"$work/bazel/linked.c"
printf 'amp 1\nblock activate(x) -> y {\n    y = relu(x)\n}\n' >"$work/bazel/part.amp"
sed -i 's/^amp 1/&\ninclude "part.amp"\nconst WIDTH = 4/; s/out = 32/out = WIDTH/; s/relu(/activate(/' \
    "$work/bazel/rings.amp"
outside() { (cd "$work/bazel" && bazel --output_user_root="$work/cache" "$@"); }
run 0 outside build //:rings
run 0 bash -c 'cd "$1/bazel-bin/rings.runfiles/__main__" && ./rings' - "$work/bazel"
says 'accuracy 1.00'
for mode in fastbuild opt; do
    run 0 outside build -c $mode //:all
    for program in linked_{static,dynamic}_{o,c}; do
        run 0 bash -c 'cd "$1" && "bazel-bin/$2"' - "$work/bazel" $program
        says 'accuracy 1.00'
    done
done
sed -i 's/relu/tanh/' "$work/bazel/part.amp"
models=("$work"/bazel/bazel-bin/{model.so,net_o_compiled.o,net_c_compiled.c})
before=$(sha256sum "${models[@]}")
run 0 outside build -c opt //:all
expect 'an include that has changed makes other models' 3 \
    "$(comm -13 <(sort <<<"$before") <(sha256sum "${models[@]}" | sort) | wc -l)"
outside shutdown
chmod -R u+w "$work/cache"

# ---- an empty Debian -----------------------------------------------------------------------------

root=$work/debian
in_root() {
    chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        HOME=/srv DEBIAN_FRONTEND=noninteractive "$@"
}
install_packages() { in_root apt-get -qq -o Dpkg::Use-Pty=0 install -y --no-install-recommends "$@"; }
empty_debian() {
    rm -rf --one-file-system "$root"
    debootstrap --variant=minbase bookworm "$root" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" &&
        cp /etc/resolv.conf "$root/etc/" && mount -t proc proc "$root/proc"
}
leave_debian() { umount "$root/proc"; }
# follow PAGE: in the empty system, word by word
follow() {
    local blocks=$root/srv/blocks block
    mkdir -p "$blocks" "$root/srv/project"
    python3 tests/checks/page_blocks.py "$1" "$blocks"
    for block in "$blocks"/*; do
        run 0 in_root bash -c 'cd /srv/project && set -euo pipefail && source "$1"' - "/srv/blocks/${block##*/}"
        [[ $(<"$block") != *./build/rings ]] || says 'accuracy 1.00'
    done
}

if [[ $(id -u) != 0 ]] || ! command -v debootstrap >/dev/null; then
    skipped 'no root or no debootstrap here: nothing was installed on an empty Debian'
    finish
fi
run 0 empty_debian
trap 'leave_debian 2>/dev/null; rm -rf --one-file-system "$work"' EXIT
start=$SECONDS
cp "${packages[@]}" "$root/srv/"
run 0 in_root apt-get -qq update
rm "$root"/srv/*-dbgsym_*.deb
run 0 install_packages cmake make gcc libc6-dev $(cd "$root" && printf '/%s\n' srv/*.deb)
follow docs/guides/cmake.md
expect "from packages to a trained network in less than $LIMIT s" 1 "$((SECONDS - start < LIMIT))"
printf 'packages, CMake: %d s\n' "$((SECONDS - start))"
run 0 install_packages clang pkg-config
cat >"$root/srv/project/Makefile" <<'MAKE'
all: rings rings.so
rings: main.c
	clang -DAMP_MODEL_RINGS='"./rings.so"' $< $$(pkg-config --cflags --libs amp) -lm -o $@
rings.so: rings.amp
	ampc $< -o $@ --cc clang -MD
-include rings.so.d
MAKE
run 0 in_root make -C /srv/project
run 0 in_root bash -c 'cd /srv/project && ./rings'
says 'accuracy 1.00'
run 0 in_root bash -c 'man_pages=$(dpkg -L ampc | grep -c man1/); test "$man_pages" -ge 2'
run 0 leave_debian

run 0 empty_debian
start=$SECONDS
tar -C "$root/srv" -xf "$archive"
run 0 in_root apt-get -qq update
run 0 in_root bash -c 'cd /srv/ampc-* && tools/install'
run 0 install_packages cmake
follow docs/guides/cmake.md
expect "from the archive to a trained network in less than $LIMIT s" 1 "$((SECONDS - start < LIMIT))"
printf 'archive, tools/install, CMake: %d s\n' "$((SECONDS - start))"
run 0 in_root bash -c 'cd /srv/ampc-* && tools/install --uninstall'
expect 'nothing is left' '' "$(cd "$root" && find usr/local -type f)"
run 0 leave_debian
finish
