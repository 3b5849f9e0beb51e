/* model_tables.h: taking the tables of a descriptor; shared by model_load.c and model_cuda.c. */
#ifndef AMP_RUNTIME_MODEL_MODEL_TABLES_H
#define AMP_RUNTIME_MODEL_MODEL_TABLES_H

#include "runtime/model/model.h"

/* The elements have |elem_size| bytes, as in this library, and there are not too many.  |what|: "states". */
amp_status amp_model_check_table(const amp_model_table *table, size_t elem_size, const char *what, const char *where,
                                 amp_error *err);
/* |to| and |to_count| become the table's, which is checked. */
#define AMP_TAKE_TABLE(table, what, to, to_count, where, err)                                                          \
    ((to) = (table)->data, (to_count) = (int32_t)(table)->count,                                                       \
     amp_model_check_table((table), sizeof *(to), (what), (where), (err)))

/* What else has another size than in this library. */
amp_status amp_model_check_size(uint32_t given, size_t size, const char *what, const char *where, amp_error *err);

amp_status amp_model_make_programs(amp_model *model, uint32_t count, const char *where, amp_error *err);
void amp_model_find_programs(amp_model *model);

/* model_cuda.c: makes model->cuda of a checked model whose descriptor has CUDA code. */
amp_status amp_model_add_cuda(amp_model *model, const char *where, amp_error *err);
void amp_model_free_cuda(amp_model *model);

#endif
