/* session.h: one compilation: its arena, its options as this library version knows them, its source files and its
 * diagnostics. */
#ifndef AMP_COMPILER_SESSION_H
#define AMP_COMPILER_SESSION_H

#include "amp/compile.h"
#include "base/diag.h"
#include "codegen/codegen.h"
#include "ir/ir.h"
#include "targets/target.h"

typedef struct LoadedFile {
    Source source;
    char *text; /* owned; NULL: could not be read */
    struct LoadedFile *next;
} LoadedFile;

typedef struct Session {
    Arena arena;
    LoadedFile *files;
    amp_compile_options options; /* the caller's, cut to struct_size */
    Diags diags;
    const Source *source; /* the main file */
    bool is_ir;
    CodegenImages images; /* machine code of the CUDA functions */
} Session;

/* Copies the options.  The caller initialises the arena and sets its out_of_memory before anything else is called. */
amp_status session_init(Session *s, const amp_compile_options *options, amp_error *err);

/* Frees the files and the arena. */
void session_close(Session *s);

/* Reads a file of at most |limit| bytes; it lives until session_close.  |name| is relative to the folder of |beside|
 * where that is not NULL. */
amp_status session_read(Session *s, const char *name, const char *beside, size_t limit, const Source **out,
                        amp_error *err);
/* Finds the main source: the text that was given, or the file. */
amp_status session_open(Session *s, amp_error *err);
/* Parses and elaborates (or reads IR) and runs the passes up to |last|, from fuse on for |target|. */
amp_status session_run(Session *s, Stage last, const Target *target, Module **out, amp_error *err);
/* The same up to lower; IR that is behind that already is left as it is. */
amp_status session_lower(Session *s, Module **out, amp_error *err);
/* Runs what is left.  |observed|: the caller sees dumps and times. */
amp_status session_finish(Session *s, Module *m, const Target *target, bool observed, amp_error *err);
/* A second module of the same text. */
amp_status session_copy(Session *s, const Module *m, Module **out, amp_error *err);
/* What code generation says, with the name of the model.  What is wrong with IR that was read is a fault of the text. */
amp_status session_name_error(const Session *s, amp_status status, amp_error *err);
/* The stage of a pass by name; false when there is none. */
bool session_stage(const char *pass, Stage *out);
/* Reports the diagnostics through the callback, and the first error into |err|. */
amp_status session_report(Session *s, amp_error *err);

#endif
