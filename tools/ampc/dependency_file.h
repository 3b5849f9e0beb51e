/* dependency_file.h: ampc -MD: which files a model was made from, as a rule that make and Ninja read. */
#ifndef AMP_TOOLS_DEPENDENCY_FILE_H
#define AMP_TOOLS_DEPENDENCY_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed: nothing is collected. */
typedef struct DependencyFile {
    bool wanted;
    const char *path; /* NULL: the output's name and ".d" */
    char **files;     /* each once, in the order in which they were read */
    size_t count;
    bool out_of_memory;
} DependencyFile;

/* The path as it is kept, or NULL where it was there already. */
const char *dependency_file_add(DependencyFile *d, const char *path);
/* "OUTPUT: FILE...", and for each file but the first a rule without a recipe, so that removing an include is no error
 * of make.  The caller frees it; NULL: no memory. */
char *dependency_file_text(const DependencyFile *d, const char *output, size_t *size);
void dependency_file_free(DependencyFile *d);

#endif
