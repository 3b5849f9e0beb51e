/* roofline.c: the formula of roofline.h. */
#include "tools/roofline/roofline.h"

#include <math.h>
#include <string.h>

#include "base/dtypes.h"

const char *const bound_names[BOUND_COUNT] = {"memory", "tensor cores", "arithmetic", "too few blocks", "launch"};

const char *instruction_name(uint32_t instruction) {
    static const char *const names[] = {"-", "fma", "mma f16", "mma bf16", "mma tf32"};
    return instruction < sizeof names / sizeof names[0] ? names[instruction] : "unknown";
}

/* What our kernels reach of a rate, but for products in tiles (amp_cuda_tile_share).  Attention, of what mma.sync can
 * reach: measured on an H200 (bench/results/2026-11-27-h200.md).  Estimates from machine code: products by
 * multiply-adds in a loop for each element; and single operations, which are one instruction each where a peak counts
 * two for a multiply-add. */
static const double attention_share = 0.4, attention_fma_share = 0.4, loop_share = 0.05, plain_share = 0.5;

/* By kind, what is measured there too: microseconds that a kernel takes whatever its size, beyond those of the smallest
 * one; and the share of a copy's bytes a second that it moves. */
typedef struct KindCost {
    double start, share;
} KindCost;
static const KindCost kind_costs[] = {
#define KERNEL(id, word, of, walk, traits, start, share) [AMP_KERNEL_##id] = {start, share},
#include "base/kernels.def"
#undef KERNEL
};
static const KindCost two_passes_cost = {3.0, 0.7}; /* of columns: the second one waits for the first */

/* Where kernels wait for one another in a launch: of each time that blocks wait, and of each kernel that waits.
 * Estimates, which no GPU has measured: a launch's start, and half of a product's. */
static const double superstep_start = 1.0, joined_start = 1.2;

static KindCost cost_of(const amp_model_cuda_kernel *k) {
    const uint32_t kind = k->parts.at->kind, supersteps = k->parts.at[k->parts.count - 1].superstep;
    if (supersteps) return (KindCost){superstep_start * (supersteps - 1) + joined_start * k->waits.depth, 0.7};
    if (k->waits.tickets) return two_passes_cost;
    return kind_costs[kind];
}

/* ---- kernels in one launch --------------------------------------------------------------------------------------- */

typedef struct Part { /* amp_model_cuda_part */
    uint32_t kind, operand, operand_count, work, work_count;
    const amp_model_cuda_grid *grid;
} Part;

/* ---- what a kernel does ------------------------------------------------------------------------------------------ */

double dim_at(const amp_model_dim *d, amp_sizes sizes) {
    double at = (double)d->mul;
    if (!d->of_n && !d->of_t) return at;
    for (int i = 0; i < d->of_n; i++) at *= (double)sizes.n;
    for (int i = 0; i < d->of_t; i++) at *= (double)sizes.t;
    return at / (double)d->div;
}

/* 0: more than any GPU runs. */
static int64_t count_blocks(double x, double y, double z) { return x * y * z < 1e15 ? (int64_t)(x * y * z) : 0; }

/* Along an axis: of the grid that a part would have alone. */
static double blocks_along(const amp_model_cuda_grid *g, int axis, amp_sizes sizes) {
    const double blocks = g->per[axis] ? ceil(dim_at(&g->extent[axis], sizes) / (double)g->per[axis]) : 1;
    return blocks < 1 ? 1 : blocks;
}

/* The model's own form, as if its tiles had no edges and its blocks one length. */
enum { FORM_OWN_WHOLE = FORM_FP32 + 1 };

static bool is_own(Form form) { return form == FORM_OWN || form == (Form)FORM_OWN_WHOLE; }

static bool is_low(uint32_t storage) { return storage == AMP_DT_F16 || storage == AMP_DT_BF16; }

static bool is_copy_of_weight(const RooflineTables *t, const amp_model_buffer *b) {
    return b->kind == AMP_BUFFER_STATE && t->states && t->states[b->index].role == AMP_STATE_DERIVED;
}

