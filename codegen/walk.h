/* walk.h: how a kernel goes over its data: the analysis that every target shares.
 *
 * A kernel has a space of rows x cols.  It is walked in lines: a row kernel goes along each row, the others down each
 * group of columns.  A value lives on one of four spans of the space, and so in one of three places of the loop nest:
 *
 *     SPAN_ONE values                                    prologue
 *     for each line {                                    row kernel: a row;  else: a vector of columns
 *         values of the line's own span                  row kernel: SPAN_ROW;  else: SPAN_COLUMN
 *         for each phase                                 one more than the reductions that follow one another
 *             for each step along the line { all others }
 *     }
 *
 * A reduction along the line ends its phase: its result is a value of the line's span, one level higher.  A value
 * inside the steps is computed in the phase of its level, and again in later phases that need it, unless it is kept in
 * memory (row kernels of moderate width).
 */
#ifndef AMP_CODEGEN_WALK_H
#define AMP_CODEGEN_WALK_H

#include "base/error.h"
#include "ir/operands.h"
#include "ir/strided.h"

typedef enum Span { SPAN_ONE, SPAN_ROW, SPAN_COLUMN, SPAN_FULL } Span;

typedef enum SinkKind {
    SINK_STORE,  /* value -> operand */
    SINK_LOOK,   /* value that op rounds -> operand, a BUFFER_LOOK: in a run that is looked at */
    SINK_REDUCE, /* value -> accumulator of op */
    SINK_FLAG    /* value ORed into operand */
} SinkKind;

typedef struct Sink { /* where computed values leave the steps */
    SinkKind kind;
    const Op *op;
    Val value;
    int operand; /* STORE, LOOK, FLAG: position in Walk.operands */
    int level;   /* the phase in which it runs */
} Sink;

/* An element of a value that goes to memory, in some runs alone where it is looked at. */
static inline bool walk_is_stored(const Sink *s) { return s->kind == SINK_STORE || s->kind == SINK_LOOK; }

typedef struct ValueWalk { /* of a value in the current kernel */
    int number; /* in order of appearance, from 1: its variable is v<number>, so that equal kernels have equal text */
    Span span;
    int level;
    bool made;     /* by an op of this kernel; else it is loaded from |operand| */
    bool live;     /* read in registers by an op that is live, or written; others are seen through (ir/operands.h) */
    bool inlined;  /* made where a window op of the kernel reads it (ir_takes_inlined): in no place of the loop nest */
    bool needed;   /* reaches a sink */
    bool kept;     /* stored for later phases of its line */
    int operand;   /* -1: none (constants, products, values in registers) */
    bool touched;  /* by the phase that walk_phase was last asked for */
    int loaded;    /* target: the place of the loop nest that holds it; 0: none yet */
    bool in_lanes; /* target: made for all lanes before the elements of this phase (codegen/indirect_lanes.c) */
} ValueWalk;

/* Where a value goes, from what asks least of it. */
typedef enum Exactness { EXACT_TO_16_BITS, EXACT_IN_A_SUM, EXACT_TO_THE_BIT } Exactness;

typedef struct Walk {
    const Func *f;
    const Kernel *k;
    Arena *arena;
    Dim rows, cols;
    Dim segment; /* column kernels: rows that are reduced together; of mul 0: all */
    bool by_row;
    bool flat; /* all values are dense: the space is another view of them, with columns enough to fill vectors */
    int phases;
    bool writes_tiles;      /* some full value is stored in another layout than rows: padding is written too */
    VEC(uint32_t) operands; /* 1-based buffers of the function: reads, then writes that are not among them */
    VEC(Sink) sinks;
    ValueWalk *values; /* by value id */
    Exactness *asked;  /* by value id; a target's; NULL: all are exact to the bit */
    int *first_phase;  /* by value id; a target's, which leaves it zero after each kernel */
} Walk;

/* For all kernels of a function. */
void walk_init(Walk *w, const Func *f, Arena *a);
/* Analyses one kernel. */
amp_status walk_kernel(Walk *w, const Kernel *k, amp_error *err);

Span walk_line_span(const Walk *w); /* SPAN_ROW or SPAN_COLUMN */
/* Inside the steps: neither SPAN_ONE nor the line's own span. */
bool walk_is_inner(const Walk *w, Span s);
/* Marks the values that phase |p| touches, and no others. */
void walk_phase(Walk *w, int p);
/* Finds again which values reach a sink: after sinks were taken out. */
void walk_find_needed(Walk *w);
/* Finds again in which phase each value of a row kernel is made, and what later ones read of it: after the level of a
 * sink was changed. */
void walk_find_kept(Walk *w);

const Buffer *walk_operand(const Walk *w, int i);
/* Whether operand |i| has a row for each segment; the kernel reads it; writes it. */
bool walk_is_per_segment(const Walk *w, int i);
bool walk_is_read(const Walk *w, int i);
bool walk_is_written(const Walk *w, int i);
/* Of the operands of the space whose rows are longer than its columns: all have the same.  0: there are none. */
int64_t walk_pitch(const Walk *w);
/* The position of the buffer that holds |v| in |layout|; -1. */
int walk_find_operand(const Walk *w, Val v, Layout layout, Dtype storage);
/* Whether |o| makes an inlined value, and reads its |n|th input as one or from memory at the same place. */
bool walk_is_inlined(const Walk *w, const Op *o);
bool walk_reads_inlined(const Walk *w, const Op *o, int n);
/* Whether an op reads its |n|th input in registers: not where only the shape matters (`like`), nor from memory. */
bool walk_reads(const Walk *w, const Op *o, int n);
/* The same of an operand with an element for each of the space. */
bool walk_loads_full(const Walk *w, const Op *o, int n);
/* The op makes its result from memory (ir/operands.h). */
bool walk_is_indirect(const Walk *w, const Op *o);
/* Makes random numbers that are not drawn by an element's row-major index. */
bool walk_draws_by_row(const Walk *w, const Op *o);
bool walk_is_live(const Walk *w, const Op *o); /* the kernel stores a result, or an op of it reads one */
/* The operand that holds what |o| reads from memory as its |n|th input; -1. */
int walk_memory_operand(const Walk *w, const Op *o, int n);
/* What is in memory of a product's operand: itself, or what the kernel reads at strides (target_moves_on_load). */
Val walk_product_source(const Walk *w, Val v);
/* The rows of a value with one element per segment and column. */
Dim walk_segments(const Walk *w);
/* |v| in terms of what the kernel has in memory, for an operand that is read at strides; false: there are no strides,
 * which fuse has made sure of. */
bool walk_strided(const Walk *w, Val v, Strided *out);
/* What makes |v|, where that is a number known when the model is compiled; NULL. */
const Op *walk_constant(const Walk *w, Val v);
/* The op that makes the kernel one of its kind: its product, scatter or attention. */
amp_status walk_own_op(const Walk *w, const Op **out, amp_error *err);
int walk_number(const Walk *w, Val v);
int walk_numbers(const Walk *w); /* more than the largest of the kernel's */
#define walk_op(w, i) ir_op_at((w)->f, (w)->k->first + (i))

/* "k03 (fc1: linear)" of function train_step: for messages */
const char *walk_name(const Walk *w);

#endif
