/* float_environment.h: rounding to nearest, subnormals kept, no traps, whatever the calling program has set.
 *
 * Results must not depend on a mode that the program happens to have, nor on which of its threads calls.  Each call
 * that computes enters the default environment and leaves it with the caller's own put back, sticky flags included.
 */
#ifndef AMP_BASE_FLOAT_ENVIRONMENT_H
#define AMP_BASE_FLOAT_ENVIRONMENT_H

#include <stdint.h>

#if defined(__x86_64__)

/* The C library rounds decimal numbers by the control word of the x87, which computes nothing here. */
typedef struct amp_float_environment {
    unsigned mxcsr;
    unsigned short x87;
} amp_float_environment;

static inline void amp_float_environment_leave(amp_float_environment before) {
    __asm__ volatile("fldcw %0" : : "m"(before.x87));
    __builtin_ia32_ldmxcsr(before.mxcsr);
}

static inline amp_float_environment amp_float_environment_enter(void) {
    amp_float_environment before = {.mxcsr = __builtin_ia32_stmxcsr()};
    __asm__ volatile("fnstcw %0" : "=m"(before.x87));
    amp_float_environment_leave((amp_float_environment){0x1f80, 0x37f});
    return before;
}

#elif defined(__aarch64__)

typedef uint64_t amp_float_environment; /* FPCR */

static inline amp_float_environment amp_float_environment_enter(void) {
    amp_float_environment before;
    __asm__ volatile("mrs %0, fpcr\n\tmsr fpcr, xzr" : "=&r"(before) : : "memory");
    return before;
}

static inline void amp_float_environment_leave(amp_float_environment before) {
    __asm__ volatile("msr fpcr, %0" : : "r"(before) : "memory");
}

#else

#include <fenv.h>

typedef fenv_t amp_float_environment;

static inline amp_float_environment amp_float_environment_enter(void) {
    amp_float_environment before;
    fegetenv(&before);
    fesetenv(FE_DFL_ENV);
    return before;
}

static inline void amp_float_environment_leave(amp_float_environment before) { fesetenv(&before); }

#endif

static inline void amp_float_environment_put_back(const amp_float_environment *before) {
    amp_float_environment_leave(*before);
}

/* First in a block: the default environment until the block is left, by any way. */
#define AMP_DEFAULT_FLOAT_ENVIRONMENT()                                                                                \
    __attribute__((cleanup(amp_float_environment_put_back), unused)) const amp_float_environment caller_environment_ = \
        amp_float_environment_enter()

#endif
