/* instruction.c: one instruction: its modifiers, types, operands and text. */
#include <string.h>

#include "fakecuda/ptx/parser.h"

void instruction_guard(Parser *p, Place place, Name *predicate, bool negated) {
    Symbol *symbol = predicate->meaning;
    if (!symbol || symbol->kind != SYMBOL_REGISTER || p->function->is.registers[symbol->index].type != PTX_PRED)
        parser_fail(p, place, "'%s' is no predicate", predicate->text);
    p->instruction.guard = symbol->index + 1;
    p->instruction.guard_negated = negated;
}

/* Decides, before the operands are read, how names in them are meant. */
void instruction_opcode(Parser *p, Place place, const char *full) {
    static const char *const of_values[] = {"mov", "cvta", "call"}; /* a variable in them is its address */
    if (full[0] == '%' || full[0] == '$' || full[0] == '_') parser_fail(p, place, "'%s' is no instruction", full);
    p->instruction.place = place;
    p->instruction.full = full;
    size_t length = strcspn(full, ".");
    p->instruction.is_branch = length == 3 && !memcmp(full, "bra", 3);
    p->instruction.has_addresses = true;
    for (size_t i = 0; i < sizeof of_values / sizeof *of_values; i++)
        if (strlen(of_values[i]) == length && !memcmp(of_values[i], full, length)) p->instruction.has_addresses = false;
}

static void take_modifiers(Parser *p, PtxInstruction *i, const char *full) {
    const char *dot = strchr(full, '.');
    i->full = full;
    i->opcode = ptx_arena_copy(&p->arena, full, dot ? (size_t)(dot - full) : strlen(full));
    int count = 0;
    for (const char *c = dot; c; c = strchr(c + 1, '.')) count++;
    i->modifiers = ptx_arena_alloc(&p->arena, sizeof(char *) * (size_t)(count + 1));
    while (dot) {
        const char *start = dot + 1;
        dot = strchr(start, '.');
        const char *word = ptx_arena_copy(&p->arena, start, dot ? (size_t)(dot - start) : strlen(start));
        i->modifiers[i->modifier_count++] = word;
        PtxType type = type_named(word);
        if (type != PTX_NONE && i->type_count < 4) i->types[i->type_count++] = type;
    }
}

/* Instructions on f32 and f64 read constants of that width, however they are written. */
static void widen_floats(PtxOperand *o, PtxType type) {
    for (int i = 0; i < o->count; i++) widen_floats(&o->items[i], type);
    if (o->kind != PTX_OP_FLOAT || o->is_double == (type == PTX_F64)) return;
    double wide;
    float narrow;
    uint32_t bits = (uint32_t)o->bits;
    if (type == PTX_F64) {
        memcpy(&narrow, &bits, sizeof narrow);
        wide = narrow;
        memcpy(&o->bits, &wide, sizeof wide);
    } else {
        memcpy(&wide, &o->bits, sizeof wide);
        narrow = (float)wide;
        memcpy(&bits, &narrow, sizeof bits);
        o->bits = bits;
    }
    o->is_double = type == PTX_F64;
}

/* Between two places of the text, with one blank for blanks and comments. */
static const char *plain_text(Parser *p, uint32_t begin, uint32_t end) {
    char *out = ptx_arena_alloc(&p->arena, end - begin + 1), *o = out;
    for (uint32_t i = begin; i < end;) {
        const char *c = p->text + i;
        bool is_line_comment = end - i > 1 && c[0] == '/' && c[1] == '/';
        bool is_block_comment = end - i > 1 && c[0] == '/' && c[1] == '*';
        if (is_line_comment)
            while (i < end && p->text[i] != '\n') i++;
        else if (is_block_comment) {
            for (i += 2; i < end && (p->text[i] != '/' || p->text[i - 1] != '*'); i++) {
            }
            i += i < end;
        } else if (strchr(" \t\r\n\v\f", *c)) i++;
        else {
            *o++ = *c;
            i++;
            continue;
        }
        if (o > out && o[-1] != ' ') *o++ = ' ';
    }
    if (o > out && o[-1] == ' ') o--;
    *o = 0;
    return out;
}

void instruction_add(Parser *p, Place end, const Operands *operands) {
    Place place = p->instruction.place;
    PtxFunction *f = &p->function->is;
    if (operands->count > PTX_MAX_OPERANDS) parser_fail(p, place, "more than %d operands", PTX_MAX_OPERANDS);
    f->code = ptx_arena_grow(&p->arena, f->code, f->count, sizeof *f->code);
    PtxInstruction *i = &f->code[f->count];
    *i = (PtxInstruction){.line = place.line,
                          .guard = p->instruction.guard - 1,
                          .guard_negated = p->instruction.guard_negated,
                          .operand_count = operands->count,
                          .source_line = p->loc_line,
                          .origin = p->origin};
    take_modifiers(p, i, p->instruction.full);
    i->text = plain_text(p, place.begin, end.end);
    PtxType read = i->type_count ? i->types[i->type_count - 1] : PTX_NONE;
    for (int n = 0; n < operands->count; n++) {
        i->operands[n] = operands->items[n];
        if (read == PTX_F32 || read == PTX_F64) widen_floats(&i->operands[n], read);
        if (i->operands[n].kind != PTX_OP_LABEL) continue;
        const char *name = i->operands[n].name;
        scope_use_label(p, parser_name(p, name, strlen(name)), place, NULL, f->count, n);
    }
    if (p->instruction.is_branch && (operands->count != 1 || operands->items[0].kind != PTX_OP_LABEL))
        parser_fail(p, place, "a branch has one operand, a label");
    f->count++;
    p->instruction.guard = 0;
    p->instruction.guard_negated = p->instruction.is_branch = false;
}

void instruction_targets(Parser *p, Place place, Name *label, const Names *names, bool are_labels) {
    Operands items = {0};
    for (const Names *n = names; n; n = n->next) {
        PtxOperand item = {.kind = are_labels ? PTX_OP_LABEL : PTX_OP_FUNCTION, .name = n->name->text};
        operands_add(p, &items, &item);
    }
    const Names *n = names;
    if (are_labels)
        for (int i = 0; i < items.count; i++, n = n->next) scope_use_label(p, n->name, n->place, &items.items[i], 0, 0);
    scope_declare(p, SYMBOL_TARGETS, label, place)->list = operand_of(p, PTX_OP_LIST, &items);
}
