/* bundle.c: neighbours of other code in one launch (horizontal fusion): the blocks of one follow the blocks of another.
 *
 *   launch { stage { part k40, k41 } }         launch { stage { part k40, k41 part k42 } }
 *   kernel k42 column "fc1.bias" ..       =>
 *
 * Products are beside products, kernels of rows, of columns or of sums by id beside their like, elementwise ones beside
 * scalars too: what memory bounds would have few blocks a multiprocessor beside a product.  A part does what its kernel
 * does alone: the same bits.  All blocks have as many threads, so that no barrier waits for a thread that is not there.
 *
 * Horizontal fusion: Li et al., "Automatic Horizontal Fusion for GPU Kernels", CGO 2022; there within a block. */
#include "passes/launch/share.h"

enum { MOST_PARTS = 8, MOST_PRODUCTS = 3 };

static const KernelFacts *part_facts(const Sharing *s, const Launch *l, int part) {
    return &s->facts[l->parts.data[part].kernels.data[0]];
}

static KernelKind kind_of(const Sharing *s, const Launch *l, int part) {
    const KernelKind kind = s->f->kernels.data[l->parts.data[part].kernels.data[0]]->kind;
    return kind == KERNEL_SCALAR ? KERNEL_TILE : kind;
}

/* Whether blocks of as many threads as that form's can make all parts. */
static bool has_form(const Sharing *s, const Launch *l, int form) {
    int threads = 0;
    for (int p = 0; p < l->parts.len; p++) {
        const KernelFacts *k = part_facts(s, l, p);
        if (k->threads[form] > threads) threads = k->threads[form];
        if (k->threads[0] > threads) threads = k->threads[0];
    }
    for (int p = 0; p < l->parts.len; p++) {
        const KernelFacts *k = part_facts(s, l, p);
        if (kind_of(s, l, p) == KERNEL_PRODUCT && k->threads[form] != threads && !k->widens[form]) return false;
    }
    return true;
}

static bool may_be_one(const Sharing *s, const Launch *l) {
    const bool products = kind_of(s, l, 0) == KERNEL_PRODUCT;
    int sizes = 0, operands = 0, forms = 1;
    for (int p = 0; p < l->parts.len; p++) {
        const KernelFacts *k = part_facts(s, l, p);
        const int members = l->parts.data[p].kernels.len;
        if (!k->bundles || kind_of(s, l, p) != kind_of(s, l, 0) || (products && members > 1)) return false;
        for (int q = 0; q < p; q++)
            if (share_is_same(k, part_facts(s, l, q)) && dim_equal(k->elements, part_facts(s, l, q)->elements))
                return false;
        sizes += k->sizes;
        operands += k->operands * members;
        if (k->choices + 1 > forms) forms = k->choices + 1;
    }
    if (products && (l->parts.len > MOST_PRODUCTS || operands > LAUNCH_OPERANDS)) return false;
    for (int f = 0; f < forms; f++)
        if (!has_form(s, l, f)) return false;
    return sizes <= LAUNCH_SIZES;
}

static bool is_simple(const Launch *l) { return !l->by_columns && l->parts.len == 1 && !l->parts.data[0].form; }

static bool are_independent(const Sharing *s, const Launch *l, const Launch *next) {
    for (int k = next->first; k < next->first + next->count; k++)
        if (!share_is_independent(s->f, l, k)) return false;
    return true;
}

static bool are_beside(const Func *f, const LaunchPart *a, const LaunchPart *b) {
    for (int i = 0; i < a->kernels.len; i++)
        for (int j = 0; j < b->kernels.len; j++)
            if (!share_is_independent(f, &(Launch){.first = a->kernels.data[i], .count = 1}, b->kernels.data[j]))
                return false;
    return true;
}

bool bundle_fits(const Sharing *s, const Launch *l) {
    const LaunchPart *parts = l->parts.data;
    for (int p = 0; p < l->parts.len; p++) {
        if (parts[p].form != PART_BATCH || parts[p].stage) return false;
        for (int q = 0; q < p; q++)
            if (!are_beside(s->f, &parts[p], &parts[q])) return false;
    }
    return l->parts.len <= MOST_PARTS && may_be_one(s, l);
}

static void add_parts(Sharing *s, Launch *l) {
    const Func *f = s->f;
    if (!is_simple(l)) return;
    while (l->parts.len < MOST_PARTS && l->first + l->count < f->kernels.len) {
        const int at = s->next;
        const Launch next = share_launch_at(s, l->first + l->count);
        const bool is_beside = is_simple(&next) && are_independent(s, l, &next);
        if (is_beside) vec_push(f->module->arena, &l->parts, next.parts.data[0]);
        if (!is_beside || !may_be_one(s, l)) {
            l->parts.len -= is_beside;
            s->next = at;
            break;
        }
        l->count += next.count;
    }
    share_order_parts(s->facts, l);
}

bool pass_bundle(PassContext *c) { return share_launches(c, add_parts); }
