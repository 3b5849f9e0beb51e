/* kernel_kinds.h: the names of the kinds of kernels. */
#ifndef AMP_TOOLS_AMPRUN_KERNEL_KINDS_H
#define AMP_TOOLS_AMPRUN_KERNEL_KINDS_H

#include <stdint.h>

/* "product", of an AMP_KERNEL_*. */
const char *kernel_kind_name(uint32_t kind);

#endif
