/* policy.c: questions to a policy; the reader is policy_read.c. */
#include "passes/precision/policy.h"

#include "passes/precision/policy_files.h"

/* ---- classes ----------------------------------------------------------------------------------------------------- */

const char *const policy_class_words[POLICY_CLASS_COUNT] = {
    [POLICY_LOWER] = "lower",   [POLICY_F32_OUT] = "f32_out", [POLICY_F32] = "f32",
    [POLICY_WIDEST] = "widest", [POLICY_FOLLOW] = "follow",
};

bool policy_class_of(const char *word, PolicyClass *out) {
    for (int i = 0; i < POLICY_CLASS_COUNT; i++)
        if (!strcmp(word, policy_class_words[i])) {
            *out = (PolicyClass)i;
            return true;
        }
    return false;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* How closely a name describes an op; 0: not at all. */
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

const PolicyLine *policy_line(const Policy *p, const char *op, const char *layer) {
    const PolicyEntry *best = NULL;
    int best_closeness = 0;
    for (int i = 0; i < p->entries.len; i++) {
        int c = closeness(p->entries.data[i].name, op, layer);
        if (c <= best_closeness) continue;
        best = &p->entries.data[i];
        best_closeness = c;
    }
    return best->line;
}

static bool is_op_name(const char *word) {
    for (int i = 0; i < policy_op_name_count; i++)
        if (!strcmp(word, policy_op_names[i])) return true;
    return false;
}

static const char *nearest_name(const char *word) {
    return is_op_name(word) ? word : text_nearest(word, policy_op_names, policy_op_name_count);
}

bool policy_knows(Arena *a, const char *pattern, const char **nearest) {
    const char *dot = strchr(pattern, '.');
    const char *first = dot ? arena_strndup(a, pattern, (size_t)(dot - pattern)) : pattern;
    const char *second = dot ? dot + 1 : NULL;
    if (is_op_name(first) && (!second || is_op_name(second))) return true;
    if (!nearest) return false;
    const char *near_first = nearest_name(first), *near_second = second ? nearest_name(second) : NULL;
    *nearest = !second                     ? near_first
               : near_first && near_second ? arena_printf(a, "%s.%s", near_first, near_second)
                                           : NULL;
    return false;
}

/* ---- built-in policies ------------------------------------------------------------------------------------------- */

const Source *policy_builtin(Arena *a, const char *name) {
    for (int i = 0; i < policy_file_count; i++) {
        if (strcmp(policy_files[i].name, name)) continue;
        Source *source = arena_new(a, Source);
        *source = (Source){policy_files[i].file_name, policy_files[i].text, strlen(policy_files[i].text)};
        return source;
    }
    return NULL;
}
