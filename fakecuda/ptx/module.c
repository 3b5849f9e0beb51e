/* module.c: parsing as a whole, and the finished module. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda/ptx/parser.h"

/* ---- text and names ---------------------------------------------------------------------------------------------- */

void parser_fail(Parser *p, Place place, const char *format, ...) {
    if (p->message_size) {
        int used = snprintf(p->message, p->message_size, "ptx:%d:%d: ", place.line, place.column);
        va_list args;
        va_start(args, format);
        if (used >= 0 && (size_t)used < p->message_size)
            vsnprintf(p->message + used, p->message_size - (size_t)used, format, args);
        va_end(args);
    }
    longjmp(p->failed, 2);
}

const char *parser_print(Parser *p, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    char *text = ptx_arena_alloc(&p->arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}

static uint32_t hash(const char *text, size_t length) { /* FNV-1a */
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < length; i++) h = (h ^ (uint8_t)text[i]) * 16777619u;
    return h;
}

static void more_slots(Parser *p) {
    int slots = p->name_slots ? p->name_slots * 2 : 1024;
    Name **names = ptx_arena_alloc(&p->arena, sizeof *names * (size_t)slots);
    for (int i = 0; i < p->name_slots; i++)
        for (Name *n = p->names[i], *next; n; n = next) {
            next = n->next;
            Name **slot = &names[hash(n->text, strlen(n->text)) & (uint32_t)(slots - 1)];
            n->next = *slot;
            *slot = n;
        }
    p->names = names;
    p->name_slots = slots;
}

Name *parser_name(Parser *p, const char *text, size_t length) {
    if (p->name_count >= p->name_slots) more_slots(p);
    Name **slot = &p->names[hash(text, length) & (uint32_t)(p->name_slots - 1)];
    for (Name *n = *slot; n; n = n->next)
        if (!strncmp(n->text, text, length) && n->text[length] == 0) return n;
    Name *n = ptx_arena_alloc(&p->arena, sizeof *n);
    n->text = ptx_arena_copy(&p->arena, text, length);
    n->next = *slot;
    *slot = n;
    p->name_count++;
    return n;
}

/* ---- header ------------------------------------------------------------------------------------------------------ */

void module_version(Parser *p, Place place, Number version) {
    double x = 0;
    if (version.is_float && !version.is_single) memcpy(&x, &version.bits, sizeof x);
    if (!(x >= 1 && x < 100)) parser_fail(p, place, "a version is two numbers with a dot");
    p->module->version = (int)(x * 10 + 0.5);
}

void module_target(Parser *p, Place place, const Names *words) {
    const char *text = words->name->text;
    int number = 0, used = 0;
    if (sscanf(text, "sm_%3d%n", &number, &used) != 1 || number <= 0) parser_fail(p, place, "'%s' is no target", text);
    bool has_suffix = text[used] && !text[used + 1] && strchr("af", text[used]);
    if (text[used] && !has_suffix) parser_fail(p, place, "'%s' is no target", text);
    p->module->target = number;
    p->module->target_suffix = text[used];
}

/* ---- the end: everything to its place ---------------------------------------------------------------------------- */

static PtxVariable *place_all(Parser *p, Variables list) {
    PtxVariable *to = ptx_arena_alloc(&p->arena, sizeof *to * ((size_t)list.count + 1));
    int i = 0;
    for (Variable *v = list.first; v; v = v->next) {
        to[i] = v->is;
        v->placed = &to[i++];
    }
    return to;
}

/* Operands point to the variables of the parser until here. */
static void replace_variables(PtxOperand *o) {
    if (o->variable) o->variable = ((const Variable *)o->variable)->placed;
    if (o->base) replace_variables(o->base);
    for (int i = 0; i < o->count; i++) replace_variables(&o->items[i]);
}

static void finish_function(Parser *p, Function *f, PtxFunction *to) {
    f->is.params = place_all(p, f->params);
    f->is.param_count = f->params.count;
    f->is.results = place_all(p, f->results);
    f->is.result_count = f->results.count;
    f->is.locals = place_all(p, f->locals);
    f->is.local_count = f->locals.count;
    *to = f->is;
    for (int i = 0; i < to->count; i++)
        for (int n = 0; n < to->code[i].operand_count; n++) replace_variables(&to->code[i].operands[n]);
}

void module_finish(Parser *p, Place end) {
    PtxModule *m = p->module;
    if (!m->version || !m->target) parser_fail(p, end, "the text has no .version or no .target");
    m->variables = place_all(p, p->variables);
    m->variable_count = p->variables.count;
    m->functions = ptx_arena_alloc(&p->arena, sizeof(PtxFunction) * ((size_t)p->function_count + 1));
    for (Function *f = p->functions; f; f = f->next) finish_function(p, f, &m->functions[m->function_count++]);
}

/* ---- outside ----------------------------------------------------------------------------------------------------- */

typedef struct Owner { /* a module and its memory */
    PtxModule module;
    Arena arena;
} Owner;

static bool parse(Parser *p) {
    int why = setjmp(p->failed);
    if (why == 1 && p->message_size) snprintf(p->message, p->message_size, "ptx: out of memory");
    if (why) return false;
    Owner *owner = ptx_arena_alloc(&p->arena, sizeof *owner);
    p->module = &owner->module;
    scope_open(p);
    scanner_begin(p);
    return ptx_yyparse(p) == 0;
}

PtxModule *ptx_parse(const char *text, size_t length, char *message, size_t size) {
    Parser *p = calloc(1, sizeof *p);
    if (size) *message = 0;
    if (!p) {
        if (size) snprintf(message, size, "ptx: out of memory");
        return NULL;
    }
    *p = (Parser){.text = text, .length = length, .message = message, .message_size = size};
    p->arena.out_of_memory = &p->failed;
    PtxModule *m = NULL;
    if (length > INT32_MAX / 2) {
        if (size) snprintf(message, size, "ptx: the text is larger than 1 GiB");
    } else if (parse(p)) {
        m = p->module;
        ((Owner *)m)->arena = p->arena;
    } else ptx_arena_free(&p->arena);
    free(p);
    return m;
}

void ptx_free(PtxModule *m) {
    if (!m) return;
    Arena arena = ((Owner *)m)->arena;
    ptx_arena_free(&arena);
}

const PtxFunction *ptx_function(const PtxModule *m, const char *name) {
    for (int i = 0; i < m->function_count; i++)
        if (!strcmp(m->functions[i].name, name)) return &m->functions[i];
    return NULL;
}

const PtxVariable *ptx_variable(const PtxModule *m, const char *name) {
    for (int i = 0; i < m->variable_count; i++)
        if (!strcmp(m->variables[i].name, name)) return &m->variables[i];
    return NULL;
}

bool ptx_has(const PtxInstruction *i, const char *modifier) {
    for (int n = 0; n < i->modifier_count; n++)
        if (!strcmp(i->modifiers[n], modifier)) return true;
    return false;
}
