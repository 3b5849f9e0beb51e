/* legal.h: which ops may appear at a level, with which types. */
#ifndef AMP_IR_LEGAL_H
#define AMP_IR_LEGAL_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* GRAPH before lower, CORE from then on. */
int legal_level(Stage stage);
/* The signatures of an op at a level, as ops.def gives them; NULL where it may not appear. */
const char *legal_signatures(Opcode code, int level);
/* One of the op's signatures takes these operands and results. */
bool legal_types(const Func *f, const Op *o, int level);

#ifdef __cplusplus
}
#endif

#endif
