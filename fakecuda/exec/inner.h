/* inner.h: what the files of this folder share: decoded code, warps, blocks.
 *
 * A register is an array of 32 lanes (alu.h).  A warp runs in strands: sets of lanes that are at the same instruction
 * of the same call.  A divergent branch makes two strands and a join at its immediate post-dominator, where they become
 * one again. */
#ifndef FAKECUDA_EXEC_INNER_H
#define FAKECUDA_EXEC_INNER_H

#include "fakecuda/exec/exec_memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    LANES = 32,
    MAX_WARPS = 32,
    MAX_BARRIERS = 16,
    SHARED_BASE = 1024 /* of the first variable: no variable has address 0 */
};

typedef struct Warp Warp;
typedef struct Block Block;
typedef struct Inst Inst;

/* ---- decoded code ---- */

typedef enum Base { BASE_REGISTERS, BASE_CONSTANTS, BASE_WARP, BASE_COUNT } Base;

typedef struct Operand { /* the 32 lanes of a register, an immediate or a special register */
    uint8_t base;        /* Base */
    uint8_t bytes;       /* of a lane: 4 or 8; 0: no operand */
    uint8_t width;       /* bits, as declared */
    uint32_t offset;
} Operand;

typedef enum Kind { /* exec_kind_names */
                    KIND_INT,
                    KIND_F32,
                    KIND_F64,
                    KIND_F16,
                    KIND_CVT,
                    KIND_SPECIAL,
                    KIND_PRED,
                    KIND_MOVE,
                    KIND_LOAD,
                    KIND_STORE,
                    KIND_ATOMIC,
                    KIND_CONTROL,
                    KIND_BARRIER,
                    KIND_WARP,
                    KIND_TENSOR,
                    KIND_ASYNC
} Kind;

/* What an instruction leaves: the next one follows, perhaps after others had their turn; |pc| of the strand is set or
 * the strand is gone, it waits, the launch failed. */
typedef enum Step { STEP_NEXT, STEP_PAUSE, STEP_JUMPED, STEP_WAIT, STEP_FAULT } Step;
typedef Step RunFn(Warp *w, const Inst *i); /* for the lanes w->active: never none */

typedef enum Sync {
    SYNC_NONE,
    SYNC_MASK /* lanes of |mask| meet here */,
    SYNC_WARP /* .aligned: all lanes that are alive */,
    SYNC_FULL /* .aligned: all 32 */
} Sync;

struct Inst {
    const AluOp *alu; /* or */
    RunFn *run;
    bool guarded, guard_negated, refused;
    uint8_t kind, flops, sync;
    uint8_t fix_narrow; /* sources of 64 bits that are used as their low 32 bits, as a mask */
    uint8_t fix_not;    /* sources that are predicates to be inverted */
    bool fix_result;    /* the register is wider than the result */
    int target, join;   /* of a branch: index of the instruction; of its post-dominator, -1: none */
    Operand guard, mask, dst[2], src[4];
    const void *more; /* of the instruction's family; with fixes: the AluOp */
    const PtxInstruction *ptx;
};

#define NO_PLACE UINT64_MAX
typedef struct Function {
    const PtxFunction *ptx;
    ExecModule *module;
    int index;
    Inst *code;
    int count;
    Operand *registers; /* by index of the PTX */
    Operand carry;      /* the flag of add.cc */
    uint32_t register_bytes;
    uint8_t *constants; /* lane arrays */
    struct Constant {
        uint64_t bits;
        Operand operand;
    } * constant_list; /* while decoding */
    int constant_count, constant_room;
    uint32_t constant_bytes;
    uint64_t *module_places, *param_places, *result_places,
        *local_places; /* of the variables of the PTX, in their space; NO_PLACE: none */
    /* Places of variables: byte offsets in their space. */
    uint32_t local_bytes,
        param_bytes;        /* of one lane in one call: .local; .param of calls, and of this function unless an entry */
    uint32_t static_shared; /* entry: where the static variables end */
    uint32_t dynamic_align;
    int live_registers;
    bool calls, recursive;
    bool orders; /* something here orders blocks, or waits for one: a fence of the device, a strong load, an atomic */
    uint32_t stack_bytes; /* .local of this function and all that it may call */
    int state;            /* while the stack is measured */
} Function;

