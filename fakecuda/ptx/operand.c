/* operand.c: operands, with what their names mean. */
#include <string.h>

#include "fakecuda/ptx/parser.h"

static PtxOperand *operand_new(Parser *p, PtxOperandKind kind) {
    PtxOperand *o = ptx_arena_alloc(&p->arena, sizeof *o);
    o->kind = kind;
    return o;
}

PtxOperand *operand_number(Parser *p, Number number) {
    PtxOperand *o = operand_new(p, number.is_float ? PTX_OP_FLOAT : PTX_OP_INTEGER);
    o->bits = number.bits;
    o->is_double = number.is_float && !number.is_single;
    return o;
}

static PtxOperand *variable_operand(Parser *p, const Variable *v) {
    PtxOperand *o = operand_new(p, PTX_OP_VARIABLE);
    o->name = v->is.name;
    o->variable = &v->is; /* its place until the module is finished */
    return o;
}

static PtxOperand *register_operand(Parser *p, int index) {
    PtxOperand *o = operand_new(p, PTX_OP_REGISTER);
    o->index = index;
    o->name = p->function->is.registers[index].name;
    return o;
}

static PtxOperand *vector_operand(Parser *p, const Symbol *symbol) {
    Operands items = {0};
    for (int i = 0; i < symbol->count; i++) operands_add(p, &items, register_operand(p, symbol->index + i));
    return operand_of(p, PTX_OP_VECTOR, &items);
}

static PtxOperand *symbol_operand(Parser *p, const Symbol *symbol) {
    PtxOperand *o;
    switch (symbol->kind) {
    case SYMBOL_REGISTER: return register_operand(p, symbol->index);
    case SYMBOL_VECTOR: return vector_operand(p, symbol);
    case SYMBOL_VARIABLE: return variable_operand(p, symbol->variable);
    case SYMBOL_TARGETS:
        o = operand_new(p, PTX_OP_LIST);
        *o = *symbol->list;
        return o;
    default:
        o = operand_new(p, symbol->kind == SYMBOL_FUNCTION ? PTX_OP_FUNCTION : PTX_OP_PROTOTYPE);
        o->name = symbol->name->text;
        return o;
    }
}

/* v.x of a register declared .v2 or .v4; NULL: no such. */
static PtxOperand *component(Parser *p, const char *text) {
    const char *dot = strrchr(text, '.');
    if (!dot || strlen(dot) != 2) return NULL;
    const char *letters = "xyzwrgba", *letter = strchr(letters, dot[1]);
    Symbol *symbol = parser_name(p, text, (size_t)(dot - text))->meaning;
    if (!letter || !symbol || symbol->kind != SYMBOL_VECTOR) return NULL;
    int i = (int)(letter - letters) % 4;
    return i < symbol->count ? register_operand(p, symbol->index + i) : NULL;
}

PtxOperand *operand_name(Parser *p, Place place, Name *name) {
    if (p->instruction.is_branch) { /* its place in the code is known where its scope ends */
        PtxOperand *o = operand_new(p, PTX_OP_LABEL);
        o->name = name->text;
        return o;
    }
    if (name->meaning && name->meaning->kind != SYMBOL_LABEL) return symbol_operand(p, name->meaning);
    PtxOperand *o = component(p, name->text);
    if (o) return o;
    int special = special_named(name->text);
    if (special < 0) parser_fail(p, place, "'%s' is not declared", name->text);
    o = operand_new(p, PTX_OP_SPECIAL);
    o->index = special;
    o->name = name->text;
    return o;
}

PtxOperand *operand_sum(Parser *p, Place place, Name *name, Number offset) {
    PtxOperand *o = operand_name(p, place, name);
    if (o->kind != PTX_OP_VARIABLE) parser_fail(p, place, "only to the address of a variable a number is added");
    o->offset = number_integer(p, place, offset);
    return o;
}

PtxOperand *operand_element(Parser *p, Place place, Name *name, Number index) {
    PtxOperand *o = operand_name(p, place, name);
    if (o->kind != PTX_OP_VARIABLE) parser_fail(p, place, "'%s' is no array", name->text);
    const Variable *v = (const Variable *)o->variable;
    Number offset = {.bits = (uint64_t)number_integer(p, place, index) * (uint64_t)ptx_type_bytes(v->is.type) *
                             (uint64_t)v->vector};
    if (p->instruction.has_addresses) return operand_address(p, place, o, offset);
    o->offset = (int64_t)offset.bits;
    return o;
}

PtxOperand *operand_of(Parser *p, PtxOperandKind kind, const Operands *items) {
    PtxOperand *o = operand_new(p, kind);
    o->items = items->items;
    o->count = items->count;
    return o;
}

PtxOperand *operand_pair(Parser *p, Place place, PtxOperand *first, PtxOperand *second) {
    Operands items = {0};
    PtxOperand *parts[2] = {first, second};
    for (int i = 0; i < 2; i++) {
        if (parts[i]->kind != PTX_OP_REGISTER && parts[i]->kind != PTX_OP_SINK)
            parser_fail(p, place, "the results beside '|' are registers or '_'");
        operands_add(p, &items, parts[i]);
    }
    return operand_of(p, PTX_OP_PAIR, &items);
}

PtxOperand *operand_not(Parser *p, Place place, PtxOperand *predicate) {
    if (predicate->kind != PTX_OP_REGISTER) parser_fail(p, place, "behind '!' stands a predicate");
    Operands items = {0};
    operands_add(p, &items, predicate);
    return operand_of(p, PTX_OP_NOT, &items);
}

PtxOperand *operand_address(Parser *p, Place place, PtxOperand *base, Number offset) {
    bool is_base = base->kind == PTX_OP_REGISTER || base->kind == PTX_OP_VARIABLE || base->kind == PTX_OP_INTEGER;
    if (!is_base) parser_fail(p, place, "an address is a register, a variable or an integer, plus a number");
    PtxOperand *o = operand_new(p, PTX_OP_ADDRESS);
    o->base = base;
    o->name = base->name;
    o->variable = base->variable;
    o->offset = number_integer(p, place, offset);
    return o;
}

void operands_add(Parser *p, Operands *list, const PtxOperand *operand) {
    list->items = ptx_arena_grow(&p->arena, list->items, list->count, sizeof(PtxOperand));
    list->items[list->count++] = *operand;
}
