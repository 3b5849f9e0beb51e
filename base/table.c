/* table.c: open addressing with linear probing; entries are never removed. */
#include "base/table.h"

#include "base/hash.h"

/* The slot of the key, or the empty one where it would go. */
static uint32_t *find_slot(const Table *t, const char *key) {
    uint32_t i = amp_hash32(key) & (t->slot_count - 1);
    while (t->slots[i] && strcmp(t->entries.data[t->slots[i] - 1].key, key)) i = (i + 1) & (t->slot_count - 1);
    return &t->slots[i];
}

void *table_get(const Table *t, const char *key) {
    if (!t->slot_count) return NULL;
    uint32_t slot = *find_slot(t, key);
    return slot ? t->entries.data[slot - 1].value : NULL;
}

static void grow(Arena *a, Table *t) {
    t->slot_count = t->slot_count ? 2 * t->slot_count : 16;
    t->slots = arena_array(a, uint32_t, t->slot_count);
    for (int i = 0; i < t->entries.len; i++) *find_slot(t, t->entries.data[i].key) = (uint32_t)i + 1;
}

void table_set(Arena *a, Table *t, const char *key, void *value) {
    if (2 * (uint32_t)t->entries.len >= t->slot_count) grow(a, t);
    uint32_t *slot = find_slot(t, key);
    if (*slot) {
        t->entries.data[*slot - 1].value = value;
        return;
    }
    TableEntry entry = {arena_strdup(a, key), value};
    vec_push(a, &t->entries, entry);
    *slot = (uint32_t)t->entries.len;
}
