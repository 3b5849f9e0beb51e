/* so_writer.c: model.so by way of a C compiler.
 *
 *     model.c  ->  v4.o, v3.o, portable.o, tables.o  ->  model.so  ->  its digest
 *
 * No flag lets the compiler reorder or contract arithmetic.  -O1, because kernels are vector code already: -O2 takes
 * half as long again and was measured to make them no faster.  The result needs no other library, exports
 * amp_model_query alone, holds no path and no date: the same module and the same compiler give the same bytes.
 */
#define _POSIX_C_SOURCE 200809L /* mkdtemp */
#include "codegen/codegen.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "amp/model_abi.h"
#include "base/file.h"
#include "base/hash.h"
#include "codegen/c_compiler.h"
#include "codegen/process.h"

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

enum { MAX_PATH = 512, MAX_ARGS = 64, SO_LIMIT = 1 << 30, MACHINE_LIMIT = 128 };

typedef enum TempFile { FILE_C, FILE_SO, FILE_LOG, FILE_OBJECT = FILE_LOG + COMPILER_MAX_UNITS } TempFile;
enum { FILE_COUNT = FILE_OBJECT + COMPILER_MAX_UNITS };

typedef struct Workshop { /* the temporary folder */
    CCompiler compiler;
    ProcessCancel cancel;
    IsaRange isa;
    bool object;
    char folder[MAX_PATH];
    char path[FILE_COUNT][MAX_PATH + 32];
} Workshop;

static const char *const top_isa_flags[AMP_ISA_COUNT] = {
    [AMP_ISA_PORTABLE] = "-DAMP_TOP_ISA=0", [AMP_ISA_V3] = "-DAMP_TOP_ISA=1", [AMP_ISA_V4] = "-DAMP_TOP_ISA=2"};
static const char *const lowest_isa_flags[AMP_ISA_COUNT] = {
    [AMP_ISA_V3] = "-DAMP_LOWEST_ISA=1", [AMP_ISA_V4] = "-DAMP_LOWEST_ISA=2"};

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
/* A bit for each address in place of 24 bytes: AMP_MODEL_ADDRESSES_SECTION. */
static const char *const pack_flags[] = {"-Wl,-z,pack-relative-relocs", NULL};

/* One object of all units; "-r" alone would make some compilers add start-up code. */
static const char *const merge_flags[] = {"-r", "-nostdlib", NULL};

static void name_files(Workshop *w) {
    for (int i = 0; i < FILE_COUNT; i++) {
        char *path = w->path[i];
        size_t room = sizeof w->path[i];
        if (i == FILE_C) snprintf(path, room, "%s/model.c", w->folder);
        else if (i == FILE_SO) snprintf(path, room, "%s/model.so", w->folder);
        else if (i < FILE_OBJECT) snprintf(path, room, "%s/log%d", w->folder, i - FILE_LOG);
        else snprintf(path, room, "%s/part%d.o", w->folder, i - FILE_OBJECT);
    }
}

static amp_status open_workshop(Workshop *w, amp_error *err) {
    const char *parent = getenv("TMPDIR");
    if (!parent || !*parent) parent = "/tmp";
    int length = snprintf(w->folder, sizeof w->folder, "%s/ampc-XXXXXX", parent);
    if (length < 0 || (size_t)length >= sizeof w->folder)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "TMPDIR is longer than %d characters", MAX_PATH);
    if (!mkdtemp(w->folder)) {
        w->folder[0] = '\0';
        return amp_fail(err, AMP_IO, "cannot make a temporary folder in %s (set TMPDIR to another)", parent);
    }
    name_files(w);
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
    ProcessResult r = process_run(jobs, count, &w->cancel);
    if (r.end == PROCESS_OK) return AMP_OK;
    if (r.end == PROCESS_CANCELLED) return amp_fail(err, AMP_CANCELLED, "cancelled while %s", what);
    if (r.end == PROCESS_NOT_STARTED)
        return amp_fail_errno(
            err, AMP_UNSUPPORTED, r.reason,
            "cannot run the C compiler '%s', which makes model.so: install gcc 12 or newer, or name another",
            w->compiler.command);
    find_message(w, r.job, a, message, sizeof message);
    if (r.reason >= 0 && WIFSIGNALED(r.reason))
        return amp_fail(err, AMP_UNSUPPORTED, "the C compiler '%s' was ended by signal %d while %s: %s",
                        w->compiler.command, WTERMSIG(r.reason), what, message);
    return amp_fail(err, AMP_UNSUPPORTED, "the C compiler '%s' failed while %s: %s", w->compiler.command, what,
                    message);
}

/* The words of the compiler's command, to which arguments are added. */
static int begin_command(const Workshop *w, const char **argv) {
    for (int i = 0; i < w->compiler.word_count; i++) argv[i] = w->compiler.words[i];
    return w->compiler.word_count;
}

/* Asks the compiler which machines it makes code for.  One that does not understand the question is none of gcc's or
 * clang's kind. */
