/* gather.c: kernels that may share a launch run one after the other.
 *
 *   k40 { update of fc1.weight }                    k40 { update of fc1.weight }
 *   k41 { update of fc1.bias }                 =>   k41 { update of fc2.weight }
 *   k42 { update of fc2.weight }                    k42 { update of fc1.bias }
 *
 * On a target that launches equal kernels as one, those that do the same with other values move side by side, and
 * scalar kernels with one predicate too (merge_scalars.c).  First each moves up to the last one before it (updates of
 * parameters), then down to the first one behind it (sums for gradients, which nothing needs before the updates).
 * Nothing between needs them, nor they it, and what is kept in memory meanwhile is little.  Whether they are equal in
 * all, code generation finds out; here it only matters that most are.
 */
#include "ir/print.h"
#include "passes/kernels/kernel_list.h"
#include "passes/kernels/layout.h"

enum {
    FARTHEST = 1024,      /* kernels that one is compared with on its way */
    MOST_KEPT = 32 << 20, /* bytes that live longer because kernels have moved to one group */
};

typedef struct Group { /* kernels that share a signature and stand side by side */
    int end;           /* the one that the next stands beside */
    int64_t kept;      /* bytes */
} Group;

typedef struct Gather {
    const Func *f;
    const char **signature; /* by kernel; NULL: it is alone */
    int *next, *before;     /* by kernel: its neighbours in the new order; -1: none */
    int first, last;
    const int64_t *bytes; /* by buffer: of a temporary; else 0 */
    int *last_reader;     /* by buffer */
    bool moved;
} Gather;

/* ---- what a kernel does, but for which values -------------------------------------------------------------------- */

static void put_type(Text *t, const Func *f, Val v, bool shape) {
    text_printf(t, " %d", ir_dtype(f, v));
    if (shape) type_print(t, ir_dtype(f, v), ir_shape(f, v));
}

/* Elements of no row and no column: kernels over different numbers of them have one text. */
static bool is_flat(const Func *f, const Kernel *k) {
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(f, k->first + i);
        if (o->n_in && ir_reads_memory(f, o, 0) && o->code != OP_sum_parts) return false;
        for (int r = 0; r < o->n_out; r++)
            for (int d = 0; d < ir_shape(f, o->out[r])->rank; d++)
                if (ir_shape(f, o->out[r])->d[d].n) return false;
    }
    return k->kind == KERNEL_TILE;
}

/* Ops with their attributes, types and shapes, which are part of their code where rows or columns count. */
static const char *signature_of(const Func *f, const Kernel *k) {
    const bool flat = is_flat(f, k);
    Text t;
    text_init(&t, f->module->arena);
    if (k->kind == KERNEL_SCALAR) return arena_printf(f->module->arena, "scalar %u", k->pred.id);
    if (k->kind != KERNEL_TILE && k->kind != KERNEL_ROW && k->kind != KERNEL_COLUMN) return NULL;
    text_printf(&t, "%d %d %d", k->kind, k->reads.len, k->writes.len);
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(f, k->first + i);
        const OpInfo *info = &ir_op_info[o->code];
        text_printf(&t, " %d", o->code);
        for (int n = 0; n < MAX_ATTRS && info->attrs[n].type != ATTR_END; n++)
            print_attr(&t, info->attrs[n].type, &o->attr[n]);
        for (int n = 0; n < o->n_in; n++) put_type(&t, f, o->in[n], !flat);
        for (int r = 0; r < o->n_out; r++) put_type(&t, f, o->out[r], !flat);
    }
    for (int i = 0; i < k->reads.len; i++) text_printf(&t, " %d", f->buffers.data[k->reads.data[i] - 1]->storage);
    for (int i = 0; i < k->writes.len; i++) text_printf(&t, " %d", f->buffers.data[k->writes.data[i] - 1]->storage);
    return text_str(&t);
}

/* ---- what moves -------------------------------------------------------------------------------------------------- */

/* The neighbour of |kernel| on the way up, or down. */
static int toward(const Gather *g, int kernel, bool up) { return up ? g->before[kernel] : g->next[kernel]; }

