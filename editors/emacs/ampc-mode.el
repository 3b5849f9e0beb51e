;;; ampc-mode.el --- models of ampc -*- lexical-binding: t; -*-

;;; Commentary:
;; A major mode for .amp files.  M-x eglot starts `ampc lsp' in it.

;;; Code:

(defvar eglot-server-programs)

(defvar ampc-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?# "<" table)
    (modify-syntax-entry ?\n ">" table)
    (modify-syntax-entry ?_ "w" table)
    (modify-syntax-entry ?\" "\"" table)
    table))

(defconst ampc-declarations
  '("amp" "include" "const" "size" "inline" "block" "model" "train" "precision" "param" "state" "update" "init" "input"
    "loss" "metric" "group" "checkpoint" "require"))

(defconst ampc-keywords
  '("repeat" "in" "if" "else" "return" "as" "because" "sharing" "and" "or" "not"))

(defconst ampc-constants '("none" "true" "false" "N" "inf"))

(defconst ampc-types
  '("f32" "f16" "bf16" "tf32" "i32" "i64" "fp32" "fp16" "bool" "int" "float" "pair" "dims" "shape" "symbol" "string"))

(defvar ampc-font-lock-keywords
  `((,(concat "^\\s-*\\(" (regexp-opt ampc-declarations) "\\)\\_>\\s-*\\([^=,:. \t]\\|$\\)") 1 font-lock-keyword-face)
    ("^\\s-*inline\\s-+\\(block\\)\\_>" 1 font-lock-keyword-face)
    (,(regexp-opt ampc-keywords 'words) . font-lock-keyword-face)
    (,(regexp-opt ampc-constants 'words) . font-lock-constant-face)
    (,(regexp-opt ampc-types 'words) . font-lock-type-face)
    ("\\<\\([A-Za-z_][A-Za-z0-9_]*\\)\\s-*(" 1 font-lock-function-name-face)))

(defun ampc-indent-line ()
  "Indent by four for each bracket that is open."
  (interactive)
  (let ((depth (save-excursion
                 (back-to-indentation)
                 (- (car (syntax-ppss (point))) (if (looking-at "[])}]") 1 0)))))
    (save-excursion (indent-line-to (max 0 (* 4 depth))))
    (when (< (current-column) (current-indentation)) (back-to-indentation))))

;;;###autoload
(define-derived-mode ampc-mode prog-mode "ampc"
  "Major mode for models of ampc."
  (setq-local comment-start "# ")
  (setq-local font-lock-defaults '(ampc-font-lock-keywords))
  (setq-local indent-line-function #'ampc-indent-line))

;;;###autoload
(add-to-list 'auto-mode-alist '("\\.amp\\'" . ampc-mode))

(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs '(ampc-mode . ("ampc" "lsp"))))

(provide 'ampc-mode)
;;; ampc-mode.el ends here
