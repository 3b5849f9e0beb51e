/* partial.cuh: sums down columns that are made of parts (column_kernel.c).  Thread t of THREADS adds up the parts
 * of column t % WIDTH whose number is t / WIDTH plus multiples of THREADS / WIDTH, in their order; then the threads of
 * a column are added.  If each part has a block, the block keeps its sums, and the last block adds up all of them: a
 * block has 8 bytes for each of 32 columns of up to four sums. */

/* The blocks of a kernel within its launch, |x| by |y| by any number from |first| on; the blocks with number |member|
 * along y belong to the same kernel of a batch. */
struct GridOfParts {
    uint32_t first, x, y, member;

    INLINE uint32_t first_block(uint32_t z) const { return first + (z * y + member) * x; }
};

/* Keeps sum |sum| of a block's columns; threads 0 .. WIDTH - 1 each hold one column's sum. */
template <int WIDTH, typename T> INLINE void keep_partial(double *partials, uint32_t block, int sum, T v)
{
    T *const to = (T *)(partials + ((size_t)block * 4 + sum) * 32);
    if (threadIdx.x < WIDTH) to[threadIdx.x] = v;
}

/* Adds up the partial sums of |count| blocks from |first| on; returns to each thread the result of column
 * threadIdx.x % WIDTH.  Each of a block's first THREADS threads adds up some rows of blocks, beginning with |start|. */
template <typename By, int WIDTH, int THREADS, typename T>
INLINE T add_partials(const double *partials, uint32_t first, uint32_t count, int sum, T start)
{
    T all[1] = {start};
    for (uint32_t i = threadIdx.x / WIDTH; threadIdx.x < THREADS && i < count; i += THREADS / WIDTH) {
        const T *const from = (const T *)(partials + ((size_t)(first + i) * 4 + sum) * 32);
        all[0] = By::combine(all[0], from[threadIdx.x % WIDTH]);
    }
    return column_reduce<By, WIDTH, THREADS / WIDTH>(all);
}

/* The same by one block, which makes the parts one after the other: adds |v|, of part |part| of |parts|, to the total
 * of the threads that have this one. */
template <typename By, int WIDTH, int THREADS, typename T>
INLINE void take_part(T &total, T v, uint32_t part, uint32_t parts)
{
    if (parts == 1) total = v;
    else if (threadIdx.x < THREADS && threadIdx.x / WIDTH == part % (THREADS / WIDTH)) total = By::combine(total, v);
}

template <typename By, int WIDTH, int THREADS, typename T> INLINE T add_parts(T total, uint32_t parts)
{
    const T all[1] = {total};
    return parts == 1 ? total : column_reduce<By, WIDTH, THREADS / WIDTH>(all);
}

/* Phases that each need the sums of the phases before, in one launch: blocks that make the parts of one phase of one
 * group of columns have a place in z, phase after phase.  The second of a place's tickets counts parts that are kept;
 * the first ticket of the first place after phase 0 counts blocks that have begun. */
struct PartInTurn {
    uint32_t part, columns, phase;
};

/* Numbered as blocks begin: a block waits for such ones alone that run already.  |z|: the block's own place. */
INLINE PartInTurn part_in_turn(uint32_t *tickets, GridOfParts grid, uint32_t z, uint32_t parts, uint32_t groups,
                               uint32_t phases)
{
    const uint32_t all = parts * groups * phases;
    const uint32_t turn = parts == 1 ? z : takes_turn(tickets + grid.first_block(groups), all);
    return {turn % parts, turn / parts % groups, turn / parts / groups};
}

/* |tickets|: of the part's place. */
INLINE void ends_part(uint32_t *tickets) { ends_turn(tickets, 0); }

INLINE void waits_for_parts(const uint32_t *tickets, uint32_t parts) { waits_for_turns(tickets, parts); }

/* Resets the tickets for the next launch, when no block waits any more. */
INLINE void forgets_parts(uint32_t *tickets, GridOfParts grid, uint32_t columns, uint32_t groups, uint32_t phases)
{
    if (threadIdx.x + 1 < phases) tickets[grid.first_block(threadIdx.x * groups + columns) + 1] = 0;
}
