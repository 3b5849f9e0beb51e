/* initialize.c: initial values of variables: numbers, addresses, nested lists that may be short. */
#include <math.h>
#include <string.h>

#include "fakecuda/ptx/parser.h"

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
}

void initialize(Parser *p, Variable *v, const Dimensions *dimensions, const Initializer *init) {
    Filling f = {.p = p, .v = v, .element = ptx_type_bytes(v->is.type)};
    if (f.element > 8) parser_fail(p, v->place, "values of 16 bytes are not known");
    f.to = ptx_arena_alloc(&p->arena, (size_t)v->is.bytes);
    for (int i = 0; i < dimensions->count; i++) f.sizes[f.count++] = dimensions->sizes[i];
    if (v->vector > 1) f.sizes[f.count++] = (uint64_t)v->vector;
    fill(&f, init, 0, 0);
    v->is.init = f.to;
}
