/* kernel_order.c: see kernel_order.h. */
#include "passes/order/kernel_order.h"

#include "passes/layout/layout.h"

enum {
    FARTHEST = 1024,       /* kernels that one is compared with on its way */
    LEAST_KEPT = 32 << 20, /* bytes */
    ASSUMED_N = 32         /* sizes are compared at this batch */
};

bool order_kernels(PassContext *c, bool (*order)(Func *f)) {
    const Table state_numbers = number_states(c->m);
    for (int i = 0; i < c->m->funcs.len; i++) {
        Func *f = c->m->funcs.data[i];
        if (!ir_is_exchange(f) && order(f)) make_buffers(f, &state_numbers);
    }
    return true;
}

static int64_t assumed(Dim d) { return dim_assumed(d, ASSUMED_N); }

int64_t *measure_buffers(const Func *f) {
    int64_t *bytes = arena_array(f->module->arena, int64_t, f->buffers.len + 1);
    for (int i = 0; i < f->buffers.len; i++) {
        const Buffer *b = f->buffers.data[i];
        Dim rows, cols;
        if (b->kind != BUFFER_TEMP || !shape_matrix(ir_shape(f, b->value), &rows, &cols)) continue;
        bytes[i + 1] = assumed(rows) * assumed(cols) * (int64_t)amp_dtype_size(b->storage);
    }
    return bytes;
}

/* ---- kernels that move ------------------------------------------------------------------------------------------- */

/* Of temporaries that would take |all| bytes together. */
static int64_t most_kept(int64_t all) { return all / 60 > LEAST_KEPT ? all / 60 : LEAST_KEPT; }

static int64_t add_up(const Func *f, const int64_t *bytes) {
    int64_t all = 0;
    for (int i = 1; i <= f->buffers.len; i++) all += bytes[i];
    return all;
}

static void link(KernelOrder *o, int before, int next) {
    if (before >= 0) o->next[before] = next;
    else o->first = next;
    if (next >= 0) o->before[next] = before;
    else o->last = before;
}

/* `checkpoint` blocks ask for less memory at the cost of time: their copies for the backward pass are "relu.again"
 * (passes/training/checkpoint.c).  A layer of that name does no harm. */
static bool saves_memory(const Func *f) {
    static const char again[] = ".again";
    for (int i = 0; i < f->regions.len; i++) {
        const char *path = f->regions.data[i].path;
        const size_t length = path ? strlen(path) : 0, end = sizeof again - 1;
        if (length > end && !strcmp(path + length - end, again)) return true;
    }
    return false;
}

static void measure_live(KernelOrder *o) {
    const Func *f = o->list.f;
    const int count = f->kernels.len;
    o->live = arena_array(f->module->arena, int64_t, count + 1);
    for (int i = 1; i <= f->buffers.len; i++) {
        const int maker = o->maker[f->buffers.data[i - 1]->value.id], last = o->last_reader[i];
        if (maker < 0 || !o->bytes[i]) continue;
        o->live[maker] += o->bytes[i];
        o->live[(last > maker ? last : maker) + 1] -= o->bytes[i]; /* differences first */
    }
    for (int i = 0; i < count; i++) {
        if (i) o->live[i] += o->live[i - 1];
        if (o->live[i] > o->peak) o->peak = o->live[i];
    }
}

KernelOrder kernel_order_open(Func *f) {
    Arena *a = f->module->arena;
    const int count = f->kernels.len;
    KernelOrder o = {.list = kernel_list_open(f), .bytes = measure_buffers(f)};
    o.next = arena_array(a, int, count + 1);
    o.before = arena_array(a, int, count + 1);
    o.last_reader = arena_array(a, int, f->buffers.len + 1);
    o.maker = kernel_makers(f);
    o.most_kept = saves_memory(f) ? 0 : most_kept(add_up(f, o.bytes));
    for (int i = 0; i < count; i++) {
        const Kernel *k = f->kernels.data[i];
        link(&o, i - 1, i);
        for (int r = 0; r < k->reads.len; r++) o.last_reader[k->reads.data[r]] = i;
    }
    link(&o, count - 1, -1);
    measure_live(&o);
    if (!o.most_kept) o.peak = 0;
    return o;
}

const Kernel *kernel_order_at(const KernelOrder *o, int kernel) { return o->list.at.data[kernel].kernel; }

int kernel_order_toward(const KernelOrder *o, int kernel, bool up) { return up ? o->before[kernel] : o->next[kernel]; }

bool names_value_of(const Func *f, const int *makers, const KernelOps *k, int maker) {
    for (int i = 0; i < k->ops.len; i++) {
        const Op *op = ir_op(f, k->ops.data[i]);
        for (int n = 0; n < op->n_in; n++)
            if (makers[op->in[n].id] == maker) return true;
    }
    return false;
}

