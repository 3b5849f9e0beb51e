/* place_temporaries.h: offsets for temporaries of which those that are live at the same time may not overlap. */
#ifndef AMP_RUNTIME_MEMORY_PLACE_TEMPORARIES_H
#define AMP_RUNTIME_MEMORY_PLACE_TEMPORARIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct amp_temporary {
    int32_t buffer, first, last; /* live from kernel |first| to |last|; buffers are told apart by their number */
    size_t bytes, offset;
    int64_t rank; /* of the order in which they are placed; scratch */
} amp_temporary;

/* Fills in the offsets and returns the bytes of the arena.  The order of |items| changes.  |neighbours| and |best| are
 * scratch for |count| elements each.  |separate|: nothing is shared. */
size_t amp_place_temporaries(amp_temporary *items, int count, const amp_temporary **neighbours, size_t *best,
                             bool separate);

#endif
