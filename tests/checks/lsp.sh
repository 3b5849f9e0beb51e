#!/usr/bin/env bash
# The language server: by a client of the tests, on all examples (lsp.py), and by Neovim without a window.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc
ampc=$bin/tools/ampc

examples=$(git ls-files 'examples/*.amp')
run 0 python3 -B tests/checks/lsp.py "$ampc" $examples
told
expect 'nothing but the checks is said' '' "$err"

# ---- Neovim, with the plugin of editors/vim

# drive NVIM
drive() {
    run 0 env AMPC="$ampc" MODELS="$examples" TYPED=examples/fashion_mnist/mlp.amp HOME="$work" \
        XDG_STATE_HOME="$work" XDG_DATA_HOME="$work" XDG_CACHE_HOME="$work" \
        timeout 100 "$1" --headless -u NONE -i NONE -c 'luafile tests/checks/lsp_nvim.lua'
    out=$(grep -aE '^(pass|FAIL) ' <<<"$out")
    told
    says 'pass Neovim: the script ends'
}
if answers nvim --version; then
    drive nvim
else
    skipped "$lacking (tools/setup --editors): Neovim is no client of the language server here"
fi
if answers .editor-env/bin/nvim --version; then
    drive .editor-env/bin/nvim
    says 'pass Neovim: hints are shown'
else
    skipped "$lacking (tools/editor-env): inlay hints are not looked at"
fi

# ---- VS Code's extension, in node

if answers node --version; then
    extension=$work/vscode
    cp -r editors/vscode "$extension"
    [[ -e $extension/node_modules || ! -e .editor-env/vscode/node_modules ]] ||
        ln -s "$PWD/.editor-env/vscode/node_modules" "$extension"
    run 0 timeout 60 node tests/checks/vscode.js "$extension" "$ampc" examples/fashion_mnist/mlp.amp
    told
    says 'pass VS Code: the checks end'
    [[ -e $extension/node_modules ]] ||
        skipped 'no client library of VS Code (tools/editor-env): its extension does not start the server'
else
    skipped "$lacking: the extension for VS Code is not run"
fi
finish
