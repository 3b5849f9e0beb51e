/* column_kernel.c: reductions over rows.  A block has WIDTH columns (of a segment), and goes down HEIGHT rows at once.
 * A thread has V neighbouring columns, loads a few of its rows together, and adds them in ascending order; then the
 * rows of a block are added (prelude/reduce.cuh).  WIDTH, HEIGHT and V depend on the number of columns and the segment
 * alone, so that fusion changes no bit.
 *
 *     KeptSum s3[4] = {KeptSum{0.0f, 0.0f}, ..};
 *     NO_UNROLL
 *     for (int64_t row = first + y; own && row < last; row += 4 * 32) {
 *         float all1[4][4];
 *         for (int u = 0; u < 4; u++) {
 *             const int64_t r = row + u * 32;
 *             const bool here = r < last;
 *             float(&x1)[4] = all1[u];
 *             load_if_TYPE(x1, b1 + r * COLS + c0, here);
 *         }
 *         for (int u = 0; u < 4; u++) {
 *             ..                                 the elements of a thread (cuda_kernel.h): plus_kept(s3[i], v2);
 *         }
 *     }
 *     KeptSum a3 = column_reduce<Plus, 32, 32>(s3);
 *     const float v3 = sum_kept(a3);
 *
 * The value of a column, v3, belongs to column c, number threadIdx.x % WIDTH of the block; spread_columns gives a
 * thread the values of its own columns.
 */
#include "codegen/cuda/cuda_kernel.h"
#include "targets/target.h"

/* Where rows depend on n and there are few columns, sums are made of parts, ROWS_OF_THREAD * HEIGHT rows each, which
 * are added up in their order (prelude/partial.cuh).  Each part has a block, along the grid's first dimension (columns
 * are along the third), which keeps its sums; the last block of the columns adds up the sums of all, and does what
 * follows:
 *
 *     KeptSum a3 = column_reduce<Plus, 32, 32>(s3);
 *     if (parts > 1) {
 *         keep_partial<32>(partials, block0 + blockIdx.x, 0, a3);
 *         if (!takes_last_ticket(tickets + block0, parts)) return;
 *         a3 = add_partials<Plus, 32, 256>(partials, block0, parts, 0, KeptSum{0.0f, 0.0f});
 *     }
 *     const float v3 = sum_kept(a3);
 *
 * A kernel that goes over its rows again has a block for each part of each phase, one phase after the other along the
 * grid's third dimension.  Blocks are numbered as they begin.  One of a later phase waits until all parts of the
 * earlier ones are kept, and adds them up for itself:
 *
 *     const PartInTurn own_part = part_in_turn(tickets, grid, blockIdx.z, parts, 4, 2);
 *     KeptSum total3 = KeptSum{0.0f, 0.0f};
 *     if (parts == 1 || own_part.phase == 0) {
 *         ..                                     of the block's rows: a3
 *         total3 = a3;
 *         if (parts > 1) {
 *             keep_partial<32>(partials, block0 + own_part.part, 0, a3);
 *             ends_part(tickets + grid.first_block(own_part.columns));
 *             return;
 *         }
 *     } else {
 *         waits_for_parts(tickets + grid.first_block(own_part.columns), parts);
 *         total3 = add_partials<Plus, 32, 256>(partials, block0, parts, 0, KeptSum{0.0f, 0.0f});
 *     }
 *     const float v3 = sum_kept(total3);
 *
 * One block makes all parts, to the same bits, where it shares its launch with what made its operands, or with others:
 *
 *     KeptSum total3 = KeptSum{0.0f, 0.0f};
 *     for (uint32_t part = 0; part < parts; part++) {
 *         ..                                     of rows first to last: a3
 *         take_part<Plus, 32, 256>(total3, a3, part, parts);
 *     }
 *     KeptSum a3 = add_parts<Plus, 32, 256>(total3, parts);
 *     const float v3 = sum_kept(a3);
 */

