/* overlap.cuh: a launch and those around it (docs/design/cuda.md, "Launches that overlap"). */

/* Until all launches before this one have ended, beside the last of which it may have begun.  Before it a kernel reads
 * nothing that another one writes, but prefetches, and writes nothing.  Each thread calls it: so whoever waits for this
 * launch has waited for those before it, too. */
INLINE void await_earlier_launches()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Once all blocks have come here or ended, the next launch may take what places are free, and wait there. */
INLINE void admit_next_launch()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}
