/* amp/observe.h: looking at a program of a session while it runs: what each kernel has read and written.
 *
 * libamp calls an observer that an application hands over (amp_session_observe).
 *
 * Everything that an observer is given lives until it returns.  It is called by the thread of the call that runs the
 * program, and may do anything but call the session or its params, release them, throw or jump out.
 */
#ifndef AMP_OBSERVE_H
#define AMP_OBSERVE_H

#include "amp/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum amp_operand_kind {
    AMP_OPERAND_VALUE = 0, /* computed by a kernel of the program: an intermediate, a result, a gradient */
    AMP_OPERAND_INPUT = 1, /* the caller's array */
    AMP_OPERAND_STATE = 2  /* a parameter, a copy of one, a moment, a counter */
} amp_operand_kind;

typedef struct amp_operand {
    const char *name; /* of the value in the model's IR, of the input, or of the state: a parameter's published name */
    amp_operand_kind kind; /* of a kind that is not listed: of no interest */
    amp_dtype dtype;
    int32_t written; /* 1: the kernel wrote it; once for each buffer.  A state that is updated counts as read */
    int32_t buffer;  /* its number in the program: a value may be in memory more than once, in several layouts */
    int64_t count;   /* elements of this run */
} amp_operand;

/* How many numbers of a tensor are how large; from it follows what a shorter type would make of them.
 *
 * The magnitude with the bits m as f32 is counted in the bin (m >> 23) + how many of AMP_BIN_BOUNDS are at most m.
 * Bins are the powers of two, divided at zero, at NaN, and where f16, bf16, e4m3 and e5m2 round to zero or infinity. */
#define AMP_BIN_BOUNDS(X)                                                                                              \
    X(0x00000001) /* above zero */                                                                                     \
    X(0x00008001) /* above 2^-134: no zero in bf16 */                                                                  \
    X(0x33000001) /* above 2^-25: no zero in f16 */                                                                    \
    X(0x37000001) /* above 2^-17: no zero in e5m2 */                                                                   \
    X(0x3A800001) /* above 2^-10: no zero in e4m3 */                                                                   \
    X(0x43E80001) /* above 464: NaN in e4m3 */                                                                         \
    X(0x47700000) /* 61440: infinite in e5m2 */                                                                        \
    X(0x477FF000) /* 65520: infinite in f16 */                                                                         \
    X(0x7F7F8000) /* 3.3961e38: infinite in bf16 */                                                                    \
    X(0x7F800001) /* NaN */
enum { AMP_NUMBER_BINS = 256 + 10 };

typedef struct amp_number_bins {
    int64_t count[AMP_NUMBER_BINS];
    uint32_t largest; /* of the finite magnitudes, as bits of f32; 0: there is none, or it is zero */
    uint32_t reserved;
} amp_number_bins;

typedef struct amp_observed_kernel {
    size_t struct_size;
    const char *program;         /* "train_step", "micro_step", "apply_step", "eval", ... */
    const char *name, *title;    /* "k03", "fc1: linear + relu" */
    int32_t index, count;        /* the kernel's place in the program, and how many there are */
    int32_t line, operand_count; /* |line| of the model's text; 0: not known */
    /* The operand |index| of the kernel; false past the end. */
    int32_t (*operand)(const struct amp_observed_kernel *kernel, int32_t index, amp_operand *out);
    /* Its elements, row-major: f32 for every float dtype (its value is exact), else the operand's own integers (bool:
     * one byte).  |bytes|: the size of |data|.  On a device with memory of its own they are copied to the host.
     * AMP_INVALID_ARGUMENT: no such operand, or another size.  A device's errors. */
    amp_status (*read)(const struct amp_observed_kernel *kernel, int32_t index, void *data, size_t bytes,
                       amp_error *err);
    const void *run; /* the library's own */
    /* Adds its elements, which are of a float dtype, to |*to|: by all threads of the session, and on a device with
     * memory of its own there, which is not waited for.  |*to| is whole after the next amp_session_observe and must be
     * there until then.  AMP_INVALID_ARGUMENT: no such operand, or no floats; AMP_UNSUPPORTED: an input, or a device
     * that computes nothing. */
    amp_status (*count_numbers)(const struct amp_observed_kernel *kernel, int32_t index, amp_number_bins *to,
                                amp_error *err);
} amp_observed_kernel;

typedef struct amp_observer {
    size_t struct_size;
    void *user;
    /* After each kernel, before the next one begins.  Other than AMP_OK: the call that runs the program ends with it,
     * and the session is as after a kernel that failed: temporaries are lost, states may be half updated. */
    amp_status (*kernel)(void *user, const amp_observed_kernel *kernel, amp_error *err);
    /* 1: a kernel need not have ended on a device that runs beside the host; |read| waits for it, |count_numbers| does
     * not.  0: it has. */
    int32_t does_not_wait;
} amp_observer;

#ifdef __cplusplus
}
#endif
#endif
