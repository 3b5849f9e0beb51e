/* inspect_tables.h: the model that a call of amp/inspect.h is about. */
#ifndef AMP_RUNTIME_INSPECT_INSPECT_TABLES_H
#define AMP_RUNTIME_INSPECT_INSPECT_TABLES_H

#include "runtime/model/model.h"

/* |*out|: |model| as |device| runs it; NULL: "cpu".  |call| names the function in errors. */
amp_status amp_inspect_target(const char *call, const amp_model *model, const char *device, const amp_model **out,
                              amp_error *err);

#endif
