/* saving.h: what training leaves: parameters, checkpoints, the best so far. */
#ifndef AMP_TOOLS_SAVING_H
#define AMP_TOOLS_SAVING_H

#include "tools/amprun/amprun.h"
#include "tools/amprun/position.h"

/* Numbers of the parameters and buffers that cannot be trained any further: NaN, and infinite ones beyond the
 * |infinite| that were there at the start.  *infinite gets the count of infinite ones where it is negative. */
int64_t saving_damage(const Run *run, int64_t *infinite);

/* --save, as --save-like says; reports and returns 1 on failure. */
int saving_params(const Run *run, const Args *a, const char *option, const char *path);
/* What was derived of a table goes beside the parameters, as FILE.schema.  |schema|: NULL: nothing was. */
int saving_schema(const char *schema, const char *option, const char *path);
/* --checkpoint.  Micro-batches of a step that is not complete are dropped. */
int saving_checkpoint(const Run *run, const char *path, const Position *position);

#endif
