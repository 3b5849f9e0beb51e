/* nvrtc.c: see nvrtc.h. */
#define _GNU_SOURCE /* PATH_MAX */
#include "cuda_sdk/nvrtc.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "cuda_sdk/library_search.h"

/* ---- the log ----------------------------------------------------------------------------------------------------- */

/* Lines that it has:
 *
 *     k.cu(2): error: identifier "y" is undefined
 *         x[0] = y;
 *                ^
 *     ptxas application ptx input, line 23; error   : Not a name of any known instruction: 'bogus'
 *     ptxas error   : Entry function 'k' uses too much shared data (0x61a80 bytes, 0xc000 max)
 *     nvrtc: error: invalid value for --gpu-architecture (-arch)
 *
 *     ptxas info    : Compiling entry function 'k' for 'sm_80'
 *     ptxas info    : Function properties for k
 *     ptxas         .     1712 bytes stack frame, 964 bytes spill stores, 1372 bytes spill loads
 *     ptxas info    : Used 64 registers, used 1 barriers, 1712 bytes cumulative stack size, 128 bytes smem
 */

/* One line of a text, without its end. */
typedef struct Line {
    const char *text;
    size_t size;
} Line;

static bool next_line(const char **at, Line *line) {
    if (!**at) return false;
    line->text = *at;
    line->size = strcspn(*at, "\n");
    *at += line->size + ((*at)[line->size] == '\n');
    return true;
}

/* Where |word| begins in the line; NULL: nowhere. */
static const char *find(Line line, const char *word) {
    size_t size = strlen(word);
    for (size_t i = 0; i + size <= line.size; i++)
        if (!memcmp(line.text + i, word, size)) return line.text + i;
    return NULL;
}

/* The number before |unit|, as in "964 bytes spill stores". */
static bool number_before(Line line, const char *unit, int *out) {
    const char *end = find(line, unit);
    if (!end) return false;
    const char *start = end;
    while (start > line.text && start[-1] >= '0' && start[-1] <= '9') start--;
    if (start == end) return false;
    *out = atoi(start);
    return true;
}

/* 'name' after "entry function ". */
static void copy_entry_name(Line line, char *out, size_t size) {
    const char *start = find(line, "'");
    size_t room = start ? line.size - (size_t)(start + 1 - line.text) : 0, n = 0;
    while (n < room && n + 1 < size && start[1 + n] != '\'') n++;
    if (n) memcpy(out, start + 1, n);
    out[n] = '\0';
}

int amp_nvrtc_log_uses(const char *log, amp_nvrtc_kernel_use *uses, int size) {
    int count = 0;
    amp_nvrtc_kernel_use unused, *use = NULL;
    bool own_properties = false; /* device functions that are not inlined have properties, too */
    for (Line line; next_line(&log, &line);) {
        if (find(line, "Compiling entry function")) {
            use = count < size ? &uses[count] : &unused;
            count++;
            *use = (amp_nvrtc_kernel_use){.name = ""};
            copy_entry_name(line, use->name, sizeof use->name);
        } else if (use && find(line, "Function properties for ")) {
            const char *name = find(line, "Function properties for ") + strlen("Function properties for ");
            size_t length = line.size - (size_t)(name - line.text);
            own_properties = length == strlen(use->name) && !memcmp(name, use->name, length);
        } else if (use && own_properties && find(line, " bytes stack frame")) {
            number_before(line, " bytes stack frame", &use->stack_bytes);
            number_before(line, " bytes spill stores", &use->spill_stores);
            number_before(line, " bytes spill loads", &use->spill_loads);
        } else if (use && number_before(line, " registers", &use->registers)) {
            number_before(line, " bytes cumulative stack size", &use->stack_bytes);
            number_before(line, " bytes smem", &use->shared_bytes);
        }
    }
    return count;
}

/* An error's line is not indented, as echoed source is; what follows "error" up to the colon is the message. */
static const char *message_of(Line line) {
    static const char *const marks[] = {"catastrophic error: ", " error: ", "error   : ", "fatal   : "};
    if (line.size == 0 || line.text[0] == ' ' || find(line, "): warning ")) return NULL;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const char *at = find(line, marks[i]);
        if (at) return at + strlen(marks[i]);
    }
    return NULL;
}

/* The number in "name(2): "; 0: none. */
static int line_number(Line line, const char *name) {
    size_t size = strlen(name);
    if (line.size <= size || memcmp(line.text, name, size) || line.text[size] != '(') return 0;
    return atoi(line.text + size + 1);
}

