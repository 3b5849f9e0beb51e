/* standard_streams.c: see standard_streams.h. */
#include "tools/standard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/visible.h"

void standard_streams_open(void) {
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", fd ? O_WRONLY : O_RDONLY) < 0) return;
}

/* errno of the first write to standard output that failed: at the end it is that of another call. */
static int reason;

void standard_streams_note(bool failed) {
    if (failed && !reason) reason = errno;
}

int standard_streams_flush(const char *tool) {
    errno = 0;
    standard_streams_note(fflush(stdout) != 0);
    if (!reason && !ferror(stdout)) return 0;
    fprintf(stderr, "%s: standard output: %s\n", tool, reason ? strerror(reason) : "could not be written in full");
    return 1;
}

bool standard_streams_utf8(void) {
    setlocale(LC_CTYPE, ""); /* numbers stay as in C */
    return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

bool standard_streams_terminal(FILE *to) {
    const char *type = getenv("TERM");
    return isatty(fileno(to)) && type && *type && strcmp(type, "dumb") != 0;
}

int standard_streams_width(FILE *to) {
    struct winsize size;
    if (!standard_streams_terminal(to)) return 0;
    return !ioctl(fileno(to), TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : 80;
}

static enum { AUTO, ALWAYS, NEVER } colour_when;

bool standard_streams_colour_when(const char *when) {
    static const char *const words[] = {[AUTO] = "auto", [ALWAYS] = "always", [NEVER] = "never"};
    for (int i = AUTO; i <= NEVER; i++)
        if (!strcmp(when, words[i])) {
            colour_when = i;
            return true;
        }
    return false;
}

bool standard_streams_colour(FILE *to) {
    if (colour_when != AUTO) return colour_when == ALWAYS;
    const char *unwanted = getenv("NO_COLOR");
    return !(unwanted && *unwanted) && standard_streams_terminal(to);
}

/* Bytes at |s| that are one control character; 0: none. */
static size_t control_length(const unsigned char *s, size_t left) {
    uint32_t code;
    return s[0] == '\n' || s[0] == '\t' ? 0 : utf8_control((const char *)s, left, &code);
}

void print_plain(FILE *to, const char *text, size_t size) {
    const unsigned char *s = (const unsigned char *)text;
    for (size_t i = 0, done = 0; i <= size; i++) {
        size_t n = i < size ? control_length(s + i, size - i) : 0;
        if (i < size && !n) continue;
        bool lost = fwrite(text + done, 1, i - done, to) != i - done;
        if (to == stdout) standard_streams_note(lost);
        for (size_t k = 0; k < n; k++) fprintf(to, "\\x%02x", s[i + k]);
        done = i + (n ? n : 1);
        i = done - 1;
    }
}

/* Bytes of the |columns| first characters of |s|, at most |size|. */
static size_t first_columns(const char *s, size_t size, int columns) {
    size_t at = 0;
    for (; at < size; at++)
        if (((unsigned char)s[at] & 0xC0) != 0x80 && columns-- == 0) break;
    return at;
}

/* Where a line that is too wide ends: at the last two spaces in its second half, fields are between them, else at the
 * last one; a longer word stays whole. */
static size_t line_end(const char *s, size_t size, size_t room) {
    size_t one = 0, two = 0;
    for (size_t i = 1; i <= room; i++)
        if (s[i] == ' ' && s[i - 1] != ' ') *(s[i + 1] == ' ' ? &two : &one) = i;
    if (two > room / 2) return two;
    if (one || two) return one > two ? one : two;
    const char *space = memchr(s + room, ' ', size - room);
    return space ? (size_t)(space - s) : size;
}

/* Under the second field of a line of a list, "  reads      mul", or under its only one, or 4. */
static int indent_of(const char *s, size_t size) {
    enum { USUAL = 4, MOST = 16 };
    size_t at = strspn(s, " ");
    if (at > USUAL && at <= MOST) return (int)at;
    while (at < size && (s[at] != ' ' || s[at + 1] != ' ')) at++;
    if (at < size) at += strspn(s + at, " ");
    return s[0] == ' ' && at < size && at <= MOST ? (int)at : USUAL;
}

static void print_wrapped_line(FILE *to, const char *s, size_t size, int width) {
    const int indent = width > 40 ? indent_of(s, size) : 0;
    for (int used = 0;; used = indent) {
        const size_t room = first_columns(s, size, width - used);
        const size_t end = room < size ? line_end(s, size, room) : size;
        print_plain(to, s, end);
        const size_t next = end < size ? end + strspn(s + end, " ") : size;
        if (next >= size) return;
        fprintf(to, "\n%*s", indent, "");
        s += next, size -= next;
    }
}

bool print_wrapped(FILE *to, const char *text) {
    const int width = standard_streams_width(to);
    while (width && *text) {
        const size_t size = strcspn(text, "\n"), more = text[size] == '\n';
        print_wrapped_line(to, text, size, width);
        if (more) fputc('\n', to);
        text += size + more;
    }
    if (!width) print_plain(to, text, strlen(text));
    return !ferror(to);
}

void print_plain_line(const char *format, ...) {
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text - 1, format, args);
    va_end(args);
    strcat(text, "\n");
    print_plain(stdout, text, strlen(text));
}
