/* server.h: what the files of `ampc lsp` share.
 *   frame          messages on a stream
 *   text_position  bytes, and lines and characters
 *   uri            file:///... and paths
 *   words          keywords of the language, and a sentence on each
 *   documents      open texts and their analyses
 *   notices        texts that are opened, changed, saved, closed
 *   publish        diagnostics
 *   request        parameters of messages
 *   describe       what is told of a symbol
 *   hover, hints, definition, outline, completion: a request of an editor each
 *   server         the loop: which message is answered by what, and errors of the protocol
 */
#ifndef AMP_TOOLS_AMPC_LSP_SERVER_H
#define AMP_TOOLS_AMPC_LSP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/json.h"
#include "tools/ampc/lsp/documents.h"

typedef enum ServerState { SERVER_NEW, SERVER_RUNNING, SERVER_SHUT_DOWN } ServerState;

typedef struct Server {
    FILE *out;
    ServerState state;
    Arena arena; /* of all others: where it jumps, the program ends */
    Documents documents;
    PositionEncoding encoding;
    bool takes_related; /* places of notes beside a diagnostic */
} Server;

/* A message of an editor, and its answer. */
typedef struct Request {
    Server *server;
    Arena *arena; /* until it is answered */
    const amp_json *params;
    amp_json_writer *w; /* a request's answer: "result" is put by who answers it; NULL: of a notification */
} Request;

/* ---- parameters (request.c) -------------------------------------------------------------------------------------- */

const amp_json *request_member(const amp_json *of, const char *key); /* NULL: there is none, or |of| is NULL */
/* NULL: there is none, or it is no string. */
const char *request_string(const amp_json *of, const char *key);
/* The open document that params.textDocument names; NULL: there is none. */
Document *request_document(const Request *r);
/* And the place in it that params.position names. */
bool request_position(const Request *r, const Document *d, size_t *offset);
Position request_read_position(const amp_json *position);

void put_position(amp_json_writer *w, const char *key, Position p);
void put_range(amp_json_writer *w, const char *key, const LinedText *t, amp_span span, PositionEncoding encoding);

/* ---- answers: NULL, or what is wrong with the parameters --------------------------------------------------------- */

const char *answer_hover(Request *r);
const char *answer_hints(Request *r);
const char *answer_definition(Request *r);
const char *answer_outline(Request *r);
const char *answer_completion(Request *r);

/* ---- what is sent unasked ---------------------------------------------------------------------------------------- */

void server_send(Server *s, const amp_json_writer *w);
/* The diagnostics of a file, of all models that read it (publish.c). */
void publish(Server *s, Arena *arena, const char *path);

/* ---- notifications of texts (notices.c): as above ---------------------------------------------------------------- */

const char *notice_opened(Request *r);
const char *notice_changed(Request *r);
const char *notice_saved(Request *r);
const char *notice_closed(Request *r);

/* ---- what is told of a symbol (describe.c) ----------------------------------------------------------------------- */

/* "linear(x; out: int, bias: bool = true)" */
const char *describe_signature(Arena *a, const amp_symbol *s);
/* "f16[N, 512]"; several that differ are two, and dots.  NULL: nothing is known. */
const char *describe_types(Arena *a, const amp_analysis *analysis, const amp_symbol *s);
/* The types of a symbol's values, and for each why, a line each. */
void describe_values(Text *t, const amp_analysis *analysis, const amp_symbol *s, bool markdown);
void describe_decision(Text *t, const amp_op_decision *d, bool markdown);

/* Reads messages until the editor ends; the exit status of the program. */
int server_run(FILE *in, FILE *out);

/* ---- frame.c: messages on a stream: headers, of which Content-Length counts, an empty line, and JSON ------------- */

typedef enum FrameKind {
    FRAME_MESSAGE,
    FRAME_WRONG, /* the headers say no usable length: |text| says why, and reading can go on */
    FRAME_END    /* of the stream, in the middle of a message too */
} FrameKind;

typedef struct Frame {
    FrameKind kind;
    const char *text; /* the JSON, or what is wrong; in the arena */
    size_t size;
} Frame;

Frame frame_read(FILE *from, Arena *a);
void frame_write(FILE *to, const char *json, size_t size);

/* ---- words.c: the words of the language that no text declares, and a sentence on each ---------------------------- */

typedef enum WordPlace {
    WORD_DECLARES,  /* begins a line outside of braces */
    WORD_BEGINS,    /* begins a line inside of them */
    WORD_INSIDE,    /* of expressions */
    WORD_CALLED,    /* a function of sizes */
    WORD_PRECISION, /* after `precision` */
    WORD_SETS       /* what a precision or train block sets: loss_scale = ... */
} WordPlace;

typedef struct LanguageWord {
    const char *name;
    WordPlace place;
    const char *about;
} LanguageWord;

const LanguageWord *language_word(size_t index);                         /* NULL past the last */
const LanguageWord *language_word_find(const char *name, size_t length); /* NULL: it is none */
bool language_word_char(char c);                                         /* of a word, or of a name */

#endif
