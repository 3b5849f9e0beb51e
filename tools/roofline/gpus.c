/* gpus.c: the table of GPUs: a row each, all constants of a GPU that the model of time has. */
#include "tools/roofline/gpus.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Rates, multiprocessors and bandwidths are of NVIDIA's data sheets and architecture papers.  What no paper says:
 *
 *   mma_share  On Hopper the peak is that of wgmma.  mma.sync issues at 0.6 of it at most; good kernels that use it
 *              reach 330 to 450 of the 989 TFLOP/s (FlashAttention 2: 350).
 *   copy       H200: measured, 4.23 TB/s of 4.8 (bench/results/2026-11-27-h200.md).  T4: 220 of 320 GB/s (Jia et al.,
 *              "Dissecting the NVidia Turing T4 GPU via Microbenchmarking", arXiv:1903.07486).  H100: 3.0 of 3.35 TB/s,
 *              an estimate below the 3.24 that reading reaches.  A100, RTX 4090: an estimate, 0.86 of the data sheet.
 *   launch     H200: measured, the smallest kernels of a graph, one after another.  The others: as there. */
static const Gpu gpus[] = {
    {"H200", "H200 SXM 141 GB", 132, 227 << 10, 989.4, 989.4, 494.7, 66.9, 0.6, 4230, 1.0,
     "NVIDIA H200 data sheet; bench/results"},
    {"H100", "H100 SXM5 80 GB", 132, 227 << 10, 989.4, 989.4, 494.7, 66.9, 0.6, 3000, 1.0,
     "NVIDIA H100 architecture paper"},
    {"A100", "A100 SXM4 80 GB", 108, 163 << 10, 312, 312, 156, 19.5, 1.0, 1750, 1.0, "NVIDIA A100 data sheet"},
    {"RTX4090", "GeForce RTX 4090", 128, 99 << 10, 165.2, 165.2, 82.6, 82.6, 1.0, 870, 1.0,
     "NVIDIA Ada architecture paper"},
    {"T4", "T4 16 GB", 40, 64 << 10, 65.1, 0, 0, 8.1, 1.0, 220, 1.0,
     "NVIDIA Turing architecture paper; arXiv:1903.07486"},
};

const Gpu *gpu_at(int index) {
    return index >= 0 && (size_t)index < sizeof gpus / sizeof gpus[0] ? &gpus[index] : NULL;
}

/* The next letter or digit that counts, in capitals. */
static char next_letter(const char **text) {
    while (**text == ' ' || **text == '-' || **text == '_') ++*text;
    char c = **text;
    if (c) ++*text;
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

const Gpu *gpu_named(const char *name) {
    for (int i = 0; gpu_at(i); i++) {
        const char *wanted = name, *has = gpus[i].name;
        char a, b;
        do a = next_letter(&wanted), b = next_letter(&has);
        while (a == b && a);
        if (a == b) return &gpus[i];
    }
    return NULL;
}

/* Whether the words of |text| begin with |name|, whose letters may be in several of them: "GeForce RTX 4090". */
static bool begins_with(const char *text, const char *name) {
    while (*name)
        if (next_letter(&text) != *name++) return false;
    return !isalnum((unsigned char)*text);
}

const Gpu *gpu_of_device(const char *device) {
    for (const char *word = device; *word; word += strcspn(word, " "), word += strspn(word, " "))
        for (int i = 0; gpu_at(i); i++)
            if (begins_with(word, gpus[i].name)) return &gpus[i];
    return NULL;
}
