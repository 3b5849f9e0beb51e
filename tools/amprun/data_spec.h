/* data_spec.h: the words of --data: KIND:FILE[,OPTION=VALUE]... */
#ifndef AMP_TOOLS_DATA_SPEC_H
#define AMP_TOOLS_DATA_SPEC_H

#include <stdbool.h>

#include "base/file.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SPEC_OPTIONS = 8 };

typedef struct DataSpec {
    const char *spec;         /* as it was given */
    char text[AMP_FILE_PATH]; /* what follows the kind; cut into the parts below */
    const char *path;
    const char *value[SPEC_OPTIONS]; /* by |keys|; NULL: not given */
} DataSpec;

/* Of a spec that begins with |kind| ("tokens:"), which takes the options |keys| (ends with NULL).  A comma belongs to
 * the file's name where no option follows it, or where there is a file of such a name.  Reports and returns 1 on
 * failure. */
int spec_parse(DataSpec *s, const char *spec, const char *kind, const char *const *keys);
/* The same without a report; false on failure. */
bool spec_read(DataSpec *s, const char *spec, const char *kind, const char *const *keys);

/* held=P: a part below 1, or a whole number of samples; 0: none.  Reports and returns 1 where it is neither. */
int spec_held(const char *spec, const char *value, double *out);

#ifdef __cplusplus
}
#endif
#endif
