/* lsp_fuzz.c: each line of the input is a message of an editor: the language server reads no memory that it gave back,
 * and all that it says are whole messages of JSON. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tests/fuzz/fuzz.h"
#include "tools/ampc/lsp/server.h"

static void frame(FILE *to, const char *line, size_t size) {
    fprintf(to, "Content-Length: %zu\r\n\r\n", size);
    fwrite(line, 1, size, to);
}

static void check_answers(const char *said, size_t size) {
    const amp_json_limits limits = {.depth = 64};
    for (size_t at = 0; at < size;) {
        amp_json_document *document;
        int header = 0;
        size_t length = 0;
        if (sscanf(said + at, "Content-Length: %zu%n", &length, &header) != 1 || length > size - at)
            fuzz_fail("the server says what is no message: %.60s", said + at);
        at += (size_t)header + 4;
        if (amp_json_parse(said + at, length, &limits, NULL, &document, NULL))
            fuzz_fail("a message is no JSON: %.*s", (int)length, said + at);
        amp_json_free(document);
        at += length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char initialize[] = "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
                                     "\"capabilities\":{\"textDocument\":{\"publishDiagnostics\":{"
                                     "\"relatedInformation\":true}}}}}";
    char *asked = NULL, *said = NULL;
    size_t asked_size = 0, said_size = 0;
    FILE *messages = open_memstream(&asked, &asked_size), *out = open_memstream(&said, &said_size);
    if (!messages || !out) fuzz_fail("no memory");
    frame(messages, initialize, sizeof initialize - 1);
    for (const char *line = (const char *)data, *end = line + size; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const size_t length = (size_t)((newline ? newline : end) - line);
        frame(messages, line, length);
        line += length + 1;
    }
    fclose(messages);
    FILE *in = fmemopen(asked, asked_size, "r");
    if (!in) fuzz_fail("no memory");
    server_run(in, out);
    fclose(in);
    fclose(out);
    check_answers(said, said_size);
    free(asked);
    free(said);
    return 0;
}
