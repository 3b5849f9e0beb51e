/* explain_graph.c: see explain_graph.h.  Blocks follow the ops' paths: "h.0.attn.linear" is in h, 0 and attn.
 * A block that holds a single thing is that thing, under the names of both: fc1.linear. */
#include "compiler/explain/explain_graph.h"

#include <string.h>

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

typedef struct Builder {
    ExplainGraph *g;
    Arena *arena;
    Table blocks; /* path -> its number, as a pointer into |numbers| */
} Builder;

static int new_block(Builder *b, const char *path, int above) {
    int *number = arena_new(b->arena, int);
    *number = b->g->blocks.len;
    table_set(b->arena, &b->blocks, path, number);
    vec_push(b->arena, &b->g->blocks, ((GraphBlock){.path = path, .above = above}));
    return *number;
}

static void add_child(Builder *b, int block, GraphChild child) {
    GraphBlock *into = &b->g->blocks.data[block];
    vec_push(b->arena, &into->children, child);
}

/* The block of the path, below |above|, made where there is none. */
static int block_of(Builder *b, const char *path, const char *name, int above) {
    const int *found = table_get(&b->blocks, path);
    if (found) return *found;
    const int number = new_block(b, path, above);
    add_child(b, above, (GraphChild){GRAPH_BLOCK, number, name});
    return number;
}

static void add_op(Builder *b, const char *path, int decision) {
    int block = 0;
    const char *name = path;
    for (const char *dot = strchr(path, '.'); dot; dot = strchr(name, '.')) {
        const char *part = arena_strndup(b->arena, name, (size_t)(dot - name));
        block = block_of(b, arena_strndup(b->arena, path, (size_t)(dot - path)), part, block);
        name = dot + 1;
    }
    add_child(b, block, (GraphChild){GRAPH_OP, decision, name});
}

/* A block of one child gives it to the block that it is in; blocks inside come first. */
static void pull_up_single(Builder *b, ExplainGraph *g) {
    for (int i = g->blocks.len - 1; i >= 0; i--)
        for (int j = 0; j < g->blocks.data[i].children.len; j++) {
            GraphChild *c = &g->blocks.data[i].children.data[j];
            GraphBlock *inner = c->kind == GRAPH_BLOCK ? &g->blocks.data[c->number] : NULL;
            if (!inner || inner->children.len != 1) continue;
            const GraphChild only = inner->children.data[0];
            *c = (GraphChild){only.kind, only.number, arena_printf(b->arena, "%s.%s", c->name, only.name)};
            if (only.kind == GRAPH_BLOCK) g->blocks.data[only.number].above = i;
            inner->children.len = 0;
        }
}

typedef struct OneGroup { /* what a block has of it */
    int ops, block;       /* the block that they become; 0: it is not made yet */
    const char *name;     /* for all of them */
} OneGroup;

static void count_groups(Builder *b, const GraphBlock *wide, const int *group, OneGroup *of) {
    for (int j = 0; j < wide->children.len; j++)
        if (wide->children.data[j].kind == GRAPH_OP) of[group[wide->children.data[j].number]] = (OneGroup){0};
    for (int j = 0; j < wide->children.len; j++) {
        const GraphChild *c = &wide->children.data[j];
        if (c->kind != GRAPH_OP) continue;
        OneGroup *g = &of[group[c->number]];
        g->name = g->ops++ ? explain_join_names(b->arena, g->name, c->name) : c->name;
    }
}

/* Of the block |number|, which is too wide, ops of one group become one block: a loop's steps are drawn as its body.
 * |group|: of each decision. */
static void fold_groups(Builder *b, ExplainGraph *g, int number, const int *group, OneGroup *of) {
    const GraphBlock wide = g->blocks.data[number];
    count_groups(b, &wide, group, of);
    g->blocks.data[number].children = (GraphChildren){0};
    for (int j = 0; j < wide.children.len; j++) {
        const GraphChild c = wide.children.data[j];
        OneGroup *own = c.kind == GRAPH_OP ? &of[group[c.number]] : NULL;
        if (!own || own->ops == 1) {
            add_child(b, number, c);
            continue;
        }
        if (!own->block) {
            const char *path = *wide.path ? arena_printf(b->arena, "%s.%s", wide.path, own->name) : own->name;
            own->block = new_block(b, path, number);
            add_child(b, number, (GraphChild){GRAPH_BLOCK, own->block, own->name});
        }
        add_child(b, own->block, c);
    }
}

