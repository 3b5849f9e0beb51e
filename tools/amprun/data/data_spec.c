/* data_spec.c: see data_column.h. */
#include "tools/amprun/data/data_column.h"

#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "tools/amprun/amprun.h"

/* "type=u16": the length of "type"; 0: no option. */
static size_t key_length(const char *text) {
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz");
    return text[n] == '=' ? n : 0;
}

static int find(const char *const *keys, const char *text, size_t length) {
    for (int i = 0; keys[i]; i++)
        if (strlen(keys[i]) == length && !strncmp(keys[i], text, length)) return i;
    return -1;
}

static void refuse_option(char *why, size_t size, const char *option, const char *const *keys) {
    snprintf(why, size, "there is no option %.*s; there are", (int)key_length(option), option);
    for (int i = 0; keys[i]; i++) snprintf(why + strlen(why), size - strlen(why), "%s %s=", i ? "," : "", keys[i]);
}

/* Leaves in |why| what is wrong; "": nothing. */
static void parse(DataSpec *s, const char *spec, const char *kind, const char *const *keys, char *why, size_t size) {
    memset(s->value, 0, sizeof s->value);
    s->spec = spec;
    s->path = s->text;
    *why = *s->text = '\0';
    if (strlen(spec) >= sizeof s->text) snprintf(why, size, "is too long");
    else snprintf(s->text, sizeof s->text, "%s", spec + strlen(kind));
    for (char *comma; !*why && (comma = strrchr(s->text, ',')) && key_length(comma + 1);) {
        int key = find(keys, comma + 1, key_length(comma + 1));
        if (key < 0 && !access(s->text, F_OK)) break;
        if (key < 0) refuse_option(why, size, comma + 1, keys);
        else if (s->value[key]) snprintf(why, size, "%s= is given twice", keys[key]);
        else s->value[key] = comma + 1 + strlen(keys[key]) + 1;
        *comma = '\0';
    }
    if (!*why && !*s->text) snprintf(why, size, "names no file");
}

int spec_parse(DataSpec *s, const char *spec, const char *kind, const char *const *keys) {
    char why[256];
    parse(s, spec, kind, keys, why, sizeof why);
    return *why ? report_text("--data %s: %s", spec, why) : 0;
}

bool spec_read(DataSpec *s, const char *spec, const char *kind, const char *const *keys) {
    char why[256];
    parse(s, spec, kind, keys, why, sizeof why);
    return !*why;
}

int spec_held(const char *spec, const char *value, double *out) {
    if (!decimal_parse(value, strlen(value), out) || !(*out >= 0) || *out > INT32_MAX ||
        (*out >= 1 && *out != (double)(int64_t)*out))
        return report_text("--data %s: held=%s: a part such as 0.1, a number of samples, or 0 is wanted", spec, value);
    return 0;
}