enum {
    WARP = 32,
    MAX_WIDTH = 32,
    MAX_VECTOR = 4, /* 8 bytes of f16, 16 of f32 */
    COLUMN_THREADS = 256,
    RESIDENT_THREADS = 1024, /* of a multiprocessor: so that a thread may have 64 registers */
    MOVING_THREADS = 768,    /* the same where places in memory are computed: 80 */
    MOST_BLOCKS = 16,        /* of a multiprocessor */
    BYTES_OF_THREAD = 64,    /* that it loads together: enough, over all threads, to keep memory busy */
    BYTES_OF_FEW = 128, /* the same where there are few blocks, without segments (a second pass has few registers) */
    MOST_ROWS = 8,      /* that it loads together */
    MOST_LOADS = 16,    /* of these rows: each takes a place in memory */
    MOVED_ROWS = 2,     /* the same where places in memory are computed */
    LEAST_ROWS = 2,     /* of a segment that are worth a thread */
    ROWS_OF_THREAD = 8, /* of a part of a sum */
    MANY_BLOCKS = 128   /* of columns: they keep a device busy by themselves */
};

static int power_above(int64_t count, int most) {
    int p = 1;
    while (p < count && p < most) p *= 2;
    return p;
}

/* Of columns that N or T counts, or would, one: how many they are decides no sum. */
static int vector_of(const Walk *w) {
    int vector = dim_is_sized(w->cols) ? 1 : MAX_VECTOR;
    while (w->cols.mul % vector) vector /= 2;
    return vector;
}

/* Rows that a block goes down at once. */
static int height_of(const Walk *w, int lanes) {
    const int most = COLUMN_THREADS / lanes;
    const int64_t segment = dim_assumed(w->segment, 1); /* N is in none */
    int height = segment ? power_above((segment + LEAST_ROWS - 1) / LEAST_ROWS, most) : most;
    while (height * lanes < WARP) height *= 2;
    return height;
}

/* Of a constant number of columns. */
static int blocks_of_columns(const Walk *w, int width) { return (int)((w->cols.mul + width - 1) / width); }

/* Whether they do not keep a device busy by themselves.  Columns that N or T counts may be few. */
static bool has_few_blocks(const Walk *w, int width) {
    return dim_is_sized(w->cols) || blocks_of_columns(w, width) < MANY_BLOCKS;
}

/* Whether sums are made of parts: this follows from their shape, so that it is so in whatever kernel they are. */
static bool has_parts(const Walk *w, int width) {
    return !w->segment.mul && dim_is_sized(w->rows) && has_few_blocks(w, width);
}

/* The next sum of phase |p| from sink |*i| on; NULL: there is none. */
static const Sink *next_sum(const Walk *w, int p, int *i) {
    while (*i < w->sinks.len)
        if (loop_reduces_in(w, &w->sinks.data[(*i)++], p)) return &w->sinks.data[*i - 1];
    return NULL;
}

static int sums_of_phase(const Walk *w, int p) {
    int sums = 0;
    for (int i = 0; next_sum(w, p, &i);) sums++;
    return sums;
}

static int number_of(const Walk *w, const Sink *sum) { return walk_number(w, sum->op->out[0]); }

/* |sum|: the name of what holds all parts: "a" of a3, .. */
static void put_results(CudaKernel *ck, int p, const char *sum) {
    const Walk *w = ck->w;
    const Sink *s;
    for (int i = 0; (s = next_sum(w, p, &i));)
        emit_line(&ck->e, "const %s v%d = %s;", emit_type(ir_dtype(w->f, s->value), false), number_of(w, s),
                  cuda_reduced(ck, s, arena_printf(w->arena, "%s%d", sum, number_of(w, s))));
}

/* Phases that go over the rows, where a block makes one part of one of them; 0: a block makes all, as in a pass of a
 * launch, or what may become one. */
static int divided_phases(const CudaKernel *ck, int width) {
    Walk *w = ck->w;
    int phases = 0, sums = 0;
    if (!has_parts(w, width) || ck->form.role >= CUDA_BY_COLUMNS) return 0;
    for (int p = 0; p < w->phases; p++) {
        const int of_phase = sums_of_phase(w, p);
        if (!loop_has_phase(w, p)) continue;
        if (!of_phase) return 0;
        sums += of_phase;
        phases++;
    }
    if (phases > 1 && dim_varies(w->cols)) return 0; /* each phase has as many blocks as there are columns */
    return sums <= CUDA_MOST_PARTIALS ? phases : 0;
}

