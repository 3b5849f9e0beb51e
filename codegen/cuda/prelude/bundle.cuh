/* bundle.cuh: kernels of different text in one launch, whose blocks follow one another (part_launch.c). */

/* The position of a block in the grid of its kernel, |x| by |y| by any number of blocks, beginning with |first|.
 * It is computed at each use, from values that take no register. */
struct PlaceInGrid {
    int64_t first, x, y;

    INLINE uint3 now() const {
        uint32_t block;
        asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
        const uint32_t number = block - (uint32_t)first, across = (uint32_t)x, down = (uint32_t)y;
        return make_uint3(number % across, number / across % down, number / across / down);
    }
};

/* blockIdx, read where it is asked for: a loop around a product keeps nothing in registers that comes from it. */
struct PlaceOfBlock {
    INLINE uint3 now() const {
        uint3 block;
        asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block.x));
        asm volatile("mov.u32 %0, %%ctaid.y;" : "=r"(block.y));
        asm volatile("mov.u32 %0, %%ctaid.z;" : "=r"(block.z));
        return block;
    }
};
