/* diagnostic_colours.c: see command.h.
 *
 *   m.amp:3:9: error: there is no op 'rleu'         the word
 *      3 |     h = rleu(x)
 *        |         ^~~~                              the carets
 *     help: did you mean 'relu'?
 */
#include "tools/ampc/command.h"

#include <string.h>

#include "tools/standard_streams.h"

static const struct Word {
    const char *text, *colour;
} words[] = {{"error:", "1;31"}, {"warning:", "1;35"}, {"note:", "1;36"}, {"help:", "1;32"}};

static const char carets_colour[] = "1;32";

static void print_coloured(FILE *to, const char *colour, const char *text, size_t size) {
    fprintf(to, "\033[%sm", colour);
    print_plain(to, text, size);
    fputs("\033[0m", to);
}

/* The first carets of a line that has nothing else after its bar; NULL: another line. */
static const char *find_carets(const char *line, size_t size) {
    const char *bar = line + strspn(line, " "), *end = line + size;
    if (bar >= end || *bar != '|') return NULL;
    const char *first = bar + 1 + strspn(bar + 1, " ");
    return first < end && *first == '^' && first + strspn(first, "^~") == end ? first : NULL;
}

/* Where a line says what it is: at its start, or after a place. */
static const char *find_word(const char *line, size_t size, const struct Word **word) {
    const char *best = NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = strstr(line, words[i].text);
        bool is_whole = at && at < line + size && (at == line || at[-1] == ' ');
        if (!is_whole || (best && at > best)) continue;
        best = at;
        *word = &words[i];
    }
    return best;
}

static void print_line(FILE *to, const char *line, size_t size) {
    const struct Word *word = NULL;
    const char *carets = find_carets(line, size), *at = carets ? NULL : find_word(line, size, &word);
    const char *from = carets ? carets : at, *colour = carets ? carets_colour : word ? word->colour : NULL;
    bool quotes_model = line[strspn(line, " 0123456789")] == '|'; /* a line of the model may hold any word */
    if (!from || (quotes_model && !carets)) {
        print_plain(to, line, size);
        return;
    }
    size_t before = (size_t)(from - line), length = carets ? size - before : strlen(word->text);
    print_plain(to, line, before);
    print_coloured(to, colour, from, length);
    print_plain(to, from + length, size - before - length);
}

void print_diagnostic(FILE *to, const char *text) {
    if (!standard_streams_colour(to)) {
        print_plain(to, text, strlen(text));
        return;
    }
    while (*text) {
        size_t size = strcspn(text, "\n");
        print_line(to, text, size);
        text += size;
        if (*text) fputc(*text++, to);
    }
}