static Line source_line(const char *source, int number) {
    Line line = {"", 0};
    for (int i = 0; i < number; i++)
        if (!next_line(&source, &line)) return (Line){"", 0};
    while (line.size && (*line.text == ' ' || *line.text == '\t')) line.text++, line.size--;
    return line;
}

void amp_nvrtc_log_error(const char *log, const char *name, const char *source, char *out, size_t size) {
    const char *at = log;
    for (Line line; next_line(&at, &line);) {
        const char *message = message_of(line);
        if (!message) continue;
        int length = (int)(line.size - (size_t)(message - line.text)), number = line_number(line, name);
        Line text = source_line(source, number);
        if (text.size)
            snprintf(out, size, "%s, line %d: %.*s: `%.*s`", name, number, length, message,
                     (int)(text.size < 200 ? text.size : 200), text.text);
        else snprintf(out, size, "%s: %.*s", name, (int)line.size, line.text);
        return;
    }
    snprintf(out, size, "%.*s", (int)strcspn(log, "\n"), log);
}

/* ---- the library ------------------------------------------------------------------------------------------------- */

enum {
    OLDEST_VERSION = 12000,
    NO_CACHE_VERSION = 12090, /* has --no-cache; what is older has no cache */
    MINIMAL_VERSION = 12040,
    MAX_ARCHITECTURES = 64,
    OWN_OPTIONS = 5
};
enum { NVRTC_OUT_OF_MEMORY = 1, NVRTC_INVALID_OPTION = 5, NVRTC_COMPILATION = 6, NVRTC_BUILTIN_FAILURE = 7 };

typedef struct NvrtcProgram *Program;

/* X(name, symbol, parameters): `int name parameters`, an nvrtcResult. */
#define NVRTC_CALLS(X)                                                                                                 \
    X(version, nvrtcVersion, (int *major, int *minor))                                                                 \
    X(arch_count, nvrtcGetNumSupportedArchs, (int *count))                                                             \
    X(archs, nvrtcGetSupportedArchs, (int *archs))                                                                     \
    X(create, nvrtcCreateProgram,                                                                                      \
      (Program * program, const char *source, const char *name, int header_count, const char *const *headers,          \
       const char *const *include_names))                                                                              \
    X(destroy, nvrtcDestroyProgram, (Program * program))                                                               \
    X(compile, nvrtcCompileProgram, (Program program, int option_count, const char *const *options))                   \
    X(ptx_size, nvrtcGetPTXSize, (Program program, size_t * size))                                                     \
    X(ptx, nvrtcGetPTX, (Program program, char *ptx))                                                                  \
    X(cubin_size, nvrtcGetCUBINSize, (Program program, size_t * size))                                                 \
    X(cubin, nvrtcGetCUBIN, (Program program, char *cubin))                                                            \
    X(log_size, nvrtcGetProgramLogSize, (Program program, size_t * size))                                              \
    X(log, nvrtcGetProgramLog, (Program program, char *log))

typedef struct Calls {
#define NVRTC_MEMBER(name, symbol, parameters) int(*name) parameters;
    NVRTC_CALLS(NVRTC_MEMBER)
#undef NVRTC_MEMBER
    const char *(*error_text)(int result);
} Calls;

struct amp_nvrtc {
    amp_allocator allocator;
    Calls calls;
    void *library;
    int version, arch_count;
    int archs[MAX_ARCHITECTURES];
    char path[PATH_MAX];
    char build[96];
};

/* ---- opening ---- */

static const char symbols[] =
#define NVRTC_SYMBOL(name, symbol, parameters) #symbol "\0"
    NVRTC_CALLS(NVRTC_SYMBOL) "nvrtcGetErrorString\0";
#undef NVRTC_SYMBOL

/* ctx: the amp_nvrtc to fill. */
static amp_status accept_library(void *ctx, void *library, amp_error *err) {
    amp_nvrtc *nvrtc = ctx;
    AMP_TRY(amp_library_fill(library, symbols, &nvrtc->calls, err));
    int major = 0, minor = 0, count = 0;
    if (nvrtc->calls.version(&major, &minor)) return amp_fail(err, AMP_BAD_FILE, "it does not report its version");
    nvrtc->version = 1000 * major + 10 * minor;
    if (nvrtc->version < OLDEST_VERSION)
        return amp_fail(err, AMP_BAD_FILE, "it is version %d.%d, and 12.0 or newer is needed", major, minor);
    if (nvrtc->calls.arch_count(&count) || count <= 0 || count > MAX_ARCHITECTURES || nvrtc->calls.archs(nvrtc->archs))
        return amp_fail(err, AMP_BAD_FILE, "it does not report its architectures");
    nvrtc->arch_count = count;
    return AMP_OK;
}

