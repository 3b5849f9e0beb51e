/* so_writer.c: model.so by way of a C compiler.
 *
 *     model.c  ->  v4.o, v3.o, portable.o, tables.o  ->  model.so  ->  its digest
 *
 * No flag lets the compiler reorder or contract arithmetic.  -O1, because kernels are vector code already: -O2 takes
 * half as long again and was measured to make them no faster.  The result needs no other library, exports
 * amp_model_query alone, holds no path and no date: the same module and the same compiler give the same bytes.
 */
#define _POSIX_C_SOURCE 200809L /* mkdtemp, posix_spawn, waitpid */
#include "codegen/codegen.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "amp/model_abi.h"
#include "base/file.h"
#include "base/hash.h"

/* ---- running other programs, a few at a time ---- */

extern char **environ;

typedef struct ProcessJob {
    const char *const *argv; /* ends with NULL; argv[0] is looked up in PATH */
    const char *log;         /* file for what it prints */
} ProcessJob;

typedef enum ProcessEnd { PROCESS_OK, PROCESS_NOT_STARTED, PROCESS_FAILED } ProcessEnd;

typedef struct ProcessResult {
    ProcessEnd end;
    int job;    /* the first that did not end well */
    int reason; /* NOT_STARTED: errno; FAILED: the wait status */
} ProcessResult;

enum { PROCESS_AT_ONCE = 4, PROCESS_MAX_JOBS = 8 };

