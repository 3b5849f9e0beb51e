/* elaborate.h: what the parts of elaboration share.  Each section names the file that holds it.
 *
 * Elaboration runs the program once, at compile time: a block call runs the block's body, `repeat` runs its body for
 * each index, tensors become values of the function `forward`, and everything else (sizes, flags, symbols) is computed
 * at once.
 */
#ifndef AMP_FRONTEND_ELABORATE_H
#define AMP_FRONTEND_ELABORATE_H

#include "base/arena.h"
#include "frontend/frontend.h"
#include "frontend/tree.h"

/* ---- items: what a name or an expression means ------------------------------------------------------------ */

typedef enum ItemKind {
    ITEM_ERROR, /* already reported; readers report nothing more */
    ITEM_NONE,
    ITEM_TENSOR,
    ITEM_PARAM,   /* a parameter, until something reads it */
    ITEM_AVERAGE, /* `loss` or a metric, read by a metric: |s| is the result that is averaged */
    ITEM_INT,
    ITEM_FLOAT,
    ITEM_BOOL,
    ITEM_SYMBOL,
    ITEM_STRING,
    ITEM_TUPLE, /* (3, 5) */
    ITEM_LIST   /* [N, T] */
} ItemKind;

typedef struct Item {
    ItemKind kind;
    union {
        Val tensor;
        const State *param;
        Dim i; /* sizes may depend on N and T */
        double f;
        bool b;
        const char *s;
        struct {
            struct Item *at;
            int count;
        } items;
    };
} Item;

/* ---- names and files -------------------------------------------------------------------------------------- */

typedef struct Unit { /* one source file */
    File *file;
    bool is_prelude;
    Table consts;        /* to Binding */
    VEC(uint32_t) lines; /* where each begins */
} Unit;

typedef struct Block {
    const Decl *decl;
    const Unit *unit;
    enum { OWNS_UNKNOWN, OWNS_BEING_FOUND, OWNS_NOTHING, OWNS_PARAMS } owns;
    bool active;       /* being elaborated: a call is recursion */
    int64_t least_ops; /* limits.c; 0: not counted yet */
} Block;

typedef struct Binding {
    Name *name; /* its last binding */
    Item item;
    int level; /* of the `repeat` it is local to; 0: none */
    bool live; /* false: its iteration is over */
} Binding;

typedef struct Frame { /* one call of a block, or the model, or train */
    struct Frame *caller;
    const Unit *unit;
    const Decl *decl;
    Loc call;              /* the call; nowhere for model and train */
    const char *scope;     /* "h.0.attn"; "" at the top */
    const char *layer;     /* the prelude block that the user called, or NULL */
    Table names;           /* to Binding */
    int level;             /* of `repeat` around what is elaborated now */
    VEC(Binding *) locals; /* bound in the iterations that run now */
    Item returned;
    bool has_returned;
    bool refused;              /* a `require` of the block does not hold: the rest is not elaborated */
    const struct Frame *model; /* of train: values of the model's body are seen, too; else NULL */
} Frame;

typedef struct Application {  /* a call of a block that owns parameters: what `sharing` names */
    struct Application *next; /* another of the same scope */
    const Block *block;
    Loc call;
    const Item *statics;          /* the values of its static arguments */
    int first_state, after_state; /* of the module's: those that it made */
} Application;

typedef struct Declared { /* a parameter or state */
    Loc loc;
    const Frame *frame; /* in which it is */
    const Stmt *stmt;
    int index; /* in the module */
} Declared;

typedef struct Updated { /* the last `update` of a state */
    Loc loc;
    int result;  /* of update_results */
    int sharing; /* the number of the call that it is in; 0: none */
} Updated;

typedef struct Sharing { /* a call by `sharing`, while its body runs */
    const Application *of;
    Table paths; /* scopes in use: they are numbered as in the first call */
    int number;  /* of all such calls, from 1 */
} Sharing;

typedef struct Origin { /* of a value: its name in messages, and where it was written */
    const char *name;
    Loc loc;
} Origin;

typedef VEC(Origin) OriginVec;

