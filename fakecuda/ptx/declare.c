/* declare.c: declarations: registers, variables and parameters; constant expressions, and initial values of variables.
 */
#include "fakecuda/ptx/parser.h"

#include <math.h>
#include <string.h>

#include "fakecuda/ptx/grammar.h"

/* ---- constant expressions ---------------------------------------------------------------------------------------- */

/* 64-bit integers, signed unless a part is unsigned; floats only alone or negated. */

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

/* ---- initial values ---------------------------------------------------------------------------------------------- */

/* Numbers, addresses, nested lists that may be short. */

Initializer *initializer_number(Parser *p, Place place, Number number) {
    Initializer *i = ptx_arena_alloc(&p->arena, sizeof *i);
    i->place = place;
    i->number = number;
    return i;
}

Initializer *initializer_address(Parser *p, Place place, Name *of, Number offset) {
    Initializer *i = initializer_number(p, place, offset);
    i->of = of;
    return i;
}

Initializer *initializer_add(Parser *p, Initializer *list, Initializer *item) {
    if (!list) {
        list = ptx_arena_alloc(&p->arena, sizeof *list);
        if (item) list->place = item->place;
        list->is_list = true;
    }
    if (!item) return list;
    if (list->last) list->last->next = item;
    else list->items = item;
    list->last = item;
    return list;
}

/* The bytes of a number as |type|: floats are rounded to it, the bits of an exact one taken. */
static uint64_t bits_as(Parser *p, const Initializer *i, PtxType type) {
    Number n = i->number;
    if (!n.is_float) {
        if (type != PTX_F32 && type != PTX_F64) return n.bits;
        parser_fail(p, i->place, "a float must stand here");
    }
    double x;
    float narrow;
    if (n.is_single) {
        uint32_t bits = (uint32_t)n.bits;
        if (type != PTX_F64) return bits;
        memcpy(&narrow, &bits, sizeof narrow);
        x = narrow;
        memcpy(&n.bits, &x, sizeof x);
        return n.bits;
    }
    if (type == PTX_F64 || type == PTX_B64 || type == PTX_U64) return n.bits;
    if (type != PTX_F32) parser_fail(p, i->place, "a variable of type .%s has no such value", ptx_type_name(type));
    memcpy(&x, &n.bits, sizeof x);
    narrow = (float)x;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return bits;
}

/* 0xFF00(address) is its second byte: eight in a row are the address. */
static bool continues_masked(Parser *p, Variable *v, const Initializer *i, uint64_t at) {
    int byte = 0;
    while (byte < 8 && i->mask != UINT64_C(0xff) << (8 * byte)) byte++;
    if (byte == 8) parser_fail(p, i->place, "a mask of an address is one byte: 0xFF, 0xFF00, ..");
    if (byte == 0) return false;
    const struct PtxInitAddress *last = v->is.address_count ? &v->is.addresses[v->is.address_count - 1] : NULL;
    bool fits = last && last->at + (uint64_t)byte == at && !strcmp(last->of, i->of->text) &&
                last->offset == (int64_t)i->number.bits && last->generic == i->generic;
    if (!fits) parser_fail(p, i->place, "the bytes of an address stand in a row from the lowest");
    return true;
}

static void place_address(Parser *p, Variable *v, const Initializer *i, uint64_t at, int element) {
    Symbol *meaning = i->of->meaning;
    if (!meaning || (meaning->kind != SYMBOL_VARIABLE && meaning->kind != SYMBOL_FUNCTION))
        parser_fail(p, i->place, "'%s' is no variable or function", i->of->text);
    if (i->mask && element == 1) {
        if (continues_masked(p, v, i, at)) return;
    } else if (i->mask || element != 8) parser_fail(p, i->place, "an address takes 8 bytes");
    if (at + 8 > v->is.bytes) parser_fail(p, i->place, "the address goes past the end of '%s'", v->is.name);
    v->is.addresses = ptx_arena_grow(&p->arena, v->is.addresses, v->is.address_count, sizeof *v->is.addresses);
    v->is.addresses[v->is.address_count++] =
        (struct PtxInitAddress){at, i->of->text, (int64_t)i->number.bits, i->generic};
}

/* |sizes[0..count)|: elements of each further level of braces; one element has |bytes|. */
typedef struct Filling {
    Parser *p;
    Variable *v;
    uint8_t *to;
    uint64_t sizes[MAX_DIMENSIONS + 1];
    int count;
    int dimensions; /* of the sizes; one of a vector follows */
    int element;
} Filling;

