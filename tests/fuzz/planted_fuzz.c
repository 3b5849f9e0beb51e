/* planted_fuzz.c: what other targets find, planted in processes of their own: each has to end with a signal. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

enum { LEAK, TOO_MUCH, BROKEN_PROMISE, FAULTS, NONE = FAULTS };

static void plant(int fault) {
    amp_allocator a = fuzz_allocator(1000);
    void *p = a.alloc(a.user, fault == TOO_MUCH ? 1001 : 1000, 16);
    if (fault != LEAK) a.free(a.user, p, 1000, 16);
    if (fault == BROKEN_PROMISE) fuzz_fail("planted");
    fuzz_check_freed();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    (void)data, (void)size;
    for (int fault = 0; fault <= NONE; fault++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            plant(fault);
            _exit(0);
        }
        if (waitpid(child, &status, 0) != child || WIFSIGNALED(status) != (fault != NONE))
            fuzz_fail("planted fault %d: status %d", fault, status);
    }
    return 0;
}