typedef struct Elab {
    Arena *a;
    Diags *d;
    const FrontendOptions *options;
    Module *m;
    Func *f;
    VEC(Unit *) units;      /* main, includes, prelude */
    Table blocks, prelude;  /* to Block */
    Table paths;            /* scopes and op paths in use */
    Table applications;     /* by scope: to Application */
    Sharing *sharing;       /* the innermost, or NULL */
    int sharing_calls;      /* so far */
    bool updating;          /* the value of an `update` is computed */
    const char *checkpoint; /* the innermost `checkpoint` block that is open, as Op.checkpoint; or NULL */
    int checkpoints;        /* so far */
    Table value_names;      /* of `forward` in use */
    Table param_names;      /* published paths of params and states, to Declared */
    Table updates;          /* paths of states, to Updated */
    VEC(Result) update_results;
    OriginVec origins; /* by value id */
    VEC(Name *) bound; /* for "never read" */
    VEC(Loc) reported;
    Frame *frame;
    VEC(Frame *) trains;        /* one per train block */
    Table measures;             /* results of losses and metrics that have a name */
    const Stmt *accumulate;     /* where it is set */
    struct FuncState *averages; /* the function `metrics`, or NULL */
    const Frame *averaging;     /* the train block, while a metric is computed from averages */
    int depth;                  /* of recursion over tree and calls */
    int64_t work, max_ops;      /* ops and iterations so far */
    bool stopped;               /* a limit was exceeded and reported */
    int64_t least_length;       /* the least T of a model that declares it, with -D T=.. too; else 0 */
} Elab;

/* ---- report.c: errors at locations that a user can act on ------------------------------------------------- */

/* Inside the prelude the location is the call that the user wrote.  Of several errors at one location the first is
 * kept: a block that is called a hundred times is wrong once.  Never NULL. */
Diag *elab_error(Elab *e, Loc loc, const char *fmt, ...) AMP_PRINTF(3, 4);
/* Without the notes on where the block was called, for callers that add other notes first. */
Diag *elab_error_text(Elab *e, Loc loc, const char *text);
void elab_note_calls(Elab *e, Diag *diag);
Item elab_error_item(Elab *e, Loc loc, const char *fmt, ...) AMP_PRINTF(3, 4); /* the same; returns ITEM_ERROR */
void elab_help_nearest(Elab *e, Diag *diag, const char *word, const char *const *candidates, int count);
/* The same; if none is near, lists all of them, if they are few. */
void elab_help_choice(Elab *e, Diag *diag, const char *word, const char *const *candidates, int count);
void elab_help_choice_of_key(Elab *e, Diag *diag, const char *word, const Table *candidates);
/* Numbers of a train block and of initialisers are f32 in a step: a double above 3.4e38 is infinite there. */
bool elab_is_finite_f32(double v);
/* If |v| is finite, but not as an f32, the message says so. */
void elab_help_infinite_f32(Elab *e, Diag *diag, double v);
/* The same with the keys of a table. */
void elab_help_nearest_key(Elab *e, Diag *diag, const char *word, const Table *candidates);
Loc elab_user_loc(const Elab *e, Loc loc);
Pos elab_pos(const Elab *e, Loc loc);
/* A file's name as the module records it: relative to the main file's folder, so that the output does not depend on
 * where the files are. */
const char *elab_recorded_name(const Elab *e, const Source *source);
void elab_set_origin(Elab *e, Val v, const char *name, Loc loc);
/* "x is f32[N, 784]", at the location where x was bound, or else where it is used. */
void elab_note_operand(Elab *e, Diag *diag, Val v, Loc used);

/* ---- item.c: what items are ------------------------------------------------------------------------------- */

#define ERROR_ITEM ((Item){.kind = ITEM_ERROR})
Item item_int(int64_t v);
Item item_tensor(Val v);
bool item_is_static(const Item *item);                /* neither a tensor nor an error */
const char *item_describe(Elab *e, const Item *item); /* "the float 0.5", "f32[N, 784]" */

typedef enum StaticType {
    STATIC_INT,
    STATIC_FLOAT,
    STATIC_BOOL,
    STATIC_SYMBOL,
    STATIC_STRING,
    STATIC_PAIR,
    STATIC_DIMS,
    STATIC_SHAPE,
    STATIC_TYPE_COUNT
} StaticType;
extern const char *const static_type_names[STATIC_TYPE_COUNT];
extern const char *const static_type_examples[STATIC_TYPE_COUNT];
/* Converts |item| to the type, an int also to a float or a pair; if it cannot, reports that and makes it ITEM_ERROR. */
bool item_convert(Elab *e, Loc loc, const char *what, StaticType type, Item *item);