static void fold_wide(Builder *b, ExplainGraph *g, const ExplainFacts *x, const ExplainNumbers *told, int most) {
    int last = g->blocks.len - 1;
    while (last >= 0 && g->blocks.data[last].children.len <= most) last--;
    if (last < 0) return;
    const ExplainGroups groups = explain_groups(x, told, false);
    int *group = arena_array(b->arena, int, g->m->decisions.len + 1);
    OneGroup *of = arena_array(b->arena, OneGroup, groups.len + 1);
    for (int i = 0; i < groups.len; i++)
        for (int k = 0; k < groups.data[i]->ops.len; k++) group[groups.data[i]->ops.data[k]] = i;
    for (int i = last; i >= 0; i--)
        if (g->blocks.data[i].children.len > most) fold_groups(b, g, i, group, of);
}

/* Runs of |most| children become blocks; those may be too many in turn. */
static void split_wide(Builder *b, ExplainGraph *g, int most) {
    for (int i = 0; i < g->blocks.len; i++)
        while (g->blocks.data[i].children.len > most) {
            const GraphBlock wide = g->blocks.data[i];
            g->blocks.data[i].children = (GraphChildren){0};
            for (int first = 0; first < wide.children.len; first += most) {
                const int last = first + most < wide.children.len ? first + most : wide.children.len;
                const char *name = arena_printf(b->arena, "(%d-%d)", first + 1, last);
                const char *path = *wide.path ? arena_printf(b->arena, "%s %s", wide.path, name) : name;
                const int run = new_block(b, path, i);
                add_child(b, i, (GraphChild){GRAPH_BLOCK, run, name});
                for (int j = first; j < last; j++) {
                    add_child(b, run, wide.children.data[j]);
                    if (wide.children.data[j].kind == GRAPH_BLOCK)
                        g->blocks.data[wide.children.data[j].number].above = run;
                }
            }
        }
}

/* Drops blocks that are empty now; each block comes after the one that it is in. */
static void renumber(Builder *b, ExplainGraph *g) {
    ExplainGraph out = *g;
    ExplainNumbers olds = {0};
    out.blocks.data = NULL;
    out.blocks.len = out.blocks.cap = 0;
    vec_push(b->arena, &olds, 0);
    for (int i = 0; i < olds.len; i++) {
        GraphBlock block = g->blocks.data[olds.data[i]];
        for (int j = 0; j < block.children.len; j++) {
            GraphChild *c = &block.children.data[j];
            if (c->kind != GRAPH_BLOCK) continue;
            g->blocks.data[c->number].above = i;
            vec_push(b->arena, &olds, c->number);
            c->number = olds.len - 1;
        }
        vec_push(b->arena, &out.blocks, block);
    }
    *g = out;
}

/* ---- edges ------------------------------------------------------------------------------------------------------- */

typedef struct Nodes {
    int *of_op; /* by op id: 1 + its decision; 0: it is no node */
    Table decisions;
} Nodes;

/* The first op of each path is the one of the forward pass. */
static Nodes find_nodes(Arena *a, const Func *f, const ExplainGraph *g, const ExplainNumbers *told) {
    Nodes nodes = {.of_op = arena_array(a, int, f->ops.len + 1)};
    for (int i = 0; i < told->len; i++) {
        int *number = arena_new(a, int);
        *number = 1 + told->data[i];
        table_set(a, &nodes.decisions, g->m->decisions.data[told->data[i]].path, number);
    }
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        int *number = o->path ? table_get(&nodes.decisions, o->path) : NULL;
        if (!number || !*number) continue;
        nodes.of_op[o->id.id] = *number;
        *number = 0;
    }
    return nodes;
}

static bool is_same_edge(const GraphEdge *a, const GraphEdge *b) {
    return a->is_input == b->is_input && a->from == b->from && a->to == b->to && a->was == b->was &&
           a->dtype == b->dtype;
}

/* An op that reads a value twice has one edge. */
static void add_edge(Arena *a, ExplainGraph *g, GraphEdge edge) {
    for (int i = g->edges.len - 1; i >= 0 && g->edges.data[i].to == edge.to; i--)
        if (is_same_edge(&g->edges.data[i], &edge)) return;
    vec_push(a, &g->edges, edge);
}

static int input_of(Arena *a, ExplainGraph *g, const Value *v) {
    for (int i = 0; i < g->inputs.len; i++)
        if (!strcmp(g->inputs.data[i].name, v->name)) return i;
    vec_push(a, &g->inputs, ((GraphInput){v->name, v->dtype}));
    return g->inputs.len - 1;
}

