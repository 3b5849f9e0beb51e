/* data_arrays.h: samples from files of arrays: idx:DIR and safetensors:FILE. */
#ifndef AMP_TOOLS_DATA_ARRAYS_H
#define AMP_TOOLS_DATA_ARRAYS_H

#include "tools/amprun/data.h"

/* data_read of what follows "idx:" and "safetensors:". */
int arrays_read_idx(Dataset *d, const char *folder, Part part, const DataInputs *inputs);
int arrays_read_tensors(Dataset *d, const char *path, const DataInputs *inputs);

#endif