/* |most_read|: elements; |again|: the share of them that is read AMP_ACCESS_AGAIN. */
static double bytes_of(const RooflineTables *t, const amp_model_buffer *b, uint8_t access, amp_sizes sizes, Form form,
                       double most_read, double again) {
    const double of_others = b->part ? (double)b->padding / dim_at(&b->dims[b->rank - 1], sizes) : 0;
    const double elements = dim_at(&b->rows, sizes) * dim_at(&b->cols, sizes) * (1 - of_others),
                 size = (double)amp_storage_size(b->storage);
    const bool wide = !is_own(form) && is_low(b->storage);
    if (b->kind == AMP_BUFFER_WATCH || b->kind == AMP_BUFFER_LOOK) return 0; /* nobody asks for it */
    double moved = access & AMP_ACCESS_READ ? (elements < most_read ? elements : most_read) : 0;
    moved *= 1 + again * (access / AMP_ACCESS_AGAIN);
    if (access & AMP_ACCESS_WRITE && !(wide && is_copy_of_weight(t, b))) moved += elements;
    return moved * size * (wide ? 2 : 1);
}

/* An element of a tile kernel reads no more of an operand than it is made of: of one that it takes a slice of, or rows
 * by their numbers, little. */
static double most_read(const amp_model_cuda_kernel *k, const Part *p, amp_sizes sizes) {
    double terms = 1;
    if (p->kind != AMP_KERNEL_TILE || !p->grid->per[0]) return INFINITY;
    for (uint32_t i = p->work; i < p->work + p->work_count; i++) {
        const amp_model_cuda_work *w = &k->work.at[i];
        if (dim_at(&w->terms, sizes) > terms) terms = dim_at(&w->terms, sizes);
    }
    return dim_at(&p->grid->extent[0], sizes) * terms;
}

/* Of the operands that are read again, the share that the launch does not hold in shared memory. */
static double share_again(const RooflineTables *t, const amp_model_cuda_kernel *k, const Part *p, amp_sizes sizes,
                          const amp_model_cuda_choice *choice) {
    double row = 0;
    for (uint32_t i = p->operand; i < p->operand + p->operand_count; i++) {
        const amp_model_buffer *b = &t->buffers[k->operands.at[i]];
        if (k->access[i] >= AMP_ACCESS_AGAIN) row += dim_at(&b->cols, sizes) * (double)amp_storage_size(b->storage);
    }
    return row > choice->shared_bytes ? 1 - choice->shared_bytes / row : 0;
}

/* Each buffer of a kernel once where it is read and once where it is written, whatever operands name it. */
static double count_bytes(const RooflineTables *t, const amp_model_cuda_kernel *k, const Part *p, amp_sizes sizes,
                          Form form, const amp_model_cuda_choice *choice) {
    const double most = most_read(k, p, sizes), again = share_again(t, k, p, sizes, choice);
    double bytes = 0;
    for (uint32_t i = p->operand; i < p->operand + p->operand_count; i++) {
        uint32_t first = p->operand;
        uint8_t access = k->access[i];
        while (k->operands.at[first] != k->operands.at[i]) first++;
        for (uint32_t j = i + 1; j < p->operand + p->operand_count; j++)
            if (k->operands.at[j] == k->operands.at[i]) access |= k->access[j];
        if (first == i) bytes += bytes_of(t, &t->buffers[k->operands.at[i]], access, sizes, form, most, again);
    }
    return bytes;
}

static uint32_t instruction_in(Form form, uint32_t instruction) {
    if (is_own(form) || instruction < AMP_INSTRUCTION_MMA_F16) return instruction;
    return form == FORM_TF32 ? AMP_INSTRUCTION_MMA_TF32 : AMP_INSTRUCTION_FMA;
}

/* ---- rates ------------------------------------------------------------------------------------------------------- */

static bool is_tiled(const Part *p) { return p->kind == AMP_KERNEL_PRODUCT || p->kind == AMP_KERNEL_ATTENTION; }

/* In another form a product would have other tiles: of these no edges are known. */
static double share_of_tiles(const amp_model_cuda_grid *tiles, amp_sizes sizes, Form form, uint32_t instruction) {
    amp_model_cuda_grid whole = *tiles;
    for (int axis = 0; axis < 3 && form != FORM_OWN; axis++)
        whole.extent[axis] = (amp_model_dim){.mul = whole.per[axis], .div = 1};
    return amp_cuda_tile_share(&whole, sizes, instruction);
}

