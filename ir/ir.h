/* ir.h: the intermediate representation: one module, three levels, one text form.
 * 
 *   graph level   ops a person knows (linear, log_softmax, adamw); stages elaborate .. simplify
 *   core level    primitives (add, cast, reduce_sum, contract), in regions that remember their graph op; stage lower
 *   kernel level  the same primitives, grouped into kernels over buffers; from stage fuse on
 * 
 * Values, ops, kernels and buffers are 32-bit ids; 0 is "none".  Everything lives in the module's arena and is never
 * freed singly, so
 * a pointer from ir_value() or ir_op() stays valid.  Data that only one pass needs lives in that pass, in side tables
 * by id.
 * 
 * In passes the same letter always means the same type: m Module, f Func, o Op*, v Val, k Kernel*.
 *  */
#ifndef AMP_IR_IR_H
#define AMP_IR_IR_H

#include "base/diag.h"
#include "base/names.h"
#include "base/arena.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- types ------------------------------------------------------------------------------------------------------- */

typedef amp_dtype Dtype; /* AMP_DT_F32, ... */

enum { MAX_RANK = 8 };

/* mul * N^n * T^t / div, in lowest terms.  N is the batch of a call and T its length, known when it runs; n and t
 * are at most LARGEST_POWER.  Where T was given a number when the model was compiled (-D T=64), |number| is it, and is
 * |sized| times a factor of |mul|: sums over such a dimension have the order that they have where T is not known.
 */
typedef struct Dim {
    int64_t mul, div;
    uint8_t n, t, sized;
    int32_t number;
} Dim;
enum { LARGEST_POWER = 2 };

typedef struct Sizes { /* of a call; t is 1 in a model without T */
    int64_t n, t;
} Sizes;
enum { LARGEST_T = 1 << 20 }; /* that a model may declare */
enum { ASSUMED_T = 128 }; /* where a decision wants a number: how sums are divided must not depend on the largest T */

typedef struct Shape {
    int rank;
    Dim d[MAX_RANK];
} Shape;

typedef struct Val {
    uint32_t id;
} Val;
typedef struct OpId {
    uint32_t id;
} OpId;
typedef VEC(OpId) OpIds;
#define NO_VAL ((Val){0})

/* ---- where and why ----------------------------------------------------------------------------------------------- */

typedef struct Pos { /* a place in the model text; line 0: none */
    const char *file;
    int line, column;
} Pos;

/* Why a value has its dtype, or why a cast is there.  Printed as
 *   because {lower, torch-fp16:4}                      a policy line
 *   because {lower, torch-fp16:4, for fc1.linear}      a cast, with the op that wanted it
 *   because {follow, torch-fp16:9, input fc1.linear}   follow, with the neighbour that forced it
 *   because {f32, override mlp.amp:30, "outliers"}     the model's own precision block
 *   because {gradient, of fc1.linear}                  backward: the dtype of the forward op / the reverse cast
 */
typedef struct Reason {
    /* Class word of the policy, or "gradient", "weight_gradient", "loss_scale", "update", "weak", "written". */
    const char *rule;
    const char *origin; /* "torch-fp16", or NULL */
    int line;           /* of the policy file; 0: none */
    bool is_override;   /* then |where| is the override's place */
    Pos where;
    const char *relation;  /* "for", "input", "of", or NULL */
    const char *neighbour; /* path of the op that |relation| points at */
    const char *because;   /* the user's own words, or measured evidence; NULL */
} Reason;

/* ---- attributes -------------------------------------------------------------------------------------------------- */

typedef enum AttrType {
    ATTR_END,
    ATTR_INT,
    ATTR_FLOAT,
    ATTR_BOOL,
    ATTR_SYMBOL,
    ATTR_STRING,
    ATTR_DIMS,
    ATTR_NUMBERS
} AttrType;

typedef struct Dims {
    int count;
    int64_t at[MAX_RANK];
} Dims;

enum { MOST_NUMBERS = 64 };

typedef struct Numbers {
    int count;
    double at[MOST_NUMBERS];
} Numbers;

typedef union AttrValue {
    int64_t i;
    double f;
    bool b;
    const char *s; /* symbol or string */
    Dims dims;
    const Numbers *numbers; /* NULL: none */
} AttrValue;

typedef struct AttrSpec {
    const char *name;
    AttrType type;
    AttrValue initial;
} AttrSpec;

enum { MAX_ATTRS = 6, MANY = 1 << 20 };

