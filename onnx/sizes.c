/* sizes.c: arithmetic of sizes. */
#include "onnx/sizes.h"

#include <math.h>
#include <string.h>

/* A longer expression gets no name, and neither does one more: they are unknown. */
enum { UNKNOWN = 1, LONGEST_NAME = 160, MOST_SYMBOLS = 16, MOST_TERMS = 100000 };

void onnx_sizes_init(OnnxSizes *c, Arena *a, double typical) {
    *c = (OnnxSizes){.arena = a, .scratch = arena_child(a), .typical = typical};
    vec_push(a, &c->terms, ((OnnxTerm){.typical = 1}));
    vec_push(a, &c->terms, ((OnnxTerm){.typical = typical}));
}

OnnxSize onnx_size(int64_t value) { return (OnnxSize){.div = 1, .add = value}; }

bool onnx_size_is_number(OnnxSize s) { return s.term == 0; }

bool onnx_size_is(OnnxSize s, int64_t value) { return s.term == 0 && s.add == value; }

bool onnx_size_equal(OnnxSize a, OnnxSize b) {
    if (a.term == UNKNOWN) return false;
    return a.term == b.term && a.add == b.add && (a.term == 0 || (a.mul == b.mul && a.div == b.div));
}

double onnx_size_typical(const OnnxSizes *c, OnnxSize s) {
    if (!s.term) return (double)s.add;
    return (double)s.mul * c->terms.data[s.term].typical / (double)s.div + (double)s.add;
}

/* ---- symbols and terms ------------------------------------------------------------------------------------------- */

static OnnxSize size_of_term(uint32_t term) { return (OnnxSize){.mul = 1, .div = 1, .term = term}; }

OnnxSize onnx_size_unknown(void) { return size_of_term(UNKNOWN); }

bool onnx_size_is_unknown(OnnxSize s) { return s.term == UNKNOWN; }

static uint32_t new_term(OnnxSizes *c, const uint32_t *symbols, int count) {
    OnnxTerm t = {.count = count, .typical = 1};
    uint32_t *copy = arena_array(c->arena, uint32_t, count);
    memcpy(copy, symbols, sizeof *symbols * (size_t)count);
    t.symbols = copy;
    for (int i = 0; i < count; i++) t.typical *= c->symbols.data[symbols[i]].typical;
    vec_push(c->arena, &c->terms, t);
    return (uint32_t)(c->terms.len - 1);
}

static OnnxSize new_symbol(OnnxSizes *c, const char *name, double typical) {
    if (c->terms.len >= MOST_TERMS) return onnx_size_unknown();
    uint32_t number = (uint32_t)c->symbols.len;
    vec_push(c->arena, &c->symbols, ((OnnxSymbol){.name = name, .typical = typical}));
    uint32_t term = new_term(c, &number, 1);
    c->symbols.data[number].term = term;
    return size_of_term(term);
}

static OnnxSize named(OnnxSizes *c, const char *name, double typical) {
    const uint32_t *found = table_get(&c->by_name, name);
    if (found) return size_of_term(*found);
    name = arena_strdup(c->arena, name);
    OnnxSize s = new_symbol(c, name, typical);
    if (s.term == UNKNOWN) return s;
    uint32_t *term = arena_new(c->arena, uint32_t);
    *term = s.term;
    table_set(c->arena, &c->by_name, name, term);
    return s;
}

OnnxSize onnx_size_named(OnnxSizes *c, const char *name) { return named(c, name, c->typical); }

OnnxSize onnx_size_new(OnnxSizes *c) {
    return new_symbol(c, arena_printf(c->arena, "?%d", c->symbols.len), c->typical);
}

