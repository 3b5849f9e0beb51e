/* declare.c: declarations: registers, variables and parameters. */
#include <string.h>

#include "fakecuda/ptx/parser.h"

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
