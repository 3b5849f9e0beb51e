#!/usr/bin/env bash
# editors/: each syntax has the words of the lexer, and files are what their editors can read.
set -uo pipefail
source tests/checks/checks.bash

# words TABLE: of one of the lexer's tables in frontend/parse.c
words() {
    sed -n "/^static const Word $1\[\]/,/^};/p" frontend/parse.c | grep -oE '\{"[A-Za-z]+"' | tr -d '{"' | sort
}
reserved=$(words reserved) contextual=$(words contextual)
expect 'the lexer has words' '14 19' "$(wc -w <<<"$reserved" | tr -d ' ') $(wc -w <<<"$contextual" | tr -d ' ')"

# declares FILE LINES: the words that begin a declaration or statement, among what is in those lines of a file
declares() {
    expect "$1 has the words that begin a line" "$contextual" \
        "$(grep -E "$2" "$1" | grep -oE '\b(amp|include)\b.*require' | grep -oE '[a-z]+' | sort)"
}
declares editors/vscode/syntaxes/amp.tmLanguage.json 'amp\|include\|const'
declares editors/vim/syntax/amp.vim 'ampDeclaration /'
expect 'ampc-mode.el has the words that begin a line' "$contextual" \
    "$(sed -n '/defconst ampc-declarations/,/))/p' editors/emacs/ampc-mode.el | grep -oE '"[a-z]+"' | tr -d '"' | sort)"
for file in editors/vscode/syntaxes/amp.tmLanguage.json editors/vim/syntax/amp.vim editors/emacs/ampc-mode.el; do
    for word in $reserved sharing; do
        holds "$file has the word $word" grep -qw -- "$word" "$file"
    done
done

# ---- VS Code

holds 'the files of VS Code are JSON' python3 - <<'PYTHON'
import json, pathlib, re
folder = pathlib.Path("editors/vscode")
package = json.loads((folder / "package.json").read_text())
# what VS Code refuses, or passes over without a word
assert re.fullmatch(r"[a-z0-9][a-z0-9-]*", package["name"]) and package["publisher"] and package["license"]
assert re.fullmatch(r"\d+\.\d+\.\d+", package["version"])
minor = int(re.fullmatch(r"\^1\.(\d+)\.0", package["engines"]["vscode"])[1])
assert minor >= 67, "vscode-languageclient 8.1 wants 1.67"
assert package["dependencies"] == {"vscode-languageclient": "^8.1.0"}
assert set(package["contributes"]) == {"languages", "grammars", "configuration"}
languages = [part["id"] for part in package["contributes"]["languages"]]
assert package["activationEvents"] == [f"onLanguage:{language}" for language in languages]
assert [part["language"] for part in package["contributes"]["grammars"]] == languages
for name, setting in package["contributes"]["configuration"]["properties"].items():
    assert name.startswith("ampc.") and setting["description"]
    assert {"string": str, "boolean": bool}[setting["type"]] == type(setting["default"])
for part in package["contributes"]["languages"]:
    json.loads((folder / part["configuration"]).read_text())
for part in package["contributes"]["grammars"]:
    grammar = json.loads((folder / part["path"]).read_text())
    assert grammar["scopeName"] == part["scopeName"]
    for pattern in grammar["patterns"]:
        re.compile(pattern.get("match") or pattern["begin"])
assert (folder / package["main"]).exists()
def first(line):
    found = [(m.start(), p["name"]) for p in grammar["patterns"]
             if "name" in p and (m := re.search(p.get("match") or p["begin"], line))]
    return min(found)[1]
assert first("    param w: f32[4] = zeros()") == "keyword.other.declaration.amp"
assert first("    loss = 1.0") == "keyword.operator.amp", first("    loss = 1.0")
assert first("# h = relu(x)") == "comment.line.number-sign.amp"
PYTHON

# ---- Vim and Emacs

if answers nvim --version; then
    cp examples/fashion_mnist/mlp.amp "$work/m.amp"
    run 0 env HOME="$work" XDG_CONFIG_HOME="$work" timeout 20 nvim --headless -u NONE -i NONE \
        -c 'set runtimepath+=editors/vim | filetype plugin on | syntax on' -c "edit $work/m.amp" \
        -c 'echo &filetype b:current_syntax &commentstring' -c 'qall!'
    says 'amp amp # %s'
else
    skipped "$lacking (tools/setup --editors): Neovim does not read editors/vim"
fi
if answers emacs --version; then
    run 0 timeout 60 emacs --batch -Q -L editors/emacs --eval '(setq byte-compile-error-on-warn t)' \
        --eval "(setq byte-compile-dest-file-function (lambda (_) \"$work/ampc-mode.elc\"))" \
        -f batch-byte-compile editors/emacs/ampc-mode.el
    run 0 timeout 60 emacs --batch -Q -L editors/emacs -l ampc-mode examples/fashion_mnist/mlp.amp \
        --eval '(progn (font-lock-ensure) (goto-char (point-min)) (search-forward "model ")
            (princ (list major-mode (get-text-property (match-beginning 0) (quote face)))))'
    says '(ampc-mode font-lock-keyword-face)'
else
    skipped "$lacking: Emacs does not read editors/emacs"
fi
finish
