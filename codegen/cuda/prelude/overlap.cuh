/* overlap.cuh: a launch and those around it (docs/design/cuda.md, "Launches that overlap"). */

/* Waits until all launches before this one have ended; this one may have begun beside the last of them.  Before it a
 * kernel reads nothing that another one writes, but prefetches, and writes nothing.  Each thread calls it, so that a
 * wait for this launch is also a wait for all launches before it. */
INLINE void await_earlier_launches()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Once all blocks have come here or ended, the next launch may take what places are free, and wait there.  This makes
 * no store visible: await_earlier_launches does, since it waits for whole launches. */
INLINE void admit_next_launch()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
