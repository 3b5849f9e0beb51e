/* model_so.h: a compiled model as a source: its sections, which are read without running it. */
#ifndef AMP_COMPILER_MODEL_SO_H
#define AMP_COMPILER_MODEL_SO_H

#include "compiler/compile_session.h"

bool model_so_is(const Source *source);
/* The text of a section, without its final NUL.  AMP_BAD_FILE: it has none of that name, or is damaged. */
amp_status model_so_section(Session *s, const char *name, const char **text, amp_error *err);
/* The module of a section that holds IR. */
amp_status model_so_module(Session *s, const char *section, Module **out, amp_error *err);
/* The session goes on with what the model was compiled from: its module at stage elaborate, under the policy that it
 * was compiled under unless the options say another.  AMP_BAD_FILE. */
amp_status model_so_open(Session *s, amp_error *err);

#endif
