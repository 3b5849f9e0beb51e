/* graph_ops.h: what the files that turn calls into ops share: the table of calls, and a call that is being made. */
#ifndef AMP_FRONTEND_GRAPH_OPS_H
#define AMP_FRONTEND_GRAPH_OPS_H

#include "frontend/elaborate.h"

enum { MAX_GRAPH_ARGS = 4 };

typedef enum ArgRange { ANY_VALUE, AT_LEAST_0, AT_LEAST_1, BELOW_1 } ArgRange;

typedef struct GraphArg { /* a static argument of a call; sets the attribute of that name, if the op has one */
    const char *name;
    StaticType type;
    bool required;
    ArgRange range;
    const char *words[3]; /* symbols: one of these */
} GraphArg;

typedef struct GraphCall GraphCall;

/* Which tensors an op takes, a letter each; the last letter applies to all further tensors:
 *   f  floats                         v  floats or i32, one type for all v: integers next to a float become floats
 *   t  anything, one type for all t   l  i32 labels    i  i32 indexes    c  a condition: bool */
struct GraphOp {
    const char *name;
    Opcode code;
    const char *takes; /* NULL: as the op's types say */
    int results;       /* that a call returns; others are for the backward pass; 0 means 1 */
    GraphArg args[MAX_GRAPH_ARGS];
    bool (*prepare)(GraphCall *c); /* sets attributes and result types that are not simply argument values; or NULL */
};

struct GraphCall {
    Elab *e;
    const GraphOp *op;
    const Expr *x;
    Op *o;
    Item items[MAX_GRAPH_ARGS]; /* by argument; ITEM_NONE: not given */
    Loc locs[MAX_GRAPH_ARGS];   /* where given, else of the call */
};

/* ---- graph_shapes.c --------------------------------------------------------------------------------------- */

bool graph_prepare_dim(GraphCall *c);       /* one of the operand's */
bool graph_prepare_fixed_dim(GraphCall *c); /* and it does not depend on N */
bool graph_prepare_stack(GraphCall *c);
bool graph_prepare_dims(GraphCall *c);
bool graph_prepare_permute(GraphCall *c);
bool graph_prepare_transpose(GraphCall *c);
bool graph_prepare_flatten(GraphCall *c);
bool graph_prepare_slice(GraphCall *c);
bool graph_prepare_pool(GraphCall *c);
bool graph_prepare_reshape(GraphCall *c);
bool graph_prepare_full(GraphCall *c);
bool graph_prepare_arange(GraphCall *c);
bool graph_prepare_top_k(GraphCall *c);

#endif