const amp_library_places amp_nvrtc_places = {.variable = "NVRTC_PATH",
                                             .names = "libnvrtc.so.13\0libnvrtc.so.12\0libnvrtc.so\0",
                                             .wheels = "nvidia/cu1[3-9]/lib\0nvidia/cuda_nvrtc/lib\0",
                                             .title = "NVIDIA's NVRTC (libnvrtc.so.13 or .12)",
                                             .package = "nvidia-cuda-nvrtc"};

typedef struct BuildOf {
    ElfW(Addr) address; /* of the library */
    char *text;
    size_t size;
} BuildOf;

static size_t padded(uint32_t size) { return ((size_t)size + 3) / 4 * 4; }

/* Appends the build ID among the notes from |at| on, if their sizes are sound. */
static void add_build_id_of(const BuildOf *of, const unsigned char *at, size_t left) {
    ElfW(Nhdr) note;
    while (left >= sizeof note) {
        memcpy(&note, at, sizeof note);
        at += sizeof note, left -= sizeof note;
        const size_t name = padded(note.n_namesz), id = padded(note.n_descsz);
        if (name > left || id > left - name) return;
        for (uint32_t b = 0; note.n_type == NT_GNU_BUILD_ID && b < note.n_descsz; b++) {
            const size_t used = strlen(of->text);
            snprintf(of->text + used, of->size - used, "%02x", at[name + b]);
        }
        at += name + id, left -= name + id;
    }
}

static int look_at_object(struct dl_phdr_info *info, size_t unused, void *ctx) {
    (void)unused;
    const BuildOf *of = ctx;
    if (info->dlpi_addr != of->address) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE)
            add_build_id_of(of, (const unsigned char *)of->address + info->dlpi_phdr[i].p_vaddr,
                            info->dlpi_phdr[i].p_memsz);
    return 1;
}

static void find_build(amp_nvrtc *nvrtc) {
    struct link_map *map = NULL;
    struct stat file;
    if (dlinfo(nvrtc->library, RTLD_DI_LINKMAP, &map) || !map) return;
    if (!stat(nvrtc->path, &file)) snprintf(nvrtc->build, sizeof nvrtc->build, "%lld bytes ", (long long)file.st_size);
    BuildOf of = {map->l_addr, nvrtc->build, sizeof nvrtc->build};
    dl_iterate_phdr(look_at_object, &of);
}

amp_status amp_nvrtc_open(const amp_allocator *allocator, amp_nvrtc **out, amp_error *err) {
    *out = NULL;
    amp_nvrtc *nvrtc = amp_alloc_zeroed(allocator, sizeof *nvrtc);
    if (!nvrtc) return amp_fail(err, AMP_OUT_OF_MEMORY, "out of memory while opening NVRTC");
    nvrtc->allocator = amp_allocator_or_default(allocator);
    amp_status status = amp_library_search(&amp_nvrtc_places, accept_library, nvrtc, &nvrtc->library, err);
    if (status) {
        amp_nvrtc_close(nvrtc);
        return status;
    }
    amp_library_path(nvrtc->library, nvrtc->path, sizeof nvrtc->path);
    find_build(nvrtc);
    *out = nvrtc;
    return AMP_OK;
}

void amp_nvrtc_close(amp_nvrtc *nvrtc) {
    if (!nvrtc) return;
    amp_allocator allocator = nvrtc->allocator;
    if (nvrtc->library) dlclose(nvrtc->library);
    amp_free(&allocator, nvrtc, sizeof *nvrtc);
}

int amp_nvrtc_version(const amp_nvrtc *nvrtc) { return nvrtc->version; }
const char *amp_nvrtc_path(const amp_nvrtc *nvrtc) { return nvrtc->path; }
const char *amp_nvrtc_build(const amp_nvrtc *nvrtc) { return nvrtc->build; }

int amp_nvrtc_architectures(const amp_nvrtc *nvrtc, int *out, int size) {
    for (int i = 0; i < nvrtc->arch_count && i < size; i++) out[i] = nvrtc->archs[i];
    return nvrtc->arch_count;
}

/* ---- compiling ---- */

/* minimal: without declarations of textures and of the CUDA runtime, which take up to a tenth of a compilation. */
static const char verbose[] = "--ptxas-options=-v", no_cache[] = "--no-cache", minimal[] = "--minimal";

typedef struct Options {
    char arch[32];
    const char **list;
    int count;
    size_t bytes;
} Options;