/* Segments, if there are as many columns as N or T says, have the grid's first dimension. */
static const char *block_of_columns(const CudaKernel *ck) {
    if (ck->part_phases > 1) return "own_part.columns";
    const char axis = ck->body->partials ? 'z' : dim_varies(ck->w->cols) ? 'y' : 'x';
    return arena_printf(ck->w->arena, "%s.%c", ck->block, axis);
}

static const char *number_of_part(const CudaKernel *ck) {
    return ck->part_phases > 1 ? "own_part.part" : arena_printf(ck->w->arena, "%s.x", ck->block);
}

/* The rows of part |number|, an expression. */
static void put_part(CudaKernel *ck, const char *number) {
    const int rows = ROWS_OF_THREAD * ck->body->height;
    emit_line(&ck->e, "MAYBE_UNUSED const int64_t first = (int64_t)%s * %d;", number, rows);
    emit_line(&ck->e, "MAYBE_UNUSED const int64_t last = first + %d < rows ? first + %d : rows;", rows, rows);
}

/* The part that the block makes; |block0|: the first block of its columns, among all of the launch. */
static void put_own_part(CudaKernel *ck, int width) {
    Emitter *e = &ck->e;
    if (ck->form.role)
        emit_line(e, "const GridOfParts grid = {(uint32_t)place.first, (uint32_t)place.x, (uint32_t)place.y, %s.y};",
                  ck->block);
    else emit_line(e, "const GridOfParts grid = {0, gridDim.x, gridDim.y, blockIdx.y};");
    if (ck->part_phases > 1) {
        emit_line(e, "const PartInTurn own_part = part_in_turn(tickets, grid, %s.z, parts, %d, %d);", ck->block,
                  blocks_of_columns(ck->w, width), ck->part_phases);
        emit_line(e, "if (parts == 1 && own_part.phase > 0) return;");
    }
    emit_line(e, "const uint32_t block0 = grid.first_block(%s);", block_of_columns(ck));
    put_part(ck, number_of_part(ck));
}

/* In a bundle of larger blocks some threads have no row of their own. */
static void put_place(CudaKernel *ck, int width, int height) {
    const bool segments = ck->w->segment.mul, in_grid = dim_varies(ck->w->cols);
    const int lanes = width / ck->vector, threads = lanes * height;
    const char *at = block_of_columns(ck),
               *block = segments && !in_grid ? arena_printf(ck->w->arena, "(%s %% blocks)", at) : at;
    emit_line(&ck->e, "MAYBE_UNUSED const int32_t y = threadIdx.x / %d;", lanes);
    if (has_parts(ck->w, width)) {
        const int rows = ROWS_OF_THREAD * height;
        emit_line(&ck->e, "MAYBE_UNUSED const uint32_t parts = (uint32_t)((rows + %d) / %d);", rows - 1, rows);
    }
    if (segments) {
        if (!in_grid) emit_line(&ck->e, "const uint32_t blocks = (COLS + %d) / %d;", width - 1, width);
        emit_line(&ck->e, in_grid ? "const int64_t s = %s.x;" : "const int64_t s = %s / blocks;",
                  in_grid ? ck->block : at);
        emit_line(&ck->e, "MAYBE_UNUSED const int64_t first = s * segment;");
        emit_line(&ck->e, "MAYBE_UNUSED const int64_t last = first + segment < rows ? first + segment : rows;");
    } else if (ck->body->partials) put_own_part(ck, width);
    else emit_line(&ck->e, "MAYBE_UNUSED const int64_t first = 0, last = rows;");
    emit_line(&ck->e, "const int32_t column0 = (int32_t)%s * %d, column = column0 + threadIdx.x %% %d;", block, width,
              width);
    emit_line(&ck->e, "const bool in = column < COLS;");
    emit_line(&ck->e, "MAYBE_UNUSED const int32_t c = in ? column : COLS - 1;");
    if (ck->vector > 1) emit_line(&ck->e, "const int32_t c0 = column0 + threadIdx.x %% %d * %d;", lanes, ck->vector);
    emit_line(&ck->e, "MAYBE_UNUSED const bool own = %s%s;", ck->vector > 1 ? "c0 < COLS" : "in",
              ck->form.threads > threads ? arena_printf(ck->w->arena, " && threadIdx.x < %d", threads) : "");
}

