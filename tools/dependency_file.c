/* dependency_file.c: see dependency_file.h. */
#include "tools/dependency_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dependency_file_add(DependencyFile *d, const char *path) {
    for (size_t i = 0; i < d->count; i++)
        if (!strcmp(d->files[i], path)) return;
    char *copy = strdup(path), **files = realloc(d->files, (d->count + 1) * sizeof *files);
    if (files) d->files = files;
    if (copy && files) {
        d->files[d->count++] = copy;
    } else {
        d->out_of_memory = true;
        free(copy);
    }
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

static int report(const char *path, const char *what) {
    fprintf(stderr, "ampc: -MF %s: %s\n", path, what);
    return 1;
}

int dependency_file_write(const DependencyFile *d, const char *output) {
    char path[4096];
    if (!d->wanted) return 0;
    int length = snprintf(path, sizeof path, "%s%s", d->path ? d->path : output, d->path ? "" : ".d");
    if (d->out_of_memory) return report(path, "no memory for the list of files");
    if (length >= (int)sizeof path) return report(path, "the name is too long");
    FILE *to = fopen(path, "w");
    if (!to) return report(path, strerror(errno));
    put_rules(d, output, to);
    int lost = ferror(to);
    lost |= fclose(to);
    return lost ? report(path, "could not be written in full") : 0;
}

void dependency_file_free(DependencyFile *d) {
    for (size_t i = 0; i < d->count; i++) free(d->files[i]);
    free(d->files);
}
