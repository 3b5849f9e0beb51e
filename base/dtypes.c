/* dtypes.c: see dtypes.h. */
#include "base/dtypes.h"

/* The numbers of amp/base.h are public, so the enum is written out there; this checks that the rows have the same. */
enum {
    ROW_NONE,
#define DTYPE(id, ...) ROW_##id,
#include "base/dtypes.def"
    ROWS
};
#define DTYPE(id, ...) _Static_assert((int)ROW_##id == (int)AMP_DT_##id, "a row of dtypes.def is out of order");
#include "base/dtypes.def"
_Static_assert((int)ROWS == (int)AMP_DTYPES, "AMP_DT_NONE is no row");

typedef struct Row {
    const char *name;
    amp_dtype_class class;
    size_t file_size, memory_size;
} Row;

static const Row rows[AMP_DTYPES] = {
    [AMP_DT_NONE] = {"none", AMP_CLASS_NONE, 0, 0},
#define DTYPE(id, name, class, kind, stored, file, memory)                                                             \
    [AMP_DT_##id] = {#name, AMP_CLASS_##class, sizeof(file), sizeof(memory)},
#include "base/dtypes.def"
};

static const Row *row_of(uint32_t dtype) { return &rows[dtype < AMP_DTYPES ? dtype : AMP_DT_NONE]; }

const char *amp_dtype_name(amp_dtype dtype) { return row_of((uint32_t)dtype)->name; }

size_t amp_dtype_size(amp_dtype dtype) { return row_of((uint32_t)dtype)->file_size; }

amp_dtype_class amp_class_of(uint32_t dtype) { return row_of(dtype)->class; }

size_t amp_storage_size(uint32_t storage) { return row_of(storage)->memory_size; }

amp_dtype amp_readable_dtype(uint32_t dtype) {
    const amp_dtype_class class = amp_class_of(dtype);
    return class == AMP_CLASS_FLOAT || class == AMP_CLASS_STATE ? AMP_DT_F32 : (amp_dtype)dtype;
}