static uint32_t term_of(OnnxSizes *c, const uint32_t *symbols, int count) {
    if (count == 0) return 0;
    if (count == 1) return c->symbols.data[symbols[0]].term;
    char key[MOST_SYMBOLS * 8 + 1];
    int n = 0;
    for (int i = 0; i < count; i++)
        for (int shift = 28; shift >= 0; shift -= 4) key[n++] = "0123456789abcdef"[symbols[i] >> shift & 15];
    key[n] = 0;
    const uint32_t *found = table_get(&c->by_symbols, key);
    if (found) return *found;
    if (c->terms.len >= MOST_TERMS) return UNKNOWN;
    uint32_t *term = arena_new(c->arena, uint32_t);
    *term = new_term(c, symbols, count);
    table_set(c->arena, &c->by_symbols, arena_strdup(c->arena, key), term);
    return *term;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void print_term(const OnnxSizes *c, Text *t, OnnxSize s) {
    const OnnxTerm *term = &c->terms.data[s.term];
    if (s.mul != 1) text_printf(t, "%lld*", (long long)s.mul);
    for (int i = 0; i < term->count; i++) text_printf(t, "%s%s", i ? "*" : "", c->symbols.data[term->symbols[i]].name);
    if (s.div != 1) text_printf(t, "/%lld", (long long)s.div);
}

void onnx_size_print(const OnnxSizes *c, Text *t, OnnxSize s) {
    if (s.term == UNKNOWN) {
        text_puts(t, "?");
    } else if (s.term) {
        print_term(c, t, s);
        if (s.add) text_printf(t, " %c %lld", s.add < 0 ? '-' : '+', s.add < 0 ? -(long long)s.add : (long long)s.add);
    } else {
        text_printf(t, "%lld", (long long)s.add);
    }
}

/* The symbol that is "before A between B after". */
static OnnxSize expression(OnnxSizes *c, double typical, const char *before, OnnxSize a, const char *between,
                           OnnxSize b, const char *after) {
    if (a.term == UNKNOWN || b.term == UNKNOWN) return onnx_size_unknown();
    Text t;
    arena_reset(c->scratch);
    text_init(&t, c->scratch);
    text_puts(&t, before);
    onnx_size_print(c, &t, a);
    text_puts(&t, between);
    onnx_size_print(c, &t, b);
    text_puts(&t, after);
    return t.len > LONGEST_NAME ? onnx_size_unknown() : named(c, text_str(&t), typical);
}

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t remainder = a % b;
        a = b;
        b = remainder;
    }
    return a < 0 ? -a : a;
}

static OnnxSize reduced(OnnxSize s) {
    if (!s.term || s.mul == INT64_MIN || s.div == INT64_MIN) return s;
    if (!s.mul) return onnx_size(s.add);
    int64_t d = common_divisor(s.mul, s.div);
    if (s.div < 0) d = -d;
    s.mul /= d;
    s.div /= d;
    return s;
}

/* Of a size with a term and something added: the same as one symbol. */
static OnnxSize whole(OnnxSizes *c, OnnxSize s) {
    if (!s.term || !s.add) return s;
    double typical = onnx_size_typical(c, s);
    OnnxSize add = onnx_size(s.add);
    s.add = 0;
    return expression(c, typical, "(", s, " + ", add, ")");
}

OnnxSize onnx_size_add(OnnxSizes *c, OnnxSize a, OnnxSize b) {
    double typical = onnx_size_typical(c, a) + onnx_size_typical(c, b);
    OnnxSize s = a.term ? a : b;
    if (a.term == UNKNOWN || b.term == UNKNOWN) return onnx_size_unknown();
    if (__builtin_add_overflow(a.add, b.add, &s.add)) return onnx_size_unknown();
    if (!a.term || !b.term) return s;
    if (a.term == b.term && a.div == b.div && !__builtin_add_overflow(a.mul, b.mul, &s.mul)) return reduced(s);
    int64_t add = s.add;
    a.add = b.add = 0;
    bool swap = a.term > b.term || (a.term == b.term && a.mul > b.mul);
    s = expression(c, typical, "(", swap ? b : a, " + ", swap ? a : b, ")");
    s.add = add;
    return s;
}

static OnnxSize times(OnnxSize s, int64_t factor) {
    OnnxSize out = s;
    if (s.term == UNKNOWN && factor) return s;
    if (__builtin_mul_overflow(s.add, factor, &out.add) || (s.term && __builtin_mul_overflow(s.mul, factor, &out.mul)))
        return onnx_size_unknown();
    return reduced(out);
}

OnnxSize onnx_size_sub(OnnxSizes *c, OnnxSize a, OnnxSize b) { return onnx_size_add(c, a, times(b, -1)); }

