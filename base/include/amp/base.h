/* amp/base.h: what the runtime (amp/amp.h) and the compiler (amp/compile.h) have in common.
 *
 * C99, usable from C++.  Nothing here keeps global state; nothing prints, exits or aborts.
 *
 * Errors.  Every call that can fail returns an amp_status (0 is success) and takes, as its last argument, an
 * amp_error that the caller owns (usually on the stack) or NULL.  The status says what kind of error it is; the
 * error's message says what was wrong, where (file, place) and what to do about it.
 */
#ifndef AMP_BASE_H
#define AMP_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) && __GNUC__ >= 4
#define AMP_API __attribute__((visibility("default")))
#define AMP_MUST_USE __attribute__((warn_unused_result))
#define AMP_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define AMP_API
#define AMP_MUST_USE
#define AMP_PRINTF(fmt, args)
#endif

/* Status codes.  The numbers are fixed: new codes are appended. */
typedef enum amp_status {
    AMP_OK = 0,
    AMP_INVALID_ARGUMENT = 1, /* the caller passed something that can never work */
    AMP_OUT_OF_MEMORY = 2,    /* an allocation failed; the object is as it was before the call */
    AMP_IO = 3,               /* the system refused a read, a write, a rename */
    AMP_BAD_FILE = 4,         /* a file was read but its content is damaged or of the wrong kind */
    AMP_NOT_FOUND = 5,        /* a name, file or device that does not exist */
    AMP_MISMATCH = 6,         /* two things that must agree do not: a checkpoint and a model, say */
    AMP_BAD_SOURCE = 7,       /* the model text, policy or IR has errors; they went to the diagnostics callback */
    AMP_UNSUPPORTED = 8,      /* valid, but not supported by this version or on this machine */
    AMP_WRONG_STATE = 9,      /* the call does not fit the object's state (training on an inference session) */
    AMP_SCALE_AT_FLOOR = 10,  /* the loss scale reached its floor and gradients still overflow (sticky) */
    AMP_INTERNAL = 11,        /* a bug in this library; please report it with the message */
    AMP_DEVICE_FAILED = 12,   /* the GPU gave up, and every later call on it fails (sticky); only a new process helps */
    AMP_CANCELLED = 13,       /* the caller ended the call (amp_compile_options.cancelled) */
    AMP_PEER_FAILED = 14      /* another rank died, hangs or disagrees (sticky); this process has to end, too */
} amp_status;

/* Where a failed call says what happened.  Owned by the caller; never allocated by the library. */
typedef struct amp_error {
    amp_status code;
    char message[1020]; /* UTF-8, NUL-terminated, cut with "..." where it would be longer */
} amp_error;

/* The name of a status: "AMP_OK", ...  Never NULL.  Static storage.  Thread-safe. */
AMP_API const char *amp_status_name(amp_status status);

/* Where memory comes from.  NULL instead of a pointer to this struct means malloc and free.
 * |alloc| returns memory aligned to |align| (a power of two) or NULL; |free| gets the size back.
 * Both may be called from the thread that calls into the library, never from its worker threads. */
typedef struct amp_allocator {
    void *user;
    void *(*alloc)(void *user, size_t size, size_t align);
    void (*free)(void *user, void *ptr, size_t size, size_t align);
} amp_allocator;

/* Element types.  The numbers are part of the model ABI: new ones are appended. */
typedef enum amp_dtype {
    AMP_DT_NONE = 0,
    AMP_DT_F32 = 1,
    AMP_DT_F16 = 2,
    AMP_DT_BF16 = 3,
    AMP_DT_TF32 = 4, /* stored as f32, rounded to 10 mantissa bits */
    AMP_DT_F64 = 5,
    AMP_DT_I32 = 6,
    AMP_DT_I64 = 7,
    AMP_DT_U8 = 8,
    AMP_DT_BOOL = 9, /* one byte in files, four in planned buffers */
    /* Of moments alone, the codes of one byte: docs/policies.md, "Moments of 8 bits". */
    AMP_DT_F8M = 10, /* first moments: a sign, 5 bits of exponent and 2 of mantissa */
    AMP_DT_F8V = 11  /* second moments: 6 bits of exponent and 2 of mantissa */
} amp_dtype;

/* "f32", "f16", ...; "none" for an unknown number.  Static storage.  Thread-safe. */
AMP_API const char *amp_dtype_name(amp_dtype dtype);
/* Bytes of one element as stored in a file or a user's array; 0 for an unknown number. */
AMP_API size_t amp_dtype_size(amp_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
