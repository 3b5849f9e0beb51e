/* cpu.h: what the files of the CPU target share. */
#ifndef AMP_CODEGEN_CPU_CPU_H
#define AMP_CODEGEN_CPU_CPU_H

#include "codegen/codegen.h"
#include "codegen/emit.h"

/* The functions that generated kernels call, as C text (prelude/, embedded by the build). */
extern const char cpu_prelude[];
/* amp/base.h and amp/model_abi.h, as C text without their #include lines. */
extern const char cpu_abi[];

/* The C function of every kernel, under the name that the descriptor uses: kernels with equal bodies share one
 * function. */
typedef struct KernelName {
    const Kernel *kernel;
    const char *function; /* "train_step_k03" */
    bool first;           /* the first one that has it */
} KernelName;
typedef VEC(KernelName) KernelNames;

/* kernel.c: appends `void K(name)(const amp_kernel_args *a) { ... }` for the kernel that |w| has analysed. */
amp_status cpu_emit_kernel(Walk *w, Text *out, amp_error *err);
/* Kernels of the whole module, with comments. */
amp_status cpu_emit_kernels(const Module *m, KernelNames *names, Text *out, amp_error *err);
/* tables.c: the descriptor and amp_model_query. */
amp_status cpu_emit_tables(const Module *m, const KernelNames *names, const CodegenCuda *cuda, Text *out,
                           amp_error *err);

#endif