/* The attribute `ignore` of metrics: every label counts.  No i32. */
#define NO_LABEL INT64_MIN

/* ---- the op table (ops.def) -------------------------------------------------------------------------------------- */

typedef enum Opcode {
    OP_NONE,
#define OP(name, ...) OP_##name,
#include "ir/ops.def"
    OP_COUNT
} Opcode;

enum { GRAPH = 1, CORE = 2 };
enum {
    ELEMENTWISE = 1 << 0,
    COMMUTES = 1 << 1,
    PRODUCT = 1 << 2,
    REDUCE = 1 << 3,
    EFFECT = 1 << 4,
    RANDOM = 1 << 5,
    WRITTEN = 1 << 6,
    NO_GRADIENT = 1 << 7,
    BACKWARD = 1 << 8,
    OPTIMIZER = 1 << 9,
    GIVEN = 1 << 10,
    INDIRECT = 1 << 11,
    LEADS = 1 << 12,
    CALL = 1 << 13,
    COLLECTIVE = 1 << 14
};

typedef struct OpInfo {
    const char *name;
    const char *graph, *core; /* types at that level, as ops.def says; NULL: no op of the level */
    int flags;
    AttrSpec attrs[MAX_ATTRS]; /* ends with ATTR_END, or full */
    const char *doc;
} OpInfo;

typedef struct OpArity {
    int in_min, in_max; /* MANY: any number */
    int out;
} OpArity;

extern const OpInfo ir_op_info[OP_COUNT];
Opcode ir_opcode(const char *name); /* OP_NONE when there is none */
int ir_op_levels(Opcode code);      /* GRAPH, CORE, or both */
OpArity ir_op_arity(Opcode code);
int ir_attr_count(Opcode code);

/* Schedules of the language and the ops that they become: "cosine" and cosine_rate. */
Opcode ir_schedule_op(const char *name);   /* OP_NONE: no schedule has this name */
const char *ir_schedule_name(Opcode code); /* NULL: no schedule becomes this op */

/* Names of the language and of policies that are no ops of the graph. */
extern const char *const ir_op_words[];
extern const int ir_op_word_count;

/* ---- values and ops ---------------------------------------------------------------------------------------------- */

typedef enum ValKind {
    VAL_RESULT, /* of an op */
    VAL_INPUT,  /* given with each call: model inputs and train inputs */
    VAL_STATE   /* lives from call to call: see StateRole */
} ValKind;

typedef struct Value {
    const char *name; /* unique in its function, printed as %name */
    Dtype dtype;
    Shape shape;
    ValKind kind;
    OpId def; /* VAL_RESULT */
    int out;  /* which result of def */
} Value;

typedef struct Op {
    Opcode code;
    int n_in, n_out;
    Val *in, *out;
    AttrValue *attr;   /* ir_attr_count(code) of them, in the order of ir_op_info[code].attrs */
    const char *path;  /* "fc1.linear": scope and op name; what overrides and reasons name */
    const char *layer; /* the prelude block that a person called ("cross_entropy"), or NULL: policies may name it too */
    Pos pos;
    Reason *reason; /* NULL before autocast */
    const char
        *checkpoint; /* before autodiff: the `checkpoint` block that it is in, "2.5": block 5 in block 2; NULL: none */
    Val pred;        /* assign: only where this bool scalar is true; NO_VAL: always */
    struct OpAfter *after; /* stages barriers to fuse: it runs after the kernels that make these; NULL: says nothing */
    uint32_t region;       /* core: 1-based index into Func.regions; 0: none */
    OpId id;               /* its own: Func.ops.data[id.id] */
} Op;

/* An order, no use: it keeps no op alive, and a value that is gone is left out. */
typedef struct OpAfter {
    int count;
    Val at[];
} OpAfter;

typedef struct Region { /* what came from one graph op */
    const char *path, *op, *layer;
} Region;

/* ---- kernels and buffers (kernel level) -------------------------------------------------------------------------- */

/* How a kernel walks.  A tensor is seen as rows x cols: [] and [C] are one row; [..., C] has the product of the leading
 * dims as rows; [N] is N rows of one column.
 *
 *   PRODUCT     a contract or (of one group) conv, conv_data, conv_weight; then elementwise ops on its tiles
 *   TILE        elementwise over 32 x 32 tiles
 *   ROW         reductions along a row, elementwise around them; tasks are blocks of rows
 *   COLUMN      reductions over the rows of each segment (Kernel.segment); tasks: segments x 32 columns
 *   SCALAR      one task; scalars of any type
 *   SCATTER     one scatter; tasks are blocks of 32 columns, each over all rows in order
 *   ATTENTION   one attend or attend_grad; tasks are blocks of queries, or of keys, of one head
 *   COLLECTIVE  one collective: nothing is computed, ranks exchange states, or add up a value
 */