/* Operations a second.  0: the GPU lacks the instruction. */
static double rate_of(const Gpu *g, const Part *p, amp_sizes sizes, Form form, uint32_t instruction) {
    const bool attends = p->kind == AMP_KERNEL_ATTENTION;
    const double tiles = p->kind == AMP_KERNEL_PRODUCT ? share_of_tiles(p->grid, sizes, form, instruction) : 1,
                 share = g->mma_share * (attends ? attention_share : tiles);
    switch (instruction) {
    case AMP_INSTRUCTION_PLAIN: return 1e12 * g->fp32 * plain_share;
    case AMP_INSTRUCTION_FMA:
        return 1e12 * g->fp32 * (attends ? attention_fma_share : is_tiled(p) ? tiles : loop_share);
    case AMP_INSTRUCTION_MMA_F16: return 1e12 * g->fp16 * share;
    case AMP_INSTRUCTION_MMA_BF16: return 1e12 * g->bf16 * share;
    case AMP_INSTRUCTION_MMA_TF32: return 1e12 * g->tf32 * share;
    default: return 0;
    }
}

/* ---- the time ---------------------------------------------------------------------------------------------------- */

typedef struct Seconds {
    double memory, tensor_cores, arithmetic;
} Seconds;

/* The loader leaves these to their reader. */
static bool is_dim(const amp_model_dim *d) { return d->mul >= 0 && ((!d->of_n && !d->of_t) || d->div > 0); }

/* As if every block had a multiprocessor's part of the rate. */
static RooflineStatus add_work(const Gpu *g, const amp_model_cuda_kernel *k, const Part *p, amp_sizes sizes, Form form,
                               KernelTime *out, Seconds *s) {
    for (uint32_t i = p->work; i < p->work + p->work_count; i++) {
        const amp_model_cuda_work *w = &k->work.at[i];
        if (!is_dim(&w->elements) || !is_dim(&w->terms)) return ROOFLINE_UNKNOWN;
        const uint32_t instruction = instruction_in(form, w->instruction);
        const double flops = w->operations * dim_at(&w->elements, sizes) * dim_at(&w->terms, sizes),
                     rate = rate_of(g, p, sizes, form, instruction);
        if (instruction > out->instruction) out->instruction = instruction;
        if (rate <= 0) return instruction > AMP_INSTRUCTION_MMA_TF32 ? ROOFLINE_UNKNOWN : ROOFLINE_NO_INSTRUCTION;
        *(instruction >= AMP_INSTRUCTION_MMA_F16 ? &s->tensor_cores : &s->arithmetic) += flops / rate;
        out->flops += flops;
    }
    return ROOFLINE_OK;
}

/* Kernels that run side by side: those of a launch; where they wait for one another, those of a superstep. */
typedef struct Together {
    Seconds s, block; /* |block|: of the block of a product that takes longest, at its multiprocessor's rate */
    int64_t blocks;
    bool is_tiled;
} Together;

static RooflineStatus add_part(const Gpu *g, const RooflineTables *t, const amp_model_cuda_kernel *k, const Part *p,
                               amp_sizes sizes, Form form, KernelTime *out, Together *with) {
    const amp_model_cuda_grid *grid = p->grid;
    const Seconds before = with->s;
    const RooflineStatus status = add_work(g, k, p, sizes, form, out, &with->s);
    const double bytes = status ? 0 : count_bytes(t, k, p, sizes, form, out->used.choice);
    const int64_t blocks =
        count_blocks(blocks_along(grid, 0, sizes), blocks_along(grid, 1, sizes), blocks_along(grid, 2, sizes));
    const double part =
        p->kind == AMP_KERNEL_PRODUCT && form == FORM_OWN ? (double)g->multiprocessors / (double)blocks : 0;
    with->block.tensor_cores = fmax(with->block.tensor_cores, part * (with->s.tensor_cores - before.tensor_cores));
    with->block.arithmetic = fmax(with->block.arithmetic, part * (with->s.arithmetic - before.arithmetic));
    with->blocks += blocks;
    with->s.memory += bytes / (1e9 * g->copy);
    with->is_tiled = is_tiled(p);
    out->bytes += bytes;
    return status;
}

