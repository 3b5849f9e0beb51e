/* sequence.c: of two neighbouring kernels that do not need each other, the one first that leaves less in memory.
 *
 *   k1 { %dx = contract(%dy, %w) }             k1 { %dw = contract(%dy, %x; ta = true) }
 *   k2 { %dw = contract(%dy, %x; ta = true) }  =>  k2 { %dx = contract(%dy, %w) }
 *
 * Nothing reads %x after %dw: made first, it leaves its place to %dx.  No bit depends on the order.
 */
#include "passes/order/kernel_order.h"

typedef struct Sequence {
    const Func *f;
    const int64_t *bytes; /* by buffer, as first and last: 0 for what is no temporary */
    int *first, *last;    /* positions of kernels */
    const int *makers;    /* by value id: a kernel's number; -1: none */
    int *numbers;         /* by position */
} Sequence;

/* ---- memory of a kernel ------------------------------------------------------------------------------------------ */

/* Bytes that begin to live with the kernel at |at|. */
static int64_t begins(const Sequence *s, const Kernel *k, int at) {
    int64_t bytes = 0;
    for (int i = 0; i < k->writes.len; i++)
        if (s->first[k->writes.data[i]] == at) bytes += s->bytes[k->writes.data[i]];
    return bytes;
}

/* Bytes that nothing needs after |k|, if it is the first of the two kernels |at| and |at| + 1. */
static int64_t ends(const Sequence *s, const Kernel *k, const Kernel *second, int at) {
    int64_t bytes = 0;
    for (int i = 0; i < k->reads.len; i++) {
        const uint32_t b = k->reads.data[i];
        bool needed = s->last[b] > at + 1 || ir_is_among(s->f, second->reads.data, second->reads.len, b);
        if (!needed && !ir_is_among(s->f, k->reads.data, i, b)) bytes += s->bytes[b];
    }
    return bytes;
}

/* The most that the two hold, beyond what is there before them. */
static int64_t peak(const Sequence *s, const Kernel *first, int64_t of_first, const Kernel *second, int64_t of_second,
                    int at) {
    int64_t both = of_first + of_second - ends(s, first, second, at);
    return of_first > both ? of_first : both;
}

/* ---- the order --------------------------------------------------------------------------------------------------- */

static void touch(Sequence *s, const Kernel *k, int at) {
    for (int i = 0; i < k->reads.len + k->writes.len; i++) {
        uint32_t b = i < k->reads.len ? k->reads.data[i] : k->writes.data[i - k->reads.len];
        if (s->first[b] < 0 || s->first[b] > at) s->first[b] = at;
        if (s->last[b] < at) s->last[b] = at;
    }
}

static Sequence measure_sequence(const Func *f) {
    Arena *a = f->module->arena;
    Sequence s = {.f = f, .bytes = measure_buffers(f)};
    s.first = arena_array(a, int, f->buffers.len + 1);
    s.last = arena_array(a, int, f->buffers.len + 1);
    for (int i = 0; i <= f->buffers.len; i++) s.first[i] = s.last[i] = -1;
    s.makers = kernel_makers(f);
    s.numbers = arena_array(a, int, f->kernels.len + 1);
    for (int i = 0; i < f->kernels.len; i++) {
        s.numbers[i] = i;
        touch(&s, f->kernels.data[i], i);
    }
    return s;
}

/* Results are read after the last kernel. */
static void keep_results(Sequence *s) {
    const Func *f = s->f;
    bool *result = arena_array(f->module->arena, bool, f->values.len + 1);
    for (int i = 0; i < f->results.len; i++) result[f->results.data[i].value.id] = true;
    for (int i = 0; i < f->buffers.len; i++)
        if (result[f->buffers.data[i]->value.id]) s->last[i + 1] = f->kernels.len;
}

static bool is_better_swapped(const Sequence *s, const KernelOps *first, const KernelOps *second, int at) {
    const Kernel *a = first->kernel, *b = second->kernel;
    if (ir_touches(s->f, a, b, true) || ir_touches(s->f, b, a, true)) return false;
    if (a->kind == KERNEL_COLLECTIVE && b->kind == KERNEL_COLLECTIVE) return false; /* all ranks have one order */
    if (names_value_of(s->f, s->makers, second, s->numbers[at])) return false;
    int64_t of_a = begins(s, a, at), of_b = begins(s, b, at + 1);
    return peak(s, b, of_b, a, of_a, at) < peak(s, a, of_a, b, of_b, at);
}

/* The intervals of what either touches, from their old places to the new ones. */
static void swap_intervals(Sequence *s, const Kernel *now_first, const Kernel *now_second, int at) {
    const Kernel *both[] = {now_first, now_second};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < both[k]->reads.len + both[k]->writes.len; i++) {
            const Kernel *o = both[k];
            uint32_t b = i < o->reads.len ? o->reads.data[i] : o->writes.data[i - o->reads.len];
            if (s->first[b] == at || s->first[b] == at + 1) s->first[b] = -1;
            if (s->last[b] == at || s->last[b] == at + 1) s->last[b] = -1;
        }
    for (int k = 0; k < 2; k++) touch(s, both[k], at + k);
}

static bool sequence(Func *f) {
    Sequence s = measure_sequence(f);
    KernelList list = kernel_list_open(f);
    bool swapped = false;
    keep_results(&s);
    for (int i = 0; i + 1 < list.at.len; i++) {
        KernelOps first = list.at.data[i], second = list.at.data[i + 1];
        if (!is_better_swapped(&s, &first, &second, i)) continue;
        const int number = s.numbers[i];
        list.at.data[i] = second;
        list.at.data[i + 1] = first;
        s.numbers[i] = s.numbers[i + 1];
        s.numbers[i + 1] = number;
        swap_intervals(&s, second.kernel, first.kernel, i);
        swapped = true;
    }
    if (swapped) kernel_list_close(&list);
    return swapped;
}

bool pass_sequence(PassContext *c) { return order_kernels(c, sequence); }
