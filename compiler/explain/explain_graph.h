/* explain_graph.h: the forward pass as a graph of the ops that are told of, by blocks: what drawings are made from. */
#ifndef AMP_COMPILER_EXPLAIN_GRAPH_H
#define AMP_COMPILER_EXPLAIN_GRAPH_H

#include "compiler/explain/explain.h"

enum { NO_BLOCK_ABOVE = -1 };

typedef struct GraphEdge {
    bool is_input; /* |from| is of the inputs, else of m->decisions */
    int from, to;
    Dtype dtype, was; /* as |to| reads it; before the cast, where there is one; else the same */
} GraphEdge;

/* What a block holds.  Inputs of the model are in the first block. */
typedef enum GraphKind { GRAPH_OP, GRAPH_BLOCK, GRAPH_INPUT } GraphKind;
typedef struct GraphChild {
    GraphKind kind;
    int number;       /* of m->decisions, of the blocks, or of the inputs */
    const char *name; /* within the block: "attn", "fc1.linear" */
} GraphChild;
typedef VEC(GraphChild) GraphChildren;

typedef struct GraphBlock {
    const char *path; /* "h.0.attn"; "" for the whole model; a run of ops ends in their numbers: "h (1-64)" */
    int above;        /* the block that it is in; NO_BLOCK_ABOVE */
    GraphChildren children;
} GraphBlock;

typedef struct GraphInput { /* of the model, or of its losses; that some op reads */
    const char *name;
    Dtype dtype;
} GraphInput;

typedef struct ExplainGraph {
    const Module *m;
    VEC(GraphInput) inputs;
    VEC(GraphBlock) blocks; /* the whole model is the first; each comes after the one that it is in */
    VEC(GraphEdge) edges;   /* in the order of what they lead to */
} ExplainGraph;

/* If a block has more children, the ops of each group become a block; if it still has too many, each run of this number
 * becomes one: a larger drawing cannot be read. */
enum { BLOCK_MOST = 64 };
/* |most|: BLOCK_MOST; 0: any number, and no groups. */
ExplainGraph explain_graph(const ExplainFacts *x, const Module *graph, const ExplainSelection *which, int most);
void explain_put_graph(amp_json_writer *w, const ExplainGraph *g);

/* For Graphviz (explain_dot.c): one drawing, with a cluster for each block. */
void explain_as_dot(Text *t, const ExplainGraph *g);
/* A drawing for each block, in their order: children as n0, n1, ..., and the edges between them. */
void explain_as_blocks(Text *t, const ExplainGraph *g);

#endif