typedef enum KernelKind {
#define KERNEL(id, ...) KERNEL_##id,
#include "base/kernels.def"
#undef KERNEL
    KERNEL_KINDS
} KernelKind;

/* How a rows x cols matrix is stored.  R, C: rows and columns rounded up to 32.  Elements past the edge are zero
 * or never read. */
typedef enum Layout {
    LAYOUT_ROWS,     /* row-major, dense: users' arrays, vectors, scalars */
    LAYOUT_PANELS,   /* [C/32][R][32] */
    LAYOUT_PAIRS,    /* [C/32][R/2][32][2]: neighbouring rows side by side, for 16-bit products along rows */
    LAYOUT_PANELS_T, /* [R/32][C][32]: PANELS of the transpose */
    LAYOUT_PAIRS_T   /* [R/32][C/2][32][2]: PAIRS of the transpose */
} Layout;

typedef enum BufferKind {
    BUFFER_TEMP,   /* planned: offset in the session's arena, live from first to last kernel */
    BUFFER_FLAG,   /* i32, set to 0 when a program starts, then ORed: results of reduce_or */
    BUFFER_INPUT,  /* the user's array of this call, LAYOUT_ROWS */
    BUFFER_OUTPUT, /* a result that the user reads after the call, LAYOUT_ROWS */
    BUFFER_STATE,  /* Module.states[state] */
    BUFFER_WATCH,  /* a gradient or other value that is written only where the session asks to keep it; else NULL */
    BUFFER_LOOK    /* what is rounded to f16, in f32: written only in a run that is looked at; else NULL.  On CUDA
                    * counts of it alone (amp_model_look_counts) */
} BufferKind;

/* Kernels write it where its pointer is not NULL, or what it points to is on. */
static inline bool buffer_is_optional(BufferKind kind) { return kind == BUFFER_WATCH || kind == BUFFER_LOOK; }

typedef struct Buffer {
    const char *name;
    BufferKind kind;
    Val value; /* the value of the function that it holds */
    Layout layout;
    Dtype storage;   /* element type in memory: f32 also for f16 and tf32 values that products read (widened once) */
    int64_t pitch;   /* ROWS: elements from row to row, those past the columns zero; 0: as many as columns */
    bool is_part;    /* plan: |pitch| is a row that it shares with others, in which it begins at |column| */
    int64_t column;  /* a part: elements */
    uint32_t state;  /* BUFFER_STATE: 1-based index into Module.states */
    int first, last; /* plan: kernels of the function that touch it, counted from 0 */
    uint32_t place;  /* plan: 1-based index of the TEMP whose memory it takes when no kernel needs that; 0: none */
} Buffer;

typedef struct Kernel {
    const char *name;  /* "k03" */
    const char *title; /* "fc1: linear + bias + relu" */
    KernelKind kind;
    int first, count;    /* ops: Func.body[first .. first + count) */
    Val pred;            /* run only where true; NO_VAL: always */
    Dim segment;         /* COLUMN: rows that are reduced together, where that is not all of them; else of mul 0 */
    VEC(uint32_t) reads; /* 1-based indexes into Func.buffers, filled by the pass buffers */
    VEC(uint32_t) writes;
    Pos pos;
} Kernel;

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* How the blocks of a part share its kernels. */
typedef enum PartForm {
    PART_BATCH, /* each makes some of one kernel: all have the same code */
    PART_CHAIN, /* each makes its tile of all kernels, one after another: products of the same code */
    PART_ROWS,  /* each makes its 64 rows of all kernels, one after another */
    PART_BLOCK  /* there is one block, which makes all kernels, one after another */
} PartForm;
extern const char *const ir_part_words[PART_BLOCK + 1];

typedef struct LaunchPart { /* some of a launch's blocks */
    PartForm form;
    int stage; /* from 0, in ascending order; a later one waits for all blocks of an earlier one, or of their columns */
    VEC(int) kernels; /* of the function, from 0 */
} LaunchPart;

typedef struct Launch { /* of several kernels, which are neighbours */
    bool by_columns;    /* a later stage has no blocks: the last block of its columns makes it */
    int first, count;   /* its kernels; those with nothing to do are in no part */
    VEC(LaunchPart) parts;
} Launch;

