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

void dependency_file_add(DependencyFile *d, const char *path);
/* Writes "OUTPUT: FILE...", and for each file but the first a rule without a recipe, so that removing an include is no
 * error of make.  Reports and returns 1 on failure; does nothing where no file is wanted. */
int dependency_file_write(const DependencyFile *d, const char *output);
void dependency_file_free(DependencyFile *d);

#endif