bool elab_static_type(Elab *e, const TypeExpr *type, StaticType *out);
bool elab_shape_is_small(const Shape *shape);        /* so few elements that a size in bytes cannot overflow */
bool elab_shape_is_matrix(const Shape *shape);       /* but for the last, dimensions have N once and T twice at most */
const char *elab_too_many_sizes(const Shape *shape); /* what is wrong with one that is none */
bool elab_dim_of_item(Elab *e, Loc loc, const Item *item, Dim *out);
bool elab_check_shape(Elab *e, Loc loc, const Shape *shape);               /* reports one that is too large */
bool elab_shape_of_list(Elab *e, Loc loc, const Item *list, Shape *shape); /* |list|: of static type shape */

/* ---- size.c: the size T ------------------------------------------------------------------------------------ */

void elab_size(Elab *e, Unit *unit, const Decl *d);
void elab_help_one_length(Elab *e, Diag *diag); /* where the model has T */
Item elab_error_varies(Elab *e, Loc loc, Dim d, const char *what);
/* Whether the quotient that |x| is is whole for each T; else an error. */
bool elab_quotient_is_whole(Elab *e, const Expr *x, Dim quotient);

/* ---- sharing.c: a block applied again, with the parameters of an earlier call ------------------------------ */

/* Records a call that made the states from |first_state| on. */
void elab_record_application(Elab *e, const Block *b, const Frame *frame, const Item *statics, int first_state);
/* The call of |b| that `sharing PATH` names, where |scope| is the whole path; NULL after an error at |loc|. */
const Application *elab_find_application(Elab *e, const Block *b, Loc loc, const char *path, const char *scope);
/* `sharing` after what is no block with parameters: true, and an error. */
bool elab_refuse_sharing(Elab *e, const Expr *call);
/* The state of the first call that the declaration |s| at |path| means; NULL after an error. */
State *elab_shared_state(Elab *e, const Stmt *s, const char *path, Dtype dtype, const Shape *shape);
int elab_sharing_number(const Elab *e); /* 0: no call by `sharing` */
/* In the value of an `update`: what an earlier call of the block that owns the state gave it; else NO_VAL. */
Val elab_updated_before(const Elab *e, const State *state);

/* ---- scope.c: names --------------------------------------------------------------------------------------- */

void elab_bind(Elab *e, Name *name, Item item);
void elab_tell_binding(Elab *e, const Name *name, const Item *item); /* to FrontendOptions.bindings */
Binding *elab_find(const Elab *e, const char *text);                 /* in the frame, or a const of its file; or NULL */
Item elab_read(Elab *e, const Name *name);                           /* reports unknown ones */
void elab_error_twice(Elab *e, const Name *name);                    /* an argument or const that is declared twice */
void elab_begin_iteration(Elab *e);
void elab_end_iteration(Elab *e);
void elab_mark_read(Elab *e, const StmtVec *untaken); /* names in code that does not run count as read */
void elab_check_unread(Elab *e);
bool block_takes(const Block *b, int tensors);
/* The block that a call with that many tensors runs, or NULL. */
Block *elab_find_block(const Elab *e, const char *name, int tensors);

/* ---- limits.c: of depth and of the number of ops ---------------------------------------------------------- */

/* One level deeper; false after an error if that is too deep, or if elaboration has stopped. */
bool elab_enter(Elab *e, Loc loc);
void elab_leave(Elab *e);
/* Counts |amount| ops or iterations; false, and one error, if the total exceeds max_ops. */
bool elab_charge(Elab *e, Loc loc, int64_t amount);
/* The same for |count| of |cost| each; the error says how many are affordable, as |what|. */
bool elab_charge_each(Elab *e, Loc loc, const char *what, int64_t count, int64_t cost);
bool elab_charge_param(Elab *e, Loc loc); /* what a parameter costs besides the ops that read it */
/* Charges the call; false, and an error, if the lower bound of its ops exceeds what is left. */
bool elab_afford_call(Elab *e, Block *b, const Expr *call);
bool elab_afford_iterations(Elab *e, const Stmt *s, int64_t iterations, int64_t cost);

