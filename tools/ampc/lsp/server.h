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

#include <stdio.h>

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

#endif
