/* lines.h: lines of a precision block that are proposed, with what speaks for each. */
#ifndef AMP_TOOLS_AMPRUN_SUGGEST_LINES_H
#define AMP_TOOLS_AMPRUN_SUGGEST_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "amp/compile.h"

enum { LINES_MOST = 64, LINE_TEXT = 256 };

typedef struct Line {
    char path[LINE_TEXT], why[LINE_TEXT];
    const char *word; /* "f32" or "low" */
} Line;

typedef struct Lines {
    Line line[LINES_MOST];
    int count;
} Lines;

bool lines_have(const Lines *l, const char *path);
/* false: there is no room. */
bool lines_add(Lines *l, const char *path, const char *word, const char *why);
/* |count| lines of |from|, from the one numbered |first| on, as far as there is room. */
void lines_append(Lines *to, const Lines *from, int first, int count);
/* As options of a compilation; |out| has room for LINES_MOST. */
void lines_overrides(const Lines *l, amp_override *out);

#endif
