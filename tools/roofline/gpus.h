/* gpus.h: what the model of time (roofline.h) knows of each GPU. */
#ifndef AMP_TOOLS_GPUS_H
#define AMP_TOOLS_GPUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Rates of dense products with sums in f32, as NVIDIA states them. */
typedef struct Gpu {
    const char *name;              /* "H100" */
    const char *full;              /* "H100 SXM5 80 GB" */
    int multiprocessors, shared;   /* bytes of shared memory that a block may have */
    double fp16, bf16, tf32, fp32; /* TFLOP/s; 0: it has no such instruction */
    double mma_share;              /* of the peak of its tensor cores, what mma.sync can reach */
    double copy;                   /* GB/s, read and written, of a copy in its memory */
    double launch;                 /* microseconds: no kernel of a CUDA graph takes less */
    const char *source;            /* of the numbers */
} Gpu;

/* NULL past the last. */
const Gpu *gpu_at(int index);
/* "h100", "RTX 4090", "rtx-4090": case, spaces, hyphens and underscores do not count.  NULL: none of that name. */
const Gpu *gpu_named(const char *name);
/* The one that a driver calls |device|: "NVIDIA H100 80GB HBM3".  NULL: none of these. */
const Gpu *gpu_of_device(const char *device);

#ifdef __cplusplus
}
#endif

#endif