static void fill(const Filling *f, const Initializer *i, uint64_t at, int level) {
    uint64_t inner = (uint64_t)f->element;
    for (int d = level + 1; d < f->count; d++) inner *= f->sizes[d];
    if (level == f->count) {
        if (i->is_list) parser_fail(f->p, i->place, "more braces than '%s' has dimensions", f->v->is.name);
        if (i->of) place_address(f->p, f->v, i, at, f->element);
        else {
            uint64_t bits = bits_as(f->p, i, f->v->is.type);
            memcpy(f->to + at, &bits, (size_t)f->element); /* little-endian, as the GPU is */
        }
        return;
    }
    if (!i->is_list) { /* flat lists fill arrays of several dimensions in order */
        parser_fail(f->p, i->place, "values of the array '%s' stand in braces", f->v->is.name);
    }
    uint64_t index = 0;
    for (const Initializer *item = i->items; item; item = item->next, index++) {
        if (index == f->sizes[level]) parser_fail(f->p, item->place, "more values than '%s' holds", f->v->is.name);
        fill(f, item, at + index * inner, level + 1);
    }
    if (level && level < f->dimensions &&
        index < f->sizes[level]) /* the document has zeros there; ptxas goes on with the next list */
        parser_fail(f->p, i->place, "a list within '%s' has fewer values than its dimension", f->v->is.name);
}

void initialize(Parser *p, Variable *v, const Dimensions *dimensions, const Initializer *init) {
    Filling f = {.p = p, .v = v, .element = ptx_type_bytes(v->is.type)};
    if (f.element > 8) parser_fail(p, v->place, "values of 16 bytes are not known");
    f.to = ptx_arena_alloc(&p->arena, (size_t)v->is.bytes);
    for (int i = 0; i < dimensions->count; i++) f.sizes[f.count++] = dimensions->sizes[i];
    f.dimensions = f.count;
    if (v->vector > 1) f.sizes[f.count++] = (uint64_t)v->vector;
    fill(&f, init, 0, 0);
    v->is.init = f.to;
}

/* ---- declarations ------------------------------------------------------------------------------------------------ */

enum { MOST_REGISTERS = 1 << 18, MOST_INITIALIZED = 1 << 28 };

void specs_begin(Parser *p, Place place) { p->specs = (Specs){.place = place, .vector = 1}; }

static PtxSpace space_named(const char *word) {
    static const char *const names[] = {[PTX_REG] = ".reg",       [PTX_PARAM] = ".param", [PTX_GLOBAL] = ".global",
                                        [PTX_SHARED] = ".shared", [PTX_LOCAL] = ".local", [PTX_CONST] = ".const"};
    for (int s = PTX_REG; s <= PTX_CONST; s++)
        if (!strcmp(names[s], word)) return (PtxSpace)s;
    return PTX_SPACE_NONE;
}

/* After .ptr come the space and alignment of what it points to: nothing that we need. */
void specs_word(Parser *p, Place place, Name *word) {
    Specs *s = &p->specs;
    PtxSpace space = space_named(word->text);
    PtxType type = type_named(word->text + 1);
    if (space != PTX_SPACE_NONE) {
        if (s->is_pointer) return;
        if (s->space != PTX_SPACE_NONE) parser_fail(p, place, "a declaration has one state space");
        s->space = space;
    } else if (type != PTX_NONE) {
        if (s->type != PTX_NONE) parser_fail(p, place, "a declaration has one type");
        s->type = type;
    } else if (!strcmp(word->text, ".v2")) s->vector = 2;
    else if (!strcmp(word->text, ".v4")) s->vector = 4;
    else if (!strcmp(word->text, ".v8")) s->vector = 8;
    else if (!strcmp(word->text, ".ptr")) s->is_pointer = true;
    else if (!strcmp(word->text, ".extern")) s->is_extern = true;
    else if (strcmp(word->text, ".visible") && strcmp(word->text, ".weak") && strcmp(word->text, ".common"))
        parser_fail(p, place, "'%s' is not known in a declaration", word->text);
}

void specs_align(Parser *p, Place place, Number align) {
    if (align.bits == 0 || align.bits > 1 << 20 || (align.bits & (align.bits - 1)))
        parser_fail(p, place, "an alignment is a power of two");
    if (!p->specs.is_pointer) p->specs.align = align.bits;
}

static int add_register(Parser *p, const char *name, PtxType type) {
    PtxFunction *f = &p->function->is;
    if (f->register_count == MOST_REGISTERS) parser_fail(p, p->specs.place, "more than %d registers", MOST_REGISTERS);
    f->registers = ptx_arena_grow(&p->arena, f->registers, f->register_count, sizeof(PtxRegister));
    f->registers[f->register_count] = (PtxRegister){name, type};
    return f->register_count++;
}

static void need_type(Parser *p, Place place) {
    if (p->specs.type == PTX_NONE) parser_fail(p, place, "the declaration has no type that is known");
}

static void declare_register(Parser *p, Place place, Name *name) {
    need_type(p, place);
    if (!p->function) parser_fail(p, place, "registers stand inside of functions");
    int count = p->specs.vector;
    Symbol *symbol = scope_declare(p, count > 1 ? SYMBOL_VECTOR : SYMBOL_REGISTER, name, place);
    symbol->count = count;
    symbol->index = p->function->is.register_count;
    if (count == 1) add_register(p, name->text, p->specs.type);
    else
        for (int i = 0; i < count; i++)
            add_register(p, parser_print(p, "%s.%c", name->text, "xyzwabcd"[i]), p->specs.type);
}