bool kernel_order_may_move(const KernelOrder *o, int kernel, int end, bool up) {
    const Func *f = o->list.f;
    const Kernel *k = kernel_order_at(o, kernel);
    int steps = 0;
    for (int i = kernel_order_toward(o, kernel, up); i != end; i = kernel_order_toward(o, i, up)) {
        const Kernel *between = kernel_order_at(o, i);
        if (++steps > FARTHEST || ir_touches(f, k, between, true) || ir_touches(f, between, k, true)) return false;
        const int reader = up ? kernel : i, maker = up ? i : kernel;
        if (names_value_of(f, o->maker, &o->list.at.data[reader], maker)) return false;
    }
    return true;
}

/* Whether nothing from |end| on reads the buffer, if |kernel| is just before |end| and reads it. */
static bool is_last_reader(const KernelOrder *o, int kernel, int end, uint32_t buffer) {
    int steps = 0;
    for (int i = kernel; i != end && i >= 0 && steps++ <= FARTHEST; i = o->next[i])
        if (o->last_reader[buffer] == i) return true;
    return false;
}

/* What it makes, where it runs earlier, or what it is then the last to read, where later; less those that live the
 * shorter for it. */
int64_t kernel_order_keeps(const KernelOrder *o, int kernel, int end, bool up) {
    const Kernel *k = kernel_order_at(o, kernel);
    int64_t made = 0, read = 0;
    for (int i = 0; i < k->writes.len; i++) made += o->bytes[k->writes.data[i]];
    for (int i = 0; i < k->reads.len; i++)
        if (is_last_reader(o, kernel, up ? o->next[kernel] : end, k->reads.data[i])) read += o->bytes[k->reads.data[i]];
    const int64_t more = up ? made - read : read - made;
    return more > 0 ? more : 0;
}

int64_t kernel_order_room(const KernelOrder *o, int kernel, int end, bool up) {
    int64_t most = o->live[end];
    int steps = 0;
    for (int i = kernel_order_toward(o, kernel, up); i != end && ++steps <= FARTHEST; i = kernel_order_toward(o, i, up))
        if (o->live[i] > most) most = o->live[i];
    return steps <= FARTHEST && o->peak > most ? o->peak - most : 0;
}

void kernel_order_move(KernelOrder *o, int kernel, int end, bool up) {
    if (kernel_order_toward(o, kernel, up) == end) return;
    const int64_t more = kernel_order_keeps(o, kernel, end, up);
    for (int i = kernel_order_toward(o, kernel, up); i != end; i = kernel_order_toward(o, i, up)) o->live[i] += more;
    o->live[kernel] = o->live[end] + more;
    const Kernel *k = kernel_order_at(o, kernel);
    for (int i = 0; i < k->reads.len && !up; i++)
        if (is_last_reader(o, kernel, end, k->reads.data[i])) o->last_reader[k->reads.data[i]] = kernel;
    link(o, o->before[kernel], o->next[kernel]);
    const int before = up ? end : o->before[end], next = up ? o->next[end] : end;
    link(o, before, kernel);
    link(o, kernel, next);
    o->changed = true;
}

void kernel_order_merge(KernelOrder *o, int kernel, int next) {
    const Func *f = o->list.f;
    Arena *a = f->module->arena;
    KernelOps *into = &o->list.at.data[kernel];
    const KernelOps *from = &o->list.at.data[next];
    Kernel *k = into->kernel;
    for (int i = 0; i < from->ops.len; i++) {
        const Op *op = ir_op(f, from->ops.data[i]);
        for (int r = 0; r < op->n_out; r++) o->maker[op->out[r].id] = kernel;
        vec_push(a, &into->ops, from->ops.data[i]);
    }
    for (int i = 0; i < from->kernel->reads.len; i++) {
        const uint32_t b = from->kernel->reads.data[i];
        if (o->last_reader[b] == next) o->last_reader[b] = kernel;
        if (!ir_is_among(f, k->reads.data, k->reads.len, b) && !ir_is_among(f, k->writes.data, k->writes.len, b))
            vec_push(a, &k->reads, b);
    }
    for (int i = 0; i < from->kernel->writes.len; i++)
        if (!ir_is_among(f, k->writes.data, k->writes.len, from->kernel->writes.data[i]))
            vec_push(a, &k->writes, from->kernel->writes.data[i]);
    if (k->title && from->kernel->title && strcmp(k->title, from->kernel->title) && !strstr(k->title, ", and more"))
        k->title = arena_printf(a, "%s, and more", k->title);
    link(o, kernel, o->next[next]);
    o->changed = true;
}

bool kernel_order_close(KernelOrder *o) {
    Arena *a = o->list.f->module->arena;
    KernelList ordered = {.f = o->list.f};
    if (!o->changed) return false;
    for (int i = o->first; i >= 0; i = o->next[i]) vec_push(a, &ordered.at, o->list.at.data[i]);
    kernel_list_close(&ordered);
    return true;
}
