/* memory.c: blocks that live as long as the module. */
#include <stdlib.h>
#include <string.h>

#include "fakecuda/ptx/parser.h"

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
