/* loop_nest.h: which ops, loads and stores belong in one place of the loop nest (walk.h), and reductions along a
 * line. */
#ifndef AMP_CODEGEN_LOOP_NEST_H
#define AMP_CODEGEN_LOOP_NEST_H

#include "codegen/emit.h"

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* Whether a value belongs here: outside of the lines, between the phases of a line, inside the steps. */
typedef bool (*PlaceFn)(const Emitter *e, Val v);
bool loop_is_one(const Emitter *e, Val v);
bool loop_is_line(const Emitter *e, Val v);
bool loop_is_step(const Emitter *e, Val v);
/* Whether the kernel goes along lines: a thread that makes single elements of tiles and products does not. */
bool loop_has_lines(const Emitter *e);

/* |load| of each input of needed ops that belongs |here|, once. */
amp_status loop_inputs(Emitter *e, PlaceFn here, amp_status (*load)(Emitter *e, Val v));
/* Ops that are expressions or made from memory, of this place and level (-1: any). */
amp_status loop_ops(Emitter *e, PlaceFn here, int level);
/* The same inside the steps of phase |p|: values are found again where an earlier phase kept them. */
amp_status loop_step_ops(Emitter *e, int p);
/* Stores and flags of this place and level (-1: any). */
amp_status loop_sinks(Emitter *e, PlaceFn here, int level);
/* Whether phase |p| has anything to do. */
bool loop_has_phase(const Walk *w, int p);

/* ---- reductions -------------------------------------------------------------------------------------------------- */

typedef struct Reduction {
    Opcode code;
    const char *f32_start, *i32_start; /* the accumulator's first value */
    const char *function;              /* "max": of max_vf and max_f32, and of the tree of a row */
    const char *functor;               /* "Max", of cuda/prelude/reduce.cuh */
} Reduction;
const Reduction *loop_reduction(const Sink *s);
/* A sum of floats, or a mean: what its additions lose is kept beside it. */
bool loop_keeps_lost(const Walk *w, const Sink *s);
/* The accumulator's first value, of a type that accumulators have. */
const char *loop_start(const Emitter *e, const Sink *s);
bool loop_reduces_in(const Walk *w, const Sink *s, int p);
/* AMP_UNSUPPORTED for a type that has no accumulator. */
amp_status loop_check_reduction(const Emitter *e, const Sink *s);

#endif
