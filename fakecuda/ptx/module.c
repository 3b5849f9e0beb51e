/* module.c: parsing as a whole, and the finished module. */
#include "fakecuda/ptx/parser.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Blocks that live as long as the module. */

typedef struct ArenaBlock {
    struct ArenaBlock *next;
    size_t pad;
} ArenaBlock;

enum { BLOCK_BYTES = 256 * 1024, ALIGN = 16 };

void *ptx_arena_alloc(Arena *a, size_t bytes) {
    if (bytes > SIZE_MAX / 4) longjmp(*a->out_of_memory, 1);
    bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (!a->blocks || a->size - a->used < bytes) {
        size_t size = sizeof(ArenaBlock) + (bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES);
        ArenaBlock *block = calloc(1, size);
        if (!block) longjmp(*a->out_of_memory, 1);
        block->next = a->blocks;
        a->blocks = block;
        a->used = sizeof *block;
        a->size = size;
    }
    void *result = (char *)a->blocks + a->used;
    a->used += bytes;
    return result;
}

char *ptx_arena_copy(Arena *a, const char *text, size_t length) {
    char *copy = ptx_arena_alloc(a, length + 1);
    memcpy(copy, text, length);
    return copy;
}

void ptx_arena_free(Arena *a) {
    for (ArenaBlock *block = a->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    a->blocks = NULL;
}

void *ptx_arena_grow(Arena *a, void *items, int count, size_t item_bytes) {
    bool is_full = count == 0 || (count >= 4 && (count & (count - 1)) == 0);
    if (!is_full) return items;
    void *larger = ptx_arena_alloc(a, item_bytes * (count ? 2 * (size_t)count : 4));
    if (count) memcpy(larger, items, item_bytes * (size_t)count);
    return larger;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* Those for types and special registers. */

static const struct {
    const char *name;
    int bytes;
} types[PTX_TYPE_COUNT] = {
    [PTX_NONE] = {"", 0},       [PTX_PRED] = {"pred", 0}, [PTX_B8] = {"b8", 1},         [PTX_B16] = {"b16", 2},
    [PTX_B32] = {"b32", 4},     [PTX_B64] = {"b64", 8},   [PTX_B128] = {"b128", 16},    [PTX_U8] = {"u8", 1},
    [PTX_U16] = {"u16", 2},     [PTX_U32] = {"u32", 4},   [PTX_U64] = {"u64", 8},       [PTX_S8] = {"s8", 1},
    [PTX_S16] = {"s16", 2},     [PTX_S32] = {"s32", 4},   [PTX_S64] = {"s64", 8},       [PTX_F16] = {"f16", 2},
    [PTX_F16X2] = {"f16x2", 4}, [PTX_BF16] = {"bf16", 2}, [PTX_BF16X2] = {"bf16x2", 4}, [PTX_TF32] = {"tf32", 4},
    [PTX_F32] = {"f32", 4},     [PTX_F64] = {"f64", 8},
};

int ptx_type_bytes(PtxType t) { return types[t].bytes; }

const char *ptx_type_name(PtxType t) { return types[t].name; }

PtxType type_named(const char *word) {
    for (int t = PTX_NONE + 1; t < PTX_TYPE_COUNT; t++)
        if (!strcmp(types[t].name, word)) return (PtxType)t;
    return PTX_NONE;
}

static const char *const specials[PTX_SPECIAL_COUNT] = {
    [PTX_TID_X] = "%tid.x",
    [PTX_TID_Y] = "%tid.y",
    [PTX_TID_Z] = "%tid.z",
    [PTX_NTID_X] = "%ntid.x",
    [PTX_NTID_Y] = "%ntid.y",
    [PTX_NTID_Z] = "%ntid.z",
    [PTX_CTAID_X] = "%ctaid.x",
    [PTX_CTAID_Y] = "%ctaid.y",
    [PTX_CTAID_Z] = "%ctaid.z",
    [PTX_NCTAID_X] = "%nctaid.x",
    [PTX_NCTAID_Y] = "%nctaid.y",
    [PTX_NCTAID_Z] = "%nctaid.z",
    [PTX_LANEID] = "%laneid",
    [PTX_WARPID] = "%warpid",
    [PTX_NWARPID] = "%nwarpid",
    [PTX_SMID] = "%smid",
    [PTX_NSMID] = "%nsmid",
    [PTX_GRIDID] = "%gridid",
    [PTX_LANEMASK_EQ] = "%lanemask_eq",
    [PTX_LANEMASK_LE] = "%lanemask_le",
    [PTX_LANEMASK_LT] = "%lanemask_lt",
    [PTX_LANEMASK_GE] = "%lanemask_ge",
    [PTX_LANEMASK_GT] = "%lanemask_gt",
    [PTX_CLOCK] = "%clock",
    [PTX_CLOCK64] = "%clock64",
    [PTX_CLOCK_HI] = "%clock_hi",
    [PTX_GLOBALTIMER] = "%globaltimer",
    [PTX_DYNAMIC_SMEM_SIZE] = "%dynamic_smem_size",
    [PTX_TOTAL_SMEM_SIZE] = "%total_smem_size",
    [PTX_CLUSTER_CTARANK] = "%cluster_ctarank",
    [PTX_CLUSTER_NCTARANK] = "%cluster_nctarank",
    [PTX_CLUSTERID_X] = "%clusterid.x",
    [PTX_CLUSTER_CTAID_X] = "%cluster_ctaid.x",
};

int special_named(const char *word) {
    if (word[0] != '%') return -1;
    for (int s = 0; s < PTX_SPECIAL_COUNT; s++)
        if (!strcmp(specials[s], word)) return s;
    return -1;
}

/* ---- scopes ------------------------------------------------------------------------------------------------------ */

/* What names mean: braces open scopes for registers, variables and labels, and may shadow. */

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

static void finish_function(Parser *p, ParsedFunction *f, PtxFunction *to) {
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
    for (ParsedFunction *f = p->functions; f; f = f->next) finish_function(p, f, &m->functions[m->function_count++]);
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