static amp_status make_options(const amp_nvrtc *nvrtc, const amp_nvrtc_job *job, Options *o, amp_error *err) {
    o->bytes = (OWN_OPTIONS + (size_t)job->option_count) * sizeof *o->list;
    o->list = amp_alloc(&nvrtc->allocator, o->bytes);
    if (!o->list) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: out of memory before compiling", job->name);
    snprintf(o->arch, sizeof o->arch, "--gpu-architecture=%s_%d", job->cubin ? "sm" : "compute", job->arch);
    if (job->suffix) strncat(o->arch, &job->suffix, 1);
    o->list[o->count++] = o->arch;
    o->list[o->count++] = AMP_NVRTC_OPTIONS;
    if (job->cubin) o->list[o->count++] = verbose;
    if (nvrtc->version >= MINIMAL_VERSION) o->list[o->count++] = minimal;
    if (nvrtc->version >= NO_CACHE_VERSION) o->list[o->count++] = no_cache;
    for (int i = 0; i < job->option_count; i++) o->list[o->count++] = job->options[i];
    return AMP_OK;
}

/* false: it is not there. */
static bool drop_option(Options *o, const char *option) {
    for (int i = 0; i < o->count; i++)
        if (o->list[i] == option) {
            o->count--;
            memmove(o->list + i, o->list + i + 1, (size_t)(o->count - i) * sizeof *o->list);
            return true;
        }
    return false;
}

static void free_options(const amp_nvrtc *nvrtc, Options *o) { amp_free(&nvrtc->allocator, o->list, o->bytes); }

/* The result of NVRTC; |program| is to be destroyed also after a failure. */
static int run_once(const amp_nvrtc *nvrtc, const amp_nvrtc_job *job, const Options *o, Program *program) {
    if (*program) nvrtc->calls.destroy(program);
    *program = NULL;
    int result = nvrtc->calls.create(program, job->source, job->name, 0, NULL, NULL);
    return result ? result : nvrtc->calls.compile(*program, o->count, o->list);
}

static int run(const amp_nvrtc *nvrtc, const amp_nvrtc_job *job, Options *o, Program *program) {
    int result = run_once(nvrtc, job, o, program);
    if (result == NVRTC_INVALID_OPTION && drop_option(o, no_cache)) result = run_once(nvrtc, job, o, program);
    if (result == NVRTC_INVALID_OPTION && drop_option(o, minimal)) result = run_once(nvrtc, job, o, program);
    /* With -v, the log of 13.0 lacks some errors of ptxas (too much shared memory). */
    if (result == NVRTC_COMPILATION && drop_option(o, verbose)) result = run_once(nvrtc, job, o, program);
    return result;
}

/* One of the program's texts; size 0 where there is none. */
static amp_status copy_part(const amp_nvrtc *nvrtc, const amp_nvrtc_job *job, Program program,
                            int (*get_size)(Program, size_t *), int (*get)(Program, char *), char **data, size_t *size,
                            amp_error *err) {
    size_t bytes = 0;
    if (get_size(program, &bytes) || bytes == 0) return AMP_OK;
    char *copy = amp_alloc(&nvrtc->allocator, bytes);
    if (!copy)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: out of memory for %zu bytes of compiled code", job->name, bytes);
    *data = copy;
    *size = bytes;
    int result = get(program, copy);
    if (!result) return AMP_OK;
    return amp_fail(err, AMP_INTERNAL, "%s: NVRTC did not return the compiled code: %s", job->name,
                    nvrtc->calls.error_text(result));
}

static amp_status copy_uses(const amp_nvrtc *nvrtc, const amp_nvrtc_job *job, amp_nvrtc_result *out, amp_error *err) {
    int count = out->log ? amp_nvrtc_log_uses(out->log, NULL, 0) : 0;
    if (count == 0) return AMP_OK;
    out->uses = amp_alloc(&nvrtc->allocator, (size_t)count * sizeof *out->uses);
    if (!out->uses) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: out of memory after compiling", job->name);
    out->use_count = amp_nvrtc_log_uses(out->log, out->uses, count);
    return AMP_OK;
}

static bool knows(const amp_nvrtc *nvrtc, int arch) {
    for (int i = 0; i < nvrtc->arch_count; i++)
        if (nvrtc->archs[i] == arch) return true;
    return false;
}