/* Whether places in memory are computed. */
static bool moves(const Walk *w) {
    for (int i = 0; i < w->k->count; i++)
        if (walk_is_indirect(w, walk_op(w, i))) return true;
    return false;
}

/* Bytes that a thread loads of a row in the phase at hand; by how many loads. */
static int row_bytes(const CudaKernel *ck, int *loads) {
    const Walk *w = ck->w;
    bool *counted = arena_array(w->arena, bool, w->operands.len + 1);
    int bytes = 0;
    *loads = 0;
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        for (int n = 0; n < o->n_in; n++) {
            const ValueWalk *x = &w->values[o->in[n].id];
            if (!walk_loads_full(w, o, n) || !x->touched || counted[x->operand]) continue;
            counted[x->operand] = true;
            ++*loads;
            bytes += emit_storage(w, x->operand)->bytes * ck->vector;
        }
    }
    return bytes;
}

/* As many rows as their bytes ask for. */
static int rows_together(const CudaKernel *ck) {
    int loads;
    const int bytes = row_bytes(ck, &loads), most = moves(ck->w) ? MOVED_ROWS : MOST_ROWS;
    const int wanted = ck->w->segment.mul || ck->form.role == CUDA_BY_COLUMNS ? BYTES_OF_THREAD : BYTES_OF_FEW;
    int rows = 1;
    while (rows < most && rows * bytes < wanted && 2 * rows * loads <= MOST_LOADS) rows *= 2;
    return rows;
}

static amp_status emit_part(CudaKernel *ck, int p, int height) {
    ck->rows = rows_together(ck);
    ck->row_step = height;
    AMP_TRY(cuda_open_reductions(ck, p));
    emit_block(&ck->e);
    cuda_spread_columns(ck, p);
    emit_line(&ck->e, "NO_UNROLL");
    emit_open(&ck->e, "for (int64_t row = first + y; own && row < last; row += %d)", ck->rows * height);
    const char *line = ck->column, *at = ck->at;
    if (ck->vector > 1) ck->column = "c0", ck->at = "r * COLS + c0";
    AMP_TRY(cuda_emit_rows_of_elements(ck, p));
    ck->column = line;
    ck->at = at;
    emit_close(&ck->e);
    emit_close(&ck->e);
    cuda_close_reductions(ck, p, "column_reduce");
    return AMP_OK;
}

/* Part by part. */
static amp_status emit_parts(CudaKernel *ck, int p, int height) {
    Walk *w = ck->w;
    Emitter *e = &ck->e;
    const Sink *s;
    const char *shape = arena_printf(w->arena, "%d, %d", ck->body->columns, ck->body->columns / ck->vector * height);
    for (int i = 0; (s = next_sum(w, p, &i));)
        emit_line(e, "%s total%d = %s;", cuda_sum_type(w, s), number_of(w, s), cuda_sum_start(ck, s));
    emit_line(e, "NO_UNROLL");
    emit_open(e, "for (uint32_t part = 0; part < parts; part++)");
    put_part(ck, "part");
    AMP_TRY(emit_part(ck, p, height));
    for (int i = 0; (s = next_sum(w, p, &i));)
        emit_line(e, "take_part<%s, %s>(total%d, a%d, part, parts);", loop_reduction(s)->functor, shape,
                  number_of(w, s), number_of(w, s));
    emit_close(e);
    for (int i = 0; (s = next_sum(w, p, &i));)
        emit_line(e, "%s a%d = add_parts<%s, %s>(total%d, parts);", cuda_sum_type(w, s), number_of(w, s),
                  loop_reduction(s)->functor, shape, number_of(w, s));
    return AMP_OK;
}

