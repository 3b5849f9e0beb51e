/* data_column.h: all samples of one input, converted to what it reads. */
#ifndef AMP_TOOLS_DATA_COLUMN_H
#define AMP_TOOLS_DATA_COLUMN_H

#include "tools/amprun/data.h"

bool column_is_float(amp_dtype t);
/* Numbers of one sample; dims[0] counts samples. */
int64_t column_elements(const amp_tensor_info *info);

/* The data set's next column, empty, of |samples| samples.  Reports and returns 1 where its dtype is not fed from
 * files; |from| names the file. */
int column_new(Dataset *d, const amp_tensor_info *info, int64_t samples, const char *from);
/* Memory for all samples, to be filled. */
int column_allocate(const Dataset *d, Column *c, const char *from);
/* Whether a float input holds it as a finite number. */
bool column_reaches(amp_dtype t, double v);
/* Stores a number as the column's dtype; false where it does not fit. */
bool column_store(Column *c, int64_t at, double v);

#endif
