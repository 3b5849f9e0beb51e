/* tensors_out.h: collecting named f32 (or integer) arrays and writing them as one safetensors file. */
#ifndef AMP_TOOLS_TENSORS_OUT_H
#define AMP_TOOLS_TENSORS_OUT_H

#include "runtime/files/safetensors.h"
#include "tools/amprun/amprun.h"

typedef struct TensorsOut {
    amp_tensor_view *view;
    amp_metadata *metadata;
    int32_t count, metadata_count;
} TensorsOut;

/* A zeroed array for the tensor, to be filled; owned by |out|.  The dtype of floats in the file is F32.  |note| (may be
 * NULL) becomes metadata under the tensor's name.  NULL when memory is out (reported). */
void *tensors_out_add(TensorsOut *out, const char *name, const amp_tensor_info *info, const char *note);
size_t tensor_bytes(const amp_tensor_info *info);         /* as written */
int tensors_out_write(TensorsOut *out, const char *path); /* reports and returns 1 on failure */
void tensors_out_free(TensorsOut *out);

#endif
