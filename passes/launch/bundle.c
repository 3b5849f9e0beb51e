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

enum { MOST_PARTS = 8, MOST_PRODUCTS = 3, MOST_SIZES = 32, MOST_OPERANDS = 64 };

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
    if (products && (l->parts.len > MOST_PRODUCTS || operands > MOST_OPERANDS)) return false;
    for (int f = 0; f < forms; f++)
        if (!has_form(s, l, f)) return false;
    return sizes <= MOST_SIZES;
}

static bool is_simple(const Launch *l) { return !l->by_columns && l->parts.len == 1 && !l->parts.data[0].form; }

static bool are_independent(const Sharing *s, const Launch *l, const Launch *next) {
    for (int k = next->first; k < next->first + next->count; k++)
        if (!share_is_independent(s->f, l, k)) return false;
    return true;
}

/* A part whose sums grow with n takes longest, as a weight gradient's: its blocks begin.  After the others, the last of
 * them would have the device to themselves. */
static void order_products(const Sharing *s, Launch *l) {
    for (int i = 1; i < l->parts.len; i++)
        for (int j = i; j > 0 && part_facts(s, l, j)->sums_grow && !part_facts(s, l, j - 1)->sums_grow; j--) {
            const LaunchPart part = l->parts.data[j];
            l->parts.data[j] = l->parts.data[j - 1];
            l->parts.data[j - 1] = part;
        }
}

bool bundle_fits(const Sharing *s, const Launch *l) {
    for (int p = 0; p < l->parts.len; p++) {
        const LaunchPart *part = &l->parts.data[p];
        if (part->form != PART_BATCH || part->stage) return false;
        for (int q = 0; q < p; q++)
            for (int i = 0; i < part->kernels.len * l->parts.data[q].kernels.len; i++) {
                const int a = part->kernels.data[i % part->kernels.len];
                const int b = l->parts.data[q].kernels.data[i / part->kernels.len];
                if (!share_is_independent(s->f, &(Launch){.first = a, .count = 1}, b)) return false;
            }
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
    if (kind_of(s, l, 0) == KERNEL_PRODUCT) order_products(s, l);
}

bool pass_bundle(PassContext *c) { return share_launches(c, add_parts); }
