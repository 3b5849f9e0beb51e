/* result.h: what a compilation hands back; shared by compile.c and explain.c. */
#ifndef AMP_COMPILER_RESULT_H
#define AMP_COMPILER_RESULT_H

#include "amp/compile.h"
#include "base/arena.h"

struct amp_compile_result {
    amp_allocator allocator;
    char *data; /* owned, |size| bytes and a NUL */
    size_t size;
};

/* A result that owns a copy of |data|; AMP_OUT_OF_MEMORY. */
amp_status result_new(const amp_allocator *allocator, const void *data, size_t size, amp_compile_result **out,
                      amp_error *err);

#endif
