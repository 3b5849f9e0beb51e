/* index_fuzz.c: an index of weights beside two shards, a damaged one and a folder: what is accepted lists what the
 * shards hold, each tensor once, and reads nothing outside the folder. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/safetensors/weight_files.h"
#include "tests/fuzz/fuzz.h"

static char folder[64], index_path[96];

static void in_folder(char out[96], const char *name) { snprintf(out, 96, "%s/%s", folder, name); }

static void write_file(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    if (!file || (size && fwrite(data, 1, size, file) != size) || fclose(file))
        fuzz_fail("%s: cannot be written", path);
}

/* A safetensors file of f32 tensors of two numbers. */
static void write_shard(const char *name, const char *tensors[]) {
    char path[96], text[1000] = {0}, header[900] = "{";
    int count = 0;
    for (; tensors[count]; count++)
        snprintf(header + strlen(header), sizeof header - strlen(header),
                 "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[%d,%d]}", count ? "," : "",
                 tensors[count], 8 * count, 8 * count + 8);
    size_t length = strlen(strcat(header, "}"));
    text[0] = (char)(length & 255), text[1] = (char)(length >> 8);
    memcpy(text + 8, header, length);
    in_folder(path, name);
    write_file(path, text, 8 + length + 8 * (size_t)count);
}

static void remove_folder(void) {
    static const char *const names[] = {"a", "b", "damaged", "below/a", "below", "index.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[96];
        in_folder(path, names[i]);
        remove(path);
    }
    rmdir(folder);
}

static void make_folder(void) {
    char path[96];
    strcpy(folder, "/tmp/index_fuzz.XXXXXX");
    if (!mkdtemp(folder)) fuzz_fail("no folder");
    atexit(remove_folder);
    in_folder(index_path, "index.json");
    in_folder(path, "below");
    if (mkdir(path, 0700)) fuzz_fail("no folder");
    write_shard("a", (const char *[]){"x", "y", NULL});
    write_shard("b", (const char *[]){"z", NULL});
    write_shard("below/a", (const char *[]){"w", NULL});
    in_folder(path, "damaged");
    write_file(path, "damaged", 7);
}

static void look_at(const amp_weight_files *files) {
    int32_t count = amp_weight_files_count(files);
    if (count < 1) fuzz_fail("an index of nothing is accepted");
    for (int32_t i = 0; i < count; i++) {
        const amp_tensor_view *v = amp_weight_files_at(files, i);
        float numbers[2];
        amp_error err = {0};
        if (i && strcmp(amp_weight_files_at(files, i - 1)->name, v->name) >= 0) fuzz_fail("%s is there twice", v->name);
        if (strlen(v->name) != 1 || !strchr("wxyz", v->name[0])) fuzz_fail("%s is in no shard", v->name);
        if (amp_weight_files_read(files, i, 0, numbers, sizeof numbers, &err)) fuzz_fail("%s", err.message);
    }
    for (int32_t i = 0; amp_weight_files_shard(files, i); i++) {
        char real[4096];
        const char *shard = amp_weight_files_shard(files, i);
        if (!realpath(shard, real) || strncmp(real, folder, strlen(folder))) fuzz_fail("%s is read", shard);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    amp_allocator allocator = fuzz_allocator(97 * size + (1 << 20));
    amp_weight_files *files = NULL;
    amp_error err = {0};
    if (!*folder) make_folder();
    write_file(index_path, data, size);
    amp_status status = amp_weight_files_open(index_path, &allocator, &files, &err);
    bool expected = status == AMP_BAD_FILE || status == AMP_NOT_FOUND || status == AMP_IO || status == AMP_MISMATCH;
    if (status && (!expected || !strstr(err.message, folder))) fuzz_fail("%d: %s", (int)status, err.message);
    if (!status) look_at(files);
    amp_weight_files_close(files);
    fuzz_check_freed();
    return 0;
}
