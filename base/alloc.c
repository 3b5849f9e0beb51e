/* alloc.c: the replaceable allocator and sizes that cannot overflow; arenas, and tables in them. */
#include "base/alloc.h"

#include <limits.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"

static void *system_alloc(void *user, size_t size, size_t align) {
    (void)user;
    if (align <= alignof(max_align_t)) return malloc(size);
    /* aligned_alloc wants a multiple of the alignment (C11 7.22.3.1). */
    size_t padded;
    if (!amp_size_add(size, align - 1, &padded)) return NULL;
    return aligned_alloc(align, padded & ~(align - 1));
}

static void system_free(void *user, void *ptr, size_t size, size_t align) {
    (void)user, (void)size, (void)align;
    free(ptr);
}

amp_allocator amp_allocator_or_default(const amp_allocator *allocator) {
    if (allocator && allocator->alloc) return *allocator;
    return (amp_allocator){.alloc = system_alloc, .free = system_free};
}

/* NULL always means that memory is out, so size 0 asks for one byte; amp_free says the same size. */
static size_t at_least_one(size_t size) { return size ? size : 1; }

void *amp_alloc_aligned(const amp_allocator *a, size_t size, size_t align) {
    amp_allocator allocator = amp_allocator_or_default(a);
    return allocator.alloc(allocator.user, at_least_one(size), align);
}

void *amp_alloc_zeroed_aligned(const amp_allocator *a, size_t size, size_t align) {
    void *ptr = amp_alloc_aligned(a, size, align);
    return ptr ? memset(ptr, 0, at_least_one(size)) : NULL;
}

void amp_free_aligned(const amp_allocator *a, void *ptr, size_t size, size_t align) {
    amp_allocator allocator = amp_allocator_or_default(a);
    if (ptr && allocator.free) allocator.free(allocator.user, ptr, at_least_one(size), align);
}

void *amp_alloc(const amp_allocator *a, size_t size) { return amp_alloc_aligned(a, size, AMP_ALIGN); }

void *amp_alloc_zeroed(const amp_allocator *a, size_t size) { return amp_alloc_zeroed_aligned(a, size, AMP_ALIGN); }

void amp_free(const amp_allocator *a, void *ptr, size_t size) { amp_free_aligned(a, ptr, size, AMP_ALIGN); }

/* ---- allocators that count --------------------------------------------------------------------------------------- */

static void *counted_alloc(void *user, size_t size, size_t align) {
    amp_counted_allocator *c = user;
    void *ptr = amp_alloc_aligned(&c->inner, size, align);
    if (ptr) c->bytes += size;
    return ptr;
}

static void counted_free(void *user, void *ptr, size_t size, size_t align) {
    amp_counted_allocator *c = user;
    c->bytes -= size;
    amp_free_aligned(&c->inner, ptr, size, align);
}

void amp_counted_allocator_init(amp_counted_allocator *c, const amp_allocator *inner) {
    *c = (amp_counted_allocator){.allocator = {.user = c, .alloc = counted_alloc, .free = counted_free},
                                 .inner = amp_allocator_or_default(inner)};
}

void amp_counted_allocator_plan(amp_counted_allocator *c, size_t size) { c->bytes += at_least_one(size); }

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

bool amp_size_mul(size_t a, size_t b, size_t *out) {
    if (b && a > SIZE_MAX / b) return false;
    *out = a * b;
    return true;
}

bool amp_size_add(size_t a, size_t b, size_t *out) {
    if (a > SIZE_MAX - b) return false;
    *out = a + b;
    return true;
}

/* ---- arenas: memory that is freed all at once (arena.h) ---------------------------------------------------------- */

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

/* ---- tables (arena.h) -------------------------------------------------------------------------------------------- */

/* Open addressing with linear probing; entries are never removed. */

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
