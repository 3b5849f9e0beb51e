/* superstep.cuh: blocks that depend on one another in one launch (part_launch.c, column_kernel.c).
 *
 * A block hands on what its threads have stored by counting on in memory:
 *
 *     stores of all threads; barrier; thread 0: counts on, with release
 *     thread 0: sees the count; fence; barrier; loads of all threads (of another block)
 *
 * One thread is enough, by the causality order of the PTX ISA document ("Memory Consistency Model"), which is
 * transitive.  A store comes before its thread's barrier, the barrier before what thread 0 does after it.  Counting on
 * with release and seeing the count before a fence are a release and an acquire pattern: the one synchronizes with the
 * other, also if blocks between them count on, because atomics are handed on.  The second barrier does the same for
 * the threads that load.  A fence of each thread before the first barrier would have to be fence.sc: fence.acq_rel
 * makes a pattern with a count of its own thread only. */

/* Returns what was there, |most| at most, after which 0 follows.  After a barrier, what the block's threads have stored
 * before it comes before the count. */
INLINE uint32_t counts_on(uint32_t *counter, uint32_t most)
{
    uint32_t before;
    asm volatile("atom.release.gpu.global.inc.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(__cvta_generic_to_global(counter)), "r"(most)
                 : "memory");
    return before;
}

/* What was stored before the counts that this thread has seen comes before what it does next, and before what the
 * others of its block do after a barrier. */
INLINE void acquires_counted() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

/* Whether all others of |blocks| blocks have taken a ticket before this one: then it may read what they have stored.
 * Each of its threads calls it, after it has stored its part.  The last ticket sets the counter back to zero. */
INLINE bool takes_last_ticket(uint32_t *counter, uint32_t blocks)
{
    __shared__ bool last;
    __syncthreads(); /* all threads have stored */
    if (threadIdx.x == 0) {
        last = counts_on(counter, blocks - 1) == blocks - 1;
        if (last) acquires_counted();
    }
    __syncthreads(); /* of the last block: before any thread loads */
    return last;
}

/* The position of a block in the grid of its kernel, as PlaceInGrid in a bundle. */
struct PlaceInTurn {
    uint32_t x, y, z;

    INLINE uint3 now() const { return make_uint3(x, y, z); }
};

/* Of block |number| of a grid of |x| by |y| by any number of blocks. */
INLINE PlaceInTurn place_in_turn(uint32_t number, int64_t x, int64_t y)
{
    const uint32_t across = (uint32_t)x, down = (uint32_t)y;
    return {number % across, number / across % down, number / across / down};
}

/* tickets[0] counts blocks that have begun, tickets[1] those that have ended.  The last of all |turns| blocks sets each
 * back to zero. */

/* How many blocks have begun before this one: a block waits for such ones alone, which all run already, so that it
 * waits for nothing that needs its place on the device. */
INLINE uint32_t takes_turn(uint32_t *tickets, uint32_t turns)
{
    __shared__ uint32_t turn;
    if (threadIdx.x == 0) turn = atomicInc(tickets, turns - 1);
    __syncthreads();
    return turn;
}

/* Until the first |turns| blocks have ended, whose results may then be read.  No block ends before those that it waits
 * for, so that as many as have ended are the first ones. */
INLINE void waits_for_turns(const uint32_t *tickets, uint32_t turns)
{
    if (threadIdx.x == 0) {
        while (*(const volatile uint32_t *)(tickets + 1) < turns) __nanosleep(32);
        acquires_counted();
    }
    __syncthreads(); /* before any thread loads */
}

/* |turns| 0: no block is the last, and the ticket counts on. */
INLINE void ends_turn(uint32_t *tickets, uint32_t turns)
{
    __syncthreads(); /* all threads have stored */
    if (threadIdx.x == 0) counts_on(tickets + 1, turns - 1);
}
