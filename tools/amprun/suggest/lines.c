/* lines.c: see suggesting.h. */
#include "tools/amprun/suggest/suggesting.h"

#include <stdio.h>
#include <string.h>

bool lines_have(const Lines *l, const char *path) {
    for (int i = 0; i < l->count; i++)
        if (!strcmp(l->line[i].path, path)) return true;
    return false;
}

bool lines_add(Lines *l, const char *path, const char *word, const char *why) {
    if (l->count == LINES_MOST) return false;
    Line *line = &l->line[l->count++];
    snprintf(line->path, sizeof line->path, "%s", path);
    snprintf(line->why, sizeof line->why, "%s", why);
    line->word = word;
    return true;
}

void lines_append(Lines *to, const Lines *from, int first, int count) {
    for (int i = first; i < first + count && to->count < LINES_MOST; i++) to->line[to->count++] = from->line[i];
}

void lines_overrides(const Lines *l, amp_override *out) {
    for (int i = 0; i < l->count; i++)
        out[i] = (amp_override){.path = l->line[i].path, .word = l->line[i].word, .because = l->line[i].why};
}
