/* arena.c: memory that is freed all at once. */
#include "base/arena.h"

#include <limits.h>
#include <stdio.h>

enum { FIRST_BLOCK = 16 << 10, LARGEST_BLOCK = 1 << 20 };

/* The header of one block; the memory handed out follows it. */
struct ArenaBlock {
    _Alignas(AMP_ALIGN) ArenaBlock *next;
    size_t size; /* header included */
};

/* Under AddressSanitizer each allocation gets a block of its own size, so that an overrun is seen where it happens. */
#ifdef __SANITIZE_ADDRESS__
static const bool one_block_each = true;
#else
static const bool one_block_each = false;
#endif

void arena_init(Arena *a, const amp_allocator *allocator) {
    memset(a, 0, sizeof *a);
    a->allocator = amp_allocator_or_default(allocator);
}

void arena_jump_(Arena *a) {
    while (a->parent) a = a->parent;
    longjmp(a->out_of_memory, 1);
}

static void free_children(Arena *a) {
    for (Arena *child = a->children; child; child = child->sibling) arena_free(child);
    a->children = NULL;
}

static void free_blocks(Arena *a) {
    for (ArenaBlock *block = a->blocks, *next; block; block = next) {
        next = block->next;
        amp_free(&a->allocator, block, block->size);
    }
    a->blocks = NULL;
    a->at = a->end = NULL;
    a->used = 0;
}

void arena_free(Arena *a) {
    free_children(a); /* before the blocks that hold them */
    free_blocks(a);
}

Arena *arena_child(Arena *parent) {
    Arena *child = arena_new(parent, Arena);
    child->allocator = parent->allocator;
    child->parent = parent;
    child->sibling = parent->children;
    return parent->children = child;
}

void arena_reset(Arena *a) {
    ArenaBlock *kept = one_block_each ? NULL : a->blocks;
    free_children(a);
    if (kept) a->blocks = kept->next;
    free_blocks(a);
    if (!kept) return;
    kept->next = NULL;
    a->blocks = kept;
    a->at = (char *)(kept + 1);
    a->end = (char *)kept + kept->size;
}

/* Blocks double from the first size to the largest: a small compilation stays small, a large one makes few calls. */
static size_t next_block_size(const Arena *a, size_t needed) {
    size_t size = FIRST_BLOCK;
    if (one_block_each) return needed;
    if (a->blocks) size = a->blocks->size >= LARGEST_BLOCK / 2 ? LARGEST_BLOCK : a->blocks->size * 2;
    return size < needed ? needed : size;
}

static void arena_add_block(Arena *a, size_t size) {
    size_t needed;
    if (!amp_size_add(size, sizeof(ArenaBlock), &needed)) arena_jump_(a);
    size_t block_size = next_block_size(a, needed);
    ArenaBlock *block = amp_alloc(&a->allocator, block_size);
    if (!block) arena_jump_(a);
    block->next = a->blocks;
    block->size = block_size;
    a->blocks = block;
    a->at = (char *)(block + 1);
    a->end = (char *)block + block_size;
}

void *arena_alloc(Arena *a, size_t size) {
    size_t padded;
    if (!amp_size_add(size, AMP_ALIGN - 1, &padded)) arena_jump_(a);
    padded &= ~(size_t)(AMP_ALIGN - 1);
    size_t step = one_block_each ? size : padded;
    if (!a->at || (size_t)(a->end - a->at) < step || one_block_each) arena_add_block(a, step);
    void *ptr = a->at;
    a->at += step;
    a->used += size;
    return memset(ptr, 0, size);
}

char *arena_strndup(Arena *a, const char *s, size_t n) {
    size_t size;
    if (!amp_size_add(n, 1, &size)) arena_jump_(a);
    char *copy = arena_alloc(a, size);
    if (n) memcpy(copy, s, n);
    return copy;
}

char *arena_strdup(Arena *a, const char *s) { return arena_strndup(a, s, strlen(s)); }

char *arena_vprintf(Arena *a, const char *fmt, va_list args) {
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    char *text = arena_alloc(a, n < 0 ? 1 : (size_t)n + 1);
    if (n >= 0) vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    return text;
}

char *arena_printf(Arena *a, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    char *text = arena_vprintf(a, fmt, args);
    va_end(args);
    return text;
}

void *arena_grow_(Arena *a, void *data, size_t elem, int len, int *cap) {
    size_t bytes;
    if (*cap > INT_MAX / 2) arena_jump_(a);
    int grown = *cap ? *cap * 2 : 8;
    if (!amp_size_mul(elem, (size_t)grown, &bytes)) arena_jump_(a);
    void *fresh = arena_alloc(a, bytes);
    if (len) memcpy(fresh, data, elem * (size_t)len);
    *cap = grown;
    return fresh;
}
