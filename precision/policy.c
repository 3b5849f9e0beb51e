/* policy.c: policies: the class of an op, and the built-in ones.  policy_read.c reads a file. */
#include "precision/policy.h"

#include <stdio.h>

#include "base/names.h"

/* ---- classes ----------------------------------------------------------------------------------------------------- */

const char *const policy_class_words[POLICY_CLASS_COUNT] = {
    [POLICY_LOWER] = "lower", [POLICY_F32_OUT] = "f32_out", [POLICY_F32] = "f32",       [POLICY_WIDEST] = "widest",
    [POLICY_FIRST] = "first", [POLICY_FOLLOW] = "follow",   [POLICY_BANNED] = "banned", [POLICY_ALLOW] = "allow",
    [POLICY_INFER] = "infer", [POLICY_DENY] = "deny",       [POLICY_CLEAR] = "clear",   [POLICY_NONE] = "none",
};

const char *const policy_algorithm_words[ALGORITHM_COUNT] = {
    [ALGORITHM_EAGER] = "eager", [ALGORITHM_PAINT] = "paint", [ALGORITHM_MIN_CUT] = "min_cut"};

bool policy_class_fits(PolicyClass op_class, PolicyAlgorithm algorithm) {
    return op_class == POLICY_BANNED || (op_class >= POLICY_ALLOW) == (algorithm == ALGORITHM_PAINT);
}

bool policy_class_of(const char *word, PolicyClass *out) {
    for (int i = 0; i < POLICY_CLASS_COUNT; i++)
        if (!strcmp(word, policy_class_words[i])) {
            *out = (PolicyClass)i;
            return true;
        }
    return false;
}

/* ---- names of ops ----------------------------------------------------------------------------------------------- */

/* How closely a name describes an op; 0: it does not name it. */
enum { NAMES_ALL = 1, NAMES_OP, NAMES_LAYER, NAMES_OP_OF_LAYER };

static int closeness(const char *pattern, const char *op, const char *layer) {
    if (!strcmp(pattern, "*")) return NAMES_ALL;
    size_t layer_len = layer ? strlen(layer) : 0;
    if (layer && !strncmp(pattern, layer, layer_len) && pattern[layer_len] == '.' &&
        !strcmp(pattern + layer_len + 1, op))
        return NAMES_OP_OF_LAYER;
    if (layer && !strcmp(pattern, layer)) return NAMES_LAYER;
    return strcmp(pattern, op) ? 0 : NAMES_OP;
}

bool policy_names_op(const char *pattern, const char *op, const char *layer) {
    return closeness(pattern, op, layer) > 0;
}

/* |least|: how closely at least.  NULL: no name is as close. */
static const PolicyLine *closest_line(const Policy *p, const char *op, const char *layer, int least) {
    const PolicyEntry *best = NULL;
    int best_closeness = least - 1;
    for (int i = 0; i < p->entries.len; i++) {
        int close = closeness(p->entries.data[i].name, op, layer);
        if (close <= best_closeness) continue;
        best = &p->entries.data[i];
        best_closeness = close;
    }
    return best ? best->line : NULL;
}

const PolicyLine *policy_line(const Policy *p, const char *op, const char *layer) {
    return closest_line(p, op, layer, NAMES_ALL);
}

/* The line with the op's own name, or else with the name of the op that it is the gradient or another form of. */
static const PolicyLine *line_of_form(const Policy *p, const OpInfo *info, const char *layer) {
    char name[64];
    const PolicyLine *line = closest_line(p, info->name, layer, NAMES_OP);
    if (info->flags & WRITTEN) return line;
    snprintf(name, sizeof name, "%s", info->name);
    for (char *end = strrchr(name, '_'); end && !line; end = strrchr(name, '_')) {
        *end = '\0';
        if (ir_opcode(name) != OP_NONE) line = closest_line(p, name, layer, NAMES_OP);
    }
    return line;
}

const PolicyLine *policy_line_of(const Policy *p, Opcode code, const char *layer) {
    const OpInfo *info = &ir_op_info[code];
    const PolicyLine *line = p->algorithm == ALGORITHM_PAINT ? line_of_form(p, info, layer) : NULL;
    return line ? line : policy_line(p, info->name, layer);
}

