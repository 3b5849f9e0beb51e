/* cpu.h: what the files of the CPU target share. */
#ifndef AMP_CODEGEN_CPU_CPU_H
#define AMP_CODEGEN_CPU_CPU_H

#include "codegen/descriptor.h"
#include "codegen/emit.h"

/* The functions that generated kernels call, as C text (prelude/, embedded by the build). */
extern const char cpu_prelude[];
/* The same for products that are added up as on a device. */
extern const char cpu_sums_prelude[];
/* amp/base.h and amp/model_abi.h, as C text without their #include lines. */
extern const char cpu_abi[];

/* cpu_kernel.c: appends the body of a function for the kernel that |w| has analysed.  It reads |offsets| as o0, o1, ..
 */
amp_status cpu_emit_kernel(Walk *w, Text *out, Offsets *offsets, amp_error *err);
/* cpu_attention.c: the same for attention; its table, with the name |name|_attention. */
amp_status cpu_emit_attention(const Walk *w, Text *out, amp_error *err);
amp_status cpu_put_attention(TableWriter *rows, const Walk *w, const char *name);
/* cpu_sums.c: the product of the kernel that is added up as on a device, or NULL; what such products call. */
const Op *cpu_product_as_device(const Walk *w);
void cpu_put_sums_prelude(const Module *m, Text *out);
/* The position of a product's operand among the kernel's, in the one form that its product reads. */
int cpu_product_operand(const Walk *w, const Op *product, int i);
/* cpu_kernels.c: kernels of the whole module, with comments. */
amp_status cpu_emit_kernels(const Module *m, KernelNames *names, Text *out, amp_error *err);
/* The functions' declarations; kernels and programs as tables of the descriptor. */
void cpu_put_declarations(Text *t, const KernelNames *names);
amp_status cpu_put_programs(TableWriter *rows, const KernelNames *names, int *count);

#endif