static amp_status find_machine(Workshop *w, const amp_allocator *a, amp_error *err) {
    const char *argv[MAX_ARGS];
    char *text = NULL;
    size_t length = 0;
    int n = begin_command(w, argv);
    argv[n++] = "-dumpmachine";
    argv[n] = NULL;
    ProcessJob job = {argv, w->path[FILE_LOG], w->path[FILE_LOG]};
    ProcessResult r = process_run(&job, 1, &w->cancel);
    if (r.end == PROCESS_CANCELLED) return amp_fail(err, AMP_CANCELLED, "cancelled before compiling the model");
    if (r.end == PROCESS_NOT_STARTED) return run(w, &job, 1, "asking for its machine", a, err);
    bool known = r.end == PROCESS_OK && !amp_file_read(w->path[FILE_LOG], MACHINE_LIMIT, a, &text, &length, NULL);
    c_compiler_set_machine(&w->compiler, known && *text ? text : NULL);
    if (known) amp_free(a, text, length + 1);
    return AMP_OK;
}

static bool is_wanted(const Workshop *w, const CompilerUnit *u) {
    return u->isa == EVERY_ISA || (w->isa.lowest <= u->isa && u->isa <= w->isa.top);
}

static amp_status compile_units(const Workshop *w, const amp_allocator *a, amp_error *err) {
    const CompilerTarget *target = w->compiler.target;
    const char *argv[COMPILER_MAX_UNITS][MAX_ARGS];
    ProcessJob jobs[COMPILER_MAX_UNITS];
    int count = 0;
    for (int i = 0; i < target->unit_count; i++) {
        if (!is_wanted(w, &target->units[i])) continue;
        int n = begin_command(w, argv[i]);
        n = add_all(argv[i], n, compile_flags);
        n = add_all(argv[i], n, target->flags);
        n = add_all(argv[i], n, target->units[i].flags);
        argv[i][n++] = top_isa_flags[w->isa.top];
        if (w->isa.lowest) argv[i][n++] = lowest_isa_flags[w->isa.lowest];
        if (w->object) argv[i][n++] = "-DAMP_STATIC";
        argv[i][n++] = w->path[FILE_C];
        argv[i][n++] = "-o";
        argv[i][n++] = w->path[FILE_OBJECT + i];
        argv[i][n] = NULL;
        jobs[count] = (ProcessJob){argv[i], w->path[FILE_LOG + count], w->path[FILE_OBJECT + i]};
        count++;
    }
    return run(w, jobs, count, "compiling the model", a, err);
}

static amp_status link_with(const Workshop *w, const char *const *flags, const char *const *more,
                            const amp_allocator *a, amp_error *err) {
    const CompilerTarget *target = w->compiler.target;
    const char *argv[MAX_ARGS];
    int n = begin_command(w, argv);
    n = add_all(argv, n, flags);
    n = add_all(argv, n, more);
    for (int i = 0; i < target->unit_count; i++)
        if (is_wanted(w, &target->units[i])) argv[n++] = w->path[FILE_OBJECT + i];
    argv[n++] = "-o";
    argv[n++] = w->path[FILE_SO];
    argv[n] = NULL;
    return run(w, &(ProcessJob){argv, w->path[FILE_LOG], w->path[FILE_SO]}, 1, "linking the model", a, err);
}

/* Some linkers, such as gold, refuse what they do not know. */
static amp_status link_units(const Workshop *w, const amp_allocator *a, amp_error *err) {
    static const char *const none[] = {NULL};
    if (w->object) return link_with(w, merge_flags, none, a, err);
    amp_status status = link_with(w, link_flags, pack_flags, a, NULL);
    return status == AMP_UNSUPPORTED ? link_with(w, link_flags, none, a, err) : status;
}

static amp_status write_source(const Workshop *w, const Text *c, amp_error *err) {
    int fd = open(w->path[FILE_C], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return amp_fail_errno(err, AMP_IO, errno, "cannot write %s", w->path[FILE_C]);
    bool written = amp_fd_write(fd, text_str(c), (size_t)c->len) == (size_t)c->len;
    int reason = errno;
    if (close(fd) && written) written = false, reason = errno;
    return written ? AMP_OK : amp_fail_errno(err, AMP_IO, reason, "cannot write %s", w->path[FILE_C]);
}

static amp_status build(const Workshop *w, const Text *c, const amp_allocator *a, char **bytes, size_t *size,
                        amp_error *err) {
    AMP_TRY(write_source(w, c, err));
    AMP_TRY(compile_units(w, a, err));
    AMP_TRY(link_units(w, a, err));
    char *file = NULL;
    size_t length = 0;
    AMP_TRY(amp_file_read(w->path[FILE_SO], SO_LIMIT, a, &file, &length, err));
    amp_status status = w->object ? AMP_OK : elf_write_digest(file, length, err);
    if (!status && !(*bytes = amp_alloc(a, length)))
        status = amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for a model of %zu bytes", length);
    if (!status) memcpy(*bytes, file, *size = length);
    amp_free(a, file, length + 1);
    return status;
}

amp_status codegen_so(const Text *c, const CodegenOptions *options, char **bytes, size_t *size, amp_error *err) {
    Workshop w = {.object = options->object, .cancel = options->cancel};
    AMP_TRY(c_compiler_read(&w.compiler, options->c_compiler, err));
    amp_allocator a = amp_allocator_or_default(options->allocator);
    amp_status status = open_workshop(&w, err);
    if (!status) status = find_machine(&w, &a, err);
    if (!status) status = c_compiler_find_isa(&w.compiler, options->isa, &w.isa, err);
    if (!status) status = build(&w, c, &a, bytes, size, err);
    close_workshop(&w);
    return status;
}