OnnxSize onnx_size_mul(OnnxSizes *c, OnnxSize a, OnnxSize b) {
    if (!a.term) return times(b, a.add);
    if (!b.term) return times(a, b.add);
    a = whole(c, a);
    b = whole(c, b);
    if (a.term == UNKNOWN || b.term == UNKNOWN) return onnx_size_unknown();
    OnnxTerm x = c->terms.data[a.term], y = c->terms.data[b.term];
    OnnxSize s = {.add = 0};
    if (x.count + y.count > MOST_SYMBOLS || __builtin_mul_overflow(a.mul, b.mul, &s.mul) ||
        __builtin_mul_overflow(a.div, b.div, &s.div))
        return onnx_size_unknown();
    uint32_t symbols[MOST_SYMBOLS];
    int n = 0, i = 0, j = 0;
    while (i < x.count || j < y.count)
        symbols[n++] = j == y.count || (i < x.count && x.symbols[i] <= y.symbols[j]) ? x.symbols[i++] : y.symbols[j++];
    s.term = term_of(c, symbols, n);
    return s.term == UNKNOWN ? onnx_size_unknown() : reduced(s);
}

/* The symbols that |a| has and |b| has not; -1 if |b| has others. */
static int without(const OnnxSizes *c, OnnxSize a, OnnxSize b, uint32_t *out) {
    OnnxTerm x = c->terms.data[a.term], y = c->terms.data[b.term];
    int n = 0, j = 0;
    for (int i = 0; i < x.count; i++) {
        if (j < y.count && x.symbols[i] == y.symbols[j]) j++;
        else out[n++] = x.symbols[i];
    }
    return j == y.count ? n : -1;
}

/* a / b as a size without a remainder, if the form can say it. */
static bool quotient(OnnxSizes *c, OnnxSize a, OnnxSize b, bool exact, OnnxSize *out) {
    if (b.add && b.term) {
        *out = onnx_size(1);
        return onnx_size_equal(a, b);
    }
    if (!b.term) b = (OnnxSize){.mul = b.add, .div = 1};
    uint32_t symbols[MOST_SYMBOLS];
    if (a.term == UNKNOWN || b.term == UNKNOWN) return false;
    int n = without(c, a, b, symbols);
    if (n < 0 || !b.mul || b.mul == -1 || (b.term && a.add)) return false;
    OnnxSize s = {.mul = a.mul, .div = 1};
    if (a.add % b.mul) return false;
    s.add = a.add / b.mul;
    if (!a.term) {
        *out = s = onnx_size(s.add);
        return !b.term;
    }
    if (__builtin_mul_overflow(a.mul, b.div, &s.mul) || __builtin_mul_overflow(a.div, b.mul, &s.div)) return false;
    s.term = term_of(c, symbols, n);
    s = reduced(s);
    if (s.term == UNKNOWN) return false;
    if (!s.term) {
        if (s.mul % s.div) return false;
        s = onnx_size(s.mul / s.div + s.add);
    }
    *out = s;
    return exact || s.div == 1;
}

OnnxSize onnx_size_divide(OnnxSizes *c, OnnxSize a, OnnxSize b) {
    OnnxSize s;
    if (!b.term && b.add <= 0) return onnx_size_unknown();
    if (quotient(c, a, b, true, &s)) return s;
    return onnx_size_floor(c, a, b);
}

OnnxSize onnx_size_floor(OnnxSizes *c, OnnxSize a, OnnxSize b) {
    OnnxSize s;
    if (onnx_size_is(b, 1)) return a;
    if (!b.term && b.add <= 0) return onnx_size_unknown();
    if (!a.term && !b.term) return onnx_size(a.add / b.add - (a.add % b.add < 0));
    if (quotient(c, a, b, false, &s)) return s;
    double by = onnx_size_typical(c, b);
    return expression(c, by != 0 ? floor(onnx_size_typical(c, a) / by) : c->typical, "floor((", a, ")/(", b, "))");
}

/* Sizes are not negative: a symbol is at least 0. */
OnnxSize onnx_size_max(OnnxSizes *c, OnnxSize a, OnnxSize b) {
    if (!a.term && !b.term) return a.add > b.add ? a : b;
    if (onnx_size_equal(a, b)) return a;
    return expression(c, fmax(onnx_size_typical(c, a), onnx_size_typical(c, b)), "max(", a, ", ", b, ")");
}

OnnxSize onnx_size_min(OnnxSizes *c, OnnxSize a, OnnxSize b) {
    if (!a.term && !b.term) return a.add < b.add ? a : b;
    if (onnx_size_equal(a, b)) return a;
    return expression(c, fmin(onnx_size_typical(c, a), onnx_size_typical(c, b)), "min(", a, ", ", b, ")");
}
