/* names.c: a hash table from names to value ids, by open addressing with linear probing.
 * A slot whose value has another name by now never compares equal, so renaming needs no deletion. */
#include "ir/names.h"

#include <stdio.h>

#include "base/hash.h"

enum { FIRST_CAPACITY = 32, MAX_NUMBER_DIGITS = 9 };

struct NameTable {
    uint32_t *slots; /* value ids; 0: empty */
    uint32_t cap, count;
    int64_t last_number;
    Table last_taken; /* hint to the last number that was put behind it: thousands of values may want one name */
};

int64_t name_number(const char *name) {
    size_t n = strlen(name);
    if (n == 0 || n > MAX_NUMBER_DIGITS || (n > 1 && name[0] == '0')) return -1;
    int64_t number = 0;
    for (; *name; name++) {
        if (*name < '0' || *name > '9') return -1;
        number = number * 10 + (*name - '0');
    }
    return number;
}

static uint32_t slot_of(const struct NameTable *t, const char *name) { return amp_hash32(name) & (t->cap - 1); }

Val names_find(const Func *f, const char *name) {
    const struct NameTable *t = f->names;
    if (!t) return NO_VAL;
    for (uint32_t s = slot_of(t, name); t->slots[s]; s = (s + 1) & (t->cap - 1))
        if (!strcmp(ir_value(f, (Val){t->slots[s]})->name, name)) return (Val){t->slots[s]};
    return NO_VAL;
}

static void insert(struct NameTable *t, const char *name, Val v) {
    uint32_t s = slot_of(t, name);
    while (t->slots[s]) s = (s + 1) & (t->cap - 1);
    t->slots[s] = v.id;
    t->count++;
    int64_t number = name_number(name);
    if (number > t->last_number) t->last_number = number;
}

static struct NameTable *new_table(Arena *a, uint32_t cap) {
    struct NameTable *t = arena_new(a, struct NameTable);
    t->cap = cap;
    t->slots = arena_array(a, uint32_t, cap);
    return t;
}

void names_rebuild(Func *f) {
    uint32_t cap = FIRST_CAPACITY;
    while (cap < 2 * (uint32_t)f->values.len) cap *= 2;
    if (f->names && f->names->cap == cap) *f->names = (struct NameTable){.slots = f->names->slots, .cap = cap};
    else f->names = new_table(f->module->arena, cap);
    memset(f->names->slots, 0, sizeof *f->names->slots * cap);
    for (int i = 1; i < f->values.len; i++) insert(f->names, f->values.data[i]->name, (Val){(uint32_t)i});
}

/* Finds v among the values, too. */
static void grow(Func *f) {
    Table last_taken = f->names ? f->names->last_taken : (Table){0};
    names_rebuild(f);
    f->names->last_taken = last_taken;
}

void names_add(Func *f, Val v) {
    if (!f->names || 2 * f->names->count >= f->names->cap) grow(f);
    else insert(f->names, ir_value(f, v)->name, v);
}

static const char *next_number(const Func *f) {
    int64_t number = f->names ? f->names->last_number : 0;
    const char *name;
    do name = arena_printf(f->module->arena, "%lld", (long long)++number);
    while (names_find(f, name).id);
    return name;
}

const char *names_unique(const Func *f, const char *hint) {
    if (!hint) return next_number(f);
    Arena *a = f->module->arena;
    if (!names_find(f, hint).id) return arena_strdup(a, hint);
    int64_t number =
        (int64_t)(intptr_t)table_get(&f->names->last_taken, hint); /* the name is taken: there is a table */
    char buffer[256];
    const char *name = buffer;
    do {
        int n = snprintf(buffer, sizeof buffer, "%s.%lld", hint, (long long)++number);
        if ((size_t)n >= sizeof buffer) name = arena_printf(a, "%s.%lld", hint, (long long)number);
    } while (names_find(f, name).id);
    table_set(a, &f->names->last_taken, hint, (void *)(intptr_t)number);
    return arena_strdup(a, name);
}
