/* table.h: names to things: a hash table on the arena that remembers the order of insertion. */
#ifndef AMP_BASE_TABLE_H
#define AMP_BASE_TABLE_H

#include "base/arena.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TableEntry {
    const char *key;
    void *value;
} TableEntry;

typedef struct Table {
    VEC(TableEntry) entries; /* in order of insertion */
    uint32_t *slots;         /* index into entries + 1; 0: empty */
    uint32_t slot_count;     /* a power of two */
} Table;

void *table_get(const Table *t, const char *key); /* NULL when absent */
void table_set(Arena *a, Table *t, const char *key, void *value);

#ifdef __cplusplus
}
#endif

#endif
