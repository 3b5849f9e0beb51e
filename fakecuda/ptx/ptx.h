/* ptx.h: PTX text as data: what the parser makes and the interpreter runs.  Names follow NVIDIA's PTX ISA document.
 *
 * A module owns everything in it (one arena); it is never changed after parsing, so threads may share it. */
#ifndef FAKECUDA_PTX_PTX_H
#define FAKECUDA_PTX_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum PtxType {
    PTX_NONE,
    PTX_PRED,
    PTX_B8,
    PTX_B16,
    PTX_B32,
    PTX_B64,
    PTX_B128,
    PTX_U8,
    PTX_U16,
    PTX_U32,
    PTX_U64,
    PTX_S8,
    PTX_S16,
    PTX_S32,
    PTX_S64,
    PTX_F16,
    PTX_F16X2,
    PTX_BF16,
    PTX_BF16X2,
    PTX_TF32,
    PTX_F32,
    PTX_F64,
    PTX_TYPE_COUNT
} PtxType;
int ptx_type_bytes(PtxType t);        /* in memory; PRED: 0 */
const char *ptx_type_name(PtxType t); /* "f16x2" */

typedef enum PtxSpace { PTX_SPACE_NONE, PTX_REG, PTX_PARAM, PTX_GLOBAL, PTX_SHARED, PTX_LOCAL, PTX_CONST } PtxSpace;

/* %tid.x and the like. */
typedef enum PtxSpecial {
    PTX_TID_X,
    PTX_TID_Y,
    PTX_TID_Z,
    PTX_NTID_X,
    PTX_NTID_Y,
    PTX_NTID_Z,
    PTX_CTAID_X,
    PTX_CTAID_Y,
    PTX_CTAID_Z,
    PTX_NCTAID_X,
    PTX_NCTAID_Y,
    PTX_NCTAID_Z,
    PTX_LANEID,
    PTX_WARPID,
    PTX_NWARPID,
    PTX_SMID,
    PTX_NSMID,
    PTX_GRIDID,
    PTX_LANEMASK_EQ,
    PTX_LANEMASK_LE,
    PTX_LANEMASK_LT,
    PTX_LANEMASK_GE,
    PTX_LANEMASK_GT,
    PTX_CLOCK,
    PTX_CLOCK64,
    PTX_CLOCK_HI,
    PTX_GLOBALTIMER,
    PTX_DYNAMIC_SMEM_SIZE,
    PTX_TOTAL_SMEM_SIZE,
    PTX_CLUSTER_CTARANK,
    PTX_CLUSTER_NCTARANK,
    PTX_CLUSTERID_X,
    PTX_CLUSTER_CTAID_X,
    PTX_SPECIAL_COUNT
} PtxSpecial;

/* A register of a function.  %r<5> declares five.  Braces open scopes: equal names in two scopes are two registers. */
typedef struct PtxRegister {
    const char *name;
    PtxType type; /* as declared */
} PtxRegister;

/* A variable: of the module (.global, .const, .shared), of a function (.shared, .local, parameters), or of a call
 * (.param in a block). */
typedef struct PtxVariable {
    const char *name;
    PtxSpace space;
    PtxType type;
    uint64_t bytes, align; /* bytes 0: `extern .shared x[]`, whose size the launch gives */
    bool is_extern;
    int reg;                /* space REG (a parameter declared .reg): that register of the function; else -1 */
    const uint8_t *init;    /* |bytes| bytes; NULL: zeros */
    struct PtxInitAddress { /* init[at..at+8) is the address of |of| plus |offset|; |generic|: as a generic address */
        uint64_t at;
        const char *of;
        int64_t offset;
        bool generic;
    } * addresses;
    int address_count;
} PtxVariable;

