/* function.c: kernels and functions: names, parameters, what their directives ask for, and instructions. */
#include "fakecuda/ptx/parser.h"

#include <string.h>

void function_begin(Parser *p, Place place, bool is_entry) {
    ParsedFunction *f = ptx_arena_alloc(&p->arena, sizeof *f);
    f->is.is_entry = is_entry;
    f->is.line = place.line;
    p->function = f;
    p->origin = NULL;
    p->loc_line = 0;
}

/* In the list of the module is the definition, or else the first declaration. */
static void list_function(Parser *p, Place place, Name *name) {
    Symbol *known = name->meaning;
    if (known && known->kind != SYMBOL_FUNCTION)
        parser_fail(p, place, "'%s' is declared as something else", name->text);
    if (known) return;
    ParsedFunction *listed = ptx_arena_alloc(&p->arena, sizeof *listed);
    listed->is.is_declaration = true;
    scope_declare(p, SYMBOL_FUNCTION, name, place)->function = listed;
    if (p->last_function) p->last_function->next = listed;
    else p->functions = listed;
    p->last_function = listed;
    p->function_count++;
}

/* Names of parameters are known inside; those in registers are registers. */
static void declare_all(Parser *p, Variables list) {
    for (Variable *v = list.first; v; v = v->next) {
        if (!strcmp(v->is.name, "_")) continue;
        bool in_register = v->is.space == PTX_REG;
        Symbol *symbol = scope_declare(p, in_register ? SYMBOL_REGISTER : SYMBOL_VARIABLE, v->name, v->place);
        symbol->variable = v;
        if (!in_register) continue;
        PtxFunction *f = &p->function->is;
        f->registers = ptx_arena_grow(&p->arena, f->registers, f->register_count, sizeof(PtxRegister));
        f->registers[f->register_count] = (PtxRegister){v->is.name, v->is.type};
        v->is.reg = symbol->index = f->register_count++;
    }
}

void function_named(Parser *p, Place place, Name *name, Variables results) {
    list_function(p, place, name);
    p->function->is.name = name->text;
    scope_open(p);
    p->function->results = results;
    declare_all(p, results);
}

void function_parameters(Parser *p, Variables params) {
    PtxFunction *f = &p->function->is;
    p->function->params = params;
    declare_all(p, params);
    f->param_offsets = ptx_arena_alloc(&p->arena, sizeof(uint64_t) * ((size_t)params.count + 1));
    int i = 0;
    for (const Variable *v = params.first; v; v = v->next) {
        if (f->is_entry && v->is.space != PTX_PARAM) parser_fail(p, v->place, "parameters of an entry are .param");
        f->param_bytes = (f->param_bytes + v->is.align - 1) & ~(v->is.align - 1);
        f->param_offsets[i++] = f->param_bytes;
        f->param_bytes += v->is.bytes;
    }
}

void function_directive(Parser *p, Place place, Name *word, const Number *numbers, int count) {
    PtxFunction *f = &p->function->is;
    int ignored[3];
    const struct {
        const char *name;
        int least, most; /* numbers */
        int *to;
    } table[] = {
        {".maxntid", 1, 3, f->max_threads},
        {".reqntid", 1, 3, f->required_threads},
        {".minnctapersm", 1, 1, &f->min_blocks},
        {".maxnreg", 1, 1, &f->max_registers},
        {".reqnctapercluster", 1, 3, f->cluster},
        {".maxnctapersm", 1, 1, ignored},
        {".maxclusterrank", 1, 1, ignored},
        {".explicitcluster", 0, 0, ignored},
        {".noreturn", 0, 0, ignored},
        {".abi_preserve", 1, 1, ignored},
        {".abi_preserve_control", 1, 1, ignored},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(table[i].name, word->text)) continue;
        if (count < table[i].least || count > table[i].most)
            parser_fail(p, place, "'%s' has %d to %d numbers", word->text, table[i].least, table[i].most);
        for (int n = 0; n < table[i].most; n++) {
            uint64_t value = n < count ? numbers[n].bits : 1;
            if (value > INT32_MAX) parser_fail(p, place, "the number of '%s' is too large", word->text);
            table[i].to[n] = (int)value;
        }
        return;
    }
    parser_fail(p, place, "'%s' is not known before the body of a function", word->text);
}

void function_end(Parser *p, Place place, bool has_body) {
    ParsedFunction *f = p->function;
    scope_close(p);
    f->is.is_declaration = !has_body;
    Name *name = parser_name(p, f->is.name, strlen(f->is.name));
    ParsedFunction *listed = name->meaning->function, *next = listed->next;
    if (has_body && !listed->is.is_declaration) parser_fail(p, place, "'%s' has a body already", f->is.name);
    if (listed->is.is_declaration) {
        *listed = *f;
        listed->next = next;
    }
    p->function = NULL;
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

/* Operands, with what their names mean. */

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
    if (predicate->kind != PTX_OP_REGISTER) parser_fail(p, place, "'!' must be followed by a predicate");
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

/* ---- instructions ------------------------------------------------------------------------------------------------ */

/* One instruction: its modifiers, types, operands and text. */

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