/* Whether |kernel| may run beside |end|: it and those on its way do not need each other. */
static bool may_move(const Gather *g, int kernel, int end, bool up) {
    const Kernel *k = g->f->kernels.data[kernel];
    int steps = 0;
    for (int i = toward(g, kernel, up); i != end; i = toward(g, i, up)) {
        const Kernel *between = g->f->kernels.data[i];
        if (++steps > FARTHEST || kernel_touches(g->f, k, between) || kernel_touches(g->f, between, k)) return false;
    }
    return !kernel_touches(g->f, k, g->f->kernels.data[end]) && !kernel_touches(g->f, g->f->kernels.data[end], k);
}

/* Bytes that live longer: what |kernel| makes, where it runs earlier, or what it is the last to read, where later; less
 * those that live the shorter for it. */
static int64_t keeps(const Gather *g, int kernel, bool up) {
    const Kernel *k = g->f->kernels.data[kernel];
    int64_t made = 0, read = 0;
    for (int i = 0; i < k->writes.len; i++) made += g->bytes[k->writes.data[i]];
    for (int i = 0; i < k->reads.len; i++)
        if (g->last_reader[k->reads.data[i]] == kernel) read += g->bytes[k->reads.data[i]];
    const int64_t more = up ? made - read : read - made;
    return more > 0 ? more : 0;
}

static void link(Gather *g, int before, int next) {
    if (before >= 0) g->next[before] = next;
    else g->first = next;
    if (next >= 0) g->before[next] = before;
    else g->last = before;
}

static void move(Gather *g, int kernel, int end, bool up) {
    link(g, g->before[kernel], g->next[kernel]);
    const int before = up ? end : g->before[end], next = up ? g->next[end] : end;
    link(g, before, kernel);
    link(g, kernel, next);
    g->moved = true;
}

/* Each kernel to the group that it meets first, which may grow by it; else it begins a group of its own. */
static void gather(Gather *g, bool up) {
    Arena *a = g->f->module->arena;
    Table groups = {0};
    for (int i = up ? g->first : g->last, then; i >= 0; i = then) {
        then = toward(g, i, !up);
        if (!g->signature[i]) continue;
        Group *group = table_get(&groups, g->signature[i]);
        const int64_t more = keeps(g, i, up);
        if (group && group->kept + more <= MOST_KEPT && may_move(g, i, group->end, up)) {
            group->kept += more;
            if (toward(g, i, up) != group->end) move(g, i, group->end, up);
        } else {
            group = arena_new(a, Group);
            table_set(a, &groups, g->signature[i], group);
        }
        group->end = i;
    }
}

/* ---- the function ------------------------------------------------------------------------------------------------ */

static Gather open_gather(const Func *f) {
    Arena *a = f->module->arena;
    const int count = f->kernels.len;
    Gather g = {.f = f, .last = -1, .first = -1, .bytes = measure_buffers(f)};
    g.signature = arena_array(a, const char *, count + 1);
    g.next = arena_array(a, int, count + 1);
    g.before = arena_array(a, int, count + 1);
    g.last_reader = arena_array(a, int, f->buffers.len + 1);
    for (int i = 0; i < count; i++) {
        const Kernel *k = f->kernels.data[i];
        g.signature[i] = signature_of(f, k);
        link(&g, i - 1, i);
        for (int r = 0; r < k->reads.len; r++) g.last_reader[k->reads.data[r]] = i;
    }
    link(&g, count - 1, -1);
    return g;
}

bool gather_kernels(Func *f) {
    if (!target_of(f->module)->batches_updates) return false;
    Gather g = open_gather(f);
    gather(&g, true);
    gather(&g, false);
    if (!g.moved) return false;
    KernelList list = kernel_list_open(f);
    KernelOps *ordered = arena_array(f->module->arena, KernelOps, list.at.len + 1);
    for (int i = 0, from = g.first; i < list.at.len; i++, from = g.next[from]) ordered[i] = list.at.data[from];
    memcpy(list.at.data, ordered, (size_t)list.at.len * sizeof *ordered);
    kernel_list_close(&list);
    return true;
}