const PolicyLine *policy_line_of_gradient(const Policy *p, Opcode code, const char *layer) {
    const OpInfo *info = &ir_op_info[code];
    const PolicyLine *line = closest_line(p, info->name, layer, NAMES_OP_OF_LAYER);
    if (!line) line = line_of_form(p, info, NULL);
    return line ? line : policy_line_of(p, code, layer);
}

const char *const *policy_op_names(Arena *a, int *count) {
    const char **names = arena_array(a, const char *, OP_COUNT + ir_op_word_count);
    *count = 0;
    for (int code = OP_NONE + 1; code < OP_COUNT; code++)
        if (ir_op_info[code].flags & WRITTEN) names[(*count)++] = ir_op_info[code].name;
    for (int i = 0; i < ir_op_word_count; i++) names[(*count)++] = ir_op_words[i];
    return names;
}

static const char *const foreign_names[] = {
#define FOREIGN(name) #name,
#include "precision/foreign_ops.def"
};
enum { FOREIGN_NAMES = sizeof foreign_names / sizeof *foreign_names };

bool policy_is_foreign(const char *name) {
    for (int i = 0; i < FOREIGN_NAMES; i++)
        if (!strcmp(name, foreign_names[i])) return true;
    return false;
}

const char *policy_nearest_foreign(const char *word) { return text_nearest(word, foreign_names, FOREIGN_NAMES); }

static bool is_op_name(const char *word) {
    Opcode code = ir_opcode(word);
    if (code != OP_NONE && ir_op_info[code].flags & WRITTEN) return true;
    for (int i = 0; i < ir_op_word_count; i++)
        if (!strcmp(word, ir_op_words[i])) return true;
    return false;
}

/* |word| itself where it is a name. */
static const char *nearest_name(Arena *a, const char *word) {
    int count;
    if (is_op_name(word)) return word;
    const char *const *names = policy_op_names(a, &count);
    return text_nearest(word, names, count);
}

bool policy_knows(Arena *a, const char *pattern, const char **nearest) {
    const char *dot = strchr(pattern, '.');
    const char *first = dot ? arena_strndup(a, pattern, (size_t)(dot - pattern)) : pattern;
    const char *second = dot ? dot + 1 : NULL;
    const char *near_first = nearest_name(a, first), *near_second = second ? nearest_name(a, second) : NULL;
    bool is_first = near_first && !strcmp(near_first, first);
    if (is_first && (!second || (near_second && !strcmp(near_second, second)))) return true;
    if (!nearest) return false;
    *nearest = !second                     ? near_first
               : near_first && near_second ? arena_printf(a, "%s.%s", near_first, near_second)
                                           : NULL;
    return false;
}

/* ---- built-in policies ------------------------------------------------------------------------------------------- */

/* Up to the '@' of a version. */
static size_t base_length(const char *name) { return strcspn(name, "@"); }

static bool same_base(const char *a, const char *b) {
    return base_length(a) == base_length(b) && !strncmp(a, b, base_length(a));
}

/* The newest version has its policy's plain name for a name, and may also be named with the version. */
static bool is_named(const PolicyFile *file, const char *name) {
    const size_t base = base_length(name);
    if (!strcmp(file->name, name)) return true;
    return name[base] == '@' && *file->version && same_base(file->name, name) &&
           !strcmp(file->version, name + base + 1);
}

const Source *policy_builtin(Arena *a, const char *name) {
    for (int i = 0; i < policy_file_count; i++) {
        if (!is_named(&policy_files[i], name)) continue;
        Source *source = arena_new(a, Source);
        *source = (Source){policy_files[i].file_name, policy_files[i].text, strlen(policy_files[i].text)};
        return source;
    }
    return NULL;
}

/* By low type: the policy of a precision that names none. */
static const char *const default_policies[] = {
    [AMP_DT_F16] = "min-cast",
    [AMP_DT_BF16] = "min-cast-bf16",
    [AMP_DT_TF32] = "tf32",
    [AMP_DT_F32] = "fp32",
};

const char *policy_default(Dtype low) { return default_policies[low]; }

const char *policy_versions_beside(Arena *a, const char *name) {
    Text list;
    text_init(&list, a);
    for (int i = 0, n = 0; i < policy_file_count && strchr(name, '@'); i++)
        if (*policy_files[i].version && same_base(policy_files[i].name, name))
            text_printf(&list, "%s%s", n++ ? ", " : "", policy_files[i].version);
    return text_str(&list);
}
