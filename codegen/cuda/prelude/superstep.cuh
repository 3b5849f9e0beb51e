/* superstep.cuh: kernels that depend on one another in one launch (part_launch.c). */

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
    if (threadIdx.x == 0)
        while (*(const volatile uint32_t *)(tickets + 1) < turns) __nanosleep(32);
    __syncthreads();
    __threadfence(); /* what the others have stored comes before it is read */
}

/* |turns| 0: no block is the last, and the ticket counts on. */
INLINE void ends_turn(uint32_t *tickets, uint32_t turns)
{
    __threadfence(); /* what this thread has stored comes before the ticket */
    __syncthreads();
    if (threadIdx.x == 0) atomicInc(tickets + 1, turns - 1);
}