/* ---- emit.c: making ops ----------------------------------------------------------------------------------- */

const char *elab_join_path(Elab *e, const char *scope, const char *name);
const char *elab_scope_path(Elab *e, const char *scope, const char *name); /* with a number if it is in use */
const char *elab_op_path(Elab *e, const char *scope, const char *name);    /* the same, for the path of an op */
/* For a value of the frame: "h", "h.1".  The builder could do it too, but would count from 1 each time. */
const char *elab_unique_value_name(Elab *e, const char *name);

/* Whether a number is one of a type: any of floats, whole ones in the range of integers. */
bool elab_type_holds(Dtype t, double number);

/* The values of |items|, numbers as constants, and integers converted as |takes| requires (see GraphOp); false after an
 * error. */
bool elab_take_operands(Elab *e, Opcode code, const char *takes, const Item *items, const Loc *locs, int count,
                        Val *in);
/* The first |results| of the op's results. */
void elab_emit_results(Elab *e, Loc loc, Op *o, const Loc *operands, Item *out, int results);
Item elab_emit(Elab *e, Loc loc, Op *o, const Loc *operands);

/* ---- numbers.c: tensors of given numbers ------------------------------------------------------------------------ */

/* A list of numbers, at least one a float. */
bool elab_is_numbers(const Item *item);
void elab_error_many_numbers(Elab *e, Loc loc, int count);
/* NULL after an error. */
const Numbers *elab_numbers(Elab *e, Loc loc, const Item *items, const Loc *locs, int count);
Val elab_list_tensor(Elab *e, Loc loc, const Item *list);
/* Gives the op of the call tensor(..) its type, of the word |type| and the |list| at |loc|, or ITEM_NONE of both. */
bool elab_type_numbers(Elab *e, const Expr *call, Op *o, const Item *type, const Item *list, Loc loc);

/* ---- whole.c: integers of floats --------------------------------------------------------------------------- */

/* |v| as i32, if its numbers are whole. */
Item elab_to_i32(Elab *e, Loc loc, Val v, const Loc *operand);

/* ---- batch_moves.c: concat and slice along a dimension that depends on N or T ---------------------------------- */

typedef struct BatchMove {
    const Op *o; /* as called; it is not emitted */
    Loc loc;
    const Loc *operands;
    int dim;
} BatchMove;

Item elab_concat_batch(Elab *e, const BatchMove *m);
/* |from| and |to|: 0, or sizes that vary. */
Item elab_slice_batch(Elab *e, const BatchMove *m, Dim from, Dim to);
Item elab_slice_to_size(Elab *e, const BatchMove *m, Dim to); /* of a first dimension that is a number */
/* Of a dimension that depends on T, at places that each T has. */
Item elab_slice_places(Elab *e, const BatchMove *m, int64_t from, int64_t to);
Item elab_tensor_operation(Elab *e, const Expr *x, const Item *left, const Item *right); /* right NULL: unary */
/* The tensor; a number becomes a const op; NO_VAL and an error if it is neither. */
Val elab_as_tensor(Elab *e, Loc loc, const Item *item);
Val elab_add_input(Elab *e, const Name *name, Dtype dtype, Shape shape);

/* ---- static_eval.c: arithmetic on what is known at compile time ------------------------------------------- */

Item elab_static_unary(Elab *e, const Expr *x, Item operand);
Item elab_static_binary(Elab *e, const Expr *x, Item left, Item right);
/* min, max, sqrt of numbers; dim, rank, given of tensors. */
bool elab_is_static_builtin(const char *name, const Item *args, int count);
Item elab_static_builtin(Elab *e, const Expr *call, const Item *args, int count);

/* ---- expr.c: expressions, and types and paths written with them ------------------------------------------- */

Item elab_eval(Elab *e, const Expr *x);
/* All results of a call; returns their count; |out| has room for MAX_RESULTS. */
enum { MAX_RESULTS = 16, MAX_ARGS = 64 };
int elab_eval_results(Elab *e, const Expr *x, Item *out);
Item elab_eval_static(Elab *e, const Expr *x, const char *what, StaticType type);
bool elab_type(Elab *e, const TypeExpr *type, Dtype *dtype, Shape *shape);
bool elab_input_type(Elab *e, const TypeExpr *type, Dtype *dtype, Shape *shape);
const char *elab_path(Elab *e, const Path *path); /* NULL after an error */

