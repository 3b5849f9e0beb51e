/* arena.h: memory that is freed all at once, and what grows in it: arrays and tables.  One arena holds
 * everything of one compilation.
 *
 * When memory is out, an arena jumps to its `out_of_memory`, so that code which builds IR needs no check
 * after each allocation.  Whoever creates an arena sets it:
 *
 *     Arena arena;
 *     arena_init(&arena, &allocator);
 *     if (setjmp(arena.out_of_memory)) { arena_free(&arena); return amp_fail(err, AMP_OUT_OF_MEMORY, "..."); }
 *
 * Code between must not hold other resources (open files, other allocations) across an arena allocation.
 */
#ifndef AMP_BASE_ARENA_H
#define AMP_BASE_ARENA_H

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include "base/alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ArenaBlock ArenaBlock;

typedef struct Arena {
    amp_allocator allocator;
    ArenaBlock *blocks;
    char *at, *end;
    size_t used;                               /* bytes handed out, for reports */
    struct Arena *parent, *children, *sibling; /* arena_child */
    jmp_buf out_of_memory;
} Arena;

void arena_init(Arena *a, const amp_allocator *allocator);
void arena_free(Arena *a); /* frees every block, its children's too; the arena can be used again after arena_init */

/* An arena for what lives shorter than |parent|: freed with it, or before by arena_free.  Without memory it jumps where
 * its parent does. */
Arena *arena_child(Arena *parent);
/* Forgets everything, but keeps a block for what comes next. */
void arena_reset(Arena *a);

void *arena_alloc(Arena *a, size_t size); /* zeroed, aligned to 16; never NULL (jumps instead) */
char *arena_strdup(Arena *a, const char *s);
char *arena_strndup(Arena *a, const char *s, size_t n);
char *arena_printf(Arena *a, const char *fmt, ...) AMP_PRINTF(2, 3);
char *arena_vprintf(Arena *a, const char *fmt, va_list args);

#define arena_new(a, T) ((T *)arena_alloc((a), sizeof(T)))
#define arena_array(a, T, n) ((T *)arena_alloc((a), sizeof(T) * (size_t)(n)))

/* Growable arrays on an arena.  VEC(T) is an anonymous struct type: `typedef VEC(Op) OpVec;` or a field `VEC(int) xs;`.
 * Old storage is left to the arena; growth doubles, so at most twice the memory is used. */
#define VEC(T)                                                                                                         \
    struct {                                                                                                           \
        T *data;                                                                                                       \
        int len, cap;                                                                                                  \
    }
#define vec_push(a, v, x)                                                                                              \
    (((v)->len == (v)->cap ? (void)((v)->data = (__typeof__((v)->data))arena_grow_((a), (v)->data, sizeof *(v)->data,  \
                                                                                   (v)->len, &(v)->cap))               \
                           : (void)0),                                                                                 \
     (v)->data[(v)->len++] = (x))
void arena_jump_(Arena *a) __attribute__((noreturn)); /* to out_of_memory of the outermost parent */
void *arena_grow_(Arena *a, void *data, size_t elem, int len, int *cap);

/* ---- tables: from names to things, in order of insertion --------------------------------------------------------- */

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