struct ExecModule {
    ExecMemory *memory;
    AluContext context;
    PtxModule *ptx;
    Function *functions; /* as in ptx->functions */
    /* Of ptx->variables: global and const: of the device; shared: offset, if functions other than entries use it. */
    uint64_t *addresses;
    uint32_t shared_end; /* of the latter */
    struct Allocated *allocated;
};
void *module_new(ExecModule *m, size_t bytes); /* zeroed, lives as long as the module */

/* ---- a warp ---- */

typedef struct Frame { /* one call */
    const Function *function;
    struct Frame *next, *all; /* in the lists of free ones and of all */
    const Inst *call;
    struct Frame *caller;
    uint32_t local_base, room;
    uint8_t *params; /* [lane][function->param_bytes] */
    uint8_t *registers;
} Frame;

typedef struct Join {    /* where lanes wait for others */
    struct Join *parent; /* the one around it; in the list of free ones: the next */
    uint32_t expected, arrived;
    int pc;
    Frame *frame;
    Frame *callee;    /* a call: what ends here; NULL: a branch */
    struct Join *all; /* in the list of all */
} Join;

typedef enum StrandState { STRAND_RUNS, STRAND_AT_SYNC, STRAND_AT_BARRIER } StrandState;
typedef struct Strand {
    int pc;
    uint32_t active;
    uint32_t sync_mask;
    uint8_t state, barrier;
    bool after_wait; /* its instruction has been counted */
    Join *join;
    Frame *frame;
} Strand;

/* Lanes that are the same for a whole block or launch, and places for results that are not used. */
typedef struct WarpLanes {
    uint32_t special[PTX_SPECIAL_COUNT][LANES];
    uint64_t special64[PTX_SPECIAL_COUNT][LANES];
    uint32_t dynamic_shared[LANES];
    uint64_t dynamic_shared64[LANES];
    uint64_t sink[LANES];
    uint64_t temp[5][LANES];
} WarpLanes;

typedef struct Copy {           /* a cp.async of a warp that has not been waited for */
    uint32_t lanes;             /* still in flight */
    bool moved;                 /* the bytes are there already */
    uint8_t bytes[LANES], size; /* read; written: zeros fill the rest */
    uint32_t number;            /* of the warp's copies */
    uint32_t group[LANES];
    uint64_t from[LANES];
    uint32_t to[LANES];
} Copy;

/* Of the warps of a block. known[v]: what warp v did up to there is visible here.  fenced[v]: and a fence.sc of the
 * device followed it (with |clock_base|). */
typedef struct Clocks {
    uint32_t known[MAX_WARPS], fenced[MAX_WARPS];
} Clocks;

struct Warp {
    uint8_t *bases[BASE_COUNT];
    uint32_t active;
    Strand *strand; /* the present one, in |strands| */
    Strand strands[LANES + 1];
    int strand_count, current;
    uint32_t exists, alive;
    uint32_t waited; /* lanes that executed griddepcontrol.wait */
    int index;
    uint8_t outcome;
    Block *block;
    WarpLanes *lanes;
    Join *free_joins, *all_joins;
    Frame *free_frames, *all_frames;
    /* Happens-before: |clock| counts synchronisations. */
    uint32_t clock;
    Clocks clocks;
    struct { /* what other fences of |lanes| followed: of the lanes themselves up to |clock| (with |clock_base|) */
        uint32_t lanes, clock, clocks[MAX_WARPS];
    } own;
    struct {
        uint32_t serial, warp, clock;
    } last_known;          /* of another block: what order.c found last */
    uint64_t instructions; /* of this block */
    /* Strong reads that gave what one of the last few gave already, since a block last changed something. */
    uint32_t polls, polled_next;
    uint64_t polled[4], polled_changes;
    Copy *copies;
    int copy_count, copy_room;
    uint32_t copies_made;
    uint32_t groups[LANES];          /* committed ones */
    uint8_t *local, *local_written;  /* [lane][block->local_bytes] */
    uint64_t last_start, last_bytes; /* the allocation that was touched last */
};

