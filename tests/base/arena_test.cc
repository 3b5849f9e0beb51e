// arena_test.cc: arenas, growable arrays, and the jump when memory is out.
#include "base/arena.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/base/failing_allocator.h"

typedef VEC(int) IntVec;

// vec_push assigns a void pointer, which is C; the growth below it is what matters here.
static void PushInt(Arena *a, IntVec *v, int x) {
    if (v->len == v->cap) v->data = static_cast<int *>(arena_grow_(a, v->data, sizeof(int), v->len, &v->cap));
    v->data[v->len++] = x;
}

TEST(Arena, MemoryIsZeroedAlignedAndCounted) {
    Arena a;
    arena_init(&a, nullptr);
    if (setjmp(a.out_of_memory)) FAIL();
    size_t total = 0;
    for (size_t size = 0; size < 3000; size += 7) {
        auto *p = static_cast<char *>(arena_alloc(&a, size));
        EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 16, 0u);
        for (size_t i = 0; i < size; i++) ASSERT_EQ(p[i], 0);
        memset(p, 0xFF, size);
        total += size;
    }
    EXPECT_EQ(a.used, total);
    arena_free(&a);
}

// setjmp is called in functions of its own if there are loops: a jump may lose what its caller changed after setjmp.
static bool AllocateLargeAndSmall(Arena *a, const amp_allocator *allocator) {
    arena_init(a, allocator);
    if (setjmp(a->out_of_memory)) return false;
    memset(arena_alloc(a, 5 << 20), 1, 5 << 20);
    memset(arena_alloc(a, 100), 1, 100);
    return true;
}

TEST(Arena, LargeAllocationsAndReuseAfterInit) {
    FailingAllocator counting;
    amp_allocator allocator = counting.get();
    Arena a;
    for (int round = 0; round < 2; round++) {
        EXPECT_TRUE(AllocateLargeAndSmall(&a, &allocator));
        arena_free(&a);
    }
}

TEST(Arena, Strings) {
    Arena a;
    arena_init(&a, nullptr);
    if (setjmp(a.out_of_memory)) FAIL();
    EXPECT_STREQ(arena_strdup(&a, "matmul"), "matmul");
    EXPECT_STREQ(arena_strndup(&a, "matmul", 3), "mat");
    EXPECT_STREQ(arena_strndup(&a, "", 0), "");
    EXPECT_STREQ(arena_printf(&a, "%s[%d]", "x", 7), "x[7]");
    EXPECT_EQ(std::string(arena_printf(&a, "%*d", 9000, 1)).size(), 9000u);
    arena_free(&a);
}

TEST(Arena, GrowableArrayKeepsItsElements) {
    Arena a;
    arena_init(&a, nullptr);
    if (setjmp(a.out_of_memory)) FAIL();
    IntVec v = {};
    for (int i = 0; i < 10000; i++) PushInt(&a, &v, i);
    EXPECT_EQ(v.len, 10000);
    for (int i = 0; i < 10000; i++) ASSERT_EQ(v.data[i], i);
    arena_free(&a);
}

// True when filling the arena ended in the jump.
static bool FillUntilJump(amp_allocator allocator, int allocations) {
    Arena a;
    arena_init(&a, &allocator);
    if (setjmp(a.out_of_memory)) {
        arena_free(&a);
        return true;
    }
    for (int i = 0; i < allocations; i++) arena_alloc(&a, 10000);
    arena_free(&a);
    return false;
}

TEST(Arena, JumpsWhenTheAllocatorFails) {
    for (int fail_at = 0; fail_at < 5; fail_at++) {
        FailingAllocator failing(fail_at);
        EXPECT_TRUE(FillUntilJump(failing.get(), 10000)) << fail_at;
        EXPECT_EQ(failing.calls(), fail_at);
    }
    FailingAllocator enough;
    EXPECT_FALSE(FillUntilJump(enough.get(), 10));
}

static bool JumpsForSize(size_t size, const amp_allocator *allocator) {
    Arena a;
    arena_init(&a, allocator);
    if (setjmp(a.out_of_memory)) return true;
    arena_alloc(&a, size);
    return false;
}

// The sizes whose rounding or block header overflows must not come out small; the last one reaches the allocator.
TEST(Arena, ImpossibleSizesJump) {
    FailingAllocator refusing(0);
    amp_allocator allocator = refusing.get();
    for (size_t size : {SIZE_MAX, SIZE_MAX - 15, SIZE_MAX - 31, SIZE_MAX / 2})
        EXPECT_TRUE(JumpsForSize(size, &allocator));
}

TEST(Arena, VecCapacityDoesNotOverflow) {
    Arena a;
    arena_init(&a, nullptr);
    bool volatile jumped = false;
    int cap = INT32_MAX / 2 + 1;
    if (setjmp(a.out_of_memory)) jumped = true;
    else arena_grow_(&a, nullptr, 4, 0, &cap);
    EXPECT_TRUE(jumped);
    arena_free(&a);
}

TEST(Arena, ChildrenAreFreedWithTheirParentOrBefore) {
    FailingAllocator counting; /* counts what is not freed */
    amp_allocator allocator = counting.get();
    Arena a;
    EXPECT_TRUE(AllocateLargeAndSmall(&a, &allocator));
    Arena *early = arena_child(&a), *late = arena_child(&a), *grandchild = arena_child(late);
    memset(arena_alloc(early, 3 << 20), 1, 3 << 20);
    memset(arena_alloc(late, 3 << 20), 1, 3 << 20);
    memset(arena_alloc(grandchild, 3 << 20), 1, 3 << 20);
    arena_free(early);
    EXPECT_EQ(early->blocks, nullptr);
    memset(arena_alloc(early, 100), 1, 100); /* and may be used again */
    arena_free(&a);
}

TEST(Arena, ResetForgetsEverythingAndHandsOutZeros) {
    FailingAllocator counting;
    amp_allocator allocator = counting.get();
    Arena a;
    EXPECT_TRUE(AllocateLargeAndSmall(&a, &allocator));
    Arena *child = arena_child(&a);
    for (int round = 0; round < 100; round++) {
        auto *p = static_cast<char *>(arena_alloc(child, 10000));
        for (int i = 0; i < 10000; i++) ASSERT_EQ(p[i], 0);
        memset(p, 1, 10000);
        EXPECT_EQ(child->used, 10000u);
        arena_alloc(arena_child(child), 100); /* goes too */
        arena_reset(child);
        EXPECT_EQ(child->used, 0u);
    }
    arena_free(&a);
}

// True when the child's allocation ended in the parent's jump.
static bool ChildJumps(amp_allocator allocator) {
    Arena a;
    arena_init(&a, &allocator);
    if (setjmp(a.out_of_memory)) {
        arena_free(&a);
        return true;
    }
    arena_alloc(arena_child(arena_child(&a)), 5 << 20);
    arena_free(&a);
    return false;
}

TEST(Arena, AChildWithoutMemoryJumpsWhereItsParentDoes) {
    FailingAllocator second(1);
    EXPECT_TRUE(ChildJumps(second.get()));
    FailingAllocator never;
    EXPECT_FALSE(ChildJumps(never.get()));
}
