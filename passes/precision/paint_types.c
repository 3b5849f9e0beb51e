/* paint_types: gives the ops of the forward and the backward pass their dtypes by the policy's algorithm `paint`
 * (TensorFlow's), inserts the casts, and records the reason of each; nothing where the algorithm is another.
 * needs: autodiff.  breaks: nothing.
 *
 *   %h  = linear(%x, %w)    : f32[N, 32]   =>   %w.f16 = cast(%w)           : f16[32, 16] because {allow, p:8, for fc}
 *   %y  = relu(%h)          : f32[N, 32]        %x.f16 = cast(%x)           : f16[N, 16]  because {allow, p:8, for fc}
 *   ...                                         %h = linear(%x.f16, %w.f16) : f16[N, 32]  because {allow, p:8}
 *   %dh = relu_grad(%dy, %y) : f32[N, 32]       %y = relu(%h)               : f16[N, 32]
 *                                                    because {clear, p:17, "allow in pass 3: between fc1 and fc2"}
 *
 * The step is painted, and an op of evaluation and inference has the type that it has in the step; a model that is not
 * trained is painted as it infers.  Each value is cast once for all its readers of the other colour.
 */
#include "ir/operands.h"
#include "passes/common/common.h"
#include "passes/passes.h"
#include "passes/precision/casting.h"
#include "precision/paint.h"

typedef struct Mark {
    Choice choice;
    bool is_low;
} Mark;

typedef struct PathEnd { /* of the path from a vertex to what painted it */
    bool known;
    int vertex, steps;
} PathEnd;

typedef struct Painting { /* of a function */
    Casting casting;
    const PaintMark *marks; /* by vertex */
    PathEnd *ends[2];       /* by vertex: against the edges, and along them */
    int *vertex;            /* by op id */
    int ops;                /* vertices from here on are inputs and states; those before are the body's ops */
    Mark *decided;          /* by vertex, of an op: its choice, and once the function is painted the rest */
    Table *forward;         /* to Mark, by path: forward ops of functions that are painted already, and of this one */
} Painting;

/* ---- the graph --------------------------------------------------------------------------------------------------- */

static bool has_f32(const Func *f, const Op *o) {
    bool has = o->n_out && ir_dtype(f, o->out[0]) == AMP_DT_F32;
    for (int i = 0; i < o->n_in; i++)
        has = has || (operand_is_castable(f, o, i) && ir_dtype(f, o->in[i]) == AMP_DT_F32);
    return has;
}

static PaintList list_of(PolicyClass op_class) {
    switch (op_class) {
    case POLICY_ALLOW: return PAINT_LIST_ALLOW;
    case POLICY_INFER: return PAINT_LIST_INFER;
    case POLICY_DENY: return PAINT_LIST_DENY;
    case POLICY_CLEAR: return PAINT_LIST_CLEAR;
    default: return PAINT_LIST_NONE;
    }
}

/* What follows no list: written conversions, numbers, the seed of the backward pass, what changes states. */
static bool is_fixed(const Op *o) {
    return casting_undecided(o) || o->code == OP_grad_seed || ir_op_info[o->code].flags & EFFECT || !o->n_out;
}

static void add_edges(const Painting *p, const Op *o, const int *input, PaintEdge *edges, int *count) {
    for (int i = 0; i < o->n_in; i++) {
        if (!operand_is_castable(p->casting.f, o, i)) continue;
        const Op *maker = ir_def(p->casting.f, o->in[i]);
        const int from = maker ? p->vertex[maker->id.id] : input[o->in[i].id];
        if (!maker || result_has_type_of_op(maker, o->in[i]))
            edges[(*count)++] = (PaintEdge){from, p->vertex[o->id.id]};
    }
}

