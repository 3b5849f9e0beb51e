/* uri.c: see documents.h. */
#include "tools/ampc/lsp/documents.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

static const char scheme[] = "file://";

static int hex_digit(char c) {
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *found = c ? strchr(digits, c) : NULL;
    return found ? (int)(found - digits) % 16 : -1;
}

const char *uri_path(Arena *a, const char *uri) {
    if (strncmp(uri, scheme, sizeof scheme - 1) != 0) return arena_strdup(a, uri);
    const char *at = strchr(uri + sizeof scheme - 1, '/'); /* after the host, which is empty */
    if (!at) return arena_strdup(a, uri);
    Text t;
    text_init(&t, a);
    for (; *at; at++) {
        const int high = *at == '%' ? hex_digit(at[1]) : -1, low = high >= 0 ? hex_digit(at[2]) : -1;
        const bool is_code = low >= 0 && (high || low); /* no path holds a NUL */
        text_putc(&t, is_code ? (char)(high * 16 + low) : *at);
        if (is_code) at += 2;
    }
    return text_str(&t);
}

const char *uri_of_path(Arena *a, const char *path) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    char *real = realpath(path, NULL);
    Text t;
    text_init(&t, a);
    text_puts(&t, scheme);
    for (const char *at = real ? real : path; *at; at++) {
        if (strchr(plain, *at)) text_putc(&t, *at);
        else text_printf(&t, "%%%02X", (unsigned char)*at);
    }
    free(real);
    return text_str(&t);
}
