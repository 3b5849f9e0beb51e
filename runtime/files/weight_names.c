/* weight_names.c: see weight_names.h. */
#include "runtime/files/weight_names.h"

#include <string.h>

/* ---- FROM=TO ----------------------------------------------------------------------------------------------------- */

enum { STARS_MOST = 16 };

static int count_stars(const char *text, size_t length) {
    int count = 0;
    for (size_t i = 0; i < length; i++) count += text[i] == '*';
    return count;
}

amp_status amp_rename_check(const char *rule, amp_error *err) {
    const char *equals = strchr(rule, '=');
    if (!equals || equals == rule || !equals[1])
        return amp_fail(err, AMP_INVALID_ARGUMENT, "rename '%s': FROM=TO is wanted, as in 'transformer.*=*'", rule);
    int from = count_stars(rule, (size_t)(equals - rule)), to = count_stars(equals + 1, strlen(equals + 1));
    if (from != to)
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "rename '%s': has %d * before the = and %d after it; each carries over what one matched", rule,
                        from, to);
    if (from > STARS_MOST)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "rename '%s': has %d *; at most %d are taken", rule, from,
                        STARS_MOST);
    return AMP_OK;
}

typedef struct Piece {
    const char *at;
    size_t length;
} Piece;

/* The first place of |piece| in |in|; NULL: none. */
static const char *find_piece(Piece in, Piece piece) {
    for (; in.length >= piece.length; in.at++, in.length--)
        if (!memcmp(in.at, piece.at, piece.length)) return in.at;
    return NULL;
}

/* FROM's text up to its next star, or its end, from |*from| on, which moves after the star. */
static Piece next_literal(const char **from, const char *end) {
    const char *star = memchr(*from, '*', (size_t)(end - *from));
    Piece p = {*from, (size_t)((star ? star : end) - *from)};
    *from = star ? star + 1 : end;
    return p;
}

/* What each star of FROM (|from| up to |end|) matched of |name|. */
static bool match(const char *from, const char *end, const char *name, Piece stars[STARS_MOST]) {
    int count = count_stars(from, (size_t)(end - from));
    Piece left = {name, strlen(name)}, literal = next_literal(&from, end);
    if (left.length < literal.length || memcmp(left.at, literal.at, literal.length)) return false;
    left.at += literal.length, left.length -= literal.length;
    if (!count) return !left.length;
    for (int i = 0; i < count; i++) {
        literal = next_literal(&from, end);
        if (left.length < literal.length) return false;
        const char *at = i == count - 1 ? left.at + (left.length - literal.length) : find_piece(left, literal);
        if (!at || memcmp(at, literal.at, literal.length)) return false;
        stars[i] = (Piece){left.at, (size_t)(at - left.at)};
        left.length -= (size_t)(at - left.at) + literal.length;
        left.at = at + literal.length;
    }
    return true;
}

typedef struct Out {
    char *to;
    size_t room, bytes;
} Out;

static void put(Out *o, Piece p) {
    for (size_t i = 0; i < p.length; i++, o->bytes++)
        if (o->bytes + 1 < o->room) o->to[o->bytes] = p.at[i];
}

bool amp_rename_apply(const char *rule, const char *name, char *to, size_t room, size_t *bytes) {
    Piece stars[STARS_MOST];
    const char *equals = strchr(rule, '='), *end = equals + strlen(equals);
    if (!match(rule, equals, name, stars)) return false;
    Out o = {.to = to, .room = room};
    int star = 0;
    for (const char *at = equals + 1; at < end; at++) put(&o, *at == '*' ? stars[star++] : (Piece){at, 1});
    if (room) to[o.bytes < room ? o.bytes : room - 1] = '\0';
    *bytes = o.bytes + 1;
    return true;
}

/* ---- patterns ---------------------------------------------------------------------------------------------------- */

/* Reads a name as its pattern, character by character. */
typedef struct Reader {
    const char *at;
    bool at_start; /* of a component */
} Reader;

static size_t digits(const char *s) {
    size_t n = strspn(s, "0123456789");
    return n && (s[n] == '.' || !s[n]) ? n : 0;
}

static char next(Reader *r) {
    size_t number = r->at_start ? digits(r->at) : 0;
    if (number) {
        r->at += number;
        r->at_start = false;
        return '*';
    }
    r->at_start = *r->at == '.';
    return *r->at ? *r->at++ : '\0';
}

const char *amp_name_pattern(const char *name, char *out, size_t room) {
    Reader r = {name, true};
    size_t length = 0;
    for (char c; (c = next(&r)) && length + 1 < room;) out[length++] = c;
    out[length] = '\0';
    return out;
}

int amp_name_pattern_compare(const char *a, const char *b) {
    Reader x = {a, true}, y = {b, true};
    for (;;) {
        unsigned char c = (unsigned char)next(&x), d = (unsigned char)next(&y);
        if (c != d) return c < d ? -1 : 1;
        if (!c) return 0;
    }
}
