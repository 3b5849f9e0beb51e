/* lower_rows.h: rows of classes [..., C] and their labels [...], as losses and metrics of classifiers read them. */
#ifndef AMP_PASSES_LOWER_LOWER_ROWS_H
#define AMP_PASSES_LOWER_LOWER_ROWS_H

#include "passes/lower/lower.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct LabelledRows {
    Val x;      /* [R, C], in the dtype of the operand */
    Val labels; /* i32, one per row: [R] where R depends on N, else [R, 1] */
    Val key;    /* the operand that holds the labels */
} LabelledRows;

/* Operands |x| and |labels| of the graph op. */
LabelledRows rows_of(Lowering *l, int x, int labels);
/* A value of the rows' shape folded to one of the labels'. */
Val rows_fold(Lowering *l, Opcode code, Val v);
/* The labels, repeated along their rows. */
Val rows_label(Lowering *l, const LabelledRows *r);
/* bool [R, C]: this class is the row's label, which |label| repeats along the row. */
Val rows_is_label(Lowering *l, Val label);
/* 1 where the condition holds, else 0. */
Val rows_one_where(Lowering *l, Val condition);

#ifdef __cplusplus
}
#endif

#endif