/* Vertices are the ops in order, then inputs and states. */
static void paint_function(Painting *p) {
    const Func *f = p->casting.f;
    Arena *a = f->module->arena;
    int edges = 0, count = f->body.len;
    int *input = arena_array(a, int, f->values.len);
    PaintVertex *vertices = arena_array(a, PaintVertex, f->body.len + f->inputs.len);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        const bool fixed = is_fixed(o), varies = !fixed && has_f32(f, o);
        p->decided[i].choice = casting_choose(&p->casting, o);
        p->vertex[o->id.id] = i;
        edges += o->n_in;
        vertices[i] = (PaintVertex){
            .list = fixed ? PAINT_LIST_NONE : list_of(p->decided[i].choice.op_class),
            .may_change = !fixed,
            .is_f32 = varies,
            .admits_low = varies,
            .has_low_kernel = varies,
        };
    }
    for (int i = 0; i < f->inputs.len; i++) {
        input[f->inputs.data[i].id] = count;
        vertices[count++] = (PaintVertex){.is_f32 = ir_dtype(f, f->inputs.data[i]) == AMP_DT_F32};
    }
    PaintEdge *edge = arena_array(a, PaintEdge, edges + 1);
    edges = 0;
    for (int i = 0; i < f->body.len; i++) add_edges(p, ir_op_at(f, i), input, edge, &edges);
    const PaintGraph graph = {vertices, edge, count, edges};
    p->marks = paint_graph(a, &graph);
    for (int i = 0; i < 2; i++) p->ends[i] = arena_array(a, PathEnd, count + 1);
    p->ops = f->body.len;
}

/* ---- reasons ----------------------------------------------------------------------------------------------------- */

enum { NAMES_ON_PATH = 3 };

static const char *vertex_name(const Painting *p, int vertex) {
    const Func *f = p->casting.f;
    if (vertex >= p->ops) return ir_value(f, f->inputs.data[vertex - p->ops])->name;
    return casting_maker(f, ir_op_at(f, vertex)->out[0]);
}

static bool path_ends(const Painting *p, int vertex, int next) {
    return next == PAINT_NOWHERE || p->marks[vertex].pass == PAINT_BY_LIST || p->marks[next].pass < PAINT_BY_LIST;
}

/* The path from |vertex| towards what it was painted by, |forward| or against the edges.  What is found is kept for all
 * vertices on the way, so that all paths together take linear time. */
static PathEnd end_of_path(const Painting *p, int vertex, bool forward) {
    PathEnd *ends = p->ends[forward];
    int last = vertex, steps = 0;
    while (!ends[last].known) {
        const int next = forward ? p->marks[last].after : p->marks[last].before;
        if (path_ends(p, last, next)) {
            ends[last] = (PathEnd){.known = true, .vertex = last};
            break;
        }
        last = next;
        steps++;
    }
    const PathEnd end = ends[last];
    for (int at = vertex; at != last; steps--) {
        ends[at] = (PathEnd){.known = true, .vertex = end.vertex, .steps = end.steps + steps};
        at = forward ? p->marks[at].after : p->marks[at].before;
    }
    return ends[vertex];
}

/* "a", or "a over b, c and 4 more": the path back to what made the vertex deny. */
static const char *path_back(const Painting *p, int vertex) {
    Text t;
    const PathEnd end = end_of_path(p, vertex, false);
    text_init(&t, p->casting.m->arena);
    text_puts(&t, vertex_name(p, end.vertex));
    int at = p->marks[vertex].before;
    for (int i = 0; i + 1 < end.steps && i < NAMES_ON_PATH; i++, at = p->marks[at].before)
        text_printf(&t, "%s%s", i ? ", " : " over ", vertex_name(p, at));
    if (end.steps > NAMES_ON_PATH + 1) text_printf(&t, " and %d more", end.steps - 1 - NAMES_ON_PATH);
    return text_str(&t);
}