void declare_range(Parser *p, Place place, Name *prefix, Number count) {
    if (p->specs.space != PTX_REG || p->specs.vector > 1)
        parser_fail(p, place, "only registers are declared as NAME<N>");
    if (count.bits > MOST_REGISTERS) parser_fail(p, place, "more than %d registers", MOST_REGISTERS);
    for (uint64_t i = 0; i < count.bits; i++) {
        const char *text = parser_print(p, "%s%d", prefix->text, (int)i);
        declare_register(p, place, parser_name(p, text, strlen(text)));
    }
}

static uint64_t array_bytes(Parser *p, Place place, uint64_t element, const Dimensions *d) {
    uint64_t bytes = element;
    for (int i = 0; i < d->count; i++) {
        if (d->sizes[i] && bytes > (UINT64_C(1) << 40) / d->sizes[i]) parser_fail(p, place, "the array is too large");
        bytes *= d->sizes[i];
    }
    return bytes;
}

static Variable *variable_new(Parser *p, Place place, Name *name, const Dimensions *dimensions) {
    need_type(p, place);
    const Specs *s = &p->specs;
    if (s->type == PTX_PRED) parser_fail(p, place, "predicates are registers only");
    uint64_t element = (uint64_t)ptx_type_bytes(s->type) * (uint64_t)s->vector;
    Variable *v = ptx_arena_alloc(&p->arena, sizeof *v);
    v->name = name;
    v->place = place;
    v->vector = s->vector;
    v->is = (PtxVariable){.name = name->text,
                          .space = s->space,
                          .type = s->type,
                          .bytes = array_bytes(p, place, element, dimensions),
                          .align = s->align ? s->align : element,
                          .is_extern = s->is_extern,
                          .reg = -1};
    return v;
}

void variables_add(Variables *list, Variable *v) {
    if (list->last) list->last->next = v;
    else list->first = v;
    list->last = v;
    list->count++;
}

/* What an open first dimension [] is to hold follows from the initializer. */
static void close_dimension(Parser *p, Variable *v, Dimensions *d, const Initializer *init) {
    if (!d->is_open) return;
    bool may_stay = v->is.is_extern || v->is.space == PTX_PARAM;
    if (!init && !may_stay) parser_fail(p, v->place, "the array '%s' has no size", v->is.name);
    if (!init) return;
    for (const Initializer *item = init->items; item; item = item->next) d->sizes[0]++;
    v->is.bytes = array_bytes(p, v->place, (uint64_t)ptx_type_bytes(v->is.type) * (uint64_t)v->vector, d);
}

void declare(Parser *p, Place place, Name *name, const Dimensions *dimensions, Initializer *init) {
    if (p->specs.space == PTX_REG) {
        if (dimensions->count || init) parser_fail(p, place, "a register is no array and has no initial value");
        declare_register(p, place, name);
        return;
    }
    PtxSpace space = p->specs.space;
    bool belongs_inside = space == PTX_LOCAL || space == PTX_PARAM;
    if (space == PTX_SPACE_NONE || (belongs_inside && !p->function))
        parser_fail(p, place, "'%s' has no state space that variables can have here", name->text);
    Dimensions d = *dimensions;
    Variable *v = variable_new(p, place, name, &d);
    close_dimension(p, v, &d, init);
    scope_declare(p, SYMBOL_VARIABLE, name, place)->variable = v;
    if (init) {
        if (space != PTX_GLOBAL && space != PTX_CONST)
            parser_fail(p, place, "only .global and .const have initial values");
        if (v->is.bytes > MOST_INITIALIZED) parser_fail(p, place, "more than %d initialized bytes", MOST_INITIALIZED);
        initialize(p, v, &d, init);
    }
    bool is_of_module = !p->function || space == PTX_GLOBAL || space == PTX_CONST;
    variables_add(is_of_module ? &p->variables : &p->function->locals, v);
}

Variable *declare_parameter(Parser *p, Place place, Name *name, const Dimensions *dimensions) {
    if (p->specs.space != PTX_PARAM && p->specs.space != PTX_REG)
        parser_fail(p, place, "a parameter is declared .param or .reg");
    if (p->specs.space != PTX_REG) return variable_new(p, place, name, dimensions);
    need_type(p, place);
    if (dimensions->count || p->specs.vector > 1) parser_fail(p, place, "a parameter in a register is one value");
    PtxType type = p->specs.type;
    p->specs.type = type == PTX_PRED ? PTX_B32 : type; /* has no size of its own */
    Variable *v = variable_new(p, place, name, dimensions);
    v->is.type = type;
    return v;
}
