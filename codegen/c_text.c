/* c_text.c: see c_text.h. */
#include "codegen/c_text.h"

static bool is_plain(unsigned char c) { return c >= ' ' && c != 0x7F; }

/* Octal escapes, because they end after three digits. */
static void put_char(Text *t, char c) {
    if (c == '\n') text_puts(t, "\\n");
    else if (c == '"' || c == '\\') text_printf(t, "\\%c", c);
    else if (is_plain((unsigned char)c)) text_putc(t, c);
    else text_printf(t, "\\%03o", (unsigned char)c);
}

void c_string(Text *t, const char *s) {
    if (!s) {
        text_putc(t, '0');
        return;
    }
    text_putc(t, '"');
    for (; *s; s++) put_char(t, *s);
    text_putc(t, '"');
}

void c_long_string(Text *t, const char *s) {
    text_puts(t, "    \"");
    for (; *s; s++) {
        put_char(t, *s);
        if (*s == '\n' && s[1]) text_puts(t, "\"\n    \"");
    }
    text_putc(t, '"');
}

void c_comment(Text *t, const char *s) {
    for (; s && *s; s++) {
        text_putc(t, (unsigned char)*s < ' ' ? ' ' : *s);
        if (*s == '*' && s[1] == '/') text_putc(t, ' ');
    }
}

void c_identifier(Text *t, const char *s) {
    for (; *s; s++) {
        bool word = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9');
        text_putc(t, word ? *s : '_');
    }
}