/* States are no part of the drawing; nor are constants and what else is no node. */
static void add_operand(Arena *a, ExplainGraph *g, const Func *f, const Nodes *nodes, int to, Val v) {
    GraphEdge edge = {.to = to, .dtype = ir_dtype(f, v), .was = ir_dtype(f, v)};
    const Op *maker = ir_def(f, v);
    for (; maker && maker->code == OP_cast && !nodes->of_op[maker->id.id]; maker = ir_def(f, v)) {
        v = maker->in[0];
        edge.was = ir_dtype(f, v);
    }
    if (!maker && ir_value(f, v)->kind != VAL_INPUT) return;
    if (maker && !nodes->of_op[maker->id.id]) return;
    edge.is_input = !maker;
    edge.from = maker ? nodes->of_op[maker->id.id] - 1 : input_of(a, g, ir_value(f, v));
    add_edge(a, g, edge);
}

static void add_edges(Arena *a, ExplainGraph *g, const Func *f, const ExplainNumbers *told) {
    const Nodes nodes = find_nodes(a, f, g, told);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        if (!nodes.of_op[o->id.id]) continue;
        for (int j = 0; j < o->n_in; j++) add_operand(a, g, f, &nodes, nodes.of_op[o->id.id] - 1, o->in[j]);
    }
}

ExplainGraph explain_graph(const ExplainFacts *x, const Module *graph, const ExplainSelection *which, int most) {
    Arena *a = x->m->arena;
    ExplainGraph g = {.m = x->m};
    Builder b = {.g = &g, .arena = a};
    const Func *funcs[STEP_FUNCS + 1] = {NULL};
    const ExplainNumbers told = explain_selected(x, which, !which->want.all);
    if (graph) casts_step_funcs(graph, funcs);
    if (funcs[0]) add_edges(a, &g, funcs[0], &told);
    new_block(&b, "", NO_BLOCK_ABOVE);
    for (int i = 0; i < g.inputs.len; i++) add_child(&b, 0, (GraphChild){GRAPH_INPUT, i, g.inputs.data[i].name});
    for (int i = 0; i < told.len; i++) add_op(&b, x->m->decisions.data[told.data[i]].path, told.data[i]);
    pull_up_single(&b, &g);
    if (most && !which->want.all) fold_wide(&b, &g, x, &told, most);
    if (most) split_wide(&b, &g, most);
    renumber(&b, &g);
    return g;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void put_block(amp_json_writer *w, const ExplainGraph *g, const GraphBlock *block) {
    amp_json_begin_object(w, NULL);
    amp_json_put_string(w, "path", block->path);
    if (block->above == NO_BLOCK_ABOVE) amp_json_put_null(w, "in");
    else amp_json_put_int(w, "in", block->above);
    amp_json_begin_array(w, "children");
    for (int i = 0; i < block->children.len; i++) {
        const GraphChild *c = &block->children.data[i];
        amp_json_begin_object(w, NULL);
        amp_json_put_string(w, "name", c->name);
        if (c->kind == GRAPH_BLOCK) amp_json_put_int(w, "block", c->number);
        else if (c->kind == GRAPH_OP) amp_json_put_string(w, "op", g->m->decisions.data[c->number].path);
        else amp_json_put_string(w, "input", amp_dtype_name(g->inputs.data[c->number].dtype));
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
    amp_json_end_object(w);
}

static void put_edge(amp_json_writer *w, const ExplainGraph *g, const GraphEdge *e) {
    amp_json_begin_object(w, NULL);
    if (e->is_input) amp_json_put_string(w, "input", g->inputs.data[e->from].name);
    else amp_json_put_string(w, "from", g->m->decisions.data[e->from].path);
    amp_json_put_string(w, "to", g->m->decisions.data[e->to].path);
    amp_json_put_string(w, "dtype", amp_dtype_name(e->dtype));
    amp_json_put_string(w, "cast_from", e->was == e->dtype ? NULL : amp_dtype_name(e->was));
    amp_json_end_object(w);
}

void explain_put_graph(amp_json_writer *w, const ExplainGraph *g) {
    amp_json_begin_object(w, "graph");
    amp_json_begin_array(w, "blocks");
    for (int i = 0; i < g->blocks.len; i++) put_block(w, g, &g->blocks.data[i]);
    amp_json_end_array(w);
    amp_json_begin_array(w, "edges");
    for (int i = 0; i < g->edges.len; i++) put_edge(w, g, &g->edges.data[i]);
    amp_json_end_array(w);
    amp_json_end_object(w);
}
