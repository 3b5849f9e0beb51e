/* function.c: kernels and functions: names, parameters and what their directives ask for. */
#include <string.h>

#include "fakecuda/ptx/parser.h"

void function_begin(Parser *p, Place place, bool is_entry) {
    Function *f = ptx_arena_alloc(&p->arena, sizeof *f);
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
    Function *listed = ptx_arena_alloc(&p->arena, sizeof *listed);
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
    Function *f = p->function;
    scope_close(p);
    f->is.is_declaration = !has_body;
    Name *name = parser_name(p, f->is.name, strlen(f->is.name));
    Function *listed = name->meaning->function, *next = listed->next;
    if (has_body && !listed->is.is_declaration) parser_fail(p, place, "'%s' has a body already", f->is.name);
    if (listed->is.is_declaration) {
        *listed = *f;
        listed->next = next;
    }
    p->function = NULL;
}