static inline void *lanes_of(const Warp *w, const Operand *o) { return w->bases[o->base] + o->offset; }
static inline uint64_t lane_value(const Warp *w, const Operand *o, int lane) {
    const void *p = lanes_of(w, o);
    return o->bytes == 8 ? ((const uint64_t *)p)[lane] : ((const uint32_t *)p)[lane];
}
static inline void set_lane(const Warp *w, const Operand *o, int lane, uint64_t v) {
    void *p = lanes_of(w, o);
    if (o->bytes == 8) ((uint64_t *)p)[lane] = v;
    else ((uint32_t *)p)[lane] = (uint32_t)(o->width < 32 ? v & ((1u << o->width) - 1) : v);
}
#define FOR_LANES(lane, mask)                                                                                          \
    for (uint32_t m_##lane = (mask), lane; m_##lane && (lane = (uint32_t)__builtin_ctz(m_##lane), 1);                  \
         m_##lane &= m_##lane - 1)

/* ---- a block ---- */

typedef struct Barrier {
    uint32_t arrived, expected; /* threads; arrived 0: none is here */
    uint32_t red_count, red_threads;
    Clocks clocks;
    const Inst *first;
} Barrier;

typedef struct SharedAccess { /* who touched it last: thread << 21 | strong << 20 | clock; 0: no thread of this block */
    uint32_t write, read[2];
} SharedAccess;
typedef struct SharedWord { /* four bytes that were only touched together; else each has its own record */
    SharedAccess all;
    uint32_t split;
} SharedWord;

typedef struct Signal { /* what is known about an mbarrier beside its 64 bits */
    uint32_t offset;
    Clocks clocks;
} Signal;
typedef struct Deferred { /* arrivals at the mbarrier |offset| when the copies before number |before| are done */
    uint32_t offset, lanes, before;
    Warp *warp;
} Deferred;

typedef struct Order Order; /* of a launch: order.c */
typedef struct LogPart {    /* entries of a log of releases */
    uint32_t log, start, end;
} LogPart;
typedef struct Acquired { /* by lanes of warp |warp| at |clock| */
    LogPart part;
    int warp;
    uint32_t clock, lanes;
} Acquired;

typedef struct Watch { /* looks for the first instruction that touches a word of global memory */
    uint64_t word;
    uint32_t mask;
    int how; /* ACCESS_READ or _WRITE */
    const Inst *found;
} Watch;

typedef struct Launch Launch; /* grid.c */

struct Block { /* one for each host thread, used again and again */
    const ExecLaunch *launch;
    const Launch *all;
    const ExecModule *module;
    const Function *entry;
    ExecMemory *memory;
    ExecCounters counters;
    uint32_t serial, first_serial; /* of this block; of the launch's first to run */
    Order *order;                  /* NULL: nothing orders the blocks of this launch */
    Acquired *seen, *acquired;     /* releases that were read; and a fence came after */
    int seen_count, seen_room, acquired_count, acquired_room;
    uint64_t clock_base; /* what clocks had counted when they last began again */
    Watch *watch;        /* not NULL: this block is run again to find a place */
    uint32_t at[3], linear, threads, dimensions[3];
    int warp_count, ready;
    Warp warps[MAX_WARPS];
    uint8_t *shared, *shared_written; /* written: 0 no, 1 yes, 2 in flight */
    SharedWord *shared_words;
    SharedAccess *shared_bytes; /* of words that are split */
    uint32_t shared_size, dynamic_base, local_bytes;
    Barrier barriers[MAX_BARRIERS];
    uint32_t fence_clock[MAX_WARPS];
    Signal *signals;
    int signal_count, signal_room;
    Deferred *deferred;
    int deferred_count, deferred_room;
    uint64_t random, instructions;
    uint64_t progress; /* instructions when something last changed that another warp can see */
    bool many;         /* other host threads run blocks of this launch */
    ExecFault fault;
    char message[1024];
};

uint32_t block_random(Block *b); /* 32 bits */

/* ---- grid.c: faults ---- */

/* Sets the block's fault, once: "kernel .., ptx line .., block .., thread ..: <text>; made from: ..".  lane -1: no
 * thread is named. */
Step fault(Warp *w, const Inst *i, int lane, ExecFault kind, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* ---- memory_access.c ---- */

enum {
    ACCESS_READ = 1,
    ACCESS_WRITE = 2,
    ACCESS_STRONG = 4 /* atomic, volatile, relaxed.. */,
    ACCESS_CONSTANT = 8 /* .nc: no thread may write there in this launch */,
    ACCESS_COPY = 16 /* begins now, ends at a wait */,
    ACCESS_CTA = 32 /* strong for its own block only */
};
/* The bytes at an address after all checks; NULL: a fault was set.  A write is then done by the caller with
 * |value|'s bytes (NULL: races are errors whatever is written). */
uint8_t *access_bytes(Warp *w, const Inst *i, int lane, PtxSpace space, uint64_t address, uint32_t size, int how,
                      const void *value);
uint8_t *access_shared(Warp *w, const Inst *i, int lane, uint64_t offset, uint32_t size, int how, const void *value);
uint8_t *access_global(Warp *w, const Inst *i, int lane, uint64_t address, uint32_t size, int how, const void *value);
/* The space of a generic address, which becomes one of that space. */
PtxSpace access_resolve(const Warp *w, uint64_t *address);

void count_global(Block *b, const uint64_t address[LANES], uint32_t active, uint32_t size, bool store);
void count_shared(Block *b, const uint64_t offset[LANES], uint32_t active, uint32_t size);
void count_matrix_rows(Block *b, const uint64_t offset[8]); /* eight rows of 16 bytes at once */

/* ---- race.c ---- */

void clock_warp(Warp *w); /* the lanes of a warp met */
void clock_release(Warp *w, Clocks *to);
void clock_acquire(Warp *w, const Clocks *from);
void clock_fence(Warp *w);

/* Whether what this thread does to bytes of shared memory is ordered against what others did. */
bool race_check(Warp *w, const Inst *i, int lane, uint32_t offset, uint32_t size, int how, const uint8_t *value);
void race_forget(Block *b);
/* The bytes [offset, +size) of shared memory belong to a copy under way. */
bool race_begin_copy(Warp *w, const Inst *i, int lane, uint32_t offset, uint32_t size);
/* They are there: written by that thread, now. */
void race_end_copy(Warp *w, int lane, uint32_t offset, uint32_t size);

/* ---- race_global.c, order.c: between blocks ---- */

bool race_check_global(Warp *w, const Inst *i, int lane, uint64_t address, uint32_t size, int how,
                       const uint8_t *value);

Order *order_new(uint32_t first_serial, uint64_t blocks);
void order_free(Order *o, uint64_t blocks);
void order_lock_records(Order *o); /* a record and its stamp belong together */
void order_unlock_records(Order *o);
/* A fence of the device: what was done is released by strong writes from now on, and what was released to strong reads
 * before is acquired. */
void order_release(Warp *w, bool sc);
void order_acquire(Warp *w, bool sc);
void order_read(Warp *w, int lane, uint64_t address);               /* strong */
void order_write(Warp *w, int lane, uint64_t address, bool atomic); /* strong; |atomic|: it read first */
uint32_t order_stamp(const Warp *w, int lane);                      /* warp, clock and lane of what w does now */
uint32_t order_stamp_of_both(uint32_t a, uint32_t b);               /* 0: of two warps, or not of one moment */
void order_restart_clocks(Block *b, uint32_t clocks); /* |clocks| have been counted, and are from 1 again */
void order_changed(Block *b);                         /* something that other blocks may wait for */
uint64_t order_changes(const Block *b);
void order_poll(Warp *w, uint64_t what); /* a strong read; |what| is different for other addresses and values */
static inline uint64_t poll_mix(uint64_t what, uint64_t address, uint64_t value) {
    return ((what ^ address) * 0x9e3779b97f4a7c15ull + value) * 0xbf58476d1ce4e5b9ull;
}
bool order_waits(const Block *b); /* all its warps poll memory that no block changes */
/* Whether what another block did to a word comes before what w does now. */
bool order_known(Warp *w, int lane, uint32_t serial, uint32_t stamp, uint64_t word, bool strong);

/* ---- dependent.c ---- */

bool dependent_waited(const Block *b); /* all its threads did */
/* Whether a block of an earlier launch may run beside what this thread does now. */
bool dependent_may_run(const Warp *w, int lane, uint32_t serial);

/* ---- warp.c ---- */
Step strand_branch(Warp *w, uint32_t taken, int target, int join);
Join *strand_join(Warp *w, int pc, uint32_t lanes, Frame *callee);
void strand_leave(Warp *w, uint32_t lanes); /* the kernel */
Step strand_return(Warp *w, uint32_t lanes);
void strands_reset(Warp *w); /* all frames and joins are free */
void strands_free(Warp *w);
int strand_add(Warp *w, const Strand *s);
void strand_remove(Warp *w, int index);
Frame *frame_new(Warp *w, const Function *f);
void frame_free(Warp *w, Frame *f);

typedef enum Outcome { WARP_READY, WARP_WAITS, WARP_DONE, WARP_FAILED } Outcome;
Outcome warp_run(Warp *w, int quantum);
uint32_t warp_mask(const uint32_t predicate[LANES]);

/* ---- async.c, mbarrier.c ---- */
void async_complete_before(Warp *w, uint32_t lanes, uint32_t number);
Step mbarrier_arrive_later(Warp *w, const Inst *i, const uint64_t address[LANES], PtxSpace space, bool counted);

/* ---- grid.c, barrier.c ---- */
void block_at(const Block *b, uint32_t serial, uint32_t at[3]); /* where in the grid block |serial| is */
/* The instruction of block |serial| that does what |watch| looks for; NULL: not found. What is in memory is lost. */
const Inst *block_place(const Block *b, uint32_t serial, uint32_t at[3], Watch watch);
void block_stuck(Block *b); /* no warp can continue */

/* ---- decoding ---- */

typedef struct Decoder {
    Function *function;
    const PtxInstruction *ptx;
    char why[200];
} Decoder;
typedef bool DecodeFn(Decoder *d, Inst *i); /* false: |why| */

bool decode_function(Function *f, char *message, size_t size);
bool refuse(Decoder *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* |bytes| of lanes: 4 or 8; 0: as the register has. */
bool decode_source(Decoder *d, const PtxOperand *from, int bytes, Operand *to);
bool decode_result(Decoder *d, const PtxOperand *from, int bytes, Operand *to);
bool decode_constant(Decoder *d, uint64_t bits, int bytes, Operand *to);

typedef struct Address {
    Operand base; /* bytes 0: none */
    int64_t offset;
    PtxSpace space; /* of a variable; NONE: the base is a register or a number */
} Address;
bool decode_address(Decoder *d, const PtxOperand *from, Address *to);
/* The place of a variable in its space (NO_PLACE: dynamic shared memory of a function that is no entry). */
bool decode_variable(Decoder *d, const PtxVariable *v, uint64_t *place);
void address_lanes(const Warp *w, const Address *a, uint64_t to[LANES]);

int function_index(const ExecModule *m, const char *name); /* -1: none */
/* Whether all modifiers are of the NULL-terminated list or types; else |why| names the first that is not. */
bool only_modifiers(Decoder *d, const char *const *known);
/* The first of the list that the instruction has; NULL. */
const char *one_modifier(const Decoder *d, const char *const *known);
PtxSpace modifier_space(const Decoder *d);

DecodeFn decode_alu, decode_mov, decode_cvta, decode_isspacep, decode_ld, decode_st, decode_atom, decode_bra,
    decode_brx, decode_call, decode_ret, decode_exit, decode_trap, decode_bar, decode_fence, decode_shfl, decode_vote,
    decode_match, decode_activemask, decode_redux, decode_elect, decode_ldmatrix, decode_stmatrix, decode_movmatrix,
    decode_mma, decode_cp, decode_mbarrier, decode_griddepcontrol, decode_nothing, decode_pause, decode_later;

/* ---- cfg.c ---- */
/* joins[i]: index of the immediate post-dominator of instruction i; -1: none but the end. */
void cfg_post_dominators(const PtxFunction *f, int *joins);
/* Basic blocks: the instructions from first[b] to first[b + 1], after which come the blocks edges[edge_at[b]] to
 * edges[edge_at[b + 1]]; block |count| is the end of the text. */
typedef struct CfgBlocks {
    int count, *first, *edges, *edge_at;
} CfgBlocks;
CfgBlocks cfg_blocks(const PtxFunction *f);
void cfg_blocks_free(CfgBlocks *b);

/* ---- liveness.c ---- */
/* Of each register the first and the last instruction at which it needs a place of its own; of one that is not in use
 * 0 and -1.  Returns how many 32-bit registers the function needs: an estimate of what ptxas would use, from below in
 * that it knows no alignment or scheduling, from above in that it rematerialises nothing. */
int liveness(const PtxFunction *f, int *first, int *last);

#endif