/* Whether blocks wait for others, or have forms of parts that only such launches have. */
static inline bool launch_has_stages(const Launch *l) {
    for (int i = 0; i < l->parts.len && !l->by_columns; i++)
        if (l->parts.data[i].stage || l->parts.data[i].form >= PART_ROWS) return true;
    return false;
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

typedef struct Result { /* a result of a function: what a user sees after the call */
    const char *name;   /* "logits", "loss", "metric.acc", "grad.fc1.weight" */
    Val value;
    ResultKind kind; /* kind, block and of: what amp_result_name reads in the name */
    int32_t block;
    const char *of;
    bool hwio;      /* lower: the value is [KH, KW, I, O]; the user reads [O, I, KH, KW] */
    int64_t pixels; /* fuse: as State.pixels */
} Result;

typedef struct Func {
    struct Module *module;
    /* FORWARD until autodiff, and METRICS where a metric is computed from averages; then TRAIN_STEP (MICRO_STEP and
     * APPLY_STEP where steps accumulate), EVAL, INFER, EVAL_FP32, INFER_FP32; layout adds REFRESH */
    ProgramKind kind;
    const char *name;
    bool joined;         /* plan: its kernels are one launch where the target has one of them (passes/launch/join.c) */
    VEC(Value *) values; /* by id; [0] unused */
    VEC(Op *) ops;       /* by id; [0] unused */
    VEC(Val) inputs;     /* VAL_INPUT and VAL_STATE, in order */
    OpIds body;          /* in order of execution */
    VEC(Result) results;
    Table result_names; /* build.c: to 1-based indexes into results */
    VEC(Region) regions;
    VEC(Kernel *) kernels;     /* empty before fuse; then every op of body is in exactly one, in order */
    VEC(Buffer *) buffers;     /* empty before the pass buffers */
    VEC(Launch) launches;      /* supersteps: of several kernels, in order; every other kernel is a launch of its own */
    struct NameTable *names;   /* build.c: value names to values */
    struct FuncSpares *spares; /* compact.c: arrays of the compaction before, to be used again */
} Func;

/* ---- module ------------------------------------------------------------------------------------------------------ */

typedef enum Stage {
#define STAGE(id, ...) STAGE_##id,
#include "ir/stages.def"
#undef STAGE
    STAGE_COUNT,
    STAGE_LAST = STAGE_COUNT - 1
} Stage;
extern const char *const ir_stage_names[STAGE_COUNT];

/* name(key = value, ...): initialisers, optimizers, loss scales. */
typedef struct CallArg {
    const char *name;
    AttrType type; /* INT, FLOAT, BOOL, SYMBOL */
    AttrValue value;
    struct Call *call; /* a schedule in place of the value; NULL: none */
} CallArg;
typedef struct Call {
    const char *name; /* NULL: none */
    VEC(CallArg) args;
    Pos pos;
} Call;

typedef enum StateRole {
    STATE_PARAM,   /* trained; f32 master */
    STATE_BUFFER,  /* `state` of the language: saved, not trained */
    STATE_MOMENT,  /* of an optimizer: |of| is the parameter, |slot| "m", "v", "momentum"; AMP_SLOT_EMA: its average */
    STATE_COUNTER, /* a scalar that a step counts: see CounterKind */
    STATE_SCALER,  /* a scalar of the loss scaler: see CounterKind */
    STATE_DERIVED, /* a copy of |of| in another dtype or layout: the optimizer or "refresh" writes it; not saved */
    /* of a training session: a sum over the micro-batches of a step, and of ranks: of gradients of |of|, or of numbers
     * that nothing owns */
    STATE_ACCUMULATOR,
    STATE_STAGED /* of a training session: what the step would make of buffer |of|; committed with the weights */
} StateRole;

typedef struct State {
    const char *name; /* "fc1.weight"; "fc1.weight/m"; "step"; "fc1.weight/f16.pairs_t" */
    StateRole role;
    CounterName counter; /* COUNTER, SCALER: what amp_counter_name reads in the name */
    const char *of, *slot;
    Dtype dtype; /* of the values */
    Shape shape; /* never depends on N */
    bool hwio;   /* lower: the weight of a convolution, or what goes with one: its values have ir_hwio_shape */
    /* fuse: not 0: the columns are flattened images of C channels with this number of pixels; column c * pixels + p of
     * the user is column p * C + c of the value */
    int64_t pixels;
    Call init;     /* params and buffers */
    Dtype storage; /* layout: element type in memory; before it: = dtype */
    Layout layout; /* layout: of the memory; before it: rows */
    int64_t pitch; /* layout: of a copy of a weight, as Buffer.pitch */
    Pos pos;
} State;

typedef struct Override { /* a line of the model's precision block */
    const char *pattern;  /* an op's name, or a glob on paths */
    bool is_path;
    const char *word;    /* class of the policy, or a dtype word */
    const char *because; /* or NULL */
    Pos pos;
} Override;

typedef struct CastNote { /* an operand that an op reads in another dtype */
    const char *value;
    Dtype from, to;
} CastNote;

typedef struct
    Decision { /* what `ampc explain` shows: one per op of the forward graph, made by autocast, kept to the end */
    const char *path, *op, *layer;
    Dtype out;           /* of its first result */
    VEC(Dtype) operands; /* as the op reads them, casts applied */
    VEC(CastNote) casts; /* of its operands, in order */
    Reason *reason;
    const char *policy_text; /* the policy's line, as written */
    Pos pos;
} Decision;

typedef struct Removed {      /* a rounding that simplify took away */
    const char *func, *value; /* "train_step", "d.fc1.weight" */
    const char *what;         /* "f16 rounding of a weight gradient: the product writes f32" */
} Removed;

/* group GLOB: lr_scale = 0.1, weight_decay = 0.0, frozen = true, optimizer = sgd(lr = 0.1), lazy = true.  Of several
 * that match, the last that gives a key decides it. */
typedef struct TrainGroup {
    const char *pattern;
    double lr_scale, weight_decay;
    bool has_lr_scale, has_weight_decay, has_frozen, frozen, has_lazy, lazy;
    Call optimizer; /* no name: the block's */
    Pos pos;
} TrainGroup;

typedef struct Train { /* a train block */
    const char *only;  /* glob on the names of the parameters that it trains; NULL: all */
    const char *loss;  /* the result that it differentiates: "loss"; of several blocks "loss.0", "loss.1", ... */
    Call optimizer;    /* an argument may be a schedule: CallArg.call */
    VEC(TrainGroup) groups;
    double clip_norm, clip_value; /* 0: none */
    double ema;                   /* decay of the averages of its parameters; 0: it has none */
    int64_t every;                /* it updates in each |every|-th step; 0 and 1: in each */
    Pos pos;
} Train;

/* What the train blocks say of a parameter: numbers of blocks, and of groups within the block; NO_BLOCK: none. */
typedef struct ParamTraining {
    int block; /* that is for it */
    /* the groups that decide: of those that match, the last that gives the key; |frozen|, |lazy|: if it says true */
    int lr_scale, weight_decay, frozen, optimizer, lazy;
} ParamTraining;

/* How the CPU adds up products of narrow types: as it adds all else, or as tensor cores of an architecture do, which
 * docs/design/sums.md defines. */
typedef enum Sums { SUMS_IEEE, SUMS_SM_80, SUMS_SM_90 } Sums;

/* How a step is divided over ranks: processes that train the same model on different samples. */
typedef enum Distribution {
    DISTRIBUTE_NONE,
    DISTRIBUTE_DATA, /* every rank has all states; gradients are summed */
    DISTRIBUTE_ZERO1 /* and each updates its share of the weights; it has moments for that share alone */
} Distribution;

/* In which order the micro-batches of a step are added, and the ranks' sums of them. */
typedef enum SumOrder {
    ORDER_LEFT, /* ((0 + 1) + 2) + 3 */
    ORDER_TREE  /* (0 + 1) + (2 + 3): passes/training/accumulate_tree.c */
} SumOrder;

typedef struct Module {
    Arena *arena;
    const char *name;
    Stage stage;
    const char *target;      /* from stage target on: a name of targets/; NULL: its first */
    bool plain[STAGE_COUNT]; /* passes that have run in their plain form: they were left out */
    Sums sums;               /* of the CPU; a module of another target has none of its own */

    /* ---- source */
    const char *source_name, *source_text; /* of the main file; text may be NULL when read from IR */
    const char *source_path; /* source_name with its folder, as the user gave it: for messages, not printed; or NULL */
    char source_sha256[65];
    VEC(struct NamedInt {
        const char *name;
        int64_t value;
    })
    consts;

    struct Length {
        int64_t most, unit; /* the largest T, and what every T is a multiple of; most 0: the model has no T */
        Pos pos;            /* for messages; not printed */
    } length;

    /* ---- precision */
    const char *precision_word; /* "fp16", ..., or the policy's name; NULL: the model has no precision block (fp32) */
    bool precision_is_file;
    Pos precision_pos; /* for messages; not printed */
    VEC(Override) overrides;
    Call loss_scale;       /* dynamic(...), static(v), none() */
    Call masters, moments; /* bf16(rounding = stochastic): how they are stored; no name: f32 */
    Dtype reduce;          /* what gradients travel in between ranks: f32, bf16 or f16; NONE: f32, by default */
    Pos reduce_pos;        /* of the model's text or the policy's */
    bool pad;              /* rows that tensor cores multiply begin at multiples of 16 bytes */
    const char *policy_name, *policy_origin; /* set by autocast; origin: built-in name or file name */
    char policy_sha256[65];
    Dtype low;          /* the policy's low type; AMP_DT_NONE before autocast */
    bool is_painted;    /* by an algorithm that decides forward and backward pass together: the pass paint does */
    int64_t batch_hint; /* the batch for which the policy's algorithm counted bytes; 0: it counts none */

    /* ---- training */
    bool has_train;
    VEC(Train) trains;
    int64_t accumulate;  /* micro-batches in a step; 1 unless set */
    int64_t least_batch; /* distribute: the fewest samples with which every variance over the batch exists; 1: any */
    SumOrder accumulate_order;
    Distribution distribution;
    const char *eval_precision; /* "fp32": also eval_fp32 and infer_fp32; NULL */
    VEC(const char *) metrics;  /* names of the results "metric.NAME" */

    /* ---- tables */
    VEC(State *) states;
    Table state_names; /* build.c: to states; the first of equal names */
    VEC(Func *) funcs;
    VEC(Decision) decisions;
    VEC(Removed) removed;
    /* From lower on: the module as simplify left it, the last stage with the ops that a person knows; or NULL. */
    const char *graph_text;
    /* From autocast on: what it can be compiled from again, the module as elaborate left it and its policy; the first
     * is NULL if it is not kept. */
    const char *model_text, *policy_text;
} Module;

/* ---- building and finding (build.c, lookup.c) -------------------------------------------------------------------- */

Module *ir_module_new(Arena *a, const char *name);
Func *ir_func_new(Module *m, const char *name);        /* appended to m->funcs */
Func *ir_func_find(const Module *m, const char *name); /* NULL when there is none */
Func *ir_program_new(Module *m, ProgramKind kind);
Func *ir_program(const Module *m, ProgramKind kind); /* NULL when there is none */
void ir_program_become(Func *f, ProgramKind kind);
void ir_func_remove(Module *m, Func *f);

Value *ir_value(const Func *f, Val v);
Val ir_find(const Func *f, const char *name); /* NO_VAL when no value has the name */
/* By value: its name in tables, logs and reports: a value of the text has its name, any other the path of its op.  No
 * two are equal.  In the module's arena. */
const char *const *ir_told_names(const Func *f);
void ir_rename(Func *f, Val v, const char *hint); /* numbered where it is taken, as ir_new_value does */
Op *ir_op(const Func *f, OpId o);
Op *ir_def(const Func *f, Val v); /* the op that makes v; NULL for inputs and states */
Dtype ir_dtype(const Func *f, Val v);
const Shape *ir_shape(const Func *f, Val v);
#define ir_op_at(f, i) ir_op((f), (f)->body.data[i])

/* |hint| becomes the name, numbered (".1", ".2") where it is taken; NULL: a number. */
Val ir_new_value(Func *f, const char *hint, Dtype t, Shape s, ValKind kind);
Val ir_add_input(Func *f, const char *name, Dtype t, Shape s);
/* The function's value for a state of the module, added to its inputs on first use. */
Val ir_use_state(Func *f, const State *s);
/* [O, I, KH, KW] -> [KH, KW, I, O] */
Shape ir_hwio_shape(const Shape *s);
/* Of a state's value. */
Shape ir_state_shape(const State *s);
/* What is in memory: the value's, with rows as long as they are there. */
Shape ir_buffer_shape(const Func *f, const Buffer *b);
State *ir_state_new(Module *m, const char *name, StateRole role, Dtype t, Shape s);
State *ir_state_find(const Module *m, const char *name);
/* A state of role COUNTER or SCALER; |block| NO_BLOCK: of no train block. */
State *ir_counter_new(Module *m, CounterKind kind, int32_t block);
State *ir_counter(Module *m, CounterKind kind, int32_t block); /* made where there is none */
/* The state of a VAL_STATE value (they share the name). */
State *ir_state_of(const Func *f, Val v);

/* Appends an op to the body: attributes at their initial values, results not yet made (use ir_result) or, with ir_emit,
 * made by the shape rule. */
Op *ir_op_new(Func *f, Opcode code, const Val *in, int n_in);
OpId ir_op_id(const Func *f, const Op *o);
Val ir_result(Func *f, Op *o, const char *hint, Dtype t, Shape s); /* adds one result */
/* op + its results by shape rule and the given dtype for each float result (the rule sets bool and integer ones);
 * returns the first result. The shape must be legal (the verifier and the front end check first with
 * ir_infer). */
Val ir_emit(Func *f, Opcode code, Dtype t, const char *hint, int n_in, ...);
void ir_add_result(Func *f, const char *name, Val v);
const Result *ir_find_result(const Func *f, const char *name);                  /* the first of equal names; NULL */
const Result *ir_result_of_kind(const Func *f, ResultKind kind, int32_t block); /* the first; NULL */
/* What a gradient or update is of; NULL where the name is no state's. */
State *ir_result_state(const Func *f, const Result *r);
/* The second half of ir_emit, for ops whose shape depends on attributes: ir_op_new, set the attributes, then this. */
Val ir_make_results(Func *f, Op *o, Dtype t, const char *hint);

/* Attributes by name; the name must be one of the op's. */
AttrValue *ir_attr(const Op *o, const char *name);
/* A dimension that an attribute names, negative ones counted from the end of |rank|. */
int ir_dim_attr(const Op *o, const char *name, int rank);
/* false: operand |i| gives its shape alone (the first of iota, extent, random; the second of broadcast; `like`s of a
 * graph's gradients). */
bool ir_reads_elements(const Op *o, int i);
/* Graph level: operand |i| may have any float dtype. */
bool ir_operand_varies(const Op *o, int i);
Reason *ir_reason(Module *m, const char *rule); /* a new one, other fields empty */
Region *ir_region(Func *f, uint32_t region);
CallArg *ir_call_arg(const Call *c, const char *name); /* NULL when absent */
/* Whether a step is micro_step and apply_step: its micro-batches are added up, or ranks exchange their sums. */
bool ir_step_is_divided(const Module *m);
/* reduce_step, whose kernels are collectives: devices have no code for it, its table is read by who exchanges. */
bool ir_is_exchange(const Func *f);
/* The group of a block that freezes a parameter: of those that match, the last that says `frozen`; NO_BLOCK: none, or
 * that one says false. */
int ir_freezing_group(const Train *block, const char *param);
/* The group that has the rows of a step alone updated of a parameter that is trained; NULL: all of it is. */
const TrainGroup *ir_lazy_group(const Module *m, const char *param);
/* By name, whether the module has such a parameter or not. */
ParamTraining ir_param_training(const Module *m, const char *param);
const Call *ir_param_optimizer(const Module *m, const ParamTraining *t); /* of a parameter that a block is for */
/* Of each train block its optimizer and then the optimizers of its groups; NULL past the last. */
const Call *ir_optimizer_at(const Module *m, int index);
/* The group's number in the model: groups are counted over all train blocks, in the order of the text. */
int ir_group_number(const Module *m, int block, int group);
void ir_call_set(Arena *a, Call *c, const char *name, AttrType type, AttrValue v);

/* Drops ops whose results are not needed and states that no function reads or writes (params and buffers stay).
 * Renumbers values and ops in order of appearance, so that the module in memory equals the one that its text parses to.
 * The pipeline runs it after every pass. */
void ir_compact(Module *m);
int *ir_use_counts(const Func *f, Arena *a); /* by value id; results and predicates count */
bool *ir_results(const Func *f, Arena *a);   /* by value id: whether it is a result of the function */
/* The ops of the body, which is empty then, and to which ir_op_new appends. */
OpIds ir_take_body(Func *f);

/* ---- shapes (shape.c, infer*.c) ---------------------------------------------------------------------------------- */

int64_t greatest_common_divisor(int64_t a, int64_t b); /* of numbers from 0 on */
Dim dim_const(int64_t v);
Dim dim_n(int64_t mul, int64_t div);
Dim dim_t(int64_t mul, int64_t div);
bool dim_varies(Dim d);                /* it depends on N or T */
bool dim_is_sized(Dim d);              /* or would, if T had no number: what decides the order of a sum asks this, */
int64_t dim_assumed(Dim d, int64_t n); /* or for this size: at batch |n| and ASSUMED_T, whatever number T was given */
Dim dim_sized(int64_t number);         /* T, which has this number */
int64_t dim_given(Dim d);              /* the factor that T's number is in mul; 1: it is in none */
Dim dim_divided(Dim d, int64_t by);    /* without a remainder */
Dim dim_quotient(Dim d, Dim by);       /* the same; |by| has no power of N or T that |d| has not */
bool dim_equal(Dim a, Dim b);          /* sized or not */
bool dim_is_one(Dim d);
bool dim_mul(Dim a, Dim b, Dim *out);   /* as one dimension: N once; false if there is none, and on overflow */
bool dim_times(Dim a, Dim b, Dim *out); /* how many there are in all: N and T twice each at most */
Shape shape_scalar(void);
Shape shape_of(int rank, const Dim *d);
bool shape_equal(const Shape *a, const Shape *b);
bool shape_same(const Shape *a, const Shape *b);                  /* equal, and for any T: T=1 is no 1 */
bool shape_broadcast(const Shape *a, const Shape *b, Shape *out); /* NumPy's rule */
bool shape_count(const Shape *s, Dim *out);                       /* product of the dims; false as dim_mul */
int shape_batch_dims(const Shape *s);                             /* how many depend on N */
bool shape_varies(const Shape *s);                                /* a dim depends on N or T */
typedef struct Elements { /* mul / div * N^batches * T^lengths, in lowest terms */
    int64_t mul, div;
    int batches, lengths;
} Elements;
bool shape_elements(const Shape *s, Elements *out); /* false on overflow */
bool shape_same_count(const Shape *a, const Shape *b);
/* rows x cols as kernels see it (KernelKind). */
bool shape_matrix(const Shape *s, Dim *rows, Dim *cols);
bool shape_is_matrix(const Shape *s, Dim rows, Dim cols); /* whether it is one of these */
bool shape_same_matrix(const Shape *a, const Shape *b);
int64_t dim_eval(Dim d, Sizes at);
void dim_print(Text *t, Dim d);                    /* 3 * N * T */
void shape_print(Text *t, const Shape *s);         /* [N, 784] */
void type_print(Text *t, Dtype d, const Shape *s); /* f32[N, 784]; f32 for scalars */
const char *shape_text(Arena *a, const Shape *s);  /* the same as text */
const char *type_text(Arena *a, Dtype d, const Shape *s);

/* Shapes and dtypes of the results of an op from its inputs and attributes. |t| is the dtype of float results.  On
 * failure returns a message (in the arena) that says which operands disagree and how; NULL is success. */
typedef struct InferredTypes {
    int count;
    Dtype dtype[4];
    Shape shape[4];
    const char *wrong; /* on failure: the message without the operands */
} InferredTypes;
const char *ir_infer(const Func *f, const Op *o, Dtype t, InferredTypes *out);

/* ---- text form (print.c, read.c; docs/ir.md) --------------------------------------------------------------------- */

void ir_print(Text *t, const Module *m);
/* The same without what it is compiled from again; in the module's arena. */
const char *ir_text(const Module *m);
void ir_print_func(Text *t, const Func *f);
void ir_print_reason(Text *t, const Reason *r); /* {lower, torch-fp16:4, for fc1.linear} */
void ir_print_call(Text *t, const Call *c);
/* NULL when the text has errors, which are in |d|. */
Module *ir_read(Arena *a, Diags *d, const Source *text);

/* What the text of a module keeps to be compiled from again.  Other versions read it, so none of the rest is looked at;
 * a change that these could not read raises the version, and read.c reads each. */
enum { IR_ELABORATED_VERSION = 1 };
typedef struct KeptSource {
    const char *model_text, *policy_text; /* NULL: it keeps none */
    const char *policy;                   /* a built-in name, or the file that it was; NULL: not known */
} KeptSource;
/* False: it is damaged, or of a later version; reported. */
bool ir_read_kept(Arena *a, Diags *d, const Source *text, KeptSource *out);

/* ---- verifier (verify.c) ----------------------------------------------------------------------------------------- */

/* Checks that the level has the ops, with these operand types; shapes, order of definition and use, names, predicates,
 * kernels. NULL is success; else what is wrong, with function, op and path. */
const char *ir_verify(const Module *m);

#ifdef __cplusplus
}
#endif

#endif