typedef enum PtxOperandKind {
    PTX_OP_REGISTER, /* |index| */
    PTX_OP_INTEGER,  /* |bits|: the 64-bit value */
    /* |bits|: of a double where |is_double|, else the low 32 of a float; already of the width that f32 and f64
     * instructions read. */
    PTX_OP_FLOAT,
    PTX_OP_SPECIAL,  /* |index|: PtxSpecial */
    PTX_OP_VARIABLE, /* address of |name| + |offset| (`mov.u64 %rd1, smem;`), or of a function */
    PTX_OP_ADDRESS,  /* [..]: base is |base| (register, variable or immediate) plus |offset| */
    PTX_OP_VECTOR,   /* {a, b, ..}: |items|, |count| */
    PTX_OP_PAIR,     /* d|p: |items|, 2 */
    PTX_OP_SINK,     /* _ */
    PTX_OP_NOT,      /* !p: |items|, 1 */
    PTX_OP_LABEL,    /* |index|: instruction of the function to which it points; |count| of the function: its end */
    PTX_OP_FUNCTION, /* |name| */
    PTX_OP_LIST,     /* (a, b): arguments; [map, {c0, c1}]: an address of several parts; labels of a .branchtargets */
    PTX_OP_PROTOTYPE /* |name|: of an indirect call */
} PtxOperandKind;

typedef struct PtxOperand {
    PtxOperandKind kind;
    int index;
    bool is_double;
    uint64_t bits;
    const char *name;
    const PtxVariable *variable; /* VARIABLE; ADDRESS of one: what |name| means in its scope */
    int64_t offset;
    struct PtxOperand *base;
    struct PtxOperand *items;
    int count;
} PtxOperand;

enum { PTX_MAX_OPERANDS = 8 };

typedef struct PtxInstruction {
    const char *text; /* as written, without the guard and the semicolon, blanks made one: for messages */
    int line;         /* of the PTX text */
    int guard;        /* register of @p; -1: none */
    bool guard_negated;
    const char *opcode;     /* "cvt" */
    const char *full;       /* "cvt.rn.f16x2.f32": opcode with all modifiers as written */
    const char **modifiers; /* "rn", "f16x2", "f32" */
    int modifier_count;
    PtxType types[4]; /* the modifiers that are types, in order */
    int type_count;
    PtxOperand operands[PTX_MAX_OPERANDS];
    int operand_count;
    int source_line; /* of the last .loc before it; 0: none */
    /* Text after the last `//@ ` comment before it in the function: what our generated code says of its ops; NULL.
     * Comments of C do not reach PTX; asm volatile("//@ ..") does. */
    const char *origin;
} PtxInstruction;

typedef struct PtxFunction {
    const char *name;
    bool is_entry, is_declaration;
    PtxVariable *params; /* of an entry: with their offsets in the parameter block */
    uint64_t *param_offsets;
    int param_count;
    uint64_t param_bytes;
    PtxVariable *results; /* of a .func */
    int result_count;
    PtxVariable *locals; /* .shared, .local and call .param variables declared inside */
    int local_count;
    PtxRegister *registers;
    int register_count;
    PtxInstruction *code;
    int count;
    /* .maxntid, .reqntid, .minnctapersm, .maxnreg; 0: none */
    int max_threads[3], required_threads[3], min_blocks, max_registers;
    int cluster[3]; /* .reqnctapercluster */
    int line;
} PtxFunction;

typedef struct PtxModule {
    int version;        /* 90 for .version 9.0 */
    int target;         /* 80 for sm_80 */
    char target_suffix; /* 'a' for sm_90a; 0 */
    PtxVariable *variables;
    int variable_count;
    PtxFunction *functions;
    int function_count;
} PtxModule;

/* NULL where the text is not PTX that we know: |message| (|size| bytes) then says where and what: "ptx:12:3: ...". */
PtxModule *ptx_parse(const char *text, size_t length, char *message, size_t size);
void ptx_free(PtxModule *m);
const PtxFunction *ptx_function(const PtxModule *m, const char *name);
const PtxVariable *ptx_variable(const PtxModule *m, const char *name);
/* Whether |i| has that modifier. */
bool ptx_has(const PtxInstruction *i, const char *modifier);

#ifdef __cplusplus
}
#endif
#endif
