/* table_rows.h: rows of the descriptor's tables (amp/model_abi.h) as C text: what the tables of every target have in common. */
#ifndef AMP_CODEGEN_TABLE_ROWS_H
#define AMP_CODEGEN_TABLE_ROWS_H

#include "base/text.h"
#include "codegen/model_facts.h"

typedef struct TableWriter {
    const Module *m;
    Text *t;
    amp_error *err;
    const char *prefix; /* of the names of arrays: "", "cuda_" */
    ModelInputs inputs;
} TableWriter;

void table_put_dim(Text *t, Dim d);
void table_put_dims(Text *t, const Shape *s);
/* `.field = "value", `; 0 for NULL */
void table_put_field(Text *t, const char *field, const char *value);
/* A table's row in its owner; an empty table has no array. */
void table_put(Text *t, const char *field, const char *type, const char *array, int count);
/* `static const uint32_t name[] = {..};`; nothing where there are none */
void table_put_numbers(Text *t, const char *name, const uint32_t *numbers, int count);
/* "train_step", with the prefix */
const char *table_func_name(const TableWriter *x, const Func *f);

/* `static const amp_model_state states[] = {..};` */
amp_status table_put_states(TableWriter *x);
/* |position|: of each kernel of the function in its table; NULL: its own index. */
void table_put_buffers(TableWriter *x, const Func *f, const int *position);
amp_status table_put_results(TableWriter *x, const Func *f);

#endif
