/* replay.c: runs a fuzz target once on each file that the arguments name, folders with all that is in them. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

static int run_file(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) return fprintf(stderr, "replay: %s cannot be read\n", path), -1;
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    uint8_t *data = malloc((size_t)size + 1);
    size_t got = data ? fread(data, 1, (size_t)size, f) : 0;
    fclose(f);
    fprintf(stderr, "%s\n", path); /* so that the last line names the one that crashes */
    /* Exactly as large as the input, as libFuzzer gives it: reading beyond shows under the address sanitizer. */
    uint8_t *exact = malloc(got ? got : 1);
    if (data && exact) {
        memcpy(exact, data, got);
        LLVMFuzzerTestOneInput(exact, got);
    }
    free(exact);
    free(data);
    return 1;
}

static int run_path(const char *path) {
    struct stat st;
    if (stat(path, &st)) return fprintf(stderr, "replay: there is no %s\n", path), -1;
    if (!S_ISDIR(st.st_mode)) return run_file(path);
    int count = 0;
    struct dirent **entries = NULL;
    int found = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < found; i++) {
        char inside[4096];
        snprintf(inside, sizeof inside, "%s/%s", path, entries[i]->d_name);
        int ran = entries[i]->d_name[0] == '.' ? 0 : run_path(inside);
        count = ran < 0 || count < 0 ? -1 : count + ran;
        free(entries[i]);
    }
    free(entries);
    return count;
}

int main(int argc, char **argv) {
    int count = 0;
    for (int i = 1; i < argc && count >= 0; i++) {
        int ran = run_path(argv[i]);
        count = ran < 0 ? -1 : count + ran;
    }
    printf("%d inputs\n", count);
    return count < 1;
}
