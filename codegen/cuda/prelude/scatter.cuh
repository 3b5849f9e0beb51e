/* scatter.cuh: rows added up by id (codegen/cuda/kinds/scatter_kernel.c).
 *
 * A block has 32 columns of the result, one for each lane, and its lines: the ids group, group + GROUPS, ..  It looks
 * at all ids, and lists the rows whose id is a line of its own.  A list that is long enough, and the last one, is
 * sorted by line; rows of one line, a run, stay in ascending order.  Each warp adds up an equal part of the list in
 * registers: it loads rows side by side, and goes to memory once for each run.  A run that goes on in the parts of
 * other warps is finished by the warp in which it begins, which adds their sums in ascending order.  So no row waits
 * for another, however often an id repeats, and the order of every sum follows from ids and shapes. */
enum {
    SCATTER_WARPS = 16,
    SCATTER_THREADS = 32 * SCATTER_WARPS,
    SCATTER_IDS = 2 * SCATTER_THREADS, /* looked at in a step: two by each thread */
    SCATTER_ENOUGH = 512,              /* rows of a list, beyond which they are added up */
    SCATTER_LIST = SCATTER_ENOUGH + SCATTER_IDS,
    SCATTER_PLACES = 2048, /* of a key, which is line * SCATTER_PLACES + place in the list: no two are equal */
    SCATTER_AT_ONCE = 16   /* rows that a warp loads side by side */
};

struct ScatterList {
    alignas(16) uint32_t words[3][SCATTER_LIST]; /* 0: rows, ascending; 1: a key for each; 2: to sort them into */
    int32_t counts[2][SCATTER_WARPS];            /* rows that each warp lists, of this step and the next */
    float parts[SCATTER_WARPS][32];              /* of each warp, what it has of a run that began before it */
};

/* Of the block, whatever it adds up. */
INLINE ScatterList &scatter_list()
{
    __shared__ ScatterList list;
    return list;
}

struct ScatterOrder { /* where a sorted list is */
    int rows, keys;
};

/* The keys in ascending order, and their rows: runs of 1, 2, 4, .. are merged in pairs.  A key's place among the other
 * run's is found by bisection. */
INLINE ScatterOrder scatter_sort(ScatterList &list, int count)
{
    bool falls = false;
    int from = 1;
    for (int i = threadIdx.x + 1; i < count; i += SCATTER_THREADS) falls |= list.words[1][i] < list.words[1][i - 1];
    if (!__syncthreads_or(falls)) return {0, 1};
    for (int run = 1; run < count; run *= 2) {
        const uint32_t *keys = list.words[from];
        for (int i = threadIdx.x; i < count; i += SCATTER_THREADS) {
            const int own = i & -run, other = own ^ run;
            const uint32_t key = keys[i];
            int less = 0;
            for (int step = run; step > 0; step /= 2) {
                const int last = other + less + step - 1;
                if (last < count && less + step <= run && keys[last] < key) less += step;
            }
            list.words[3 - from][(own & ~run) + (i - own) + less] = key;
        }
        from = 3 - from;
        __syncthreads();
    }
    for (int i = threadIdx.x; i < count; i += SCATTER_THREADS)
        list.words[3 - from][i] = list.words[0][list.words[from][i] % SCATTER_PLACES];
    __syncthreads();
    return {3 - from, from};
}

/* What a warp adds up: a run after the other.  The sum of the one at hand goes to |to|. */
struct ScatterRun {
    float *to;
    float sum;
};

/* The next rows, |left| of SCATTER_AT_ONCE.  Bit i of |begins|: row i is of another line than the one before it, and
 * what the line had comes first; |clear|: nothing.  |line| * |pitch| after |out| is the thread's element of a line. */
template <bool WHOLE, typename Element>
INLINE void scatter_step(const uint32_t *keys, const uint32_t *rows, int left, uint32_t begins, bool clear,
                         ScatterRun &run, float *out, int64_t pitch, bool in, Element element)
{
    enum { FEW = 4 }; /* loads of lines side by side: rows take most registers */
    float x[SCATTER_AT_ONCE];
    UNROLL
    for (int i = 0; i < SCATTER_AT_ONCE; i += 4) {
        if (WHOLE) {
            const uint4 r = *(const uint4 *)(rows + i);
            x[i] = element(r.x), x[i + 1] = element(r.y), x[i + 2] = element(r.z), x[i + 3] = element(r.w);
        } else {
            UNROLL
            for (int j = i; j < i + 4; j++) x[j] = j < left ? element(rows[j]) : 0.0f;
        }
    }
    if (!begins) {
        UNROLL
        for (int i = 0; i < SCATTER_AT_ONCE; i++) run.sum = run.sum + x[i];
        return;
    }
    UNROLL
    for (int first = 0; first < SCATTER_AT_ONCE; first += FEW) {
        float had[FEW];
        UNROLL
        for (int i = 0; i < FEW; i++)
            had[i] = !clear && begins >> (first + i) & 1 ? out[keys[first + i] / SCATTER_PLACES * pitch] : 0.0f;
        UNROLL
        for (int i = 0; i < FEW; i++) {
            if (begins >> (first + i) & 1) {
                if (in) *run.to = run.sum;
                run = {out + keys[first + i] / SCATTER_PLACES * pitch, had[i]};
            }
            run.sum = run.sum + x[first + i];
        }
    }
}

