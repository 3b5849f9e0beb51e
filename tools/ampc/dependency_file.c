/* dependency_file.c: see command.h. */
#include "tools/ampc/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *dependency_file_add(DependencyFile *d, const char *path) {
    for (size_t i = 0; i < d->count; i++)
        if (!strcmp(d->files[i], path)) return NULL;
    char *copy = strdup(path), **files = realloc(d->files, (d->count + 1) * sizeof *files);
    if (files) d->files = files;
    if (copy && files) {
        return d->files[d->count++] = copy;
    }
    d->out_of_memory = true;
    free(copy);
    return NULL;
}

/* What make and Ninja both read as the name: a space and '#' after a backslash, '$' doubled. */
static void put_name(FILE *to, const char *name) {
    for (; *name; name++) {
        if (*name == ' ' || *name == '#') fputc('\\', to);
        if (*name == '$') fputc('$', to);
        fputc(*name, to);
    }
}

static void put_rules(const DependencyFile *d, const char *output, FILE *to) {
    put_name(to, output);
    fputc(':', to);
    for (size_t i = 0; i < d->count; i++) {
        fputs(" \\\n  ", to);
        put_name(to, d->files[i]);
    }
    fputc('\n', to);
    for (size_t i = 1; i < d->count; i++) {
        fputc('\n', to);
        put_name(to, d->files[i]);
        fputs(":\n", to);
    }
}

char *dependency_file_text(const DependencyFile *d, const char *output, size_t *size) {
    char *text = NULL;
    FILE *to = d->out_of_memory ? NULL : open_memstream(&text, size);
    if (!to) return NULL;
    put_rules(d, output, to);
    if (!fclose(to)) return text;
    free(text);
    return NULL;
}

void dependency_file_free(DependencyFile *d) {
    for (size_t i = 0; i < d->count; i++) free(d->files[i]);
    free(d->files);
}