static amp_status fail_compile(const amp_nvrtc *nvrtc, const amp_nvrtc_job *job, int result, const char *log,
                               amp_error *err) {
    static const struct {
        int result;
        amp_status status;
    } kinds[] = {{NVRTC_OUT_OF_MEMORY, AMP_OUT_OF_MEMORY},
                 {NVRTC_INVALID_OPTION, AMP_UNSUPPORTED},
                 {NVRTC_COMPILATION, AMP_BAD_SOURCE},
                 {NVRTC_BUILTIN_FAILURE, AMP_NOT_FOUND}};
    amp_status status = AMP_INTERNAL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].result == result) status = kinds[i].status;
    char first[800] = "";
    if (log) amp_nvrtc_log_error(log, job->name, job->source, first, sizeof first);
    if (status == AMP_BAD_SOURCE && *first) return amp_fail(err, status, "%s", first);
    return amp_fail(err, status, "%s: %s (NVRTC %d.%d in %s)%s%s", job->name, nvrtc->calls.error_text(result),
                    nvrtc->version / 1000, nvrtc->version % 1000 / 10, nvrtc->path, *first ? ": " : "", first);
}

static amp_status take_results(const amp_nvrtc *nvrtc, const amp_nvrtc_job *job, int result, Program program,
                               amp_nvrtc_result *out, amp_error *err) {
    const Calls *c = &nvrtc->calls;
    if (program) AMP_TRY(copy_part(nvrtc, job, program, c->log_size, c->log, &out->log, &out->log_size, err));
    if (result) return fail_compile(nvrtc, job, result, out->log, err);
    AMP_TRY(copy_part(nvrtc, job, program, c->ptx_size, c->ptx, &out->ptx, &out->ptx_size, err));
    if (!job->cubin) return AMP_OK;
    AMP_TRY(copy_part(nvrtc, job, program, c->cubin_size, c->cubin, &out->cubin, &out->cubin_size, err));
    return copy_uses(nvrtc, job, out, err);
}

amp_status amp_nvrtc_compile(const amp_nvrtc *nvrtc, const amp_nvrtc_job *job, amp_nvrtc_result *out, amp_error *err) {
    *out = (amp_nvrtc_result){0};
    if (!knows(nvrtc, job->arch))
        return amp_fail(
            err, AMP_UNSUPPORTED,
            "%s: NVRTC %d.%d in %s does not compile for sm_%d, but for sm_%d to sm_%d; install another version",
            job->name, nvrtc->version / 1000, nvrtc->version % 1000 / 10, nvrtc->path, job->arch, nvrtc->archs[0],
            nvrtc->archs[nvrtc->arch_count - 1]);
    Options options = {.list = NULL};
    AMP_TRY(make_options(nvrtc, job, &options, err));
    Program program = NULL;
    double start = amp_seconds();
    int result = run(nvrtc, job, &options, &program);
    out->seconds = amp_seconds() - start;
    amp_status status = take_results(nvrtc, job, result, program, out, err);
    if (program) nvrtc->calls.destroy(&program);
    free_options(nvrtc, &options);
    if (status) amp_nvrtc_result_free(nvrtc, out);
    return status;
}

static int local_bytes(const amp_nvrtc_result *r) {
    int sum = 0;
    for (int i = 0; i < r->use_count; i++)
        sum += r->uses[i].stack_bytes + r->uses[i].spill_stores + r->uses[i].spill_loads;
    return sum;
}

amp_status amp_nvrtc_compile_lean(const amp_nvrtc *nvrtc, const amp_nvrtc_job *job, const char *lean,
                                  amp_nvrtc_result *out, amp_error *err) {
    amp_nvrtc_job again = *job;
    amp_nvrtc_result other;
    AMP_TRY(amp_nvrtc_compile(nvrtc, job, out, err));
    if (!local_bytes(out)) return AMP_OK;
    again.options = &lean;
    again.option_count = 1;
    if (amp_nvrtc_compile(nvrtc, &again, &other, NULL)) return AMP_OK; /* what there is serves */
    other.seconds += out->seconds;
    if (local_bytes(&other) < local_bytes(out)) {
        const amp_nvrtc_result first = *out;
        *out = other;
        other = first;
    }
    amp_nvrtc_result_free(nvrtc, &other);
    return AMP_OK;
}

void amp_nvrtc_result_free(const amp_nvrtc *nvrtc, amp_nvrtc_result *result) {
    const amp_allocator *a = &nvrtc->allocator;
    amp_free(a, result->ptx, result->ptx_size);
    amp_free(a, result->cubin, result->cubin_size);
    amp_free(a, result->log, result->log_size);
    amp_free(a, result->uses, (size_t)result->use_count * sizeof *result->uses);
    *result = (amp_nvrtc_result){0};
}
