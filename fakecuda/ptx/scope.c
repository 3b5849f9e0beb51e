/* scope.c: what names mean: braces open scopes for registers, variables and labels, and may shadow. */
#include <string.h>

#include "fakecuda/ptx/parser.h"

void scope_open(Parser *p) {
    Scope *s = ptx_arena_alloc(&p->arena, sizeof *s);
    s->outer = p->scope;
    p->scope = s;
}

static PtxOperand *used_operand(Parser *p, const LabelUse *use) {
    return use->operand ? use->operand : &p->function->is.code[use->instruction].operands[use->position];
}

/* A label of this scope answers; other uses wait for the scope around, whose labels may still come. */
static void resolve(Parser *p, LabelUse *use, Scope *s) {
    Symbol *meaning = use->name->meaning;
    if (meaning && meaning->scope == s) {
        if (meaning->kind != SYMBOL_LABEL) parser_fail(p, use->place, "'%s' is no label", use->name->text);
        used_operand(p, use)->index = meaning->index;
    } else if (s->outer && s->outer->outer) {
        use->next = s->outer->uses;
        s->outer->uses = use;
    } else parser_fail(p, use->place, "there is no label '%s'", use->name->text);
}

void scope_close(Parser *p) {
    Scope *s = p->scope;
    for (LabelUse *use = s->uses, *next; use; use = next) {
        next = use->next;
        resolve(p, use, s);
    }
    for (Symbol *symbol = s->symbols; symbol; symbol = symbol->next) symbol->name->meaning = symbol->outer;
    p->scope = s->outer;
}

Symbol *scope_declare(Parser *p, SymbolKind kind, Name *name, Place place) {
    if (name->meaning && name->meaning->scope == p->scope)
        parser_fail(p, place, "'%s' is declared already in this scope", name->text);
    Symbol *symbol = ptx_arena_alloc(&p->arena, sizeof *symbol);
    *symbol =
        (Symbol){.kind = kind, .name = name, .scope = p->scope, .outer = name->meaning, .next = p->scope->symbols};
    name->meaning = p->scope->symbols = symbol;
    return symbol;
}

void scope_label(Parser *p, Name *name, Place place) {
    scope_declare(p, SYMBOL_LABEL, name, place)->index = p->function->is.count;
}

void scope_use_label(Parser *p, Name *name, Place place, PtxOperand *operand, int instruction, int position) {
    LabelUse *use = ptx_arena_alloc(&p->arena, sizeof *use);
    *use = (LabelUse){name, place, operand, instruction, position, p->scope->uses};
    p->scope->uses = use;
}
