/* explain_dot.c: the graph as text for Graphviz: one drawing with a cluster for each block, or one drawing for
 * each block, which gives only the positions of what the block holds. */
#include <stdlib.h>
#include <string.h>

#include "compiler/explain/explain_graph.h"

/* Within a quoted string of DOT: only quotes and backslashes mean something there. */
static void put_escaped(Text *t, const char *s) {
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') text_putc(t, '\\');
        text_putc(t, *s == '\n' ? ' ' : *s);
    }
}

static void put_quoted(Text *t, const char *s) {
    text_putc(t, '"');
    put_escaped(t, s);
    text_putc(t, '"');
}

/* ---- one drawing ------------------------------------------------------------------------------------------------- */

/* The colours of the report's light theme (report/page/report.css). */
static const char *colour_of(Dtype t) {
    switch (t) {
    case AMP_DT_F16: return "#cfe8ff";
    case AMP_DT_BF16: return "#d9f2d0";
    case AMP_DT_TF32: return "#fff0c2";
    case AMP_DT_F32:
    case AMP_DT_F64: return "#ffd9d2";
    default: return "#e6e6e6";
    }
}

/* A name over its dtype, whose colour it has. */
static void put_looks(Text *t, const char *name, Dtype dtype, const char *more) {
    text_puts(t, " [label=\"");
    put_escaped(t, name);
    text_printf(t, "\\n%s\", fillcolor=\"%s\"%s]\n", amp_dtype_name(dtype), colour_of(dtype), more);
}

static void put_node(Text *t, const ExplainGraph *g, const GraphChild *c, int depth) {
    const Decision *d = &g->m->decisions.data[c->number];
    text_printf(t, "%*s", 2 + 2 * depth, "");
    put_quoted(t, d->path);
    put_looks(t, c->name, d->out, "");
}

static void put_cluster(Text *t, const ExplainGraph *g, int block, int depth);

static void put_children(Text *t, const ExplainGraph *g, const GraphBlock *block, int depth) {
    for (int i = 0; i < block->children.len; i++) {
        const GraphChild *c = &block->children.data[i];
        if (c->kind == GRAPH_BLOCK) put_cluster(t, g, c->number, depth);
        else if (c->kind == GRAPH_OP) put_node(t, g, c, depth);
    }
}

static void put_cluster(Text *t, const ExplainGraph *g, int block, int depth) {
    const int indent = 2 + 2 * depth;
    text_printf(t, "%*ssubgraph \"cluster_%d\" {\n%*s  label=", indent, "", block, indent, "");
    put_quoted(t, g->blocks.data[block].path);
    text_putc(t, '\n');
    put_children(t, g, &g->blocks.data[block], depth + 1);
    text_printf(t, "%*s}\n", indent, "");
}

/* A name that is no op's path: it has a colon. */
static const char *input_name(Arena *a, const GraphInput *input) { return arena_printf(a, "input:%s", input->name); }

static void put_inputs(Text *t, const ExplainGraph *g) {
    for (int i = 0; i < g->inputs.len; i++) {
        const GraphInput *input = &g->inputs.data[i];
        text_puts(t, "  ");
        put_quoted(t, input_name(t->arena, input));
        put_looks(t, input->name, input->dtype, ", shape=ellipse");
    }
}

static void put_edge(Text *t, const ExplainGraph *g, const GraphEdge *e) {
    text_puts(t, "  ");
    put_quoted(t, e->is_input ? input_name(t->arena, &g->inputs.data[e->from]) : g->m->decisions.data[e->from].path);
    text_puts(t, " -> ");
    put_quoted(t, g->m->decisions.data[e->to].path);
    if (e->was != e->dtype)
        text_printf(t, " [label=\"%s -> %s\", color=\"#b45f06\", fontcolor=\"#b45f06\", penwidth=2]",
                    amp_dtype_name(e->was), amp_dtype_name(e->dtype));
    text_putc(t, '\n');
}

