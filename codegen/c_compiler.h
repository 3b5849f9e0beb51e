/* c_compiler.h: the C compiler that makes model.so: how it is called, for which processors it makes code, with which
 * flags. */
#ifndef AMP_CODEGEN_C_COMPILER_H
#define AMP_CODEGEN_C_COMPILER_H

#include "amp/base.h"
#include "amp/model_abi.h"

enum { C_COMPILER_WORDS = 16, C_COMPILER_TEXT = 1024 };

/* One compilation of the model's C file. */
typedef struct CompilerUnit {
    int isa;              /* of its kernels: AMP_ISA_...; EVERY_ISA: the model's tables */
    const char *flags[4]; /* after the flags of all; ends with NULL */
} CompilerUnit;

/* What is compiled for one family of processors. */
typedef struct CompilerTarget {
    const char *name;          /* "x86-64": as messages say it */
    const char *machines[3];   /* what `cc -dumpmachine` begins with */
    const CompilerUnit *units; /* what takes longest first */
    int unit_count;
    const char *const *flags; /* of every unit; ends with NULL */
    int top;                  /* the largest instruction set, AMP_ISA_... */
} CompilerTarget;

enum { COMPILER_MAX_UNITS = 4 };

typedef struct CCompiler {
    const char *command;                 /* as the user gave it */
    const char *words[C_COMPILER_WORDS]; /* of |text| */
    int word_count;
    const CompilerTarget *target;
    char text[C_COMPILER_TEXT];
} CCompiler;

/* Splits |command| (NULL: "cc") into words as a shell does ('..', "..", backslash), unless the whole of it is the path
 * of a program: "ccache gcc", "aarch64-linux-gnu-gcc --sysroot=/opt/arm".  AMP_INVALID_ARGUMENT. */
amp_status c_compiler_read(CCompiler *c, const char *command, amp_error *err);
/* Chooses the target: |machine| is what the compiler says to -dumpmachine.  Another one than those that are known gets
 * the portable kernels; NULL: one that did not understand is taken to make code for this machine. */
void c_compiler_set_machine(CCompiler *c, const char *machine);

typedef struct IsaRange { /* instruction sets that are compiled, both ends included */
    int lowest, top;
} IsaRange;
enum { EVERY_ISA = -1 };

/* What "portable", "v3" or "v4" asks for: all up to it; "native": the best of this machine alone; NULL: all of the
 * compiler's target.  AMP_INVALID_ARGUMENT: the name is unknown, the target has no such set, or "native" is asked for
 * and the target is another machine. */
amp_status c_compiler_find_isa(const CCompiler *c, const char *name, IsaRange *out, amp_error *err);

#endif
