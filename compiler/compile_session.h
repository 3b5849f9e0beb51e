/* compile_session.h: one compilation: its arena, its options as this library version knows them, its source files and
 * its diagnostics; and what compile.c makes of it for amp_compile and amp_explain. */
#ifndef AMP_COMPILER_COMPILE_SESSION_H
#define AMP_COMPILER_COMPILE_SESSION_H

#include "amp/analyze.h"
#include "amp/compile.h"
#include "base/diag.h"
#include "codegen/codegen.h"
#include "frontend/frontend.h"
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
    const Source *source; /* the main file; NULL before session_open */
    bool is_ir;
    const Source *kept_policy;   /* of a model.so that is compiled again (model_so.c); NULL */
    int stages_done, stages;     /* for the progress callback; 0: nothing is reported */
    CodegenImages images;        /* machine code of the CUDA functions */
    const amp_source_text *open; /* read in place of the files of these names */
    size_t open_count;
    void (*told)(void *user, const Diag *d); /* also gets each diagnostic, with |told_user|; may be NULL */
    void *told_user;
    struct Session *beside; /* in the arena of this one, and closed with it; NULL */
} Session;

/* Copies the options.  The caller sets the arena's out_of_memory before anything else is called. */
amp_status session_init(Session *s, const amp_compile_options *options, amp_error *err);
amp_status session_out_of_memory(const Session *s, amp_error *err); /* the error */

/* Frees the files and the arena. */
void session_close(Session *s);
/* A call of the library, |name|, with enough stack and in the default floating-point environment (call.c): |run| opens
 * a session that is its own.  Where it fails, or memory runs out, |*out| is NULL. */
typedef amp_status SessionRun(Session *s, const void *arguments, amp_compile_result **out, amp_error *err);
amp_status session_call(const char *name, const amp_compile_options *options, SessionRun *run, const void *arguments,
                        amp_compile_result **out, amp_error *err);

/* Reads a file of at most |limit| bytes; it lives until session_close.  |name| is relative to the folder of |beside|
 * where that is not NULL. */
amp_status session_read(Session *s, const char *name, const char *beside, size_t limit, const Source **out,
                        amp_error *err);
/* Finds the main source: the text that was given, or the file. */
amp_status session_open(Session *s, amp_error *err);
/* The text of a file that |Pos.file| names, as the model's text has the name; NULL: it is not there. */
const Source *session_find_source(void *session, const char *file);
/* How the front end finds files, and what it is told besides the text. */
FrontendOptions session_frontend_options(Session *s);
/* Adds the overrides of the options, after the lines of the model's precision. */
void session_add_overrides(Session *s, Module *m);
/* The module of the source: parsed and elaborated, or read where it is IR. */
amp_status session_load(Session *s, Module **out, amp_error *err);
/* A built-in policy by name, else a file, from here or beside the main file; NULL: there is none. */
const Source *session_find_policy(void *session, const char *name);
/* Runs the passes after the module's stage up to |last|, from fuse on for |target|.  |observed|: the caller sees dumps
 * and times. */
amp_status session_run_passes(Session *s, Module *m, Stage last, const Target *target, bool observed, amp_error *err);
/* Says that |stage| begins; AMP_CANCELLED. */
amp_status session_begin(Session *s, const char *stage, amp_error *err);
/* The module of IR that the session's source keeps inside. */
amp_status session_read_ir(Session *s, const char *text, Module **out, amp_error *err);
/* A second module of the same text. */
amp_status session_copy(Session *s, const Module *m, Module **out, amp_error *err);
/* What code generation says, with the name of the model.  What is wrong with IR that was read is a fault of the
 * text. */
amp_status session_name_error(Session *s, amp_status status, amp_error *err);
/* Reports the diagnostics through the callback, and the first error into |err|. */
amp_status session_report(Session *s, amp_error *err);

/* ---- results: what a compilation hands back ---------------------------------------------------------------------- */

struct amp_compile_result {
    amp_allocator allocator;
    char *data; /* owned, |size| bytes and a NUL */
    size_t size;
};

/* A result that owns a copy of |data|; AMP_OUT_OF_MEMORY. */
amp_status session_give(const Session *s, const void *data, size_t size, amp_compile_result **out, amp_error *err);
amp_status session_give_text(const Session *s, const Text *t, amp_compile_result **out, amp_error *err);

/* ---- compile.c --------------------------------------------------------------------------------------------------- */

typedef enum TargetChoice { CHOICE_CPU, CHOICE_CUDA, CHOICE_BOTH } TargetChoice;

/* The module at stage |last|, from fuse on for |target|. */
amp_status compile_to_stage(Session *s, Stage last, const Target *target, Module **out, amp_error *err);
/* What goes into model.so: the module for the CPU after all passes, and the code for CUDA. */
amp_status compile_model(Session *s, TargetChoice choice, Module **cpu, CodegenCuda *cuda, amp_error *err);

/* ---- call.c: what a call of the library runs in ------------------------------------------------------------------ */

typedef amp_status (*CompilerCall)(void *ctx, amp_error *err);

/* call(ctx, err): on the caller's stack where 2 MiB of it are left, else on a thread made for it, while the caller
 * waits.  Blocks within blocks, and expressions, are walked by recursion, whose depth the language limits; threads have
 * as little stack as 128 KiB (musl's default). */
amp_status compiler_call(CompilerCall call, void *ctx, amp_error *err);

/* ---- model_so.c: a compiled model as a source: its sections, which are read without running it ------------------- */

bool model_so_is(const Source *source);
/* The text of a section, without its final NUL.  AMP_BAD_FILE: it has none of that name, or is damaged. */
amp_status model_so_section(Session *s, const char *name, const char **text, amp_error *err);
/* The module of a section that holds IR. */
amp_status model_so_module(Session *s, const char *section, Module **out, amp_error *err);
/* The session goes on with what the model was compiled from: its module at stage elaborate, under the policy that it
 * was compiled under unless the options say another.  AMP_BAD_FILE. */
amp_status model_so_open(Session *s, amp_error *err);

#endif