void explain_as_dot(Text *t, const ExplainGraph *g) {
    text_puts(t, "/* Drawn by ampc explain, for Graphviz. */\ndigraph ");
    put_quoted(t, g->m->name);
    text_puts(t, " {\n  graph [fontname=\"sans-serif\", style=\"rounded\", color=\"#999999\"]\n"
                 "  node [shape=box, style=\"filled,rounded\", fontname=\"sans-serif\", color=\"#666666\"]\n"
                 "  edge [fontname=\"sans-serif\", fontsize=10, color=\"#666666\"]\n");
    put_inputs(t, g);
    put_children(t, g, &g->blocks.data[0], 0);
    for (int i = 0; i < g->edges.len; i++) put_edge(t, g, &g->edges.data[i]);
    text_puts(t, "}\n");
}

/* ---- a drawing for each block ------------------------------------------------------------------------------------ */

/* Inches of 72 points, as large as the report draws a node (report/page/graph.js). */
#define NODE_SIZE "width=2.5, height=0.6, fixedsize=true"

typedef struct Place { /* the block that something is in, and the child that it is there */
    int block, child;
} Place;
typedef struct Places { /* of m->decisions, and of inputs */
    Place *ops, *inputs;
} Places;

static Places find_places(Arena *a, const ExplainGraph *g) {
    Places p = {arena_array(a, Place, g->m->decisions.len + 1), arena_array(a, Place, g->inputs.len + 1)};
    for (int i = 0; i < g->blocks.len; i++)
        for (int j = 0; j < g->blocks.data[i].children.len; j++) {
            const GraphChild *c = &g->blocks.data[i].children.data[j];
            if (c->kind == GRAPH_OP) p.ops[c->number] = (Place){i, j};
            if (c->kind == GRAPH_INPUT) p.inputs[c->number] = (Place){i, j};
        }
    return p;
}

/* By block: which child of the block above it is. */
static int *find_children(Arena *a, const ExplainGraph *g) {
    int *child_of = arena_array(a, int, g->blocks.len);
    for (int i = 0; i < g->blocks.len; i++)
        for (int j = 0; j < g->blocks.data[i].children.len; j++)
            if (g->blocks.data[i].children.data[j].kind == GRAPH_BLOCK)
                child_of[g->blocks.data[i].children.data[j].number] = j;
    return child_of;
}

/* An edge is drawn in the innermost block that holds both ends, between the children that they are inside of. */
static void place_edge(Arena *a, const ExplainGraph *g, const Places *p, const int *child_of, const GraphEdge *e,
                       Table *lines) {
    Place from = e->is_input ? p->inputs[e->from] : p->ops[e->from], to = p->ops[e->to];
    while (from.block != to.block) { /* a block comes after the one that it is in */
        Place *inner = from.block > to.block ? &from : &to;
        *inner = (Place){g->blocks.data[inner->block].above, child_of[inner->block]};
    }
    if (from.child == to.child) return;
    const char *line = arena_printf(a, "%d n%d->n%d", to.block, from.child, to.child);
    table_set(a, lines, line, (void *)strchr(line, 'n'));
}

void explain_as_blocks(Text *t, const ExplainGraph *g) {
    Arena *a = t->arena;
    Table lines = {0}; /* "BLOCK LINE" -> LINE: each once, however many edges it represents */
    const Places places = find_places(a, g);
    const int *child_of = find_children(a, g);
    Text *blocks = arena_array(a, Text, g->blocks.len);
    for (int i = 0; i < g->edges.len; i++) place_edge(a, g, &places, child_of, &g->edges.data[i], &lines);
    for (int i = 0; i < g->blocks.len; i++) {
        text_init(&blocks[i], a);
        text_printf(&blocks[i], "digraph b%d { node [shape=box, label=\"\", " NODE_SIZE "]\n", i);
        for (int j = 0; j < g->blocks.data[i].children.len; j++) text_printf(&blocks[i], "n%d\n", j);
    }
    for (int i = 0; i < lines.entries.len; i++)
        text_printf(&blocks[atoi(lines.entries.data[i].key)], "%s\n", (const char *)lines.entries.data[i].value);
    for (int i = 0; i < g->blocks.len; i++) text_printf(t, "%s}\n", text_str(&blocks[i]));
}