/* Which pass painted the vertex, and over which path; NULL: its list says it. */
static const char *why_painted(const Painting *p, int vertex) {
    const PaintMark *mark = &p->marks[vertex];
    Arena *a = p->casting.m->arena;
    switch (mark->pass) {
    case PAINT_BY_DENY:
        return mark->before == PAINT_NOWHERE ? NULL : arena_printf(a, "deny in pass 2: after %s", path_back(p, vertex));
    case PAINT_BETWEEN:
        return arena_printf(a, "allow in pass 3: between %s and %s",
                            vertex_name(p, end_of_path(p, vertex, false).vertex),
                            vertex_name(p, end_of_path(p, vertex, true).vertex));
    case PAINT_AFTER: return arena_printf(a, "allow in pass 4: after %s", vertex_name(p, mark->before));
    case PAINT_BESIDE:
        return arena_printf(a, "allow in pass 5: beside %s",
                            vertex_name(p, mark->before == PAINT_NOWHERE ? mark->after : mark->before));
    case PAINT_UNTOUCHED: return "reached by no pass";
    default: return NULL;
    }
}

/* ---- applying ---------------------------------------------------------------------------------------------------- */

static void finish_mark(const Painting *p, int vertex) {
    Mark *mark = &p->decided[vertex];
    mark->is_low = p->marks[vertex].colour == PAINT_ALLOW;
    if (!mark->choice.why.because) mark->choice.why.because = why_painted(p, vertex);
}

/* A forward op has the mark that it got in the function that was painted first. */
static void decide(Casting *x, Op *o, void *user) {
    Painting *p = user;
    if (is_fixed(o)) return;
    const bool is_forward = !casting_is_backward(o);
    const Mark *mark = is_forward && o->path ? table_get(p->forward, o->path) : NULL;
    x->has_decisions = is_forward && !mark;
    if (!mark) mark = &p->decided[p->vertex[o->id.id]];
    if (x->has_decisions && o->path) table_set(x->m->arena, p->forward, o->path, &p->decided[p->vertex[o->id.id]]);
    const Dtype t = mark->is_low ? x->policy->low : AMP_DT_F32;
    const OpTypes types = {t, t, t, -1};
    casting_apply(x, o, &mark->choice, &types);
    if (ir_is_batch_norm_grad(o)) /* the gradients of the parameters */
        for (int i = 1; i < o->n_out; i++) ir_value(x->f, o->out[i])->dtype = AMP_DT_F32;
}

/* A parameter's gradient is f32, whatever it was computed in. */
static void cast_gradients(const Casting *x) {
    for (int i = 0; i < x->f->results.len; i++) {
        Result *r = &x->f->results.data[i];
        if ((r->kind != RESULT_GRADIENT && r->kind != RESULT_TERM) || ir_dtype(x->f, r->value) == AMP_DT_F32) continue;
        r->value = ir_emit(x->f, OP_cast, AMP_DT_F32, NULL, 1, r->value);
        Op *cast = ir_def(x->f, r->value);
        cast->path = arena_printf(x->m->arena, "%s.cast", r->name);
        cast->reason = ir_reason(x->m, "gradient");
        cast->reason->relation = "of";
        cast->reason->neighbour = r->of;
    }
}

static void run(Module *m, const Policy *policy, ProgramKind kind, Table *forward) {
    Func *f = ir_program(m, kind);
    if (!f) return;
    Painting p = {.casting = casting_new(m, f, policy), .forward = forward};
    p.casting.shares_casts = p.casting.has_overrides = true;
    p.decided = arena_array(m->arena, Mark, f->body.len + 1);
    p.vertex = arena_array(m->arena, int, f->ops.len);
    paint_function(&p);
    for (int i = 0; i < p.ops; i++) finish_mark(&p, i); /* before the walk adds ops to the body */
    casting_walk(&p.casting, decide, &p);
    cast_gradients(&p.casting);
    casting_updates(&p.casting);
}

bool pass_paint(PassContext *c) {
    static const ProgramKind kinds[] = {PROGRAM_TRAIN_STEP, PROGRAM_EVAL, PROGRAM_INFER};
    Table forward = {0};
    if (!c->m->is_painted) return true;
    const Policy *policy = policy_select(c);
    if (!policy) return false;
    if (strcmp(policy->sha256, c->m->policy_sha256)) {
        diag_error(c->diags, (Loc){0}, "module %s was prepared for policy %s, but policy %s is given now", c->m->name,
                   c->m->policy_name, policy->name);
        return false;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) run(c->m, policy, kinds[i], &forward);
    return true;
}