/* Keeps the sums of the block's own part in phase |p|; the phase's first is sum |first| of the kernel. */
static void keep_part(CudaKernel *ck, int p, int first) {
    const Sink *s;
    for (int i = 0, sum = first; (s = next_sum(ck->w, p, &i)); sum++)
        emit_line(&ck->e, "keep_partial<%d>(partials, block0 + %s, %d, a%d);", ck->body->columns, number_of_part(ck),
                  sum, number_of(ck->w, s));
    cuda_store_flags(ck);
}

/* |name|: of the variables that take the sums of all parts. */
static void add_up_kept(CudaKernel *ck, int p, int height, int first, const char *name) {
    const Sink *s;
    const int width = ck->body->columns, threads = width / ck->vector * height;
    for (int i = 0, sum = first; (s = next_sum(ck->w, p, &i)); sum++)
        emit_line(&ck->e, "%s%d = add_partials<%s, %d, %d>(partials, block0, parts, %d, %s);", name,
                  number_of(ck->w, s), loop_reduction(s)->functor, width, threads, sum, cuda_sum_start(ck, s));
}

/* After the sums of the block's own part, in the last phase: what the last block of these columns goes on with. */
static void add_up_parts(CudaKernel *ck, int p, int height, int first) {
    Emitter *e = &ck->e;
    emit_open(e, "if (parts > 1)");
    keep_part(ck, p, first);
    emit_line(e, "if (!takes_last_ticket(tickets + block0, parts)) return;");
    if (ck->part_phases > 1)
        emit_line(e, "forgets_parts(tickets, grid, own_part.columns, %d, %d);",
                  blocks_of_columns(ck->w, ck->body->columns), ck->part_phases);
    add_up_kept(ck, p, height, first, "a");
    emit_close(e);
}

/* The sums of phase |p|, number |phase| of those that others follow, by blocks of its own. */
static amp_status emit_early_phase(CudaKernel *ck, int p, int phase, int height, int first) {
    const Walk *w = ck->w;
    Emitter *e = &ck->e;
    const Sink *s;
    const int place = phase * blocks_of_columns(w, ck->body->columns);
    const char *of = place ? arena_printf(w->arena, "%d + own_part.columns", place) : "own_part.columns";
    for (int i = 0; (s = next_sum(w, p, &i));)
        emit_line(e, "%s total%d = %s;", cuda_sum_type(w, s), number_of(w, s), cuda_sum_start(ck, s));
    emit_open(e, "if (parts == 1 || own_part.phase == %d)", phase);
    AMP_TRY(emit_part(ck, p, height));
    for (int i = 0; (s = next_sum(w, p, &i));) emit_line(e, "total%d = a%d;", number_of(w, s), number_of(w, s));
    emit_open(e, "if (parts > 1)");
    keep_part(ck, p, first);
    emit_line(e, "ends_part(tickets + grid.first_block(%s));", of);
    emit_line(e, "return;");
    emit_close(e);
    emit_close(e);
    emit_open(e, "else");
    emit_line(e, "waits_for_parts(tickets + grid.first_block(%s), parts);", of);
    add_up_kept(ck, p, height, first, "total");
    emit_close(e);
    put_results(ck, p, "total");
    return AMP_OK;
}

static amp_status emit_phases(CudaKernel *ck, int height) {
    Walk *w = ck->w;
    int phase = 0, sum = 0;
    AMP_TRY(cuda_load_line(ck));
    for (int p = 0; p < w->phases; p++) {
        AMP_TRY(cuda_emit_line_ops(ck, p));
        if (!loop_has_phase(w, p)) continue;
        walk_phase(w, p);
        if (phase + 1 < ck->part_phases) {
            AMP_TRY(emit_early_phase(ck, p, phase++, height, sum));
            sum += sums_of_phase(w, p);
            continue;
        }
        const bool part_by_part = has_parts(w, ck->body->columns) && !ck->body->partials && sums_of_phase(w, p);
        AMP_TRY(part_by_part ? emit_parts(ck, p, height) : emit_part(ck, p, height));
        if (ck->body->partials) add_up_parts(ck, p, height, sum);
        put_results(ck, p, "a");
    }
    AMP_TRY(cuda_emit_line_ops(ck, w->phases));
    return cuda_store_line(ck);
}

