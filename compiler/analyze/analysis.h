/* analysis.h: an analysis while it is made, and what the files of amp_analyze share.
 *   analyze.c    the call: the session, what it runs, what its caller gets
 *   places.c     files and their bytes, of places in text
 *   names.c      symbols and references, of the outline
 *   decisions.c  values and decisions, of the module after autocast
 */
#ifndef AMP_COMPILER_ANALYZE_ANALYSIS_H
#define AMP_COMPILER_ANALYZE_ANALYSIS_H

#include "amp/analyze.h"
#include "base/diag.h"
#include "frontend/outline.h"
#include "ir/ir.h"

typedef struct AnalysedFile {
    const char *session_text; /* of the session: which file a place is in */
    VEC(uint32_t) lines;      /* where each begins */
} AnalysedFile;

/* Its arena outlives the session; it holds no pointer into the session's but |session_text|. */
typedef struct Analysis {
    amp_analysis told; /* first: what the caller holds */
    amp_allocator allocator;
    Arena arena;
    const amp_analyze_options *want;
    VEC(AnalysedFile) files;
    VEC(amp_source_text) texts; /* by |files| */
    VEC(amp_diagnostic) diagnostics;
    VEC(amp_symbol) symbols;
    VEC(amp_reference) references;
    VEC(amp_symbol_value) values;
    VEC(amp_op_decision) decisions;
} Analysis;

int analysis_file(Analysis *x, const Source *source); /* added where it is not known */
amp_span analysis_span(Analysis *x, Loc loc);
/* The word at a place of the module, whose files are relative to the main file's folder; nowhere if there is none. */
amp_span analysis_word(const Analysis *x, Pos pos);
const char *analysis_copy(Analysis *x, const char *text); /* NULL: NULL */

void analysis_tell_diagnostic(Analysis *x, const Diag *d);
void analysis_tell_names(Analysis *x, const Outline *outline);
/* |m| after autocast. */
void analysis_tell_decisions(Analysis *x, const Module *m, const FrontendBindings *bindings);

#endif
