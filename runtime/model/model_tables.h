/* model_tables.h: copying the tables of a descriptor, stepping by the size that their elements had when the model was
 * compiled; shared by model_load.c and model_cuda.c. */
#ifndef AMP_RUNTIME_MODEL_MODEL_TABLES_H
#define AMP_RUNTIME_MODEL_MODEL_TABLES_H

#include "runtime/model/model.h"

typedef struct amp_model_copying {
    const amp_allocator *allocator;
    const char *where;
    uint32_t minor; /* of the model */
    amp_error *err;
} amp_model_copying;

amp_status amp_model_copy_table(const amp_model_copying *copying, const amp_model_table *table, const char *what,
                                size_t first_size, size_t elem_size, void **out, int32_t *count);
/* |first|: bytes that an element had in the first minor that had the table. */
#define AMP_COPY_TABLE(copying, table, what, first, array, count)                                                      \
    amp_model_copy_table((copying), (table), (what), (first), sizeof *(array), (void **)&(array), &(count))
/* Whether the elements of a table, or the descriptor, may have |given| bytes in a model of |minor|. */
bool amp_model_elements_fit(uint32_t minor, size_t given, size_t first_size, size_t elem_size);
void amp_model_free_table(const amp_allocator *allocator, void *data, int32_t count, size_t elem_size);

/* model_load.c: fills the fields of minor 4 in the copied tables of an older model. */
void amp_model_kinds_from_names(amp_model *model);

void amp_model_find_programs(amp_model *model);
void amp_model_free_programs(amp_model *model);

/* model_cuda.c: makes model->cuda of a checked model whose descriptor has CUDA code. */
amp_status amp_model_add_cuda(amp_model *model, const char *where, amp_error *err);
void amp_model_free_cuda(amp_model *model);

#endif
