/* number.c: constant expressions: 64-bit integers, signed unless a part is unsigned; floats only alone or negated. */
#include <string.h>

#include "fakecuda/ptx/parser.h"
#include "fakecuda/ptx/grammar.h"

int64_t number_integer(Parser *p, Place place, Number a) {
    if (a.is_float) parser_fail(p, place, "an integer must stand here");
    return (int64_t)a.bits;
}

uint64_t number_size(Parser *p, Place place, Number a) {
    int64_t size = number_integer(p, place, a);
    if (size < 0 || size > (int64_t)1 << 40) parser_fail(p, place, "%lld is no size", (long long)size);
    return (uint64_t)size;
}

Number number_unary(Parser *p, Place place, char op, Number a) {
    if (a.is_float && op == '-') {
        a.bits ^= a.is_single ? UINT64_C(1) << 31 : UINT64_C(1) << 63;
        return a;
    }
    number_integer(p, place, a);
    switch (op) {
    case '-': a.bits = 0 - a.bits; return a;
    case '~': a.bits = ~a.bits; return a;
    default: return (Number){.bits = a.bits == 0};
    }
}

static uint64_t divide(Parser *p, Place place, int op, Number a, Number b, bool is_unsigned) {
    if (b.bits == 0) parser_fail(p, place, "division by zero");
    if (is_unsigned) return op == '/' ? a.bits / b.bits : a.bits % b.bits;
    int64_t x = (int64_t)a.bits, y = (int64_t)b.bits;
    if (y == -1) return op == '/' ? 0 - a.bits : 0; /* the smallest number by -1 does not fit */
    return (uint64_t)(op == '/' ? x / y : x % y);
}

static uint64_t shift(int op, Number a, uint64_t amount) {
    if (op == SHIFT_LEFT) return amount < 64 ? a.bits << amount : 0;
    if (a.is_unsigned) return amount < 64 ? a.bits >> amount : 0;
    return (uint64_t)((int64_t)a.bits >> (amount < 64 ? amount : 63));
}

static bool less(uint64_t a, uint64_t b, bool is_unsigned) { return is_unsigned ? a < b : (int64_t)a < (int64_t)b; }

Number number_binary(Parser *p, Place place, int op, Number a, Number b) {
    number_integer(p, place, a);
    number_integer(p, place, b);
    bool u = a.is_unsigned || b.is_unsigned;
    switch (op) {
    case '+': return (Number){.is_unsigned = u, .bits = a.bits + b.bits};
    case '-': return (Number){.is_unsigned = u, .bits = a.bits - b.bits};
    case '*': return (Number){.is_unsigned = u, .bits = a.bits * b.bits};
    case '/':
    case '%': return (Number){.is_unsigned = u, .bits = divide(p, place, op, a, b, u)};
    case '&': return (Number){.is_unsigned = u, .bits = a.bits & b.bits};
    case '|': return (Number){.is_unsigned = u, .bits = a.bits | b.bits};
    case '^': return (Number){.is_unsigned = u, .bits = a.bits ^ b.bits};
    case SHIFT_LEFT:
    case SHIFT_RIGHT: return (Number){.is_unsigned = a.is_unsigned, .bits = shift(op, a, b.bits)};
    case '<': return (Number){.bits = less(a.bits, b.bits, u)};
    case '>': return (Number){.bits = less(b.bits, a.bits, u)};
    case LESS_EQUAL: return (Number){.bits = !less(b.bits, a.bits, u)};
    case GREATER_EQUAL: return (Number){.bits = !less(a.bits, b.bits, u)};
    case EQUAL: return (Number){.bits = a.bits == b.bits};
    case NOT_EQUAL: return (Number){.bits = a.bits != b.bits};
    case AND_AND: return (Number){.bits = a.bits && b.bits};
    default: return (Number){.bits = a.bits || b.bits};
    }
}

Number number_cast(Parser *p, Place place, Name *type, Number a) {
    number_integer(p, place, a);
    bool to_unsigned = !strcmp(type->text, ".u64");
    if (!to_unsigned && strcmp(type->text, ".s64")) parser_fail(p, place, "casts of constants are (.s64) and (.u64)");
    a.is_unsigned = to_unsigned;
    return a;
}
