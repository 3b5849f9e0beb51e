/* policy_report.c: the built-in policies as a list, and what one policy is. */
#include "compiler/policy/policy_report.h"

#include <string.h>

#include "base/names.h"
#include "compiler/explain/explain.h"

/* The first sentence of the comment that a file begins with; "": it begins otherwise. */
static const char *summary_of(Arena *a, const Policy *p) {
    Text t;
    const char *line = p->source->text;
    text_init(&t, a);
    while (*line == '#') {
        line += 1 + strspn(line + 1, "# ");
        const size_t length = strcspn(line, "\n");
        if (t.len) text_putc(&t, ' ');
        text_write(&t, line, length);
        line += length + (line[length] == '\n');
    }
    const char *whole = text_str(&t), *end = strstr(whole, ". ");
    return end ? arena_strndup(a, whole, (size_t)(end + 1 - whole)) : whole;
}

/* Names but "*", which every policy has. */
static int count_names(const Policy *p) { return p->entries.len - 1; }

/* The precisions that mean this policy where no other is named. */
static bool is_default(const amp_precision *precision, const Policy *p) {
    return !strcmp(policy_default(precision->low), p->name);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

const char *policy_state_type(Arena *a, const Call *type) {
    Text t;
    text_init(&t, a);
    if (type->name) ir_print_call(&t, type);
    return type->name ? text_str(&t) : NULL;
}

void policy_tell_head(Text *t, const Policy *p) {
    if (p->version) text_printf(t, "version %s, ", p->version);
    text_printf(t, "algorithm %s, low %s", policy_algorithm_words[p->algorithm], amp_dtype_name(p->low));
    explain_tell_state_type(t, "masters", &p->masters);
    explain_tell_state_type(t, "moments", &p->moments);
}

/* Lines of words below a row. */
static void tell_wrapped(Text *t, const char *words) {
    enum { INDENT = 4, WIDTH = 108 };
    for (int column = 0; *words;) {
        const size_t length = strcspn(words, " ");
        if (column && column + 1 + (int)length > WIDTH) text_putc(t, '\n'), column = 0;
        text_printf(t, "%*s", column ? 1 : INDENT, "");
        text_write(t, words, length);
        column += (int)length + (column ? 1 : INDENT);
        words += length + strspn(words + length, " ");
        if (!*words) text_putc(t, '\n');
    }
}

static void tell_row(Text *t, const Policy *p) {
    text_puts(t, p->name);
    text_pad_to(t, 27);
    text_puts(t, p->version ? p->version : "");
    text_pad_to(t, 37);
    text_puts(t, policy_algorithm_words[p->algorithm]);
    text_pad_to(t, 49);
    text_puts(t, amp_dtype_name(p->low));
    for (int i = 0, told = 0; i < AMP_PRECISION_COUNT; i++) {
        if (!is_default(&amp_precisions[i], p)) continue;
        if (!told++) text_pad_to(t, 56);
        else text_puts(t, ", ");
        text_puts(t, amp_precisions[i].word);
    }
    text_putc(t, '\n');
    tell_wrapped(t, summary_of(t->arena, p));
}

void policies_as_text(Text *t, const Policies *list) {
    text_puts(t, "policy                     version   algorithm   low    default of\n");
    for (int i = 0; i < list->len; i++) tell_row(t, list->data[i]);
}

void policy_as_text(Text *t, const Policy *p) {
    text_printf(t, "%s: policy \"%s\", ", p->source->name, p->name);
    policy_tell_head(t, p);
    text_printf(t, "; it lists %d name%s, and all others are %s\n", count_names(p), count_names(p) == 1 ? "" : "s",
                policy_class_words[policy_line(p, "*", NULL)->op_class]);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

void policy_put_head(amp_json_writer *w, Arena *a, const Policy *p) {
    amp_json_put_string(w, "policy", p->name);
    amp_json_put_string(w, "version", p->version);
    amp_json_put_string(w, "algorithm", policy_algorithm_words[p->algorithm]);
    amp_json_put_string(w, "low", amp_dtype_name(p->low));
    amp_json_put_string(w, "precision", amp_precision_word(p->low));
    amp_json_put_string(w, "masters", policy_state_type(a, &p->masters));
    amp_json_put_string(w, "moments", policy_state_type(a, &p->moments));
    amp_json_put_string(w, "file", p->source->name);
}

typedef struct Listed {
    Arena *arena;
    const Policies *list;
} Listed;

static void put_policy(amp_json_writer *w, Arena *a, const Policy *p) {
    policy_put_head(w, a, p);
    amp_json_put_int(w, "names", count_names(p));
    amp_json_put_string(w, "others", policy_class_words[policy_line(p, "*", NULL)->op_class]);
    amp_json_put_string(w, "summary", summary_of(a, p));
    amp_json_begin_array(w, "default_of");
    for (int i = 0; i < AMP_PRECISION_COUNT; i++)
        if (is_default(&amp_precisions[i], p)) amp_json_put_string(w, NULL, amp_precisions[i].word);
    amp_json_end_array(w);
}

static void put_list(amp_json_writer *w, const void *of) {
    const Listed *x = of;
    amp_json_begin_array(w, "policies");
    for (int i = 0; i < x->list->len; i++) {
        amp_json_begin_object(w, NULL);
        put_policy(w, x->arena, x->list->data[i]);
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
}

static void put_one(amp_json_writer *w, const void *of) {
    const Listed *x = of;
    put_policy(w, x->arena, x->list->data[0]);
}

amp_status policies_as_json(Text *t, Arena *a, const Policies *list, amp_error *err) {
    return explain_json_text(t, a, put_list, &(Listed){a, list}, err);
}

amp_status policy_as_json(Text *t, Arena *a, const Policy *p, amp_error *err) {
    Policies one = {0};
    vec_push(a, &one, p);
    return explain_json_text(t, a, put_one, &(Listed){a, &one}, err);
}