static void set_parts(CudaKernel *ck, int width, int height) {
    CudaLaunch *l = &ck->body->launch;
    l->extent[0] = ck->w->rows;
    l->per[0] = ROWS_OF_THREAD * height;
    const bool varies = dim_varies(ck->w->cols);
    l->extent[2] = varies ? ck->w->cols : dim_const((int64_t)ck->part_phases * blocks_of_columns(ck->w, width));
    l->per[2] = varies ? width : 1;
}

/* What the launch is told. */
static amp_status set_launch(CudaKernel *ck, int width, int height) {
    Walk *w = ck->w;
    const int threads = ck->form.threads ? ck->form.threads : width / ck->vector * height;
    const int blocks = (moves(w) ? MOVING_THREADS : RESIDENT_THREADS) / threads;
    ck->body->launch.per[0] = 1;
    if (ck->body->partials) set_parts(ck, width, height);
    else if (dim_varies(w->cols)) {
        ck->body->launch.extent[0] = walk_segments(w);
        ck->body->launch.extent[1] = w->cols;
        ck->body->launch.per[1] = width;
    } else if (!dim_mul(walk_segments(w), dim_const(blocks_of_columns(w, width)), &ck->body->launch.extent[0]))
        return amp_fail(ck->e.err, AMP_UNSUPPORTED, "%s: too many segments", walk_name(w));
    ck->body->columns = width;
    ck->body->height = height;
    ck->body->min_blocks = blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS;
    if (!dim_varies(w->cols) && dim_mul(w->rows, w->cols, &ck->body->facts.elements))
        ck->body->facts.batch = BATCH_SIDE_BY_SIDE;
    cuda_add_size(ck, "rows", w->rows);
    cuda_add_size(ck, "cols", w->cols);
    if (w->segment.mul) cuda_add_size(ck, "segment", w->segment);
    ck->how =
        arena_printf(w->arena, "%d columns, %d a thread, %d rows at once%s", width, ck->vector, height,
                     ck->body->partials ? arena_printf(w->arena, ", %d rows a block", ROWS_OF_THREAD * height) : "");
    return AMP_OK;
}

amp_status cuda_emit_column(CudaKernel *ck) {
    Walk *w = ck->w;
    ck->vector = vector_of(w);
    const int width = dim_is_sized(w->cols) ? MAX_WIDTH : power_above(w->cols.mul, MAX_WIDTH),
              lanes = width / ck->vector;
    const int height = ck->form.role == CUDA_BY_COLUMNS ? ck->form.threads / lanes : height_of(w, lanes),
              threads = lanes * height;
    ck->part_phases = divided_phases(ck, width);
    ck->body->partials = ck->part_phases > 0;
    ck->column = "c";
    ck->at = "r * COLS + c";
    ck->e.element = ck->at;
    ck->index = ck->vector > 1 ? "i" : "0";
    ck->segment = w->segment.mul ? "s" : NULL;
    ck->line_store = arena_printf(w->arena, "in && threadIdx.x < %d", width);
    ck->first_thread = arena_printf(w->arena, "%s == 0 && threadIdx.x == 0", block_of_columns(ck));
    ck->reduce_shape = arena_printf(w->arena, ", %d, %d", width, height);
    AMP_TRY(set_launch(ck, width, height));
    cuda_delay_stores(ck);
    const bool fits = !ck->form.threads || ck->form.threads >= threads;
    ck->body->facts.bundles = fits && !dim_varies(w->cols);
    if (ck->form.plan || !fits) return cuda_plan_function(ck, threads);
    AMP_TRY(cuda_open_function(ck, ck->form.threads ? ck->form.threads : threads));
    cuda_declare_columns(ck);
    put_place(ck, width, height);
    AMP_TRY(cuda_emit_once(ck));
    AMP_TRY(emit_phases(ck, height));
    AMP_TRY(cuda_finish_once(ck));
    cuda_close_function(ck);
    return AMP_OK;
}
