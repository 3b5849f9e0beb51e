/* words.c: the words of the text form. */
#include "ir/words.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

const char *const ir_role_names[] = {"param",  "buffer",  "moment",      "counter",
                                     "scaler", "derived", "accumulator", "staged"};
const char *const ir_kernel_kind_names[] = {"product", "tile", "row", "column", "scalar", "scatter"};
const char *const ir_layout_names[] = {"rows", "panels", "pairs", "panels_t", "pairs_t"};
const char *const ir_buffer_kind_names[] = {"temp", "flag", "input", "output", "state", "watch"};

/* Words that introduce an optional part or the next line, and so could not be told from a name there; values that are
 * no symbols. */
static const char *const reserved[] = {
    "at",    "because", "decision", "false", "file",   "from", "func",   "graph",    "if",
    "inf",   "layer",   "live",     "low",   "nan",    "of",   "origin", "override", "policy",
    "reads", "removed", "sha256",   "state", "stored", "true", "writes",
};

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool word_starts(char c) { return is_letter(c) || c == '_' || c == '.'; }

bool value_name_char(char c) { return word_starts(c) || is_digit(c); }

bool word_goes_on(char c) { return value_name_char(c) || c == '/' || c == '+' || c == '-'; }

bool word_is_reserved(const char *s) { return word_index(s, reserved, COUNT(reserved)) >= 0; }

int word_index(const char *word, const char *const *names, int count) {
    for (int i = 0; i < count; i++)
        if (!strcmp(word, names[i])) return i;
    return -1;
}

Dtype word_dtype(const char *word) {
    for (int d = AMP_DT_F32; d <= AMP_DT_BOOL; d++)
        if (!strcmp(word, amp_dtype_name((Dtype)d))) return (Dtype)d;
    return AMP_DT_NONE;
}
