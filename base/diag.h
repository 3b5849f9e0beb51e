/* diag.h: errors in text files, with file, line, column, the line itself and a caret.
 *
 *     mlp.amp:9:17: error: matmul: inner dimensions differ: 784 and 512
 *        9 |     h = matmul(x, w2)
 *          |                ^~~~~~
 *       mlp.amp:4:11: x is f32[N, 784]
 *       help: ...
 *
 * A location is a source file and a byte range; line and column are found when a message is printed.
 */
#ifndef AMP_BASE_DIAG_H
#define AMP_BASE_DIAG_H

#include "base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Source {
    const char *name; /* as the user wrote it: "mlp.amp" */
    const char *text; /* NUL-terminated; may hold NUL bytes before the end */
    size_t len;
} Source;

typedef struct Loc {
    const Source *source; /* NULL: nowhere in particular */
    uint32_t begin, end;  /* byte offsets; end is exclusive */
} Loc;

typedef enum Severity { DIAG_ERROR, DIAG_WARNING, DIAG_NOTE } Severity;

typedef struct DiagNote {
    Loc loc; /* loc.source NULL: a plain "help:" line */
    const char *text;
} DiagNote;

typedef struct Diag {
    Severity severity;
    Loc loc;
    const char *text;
    VEC(DiagNote) notes;
} Diag;

typedef struct Diags {
    Arena *arena;
    VEC(Diag *) list;
    int errors;
    int max_errors; /* further errors are counted, not kept; 0: 20 */
    bool stopped;   /* there were too many errors, and nothing after them was checked */
} Diags;

void diags_init(Diags *d, Arena *a);
/* Returned so that notes can be added; never NULL. */
Diag *diag_error(Diags *d, Loc loc, const char *fmt, ...) AMP_PRINTF(3, 4);
Diag *diag_warning(Diags *d, Loc loc, const char *fmt, ...) AMP_PRINTF(3, 4);
void diag_note(Diags *d, Diag *to, Loc loc, const char *fmt, ...) AMP_PRINTF(4, 5);
void diag_help(Diags *d, Diag *to, const char *fmt, ...) AMP_PRINTF(3, 4);

/* Line and column from 1; the column counts characters, not bytes. */
void loc_line_column(Loc loc, int *line, int *column);
/* The name, path or number that begins there, one character where none does; the text's end if there is no such place.
 * The text is read up to its NUL. */
Loc loc_at(const Source *source, int line, int column);
Loc loc_join(Loc a, Loc b); /* from the first byte of a to the last of b */

/* Appends the whole message, caret included. */
void diag_format(Text *t, const Diag *diag);

#ifdef __cplusplus
}
#endif

#endif