/* 0, or errno. */
static int start(const ProcessJob *job, pid_t *pid) {
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!error) error = posix_spawn_file_actions_addopen(&actions, 1, job->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (!error) error = posix_spawnp(pid, job->argv[0], &actions, NULL, (char *const *)job->argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* The wait status; not zero where it cannot be known. */
static int finish(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return status;
}

static void note(ProcessResult *r, ProcessEnd end, int job, int reason) {
    if (r->end == PROCESS_OK) *r = (ProcessResult){end, job, reason};
}

/* Runs all jobs, and waits for every one that was started.  Thread-safe. */
static ProcessResult process_run(const ProcessJob *jobs, int count) {
    ProcessResult result = {PROCESS_OK, 0, 0};
    pid_t pids[PROCESS_MAX_JOBS];
    int started = 0, finished = 0;
    while (finished < count) {
        bool room = started < count && started - finished < PROCESS_AT_ONCE && result.end == PROCESS_OK;
        if (room) {
            int error = start(&jobs[started], &pids[started]);
            if (error) note(&result, PROCESS_NOT_STARTED, started, error);
            else started++;
        } else if (finished < started) {
            int status = finish(pids[finished]);
            if (status) note(&result, PROCESS_FAILED, finished, status);
            finished++;
        } else {
            break;
        }
    }
    return result;
}

/* ---- the model's digest ------------------------------------------------------------------------------------------ */

/* The SHA-256 that a model carries in a section of its own, against damage (not an attacker: loading a model is running
 * code).  The file comes from the linker that was just run, but nothing in it is trusted. */
enum { DIGEST = 32 };

static bool inside(size_t size, uint64_t offset, uint64_t length) { return offset <= size && length <= size - offset; }

static bool read_section(const char *file, size_t size, const Elf64_Ehdr *e, uint64_t index, Elf64_Shdr *out) {
    uint64_t at = e->e_shoff + index * sizeof *out;
    if (e->e_shoff > size || e->e_shentsize != sizeof *out || !inside(size, at, sizeof *out)) return false;
    memcpy(out, file + at, sizeof *out);
    return true;
}

static bool has_name(const char *file, size_t size, const Elf64_Shdr *names, uint32_t name) {
    static const char wanted[] = AMP_MODEL_HASH_SECTION;
    if (!inside(size, names->sh_offset, names->sh_size) || !inside(names->sh_size, name, sizeof wanted)) return false;
    return !memcmp(file + names->sh_offset + name, wanted, sizeof wanted);
}

/* The section's offset in the file; 0: there is none of the right size. */
static uint64_t find_digest(const char *file, size_t size) {
    Elf64_Ehdr e;
    Elf64_Shdr names, s;
    if (size < sizeof e) return 0;
    memcpy(&e, file, sizeof e);
    if (memcmp(e.e_ident, ELFMAG, SELFMAG) || e.e_ident[EI_CLASS] != ELFCLASS64) return 0;
    if (!read_section(file, size, &e, e.e_shstrndx, &names)) return 0;
    for (uint64_t i = 0; i < e.e_shnum; i++)
        if (read_section(file, size, &e, i, &s) && has_name(file, size, &names, s.sh_name) && s.sh_size == DIGEST &&
            inside(size, s.sh_offset, DIGEST))
            return s.sh_offset;
    return 0;
}

static amp_status elf_write_digest(char *file, size_t size, amp_error *err) {
    uint64_t at = find_digest(file, size);
    if (!at)
        return amp_fail(err, AMP_INTERNAL, "the linked model has no section %s of %d bytes", AMP_MODEL_HASH_SECTION,
                        DIGEST);
    uint8_t digest[DIGEST];
    memset(file + at, 0, DIGEST);
    amp_sha256_of(file, size, digest);
    memcpy(file + at, digest, DIGEST);
    return AMP_OK;
}

/* ---- model.so ---------------------------------------------------------------------------------------------------- */

enum { MAX_PATH = 512, MAX_ARGS = 40, SO_LIMIT = 1 << 30 };

typedef enum TempFile {
    FILE_C,
    FILE_V4,
    FILE_V3,
    FILE_PORTABLE,
    FILE_TABLES,
    FILE_SO,
    FILE_LOG,
    FILE_COUNT = FILE_LOG + 4
} TempFile;
static const char *const file_names[FILE_COUNT] = {"model.c",  "v4.o", "v3.o", "portable.o", "tables.o",
                                                   "model.so", "log0", "log1", "log2",       "log3"};

typedef struct Workshop { /* the temporary folder */
    const char *compiler;
    int top; /* the largest instruction set: AMP_ISA_... */
    char folder[MAX_PATH];
    char path[FILE_COUNT][MAX_PATH + 16];
} Workshop;

/* What is compiled: one object for each instruction set, one for the tables; what takes longest comes first.
 * Processors without AVX2 are rare: their kernels compile in half the time with -Og and run a sixth slower. */
typedef struct Unit {
    TempFile object;
    int isa;              /* needed from this instruction set on */
    const char *flags[4]; /* after those of all */
} Unit;
static const Unit units[] = {
    {FILE_PORTABLE, AMP_ISA_PORTABLE, {"-DAMP_ISA=portable", "-march=x86-64", "-Og", NULL}},
    {FILE_V3, AMP_ISA_V3, {"-DAMP_ISA=v3", "-march=x86-64-v3", NULL}},
    {FILE_V4, AMP_ISA_V4, {"-DAMP_ISA=v4", "-march=x86-64-v4", "-mprefer-vector-width=512", NULL}},
    {FILE_TABLES, AMP_ISA_PORTABLE, {"-DAMP_TABLES", NULL}},
};
enum { UNITS = sizeof units / sizeof units[0] };

static const char *const isa_names[AMP_ISA_COUNT] = {
    [AMP_ISA_PORTABLE] = "portable", [AMP_ISA_V3] = "v3", [AMP_ISA_V4] = "v4"};
static const char *const top_isa_flags[AMP_ISA_COUNT] = {
    [AMP_ISA_PORTABLE] = "-DAMP_TOP_ISA=0", [AMP_ISA_V3] = "-DAMP_TOP_ISA=1", [AMP_ISA_V4] = "-DAMP_TOP_ISA=2"};

static amp_status find_isa(const char *name, int *out, amp_error *err) {
    for (*out = 0; *out < AMP_ISA_COUNT; ++*out)
        if (!strcmp(name ? name : "v4", isa_names[*out])) return AMP_OK;
    return amp_fail(err, AMP_INVALID_ARGUMENT, "isa '%s': portable, v3 or v4", name);
}

static const char *const compile_flags[] = {
    "-x",
    "c",
    "-c",
    "-std=gnu11",
    "-O1",
    "-w",
    "-fPIC",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fwrapv",
    "-ffreestanding",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-fno-asynchronous-unwind-tables",
    "-fno-ident",
    "-fno-lto",
    NULL,
};
static const char *const link_flags[] = {
    "-shared",     "-nostdlib",           "-s",
    "-Wl,-z,defs", "-Wl,-z,noexecstack",  "-Wl,-z,relro",
    "-Wl,-z,now",  "-Wl,--build-id=none", "-Wl,--hash-style=gnu",
    NULL,
};

static amp_status open_workshop(Workshop *w, const char *compiler, amp_error *err) {
    const char *parent = getenv("TMPDIR");
    if (!parent || !*parent) parent = "/tmp";
    w->compiler = compiler && *compiler ? compiler : "cc";
    int length = snprintf(w->folder, sizeof w->folder, "%s/ampc-XXXXXX", parent);
    if (length < 0 || (size_t)length >= sizeof w->folder)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "TMPDIR is longer than %d characters", MAX_PATH);
    if (!mkdtemp(w->folder)) {
        w->folder[0] = '\0';
        return amp_fail(err, AMP_IO, "cannot make a temporary folder in %s (set TMPDIR to another)", parent);
    }
    for (int i = 0; i < FILE_COUNT; i++) snprintf(w->path[i], sizeof w->path[i], "%s/%s", w->folder, file_names[i]);
    return AMP_OK;
}

static void close_workshop(Workshop *w) {
    if (!w->folder[0]) return;
    for (int i = 0; i < FILE_COUNT; i++) unlink(w->path[i]);
    rmdir(w->folder);
}

static int add_all(const char **argv, int count, const char *const *more) {
    for (; *more; more++) argv[count++] = *more;
    return count;
}

/* The line that says what is wrong: the first with "error", else the first. */
static void find_message(const Workshop *w, int log, const amp_allocator *a, char *out, size_t size) {
    char *text = NULL;
    size_t length = 0;
    snprintf(out, size, "it printed nothing");
    if (amp_file_read(w->path[FILE_LOG + log], 1 << 20, a, &text, &length, NULL)) return;
    const char *line = strstr(text, "error");
    while (line && line > text && line[-1] != '\n') line--;
    if (!line) line = text;
    if (*line) snprintf(out, size, "%.*s", (int)strcspn(line, "\n"), line);
    amp_free(a, text, length + 1);
}

static amp_status run(const Workshop *w, const ProcessJob *jobs, int count, const char *what, const amp_allocator *a,
                      amp_error *err) {
    char message[400];
    ProcessResult r = process_run(jobs, count);
    if (r.end == PROCESS_OK) return AMP_OK;
    if (r.end == PROCESS_NOT_STARTED)
        return amp_fail_errno(
            err, AMP_UNSUPPORTED, r.reason,
            "cannot run the C compiler '%s', which makes model.so: install gcc 12 or newer, or name another",
            w->compiler);
    find_message(w, r.job, a, message, sizeof message);
    if (WIFSIGNALED(r.reason))
        return amp_fail(err, AMP_UNSUPPORTED, "the C compiler '%s' was ended by signal %d while %s: %s", w->compiler,
                        WTERMSIG(r.reason), what, message);
    return amp_fail(err, AMP_UNSUPPORTED, "the C compiler '%s' failed while %s: %s", w->compiler, what, message);
}

static amp_status compile_units(const Workshop *w, const amp_allocator *a, amp_error *err) {
    const char *argv[UNITS][MAX_ARGS];
    ProcessJob jobs[UNITS];
    int count = 0;
    for (int i = 0; i < UNITS; i++) {
        int n = 0;
        if (units[i].isa > w->top) continue;
        argv[i][n++] = w->compiler;
        n = add_all(argv[i], n, compile_flags);
        n = add_all(argv[i], n, units[i].flags);
        argv[i][n++] = top_isa_flags[w->top];
        argv[i][n++] = w->path[FILE_C];
        argv[i][n++] = "-o";
        argv[i][n++] = w->path[units[i].object];
        argv[i][n] = NULL;
        jobs[count] = (ProcessJob){argv[i], w->path[FILE_LOG + count]};
        count++;
    }
    return run(w, jobs, count, "compiling the model", a, err);
}

static amp_status link_units(const Workshop *w, const amp_allocator *a, amp_error *err) {
    const char *argv[MAX_ARGS];
    int n = 0;
    argv[n++] = w->compiler;
    n = add_all(argv, n, link_flags);
    for (int i = 0; i < UNITS; i++)
        if (units[i].isa <= w->top) argv[n++] = w->path[units[i].object];
    argv[n++] = "-o";
    argv[n++] = w->path[FILE_SO];
    argv[n] = NULL;
    return run(w, &(ProcessJob){argv, w->path[FILE_LOG]}, 1, "linking the model", a, err);
}

static amp_status write_source(const Workshop *w, const Text *c, amp_error *err) {
    FILE *f = fopen(w->path[FILE_C], "wb");
    if (!f) return amp_fail(err, AMP_IO, "cannot write %s", w->path[FILE_C]);
    size_t written = fwrite(text_str(c), 1, c->len, f);
    bool closed = !fclose(f);
    return written == c->len && closed ? AMP_OK
                                       : amp_fail(err, AMP_IO, "cannot write %s: is the disk full?", w->path[FILE_C]);
}

static amp_status build(const Workshop *w, const Text *c, const amp_allocator *a, char **bytes, size_t *size,
                        amp_error *err) {
    AMP_TRY(write_source(w, c, err));
    AMP_TRY(compile_units(w, a, err));
    AMP_TRY(link_units(w, a, err));
    char *file = NULL;
    size_t length = 0;
    AMP_TRY(amp_file_read(w->path[FILE_SO], SO_LIMIT, a, &file, &length, err));
    amp_status status = elf_write_digest(file, length, err);
    if (!status && !(*bytes = amp_alloc(a, length)))
        status = amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for a model of %zu bytes", length);
    if (!status) memcpy(*bytes, file, *size = length);
    amp_free(a, file, length + 1);
    return status;
}

amp_status codegen_so(const Text *c, const CodegenOptions *options, char **bytes, size_t *size, amp_error *err) {
    Workshop w = {0};
    AMP_TRY(find_isa(options->isa, &w.top, err));
    amp_allocator a = amp_allocator_or_default(options->allocator);
    amp_status status = open_workshop(&w, options->c_compiler, err);
    if (!status) status = build(&w, c, &a, bytes, size, err);
    close_workshop(&w);
    return status;
}