/* |longest|: microseconds of what takes longest, which says what bounds the launch. */
static void add_up(const Gpu *g, const KindCost *cost, Together *x, double *longest, KernelTime *out) {
    const int64_t m = g->multiprocessors;
    const double filled = amp_cuda_filled(x->blocks, g->multiprocessors);
    /* a multiprocessor with a block of a product, whose copies are on their way all the time, takes twice its part */
    const double part = (x->is_tiled ? 2.0 : 1.0) * (double)x->blocks / (double)m;
    const double parts[] = {x->s.memory / (cost->share * (part < 1 ? part : 1)),
                            fmax(x->s.tensor_cores / filled, x->block.tensor_cores),
                            fmax(x->s.arithmetic / filled, x->block.arithmetic)};
    double most = 0, all = 0;
    Bound bound = BOUND_MEMORY;
    for (int i = BOUND_MEMORY; i <= BOUND_ARITHMETIC; i++) {
        all += parts[i];
        if (parts[i] <= most) continue;
        most = parts[i];
        bound = (Bound)i;
    }
    out->microseconds += 1e6 * (x->blocks < m ? most : all);
    if (1e6 * most > *longest) {
        *longest = 1e6 * most;
        out->bound = x->blocks < m ? BOUND_BLOCKS : bound;
    }
    *x = (Together){.blocks = 0};
}

/* Of the choice that |out| names, whose blocks are counted. */
static RooflineStatus time_choice(const Gpu *g, const RooflineTables *t, const amp_model_cuda_kernel *k,
                                  amp_sizes sizes, Form form, KernelTime *out) {
    const KindCost cost = cost_of(k);
    const double start = g->launch + cost.start;
    Together with = {.blocks = 0};
    double longest = 0;
    uint32_t operand = 0, work = 0;
    for (uint32_t i = 0; i < k->parts.count; i++) {
        const amp_model_cuda_part *p = &k->parts.at[i];
        const Part part = {p->kind, operand, p->operand_count, work, p->work_count, &p->grids[out->used.index]};
        const RooflineStatus status = add_part(g, t, k, &part, sizes, form, out, &with);
        if (status) return status;
        operand += p->operand_count;
        work += p->work_count;
        if (i + 1 == k->parts.count || p->superstep != p[1].superstep) add_up(g, &cost, &with, &longest, out);
    }
    if (longest <= start) out->bound = BOUND_LAUNCH;
    out->microseconds += start;
    return ROOFLINE_OK;
}

static bool has_other_tiles(const amp_model_cuda_kernel *k, uint32_t a, uint32_t b) {
    bool other = false;
    for (uint32_t i = 0; i < k->parts.count; i++) {
        const amp_model_cuda_grid *grids = k->parts.at[i].grids;
        other |= memcmp(grids[a].per, grids[b].per, sizeof grids->per) != 0;
    }
    return other;
}

RooflineStatus roofline_kernel(const Gpu *g, const RooflineTables *t, const amp_model_cuda_kernel *k, amp_sizes sizes,
                               Form form, KernelTime *out) {
    *out = (KernelTime){.bound = BOUND_LAUNCH, .other_tiles = INFINITY};
    out->used = amp_cuda_launch_choose(k, sizes, g->multiprocessors, g->shared);
    const int64_t *grid = out->used.grid;
    out->blocks = count_blocks((double)grid[0], (double)grid[1], (double)grid[2]);
    if (!out->blocks || (k->operands.count && !k->access)) return ROOFLINE_UNKNOWN;
    out->waves = amp_cuda_filled(out->blocks, g->multiprocessors);
    for (uint32_t i = 0; i < k->choices.count; i++) {
        KernelTime other = {.used = {.choice = &k->choices.at[i], .index = i}};
        if (has_other_tiles(k, i, out->used.index) && !time_choice(g, t, k, sizes, form, &other))
            out->other_tiles = fmin(out->other_tiles, other.microseconds);
    }
    const RooflineStatus status = time_choice(g, t, k, sizes, form, out);
    KernelTime own = {.used = out->used}, whole = own;
    if (status || form == FORM_OWN || time_choice(g, t, k, sizes, FORM_OWN, &own) ||
        time_choice(g, t, k, sizes, (Form)FORM_OWN_WHOLE, &whole))
        return status;
    /* Edges and the longest block cost other forms the same share, as far as this model goes. */
    out->microseconds *= own.microseconds / whole.microseconds;
    return ROOFLINE_OK;
}
