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
    int32_t written; /* 1: the kernel wrote it.  A state that is updated counts as read */
    int32_t buffer;  /* its number in the program: a value may be in memory more than once, in several layouts */
    int64_t count;   /* elements of this run */
} amp_operand;

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
} amp_observed_kernel;

typedef struct amp_observer {
    size_t struct_size;
    void *user;
    /* After each kernel, before the next one begins.  Other than AMP_OK: the call that runs the program ends with it,
     * and the session is as after a kernel that failed: temporaries are lost, states may be half updated. */
    amp_status (*kernel)(void *user, const amp_observed_kernel *kernel, amp_error *err);
} amp_observer;

#ifdef __cplusplus
}
#endif
#endif
