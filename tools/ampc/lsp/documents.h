/* documents.h: the texts that an editor has open, and what is known of them. */
#ifndef AMP_TOOLS_AMPC_LSP_DOCUMENTS_H
#define AMP_TOOLS_AMPC_LSP_DOCUMENTS_H

#include "amp/analyze.h"
#include "base/arena.h"
#include "base/json.h"
#include "base/text.h"

/* ---- text_position.c: bytes here, lines and characters for editors, in UTF-16 unless they agreed on UTF-8 -------- */

typedef enum PositionEncoding { POSITION_UTF16, POSITION_UTF8 } PositionEncoding;

typedef struct Position {
    int line, character; /* from 0 */
} Position;

typedef struct LinedText {
    const char *text;
    size_t size;
    VEC(uint32_t) lines; /* where each begins */
} LinedText;

/* |text| has to live as long. */
LinedText lined_text(Arena *a, const char *text, size_t size);
Position position_of(const LinedText *t, size_t offset, PositionEncoding encoding);
/* A place past the end of its line, or of the text, is that end. */
size_t position_offset(const LinedText *t, Position at, PositionEncoding encoding);

/* How offsets in one text move to another that differs from it in one stretch. */
typedef struct TextShift {
    size_t before, after; /* bytes that are equal at both ends */
    size_t from_size, to_size;
} TextShift;

TextShift text_shift(const char *from, size_t from_size, const char *to, size_t to_size);
/* False: it is in what differs. */
bool text_shift_move(const TextShift *s, size_t offset, size_t *out);
TextShift text_shift_reverse(const TextShift *s);

/* ---- documents.c ------------------------------------------------------------------------------------------------- */

typedef struct Document {
    struct Document *next;
    Arena *arena; /* of uri and path */
    Arena *store; /* of the text */
    const char *uri, *path;
    bool has_version;
    int64_t version;
    LinedText text;
    amp_analysis *latest;   /* of the text as it is; NULL: it could not be analysed */
    amp_analysis *complete; /* the last that was complete, which may be |latest|; NULL: none was */
    const char *failure;    /* why it could not */
} Document;

typedef struct Documents {
    Arena *arena;
    Document *first;
} Documents;

Document *documents_find(const Documents *all, const char *uri);
Document *documents_open(Documents *all, const char *uri);
void documents_close(Documents *all, Document *d);
void document_set_text(Document *d, const char *text, size_t size);
/* Analyses the text; includes are read from open texts. */
void document_analyze(Documents *all, Document *d, bool all_passes);
int document_file(const amp_analysis *analysis, const char *path);   /* of its files; -1: it read none of this path */
Document *documents_of_path(const Documents *all, const char *path); /* NULL: it is not open */
/* As the editor calls it where it is open. */
const char *documents_uri(const Documents *all, Arena *a, const char *path);
/* Whether an analysis of |d| read the file |path|. */
bool document_reads(const Document *d, const char *path);

/* An analysis as it tells of a document's text: of its file |file|, whose offsets |shift| moves into the text. */
typedef struct View {
    const amp_analysis *analysis; /* NULL: there is none */
    int file;
    TextShift shift;
} View;

View document_names(const Document *d); /* of the text as it is, errors or not */
/* Of the last text that had none; of a file without a model, that of an open model that includes it. */
View document_values(const Documents *all, const Document *d);
/* Where a span of the analysis is in the text; false: it is in another file, or was changed. */
bool view_place(const View *v, amp_span span, amp_span *out);
/* The symbol that is declared, or meant, at |offset| of the text; NULL: none. |call|: the whole call where it is a
 * callee, as the analysis has it. */
const amp_symbol *view_symbol_at(const View *v, size_t offset, amp_span *name, amp_span *call);

/* ---- uri.c: file:///... and the paths that it names -------------------------------------------------------------- */

/* In the arena.  Of another scheme, of a text that is in no file: the URI itself. */
const char *uri_path(Arena *a, const char *uri);
const char *uri_of_path(Arena *a, const char *path); /* without links and "..", where the file is there */

#endif