/* Adds the rows of the list to their lines. */
template <typename Element>
INLINE void scatter_sums(ScatterList &list, ScatterOrder order, int count, bool clear, float *out, int64_t pitch,
                         bool in, Element element)
{
    const int lane = threadIdx.x % 32, warp = __shfl_sync(0xFFFFFFFFu, threadIdx.x / 32, 0);
    const int length = (count + 4 * SCATTER_WARPS - 1) / (4 * SCATTER_WARPS) * 4;
    const int first = warp * length, end = first + length < count ? first + length : count;
    const uint32_t *const keys = list.words[order.keys], *const rows = list.words[order.rows];
    float *const part = &list.parts[warp][lane];
    ScatterRun run = {part, 0.0f};
    for (int at = first; at < end; at += SCATTER_AT_ONCE) {
        const int i = at + lane;
        const bool other = lane < SCATTER_AT_ONCE && i < end &&
                           (!i || keys[i] / SCATTER_PLACES != keys[i - 1] / SCATTER_PLACES);
        const uint32_t begins = __ballot_sync(0xFFFFFFFFu, other);
        if (at + SCATTER_AT_ONCE <= end)
            scatter_step<true>(keys + at, rows + at, end - at, begins, clear, run, out, pitch, in, element);
        else scatter_step<false>(keys + at, rows + at, end - at, begins, clear, run, out, pitch, in, element);
    }
    const bool begun = run.to != part; /* the run at hand, by this warp */
    if (!begun) *part = run.sum;
    __syncthreads();
    if (!begun || !in) return;
    const uint32_t line = keys[end - 1] / SCATTER_PLACES;
    for (int w = warp + 1; w * length < count && keys[w * length] / SCATTER_PLACES == line; w++)
        run.sum = run.sum + list.parts[w][lane];
    *run.to = run.sum;
}

/* Clears the lines of |group|, of |lines| in all, then adds to them the rows of their ids.  |out|: the thread's element
 * of line 0. */
template <int GROUPS, typename Id, typename Element>
INLINE void scatter_rows(int64_t lines, uint32_t rows, int group, float *out, int64_t pitch, bool in, Id id,
                         Element element)
{
    ScatterList &list = scatter_list();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int64_t line = warp; in && group + line * GROUPS < lines; line += SCATTER_WARPS) out[line * pitch] = 0.0f;
    const uint32_t below = (1u << lane) - 1;
    uint32_t at = warp * 64 + lane, first = 0;
    int32_t ids[2] = {at < rows ? id(at) : -1, at + 32 < rows ? id(at + 32) : -1};
    int count = 0;
    bool clear = true; /* the lines, still */
    __syncthreads();   /* no thread needs an earlier list any more */
    for (int turn = 0; first < rows; turn ^= 1) {
        const int32_t mine[2] = {ids[0], ids[1]};
        const uint32_t from = at;
        uint32_t own[2];
        UNROLL
        for (int i = 0; i < 2; i++)
            own[i] = __ballot_sync(0xFFFFFFFFu, mine[i] >= 0 && mine[i] < lines && (uint32_t)mine[i] % GROUPS == group);
        first += SCATTER_IDS;
        at += SCATTER_IDS;
        UNROLL
        for (int i = 0; i < 2; i++) ids[i] = at + 32 * i < rows ? id(at + 32 * i) : -1; /* while the others count */
        if (lane == 0) list.counts[turn][warp] = __popc(own[0]) + __popc(own[1]);
        __syncthreads();
        int all = list.counts[turn][lane % SCATTER_WARPS];
        UNROLL
        for (int d = 1; d < SCATTER_WARPS; d *= 2) {
            const int left = __shfl_up_sync(0xFFFFFFFFu, all, d);
            if (lane >= d) all += left;
        }
        int place = count + (warp ? __shfl_sync(0xFFFFFFFFu, all, warp - 1) : 0);
        count += __shfl_sync(0xFFFFFFFFu, all, SCATTER_WARPS - 1);
        UNROLL
        for (int i = 0; i < 2; i++) {
            const int to = place + __popc(own[i] & below);
            if (own[i] >> lane & 1) {
                list.words[0][to] = from + 32 * i;
                list.words[1][to] = (uint32_t)mine[i] / GROUPS * SCATTER_PLACES + to;
            }
            place += __popc(own[i]);
        }
        if (!count || (count <= SCATTER_ENOUGH && first < rows)) continue;
        __syncthreads();
        const ScatterOrder order = lines > GROUPS ? scatter_sort(list, count) : ScatterOrder{0, 1};
        scatter_sums(list, order, count, clear, out, pitch, in, element);
        count = 0;
        clear = false;
    }
}

/* Of |rows| ids, of a table of |lines|: the first place with the same id, and the id where that is the place itself, or
 * -1.  By one block.  |seen|, by id, is memory for it. */
INLINE void distinct_rows(int64_t rows, int64_t lines, const int32_t *ids, int32_t *first, int32_t *row, int32_t *seen)
{
    for (int64_t k = threadIdx.x; k < rows; k += blockDim.x)
        if (ids[k] >= 0 && ids[k] < lines) seen[ids[k]] = 0x7FFFFFFF;
    __syncthreads();
    for (int64_t k = threadIdx.x; k < rows; k += blockDim.x)
        if (ids[k] >= 0 && ids[k] < lines) atomicMin(seen + ids[k], (int32_t)k);
    __syncthreads();
    for (int64_t k = threadIdx.x; k < rows; k += blockDim.x) {
        const bool is_row = ids[k] >= 0 && ids[k] < lines;
        const int32_t at = is_row ? *(volatile const int32_t *)(seen + ids[k]) : (int32_t)k; /* as atomics left it */
        first[k] = at;
        row[k] = is_row && at == k ? ids[k] : -1;
    }
}
