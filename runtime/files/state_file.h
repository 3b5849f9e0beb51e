/* state_file.h: states as the tensors of a safetensors file: files of params, and checkpoints.
 *
 *   params and buffers  under their own names       moments   optim/<param>/<slot>
 *   counters            counter/<name>, I64, []      scaler    scaler/<name>, F32 or I32, []
 *
 * Tensors are row-major whatever the layout in memory; f32 states as F32, integers as they are.
 */
#ifndef AMP_RUNTIME_FILES_STATE_FILE_H
#define AMP_RUNTIME_FILES_STATE_FILE_H

#include <stdbool.h>

#include "base/safetensors/safetensors.h"
#include "runtime/model/model.h"
#include "runtime/model/state.h"

typedef enum amp_state_file_kind { AMP_FILE_OF_PARAMS, AMP_FILE_OF_CHECKPOINT } amp_state_file_kind;

/* What metadata says: "amp.format". */
#define AMP_FORMAT_KEY "amp.format"
#define AMP_FORMAT_PARAMS "params 1"
#define AMP_FORMAT_CHECKPOINT "checkpoint 1"

typedef struct amp_state_list { /* what such a file holds, for one model */
    amp_allocator allocator;
    const amp_model *model;
    amp_state_file_kind kind;
    int32_t count, allocated;
    struct amp_state_entry {
        const char *name;
        int32_t state;
    } * entries; /* by name */
    char *names;
    size_t names_bytes;
    float *rows; /* of the largest state; NULL until amp_state_list_reserve */
    size_t rows_bytes;
} amp_state_list;

amp_status amp_state_list_make(amp_state_list *list, const amp_model *model, amp_state_file_kind kind,
                               const amp_allocator *allocator, amp_error *err);
/* Memory for amp_state_list_take and _read, which cannot fail for want of it half-way. */
amp_status amp_state_list_reserve(amp_state_list *list, amp_error *err);
void amp_state_list_free(amp_state_list *list);

/* How a file has the state: as memory has it; moments of 8 bits as U8, their codes. */
static inline amp_dtype amp_state_file_dtype(const amp_model_state *state) {
    return amp_is_f8(state->storage) ? AMP_DT_U8 : (amp_dtype)state->storage;
}
/* A rate that was not set, which checkpoints leave out: it becomes the rate of the text that goes on. */
bool amp_state_is_as_in_text(const amp_model_state *state, const void *memory);
/* f32, f16, bf16 or of 8 bits: it is read by way of f32. */
static inline bool amp_state_is_converted(const amp_model_state *state) {
    return amp_readable_dtype(state->storage) == AMP_DT_F32;
}
/* Whether values of type |given| are taken for the state: its own, and for such floats every float in files of
 * params. */
bool amp_state_takes_dtype(const amp_state_list *list, const amp_model_state *state, amp_dtype given);
/* Whether the state's shape is |dims|. */
bool amp_state_has_dims(const amp_model_state *state, const int64_t *dims, int32_t rank);
/* "f32[10, 40]" */
enum { AMP_TENSOR_TEXT = 256 };
const char *amp_tensor_describe(char out[AMP_TENSOR_TEXT], const char *dtype, const int64_t *dims, int rank);
/* The entry of that name; -1: none. */
int32_t amp_state_list_find(const amp_state_list *list, const char *name);
/* A tensor of a checkpoint that a file of params would not have: passed over where the one serves as the other. */
bool amp_state_is_of_training(const char *name);

/* Every name, shape and dtype, and nothing that is not the model's: the first difference in words, and how many more.
 * AMP_MISMATCH. */
amp_status amp_state_list_check(const amp_state_list *list, const amp_safetensors *file, const char *path,
                                amp_error *err);
/* The same of the tensors of another model, which are |what|: the first differences in words.  AMP_MISMATCH. */
amp_status amp_state_lists_check(const amp_state_list *list, const amp_state_list *other, const char *what,
                                 amp_error *err);
/* Copies one tensor of a file into entry number |entry|, if its shape and dtype fit; else AMP_MISMATCH. */
amp_status amp_state_list_take(const amp_state_list *list, int32_t entry, const amp_tensor_view *tensor,
                               void *const *states, amp_error *err);
/* Entry number |entry| of a checked file, into |memory| of the state.  AMP_IO, AMP_OUT_OF_MEMORY: of a file whose
 * header alone was read. */
amp_status amp_state_list_read(const amp_state_list *list, int32_t entry, const amp_safetensors *file, void *memory,
                               amp_error *err);
/* The state as a tensor of a file, without its data. */
amp_tensor_view amp_state_view(const amp_model_state *state, const char *name);
/* Its data, as the file has it (|turned|: a matrix as [cols, rows]), by pieces of |bytes| bytes in |piece|. */
amp_status amp_state_write(const amp_model_state *state, const void *memory, bool turned, char *piece, size_t bytes,
                           amp_file_writer *file, amp_error *err);
/* Where a state is that is about to be written; |*memory| is where |states| says. */
typedef amp_status amp_state_fetch(void *user, int32_t state, const void **memory, amp_error *err);
typedef struct amp_state_source {
    amp_state_fetch *fetch;
    void *user;
} amp_state_source;

/* What is written is never held whole, and no tensor of it.  |source|: NULL where |states| says it of all. */
amp_status amp_state_list_write(const amp_state_list *list, void *const *states, const amp_state_source *source,
                                const char *path, const amp_metadata *metadata, int32_t metadata_count, amp_error *err);

#endif
