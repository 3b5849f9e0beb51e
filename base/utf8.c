/* utf8.c: walking over UTF-8 text that may be damaged. */
#include "base/utf8.h"

#include <stdbool.h>

/* Well-formed sequences by first byte; only the second byte's range depends on the first (Unicode 15.0, table 3-7). */
static const struct Sequence {
    uint8_t first_lo, first_hi, second_lo, second_hi, len;
} sequences[] = {
    {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3},
    {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
};

static bool is_continuation(uint8_t byte) { return (byte & 0xC0) == 0x80; }

size_t utf8_char_len(const char *s, size_t n) {
    const uint8_t *u = (const uint8_t *)s;
    if (n == 0) return 0;
    if (u[0] < 0x80) return 1;
    for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++) {
        const struct Sequence *q = &sequences[i];
        if (u[0] < q->first_lo || u[0] > q->first_hi) continue;
        if (n < q->len || u[1] < q->second_lo || u[1] > q->second_hi) return 0;
        for (size_t k = 2; k < q->len; k++)
            if (!is_continuation(u[k])) return 0;
        return q->len;
    }
    return 0;
}

size_t utf8_encode(uint32_t code, char out[4]) {
    static const uint8_t lead[] = {0, 0x00, 0xC0, 0xE0, 0xF0};
    size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = len; i-- > 1; code >>= 6) out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(lead[len] | code);
    return len;
}

size_t utf8_cut(const char *s, size_t limit) {
    size_t cut = limit;
    while (cut > 0 && limit - cut < 4 && is_continuation((uint8_t)s[cut])) cut--;
    return cut;
}
