/* folder_fuzz.c: a folder where ranks meet that holds anything, also links to a home beside it: whatever the start of
 * ranks says, nothing of the home changes, and what no start writes stays.
 *
 * The first byte is the rank and how open the folder is; each three that follow are an entry: kind, name, folder. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/comm/files/files_engine.h"
#include "tests/fuzz/fuzz.h"

enum { ENTRY = 3, ENTRIES_MOST = 64 };

static char top[64];
static const char diary[] = "dear diary";
/* The first six are of no start. */
static const char *const names[] = {"thesis",
                                    "left.txt",
                                    "ampc-0123",
                                    "lock~1",
                                    "lane.1.2",
                                    ".hidden",
                                    "lock",
                                    "other",
                                    "go",
                                    "hello.0",
                                    "hello.1",
                                    "left.0",
                                    "left.1",
                                    "lane.0.0.0",
                                    "lane.0.1.0",
                                    "letter.0.1.0",
                                    "go~01234567",
                                    "ampc-start",
                                    "ampc-start~89abcdef",
                                    "ampc-0123456789abcdef",
                                    "ampc-fedcba9876543210"};
enum { NAMES = sizeof names / sizeof *names, FOREIGN = 6 };
static const char *const folders[] = {"f", "f/ampc-0123456789abcdef", "f/ampc-fedcba9876543210"};

typedef struct Path {
    char text[200];
} Path;

static Path in_top(const char *folder, const char *name) {
    Path p;
    snprintf(p.text, sizeof p.text, "%s/%s%s%s", top, folder, *name ? "/" : "", name);
    return p;
}

static void write_file(Path path, const void *data, size_t size) {
    FILE *file = fopen(path.text, "wbx");
    if (!file) return; /* the name is taken */
    if (fwrite(data, 1, size, file) != size || fclose(file)) fuzz_fail("%s: cannot be written", path.text);
}

static void clear(Path folder) {
    DIR *all = opendir(folder.text);
    for (const struct dirent *e; all && (e = readdir(all));) {
        Path inside;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        snprintf(inside.text, sizeof inside.text, "%.100s/%.90s", folder.text, e->d_name);
        if (e->d_type == DT_DIR) clear(inside), rmdir(inside.text);
        else unlink(inside.text);
    }
    if (all) closedir(all);
}

static void remove_top(void) {
    clear(in_top(".", ""));
    rmdir(top);
}

static void make_home(void) {
    strcpy(top, "/tmp/folder_fuzz.XXXXXX");
    if (!mkdtemp(top)) fuzz_fail("no folder");
    atexit(remove_top);
    if (mkdir(in_top("home", "").text, 0700) || mkdir(in_top("home/below", "").text, 0700)) fuzz_fail("no home");
    write_file(in_top("home", "diary"), diary, sizeof diary);
    write_file(in_top("home", "lock"), diary, sizeof diary);
    write_file(in_top("home/below", "left.0"), diary, sizeof diary);
}

static void check_file(Path path) {
    char text[sizeof diary + 1];
    struct stat st;
    FILE *file = fopen(path.text, "rb");
    if (!file || fstat(fileno(file), &st)) fuzz_fail("%s was removed", path.text);
    if (fread(text, 1, sizeof text, file) != sizeof diary || memcmp(text, diary, sizeof diary))
        fuzz_fail("%s was written to", path.text);
    fclose(file);
}

static int count_entries(Path folder) {
    int count = 0;
    DIR *all = opendir(folder.text);
    if (!all) fuzz_fail("%s was removed", folder.text);
    while (readdir(all)) count++;
    closedir(all);
    return count - 2;
}

static void check_home(void) {
    check_file(in_top("home", "diary"));
    check_file(in_top("home", "lock"));
    check_file(in_top("home/below", "left.0"));
    if (count_entries(in_top("home", "")) != 3 || count_entries(in_top("home/below", "")) != 1)
        fuzz_fail("a file was made in the home");
}

/* An invitation of rank 0, so that another rank goes on. */
static void write_invitation(Path path) {
    struct {
        char format[8];
        uint64_t number;
        int32_t ranks, made;
    } invitation = {"ampdist", 0x0123456789abcdef, 2, 1};
    invitation.format[7] = '1';
    write_file(path, &invitation, sizeof invitation);
}

static void make_entry(const uint8_t *entry) {
    const Path path = in_top(folders[entry[2] % 3], names[entry[1] % NAMES]);
    struct stat st;
    if (lstat(in_top(folders[entry[2] % 3], "").text, &st) || !S_ISDIR(st.st_mode)) return; /* not through a link */
    switch (entry[0] % 9) {
    case 0: write_file(path, diary, sizeof diary); return;
    case 1: write_invitation(path); return;
    case 2: (void)!mkdir(path.text, entry[0] & 128 ? 0777 : 0700); return;
    case 3: (void)!symlink(in_top("home", "").text, path.text); return;
    case 4: (void)!symlink(in_top("home", "diary").text, path.text); return;
    case 5: (void)!symlink(in_top("home", "new").text, path.text); return;
    case 6: (void)!symlink(in_top("home/below", "").text, path.text); return;
    case 7: (void)!mkfifo(path.text, 0600); return;
    case 8: (void)!link(in_top("home", "diary").text, path.text); return;
    }
}

static int count_foreign(void) {
    int count = 0;
    struct stat st;
    for (size_t i = 0; i < 3; i++)
        for (size_t n = 0; n < FOREIGN; n++) count += !lstat(in_top(folders[i], names[n]).text, &st);
    return count;
}

static void start(int32_t rank) {
    const Path folder = in_top("f", "");
    const amp_files_options options = {folder.text, rank, rank + 1, rank ? 0.003 : 1};
    const amp_allocator allocator = fuzz_allocator(1 << 20);
    amp_engine *e = NULL;
    amp_error err = {0};
    amp_letter letter = {.bytes = {1}};
    float numbers[4] = {1, 2, 3, 4};
    const amp_message message = {.op = AMP_GATHER, .dtype = AMP_DT_F32, .data = numbers, .count = 4};
    if (amp_files_engine_open(&options, &allocator, &e, &err)) fuzz_fail("%s", err.message);
    if (!e->type->connect(e, &err)) {
        bool done;
        for (int i = 0; i < 2; i++)
            if (!e->type->start(e, 0, &message, &err)) (void)e->type->test(e, 0, &done, &err);
        (void)e->type->send(e, 0, &letter, &err);
        e->type->disconnect(e);
    } else if (!strstr(err.message, folder.text) && !strstr(err.message, "rank"))
        fuzz_fail("a message without the folder: %s", err.message);
    e->type->close(e);
    fuzz_check_freed();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    if (!*top) make_home();
    const Path folder = in_top("f", "");
    if (data[0] & 2) (void)!symlink(in_top("home", "").text, folder.text);
    else (void)!mkdir(folder.text, 0700);
    for (size_t at = 1; at + ENTRY <= size && at < ENTRY * ENTRIES_MOST && !(data[0] & 2); at += ENTRY)
        make_entry(data + at);
    if (data[0] & 4) (void)!chmod(folder.text, 01777);
    const int before = data[0] & 2 ? 0 : count_foreign();
    start(data[0] & 1);
    check_home();
    if (!(data[0] & 2) && count_foreign() != before) fuzz_fail("what no start writes was removed");
    unlink(folder.text); /* a link */
    clear(folder);
    rmdir(folder.text);
    return 0;
}
