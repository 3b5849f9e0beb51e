/* frontend.h: model text to the elaborated module. */
#ifndef AMP_FRONTEND_FRONTEND_H
#define AMP_FRONTEND_FRONTEND_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct FrontendDefine { /* -D NAME=VALUE: replaces a const of the main file */
    const char *name, *value;
} FrontendDefine;

typedef struct FrontendBinding { /* a name, and what it meant in one elaboration of its line */
    Loc loc;
    Val v;             /* a tensor of `forward`; NO_VAL: it is none */
    const char *value; /* the tensor's name in the module */
    const char *text;  /* of others: a parameter's path, "the int 512" */
    bool is_state;     /* |text| is a parameter's or state's path */
} FrontendBinding;
typedef VEC(FrontendBinding) FrontendBindings;

typedef struct FrontendOptions {
    FrontendDefine *defines;
    int define_count;
    /* The file that `include "NAME"` in the file |beside| means, or NULL.  Files with the same
     * Source.name are the same file, which is read once. */
    const Source *(*find_include)(void *user, const char *name, const char *beside);
    void *user;
    int64_t max_ops;            /* 0: 250,000; see frontend/limits.c */
    bool no_includes;           /* |find_include| finds nothing: the message says why */
    bool may_lack_model;        /* a file of blocks alone is no error: there is no module either */
    FrontendBindings *bindings; /* of the user's files, in the order of elaboration; may be NULL */
} FrontendOptions;

/* Parses and elaborates.  The inputs of the module's function `forward` are the model's inputs, then the train inputs,
 * then the parameters in order of first use; every float is f32.  NULL when there are errors; they are in |d|.
 * The caller owns |main| and |options|, which must outlive the module: positions point into them. */
Module *frontend_compile(Arena *a, Diags *d, const Source *main, const FrontendOptions *options);

/* prelude.amp, the layer library. */
extern const char frontend_prelude_text[];

#ifdef __cplusplus
}
#endif

#endif
