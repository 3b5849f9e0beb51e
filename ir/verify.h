/* verify.h: what the parts of the verifier share. */
#ifndef AMP_IR_VERIFY_H
#define AMP_IR_VERIFY_H

#include "ir/legal.h"

typedef struct Verifying {
    const Module *m;
    const Func *f;
    Arena *scratch;   /* freed when all is checked */
    Text wrong;       /* the first message */
    bool *defined;    /* by value */
    bool *assigned;   /* by value: states that some op before has written */
    const Op *assign; /* in the open kernel: its first effect */
} Verifying;

/* ---- verify.c: messages; the first one stays --------------------------------------------------------------------- */

bool verify_failed(const Verifying *c);
void verify_fail(Verifying *c, const char *fmt, ...) AMP_PRINTF(2, 3);
/* "train_step: %3 = linear (fc1.linear): ..." */
void verify_fail_op(Verifying *c, const Op *o, const char *fmt, ...) AMP_PRINTF(3, 4);
const char *verify_type_text(const Verifying *c, Dtype t, const Shape *s);
/* |seen| has |name| already; else adds it. */
bool verify_is_second(Verifying *c, Table *seen, const char *name);

bool verify_is_value(const Verifying *c, Val v);
bool verify_is_defined(const Verifying *c, Val v);
bool verify_is_bool_scalar(const Verifying *c, Val v);
void verify_define(Verifying *c, Val v);

/* ---- verify_op.c, verify_kernel.c -------------------------------------------------------------------------------- */

void verify_op(Verifying *c, const Op *o, int at); /* body[at] */
/* The ops of body[first .. first + count) have run: states that they assign hold no old value any more. */
void verify_mark_assigned(Verifying *c, int first, int count);
void verify_kernels(Verifying *c); /* bodies of kernels, op by op */
void verify_cover(Verifying *c);   /* kernels cover the body, from fuse on */
void verify_buffers(Verifying *c);

/* ---- verify_call.c ----------------------------------------------------------------------------------------------- */

void verify_calls(Verifying *c);

#endif