/* ---- calls.c: a call is a block of the user, a layer of the prelude, or an op ----------------------------- */

int elab_call(Elab *e, const Expr *x, Item *out);
/* The value of a static argument by name, marked as known; NULL when it is not given. */
typedef struct StaticArgs {
    const Expr *call;
    bool known[MAX_ARGS];
    bool rejected; /* some are unknown: one may be a misspelt required one */
} StaticArgs;
const Expr *elab_take_static(StaticArgs *args, const char *name);
void elab_error_missing(Elab *e, const StaticArgs *args, const char *arg, StaticType type);
/* Reports static arguments that were not taken; |names| are the valid ones. */
void elab_reject_statics(Elab *e, StaticArgs *args, const Table *names);

/* ---- graph_ops.c: calls that become ops ------------------------------------------------------------------- */

/* An argument after ';' of a call, as an editor shows it. */
typedef struct CallSetting {
    const char *name, *type; /* "int" */
    bool required;
} CallSetting;

typedef struct GraphOp GraphOp;
const GraphOp *graph_op_find(const char *name);
void graph_op_tensors(const GraphOp *op, int *least, int *most);
bool graph_op_takes(const GraphOp *op, int tensors);
const char *graph_op_setting(const GraphOp *op); /* the name of its first argument after ';'; NULL: it has none */
int elab_graph_op(Elab *e, const GraphOp *op, const Expr *call, const Item *tensors, int count, Item *out);
/* einsum.c: |o|'s operands by the equation at |at|. */
Item elab_einsum(Elab *e, const Expr *call, const Op *o, const Loc *locs, Loc at, const char *equation);
const GraphOp *graph_op_at(int index); /* NULL past the last */
const char *graph_op_name(const GraphOp *op);
const char *graph_op_about(const GraphOp *op);                          /* its formula; NULL if it is not one op */
bool graph_op_argument(const GraphOp *op, int index, CallSetting *out); /* false past the last */

/* ---- statements.c: bodies of blocks and models ------------------------------------------------------------ */

void elab_body(Elab *e, const StmtVec *body);
void elab_binding(Elab *e, const Stmt *s);    /* a, b = value */
void elab_param_init(Elab *e, const Stmt *s); /* after all parameters are declared */
void elab_add_updates(Elab *e);               /* after all other results */
/* "... is not allowed in train": |where| is "a block", "train", ... */
void elab_error_misplaced(Elab *e, const Stmt *s, const char *where);

/* ---- signatures.c: initialisers, optimizers, loss scales, types of states, schedules ---------------------- */

typedef enum SignatureKind {
    SIGNATURE_INITIALISER,
    SIGNATURE_OPTIMIZER,
    SIGNATURE_LOSS_SCALE,
    SIGNATURE_STATE_TYPE,
    SIGNATURE_SCHEDULE,
    SIGNATURE_KIND_COUNT
} SignatureKind;
/* Every argument is given its value or its default.  False after an error. */
bool elab_signature(Elab *e, const Expr *x, SignatureKind kind, Call *out);
/* Whether the initialiser fits the type and shape of the parameter or state; reports an error if not. */
bool elab_check_initialiser(Elab *e, Loc loc, const Call *init, const State *state);
bool elab_refuse_schedule(Elab *e, const Expr *x, const char *what); /* true, and an error, if |x| is one */
const char *elab_signature_name(int index, const char **what);       /* |what|: "an optimizer"; NULL past the last */
bool elab_signature_argument(int index, int argument, CallSetting *out); /* false past the last */

/* ---- declarations.c: const, model, precision; train.c ----------------------------------------------------- */

bool elab_parse_int(const char *s, int64_t *out);
void elab_apply_defines(Elab *e, Unit *main); /* -D: before elab_consts */
void elab_consts(Elab *e, Unit *unit);
/* Inputs of model and train come before the parameters, so both begin before the model's body is elaborated. */
Frame *elab_begin_model(Elab *e, const Decl *model);
void elab_begin_train(Elab *e, const Decl *train);
void elab_model(Elab *e, Frame *model);
/* They see the model's inputs, results and params. */
void elab_trains(Elab *e, const Frame *model);
void elab_precision(Elab *e, const Decl *precision);

#endif
