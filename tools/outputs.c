/* outputs.c: see outputs.h. */
#include "tools/outputs.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/elf.h"
#include "base/file.h"

/* ---- which file a path names ------------------------------------------------------------------------------------- */

typedef struct Identity {
    bool known, exists, shared; /* shared: a device or pipe, which any number of options may name */
    dev_t device;
    ino_t inode;
    char path[AMP_FILE_PATH]; /* where it does not exist */
} Identity;

static void identify(const char *path, Identity *id) {
    struct stat st;
    id->exists = stat(path, &st) == 0;
    id->known = id->exists || !amp_file_target(path, id->path, NULL);
    id->shared = id->exists && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
    if (!id->exists) return;
    id->device = st.st_dev;
    id->inode = st.st_ino;
}

static bool same_file(const char *a, const char *b) {
    Identity x, y;
    identify(a, &x);
    identify(b, &y);
    if (!x.known || !y.known || x.shared || x.exists != y.exists) return false;
    return x.exists ? x.device == y.device && x.inode == y.inode : !strcmp(x.path, y.path);
}

/* ---- what a file was written by ---------------------------------------------------------------------------------- */

enum { HEAD = 64 << 10, MODEL_MOST = 1 << 30 };

typedef struct Head { /* the first bytes of a file, with a NUL after them */
    char text[HEAD + 1];
    size_t size;
} Head;

static bool read_head(const char *path, Head *h) {
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    h->size = fread(h->text, 1, HEAD, f);
    h->text[h->size] = '\0';
    return fclose(f) == 0;
}

/* Whether the first line that is not empty starts with |start| and has |middle| after it. */
static bool first_line(const Head *h, const char *start, const char *middle) {
    const char *line = h->text + strspn(h->text, "\n"), *end = line + strcspn(line, "\n");
    if (strncmp(line, start, strlen(start)) != 0) return false;
    const char *at = strstr(line, middle);
    return at && at < end;
}

/* The header of a safetensors file follows its length in 8 bytes.  A quote inside a name is escaped there, so that this
 * is found as an entry only. */
static bool tensors_of(const Head *h, const char *format) {
    char entry[64];
    snprintf(entry, sizeof entry, "\"amp.format\":\"%s ", format);
    return h->size > 8 && h->text[8] == '{' && strlen(h->text + 8) > 2 && strstr(h->text + 8, entry);
}

static bool has_section(const char *path, const char *name) {
    char *data;
    size_t size, offset, length;
    if (amp_file_read(path, MODEL_MOST, NULL, &data, &size, NULL)) return false;
    bool found = !amp_elf_section(data, size, name, &offset, &length, NULL);
    amp_free(NULL, data, size + 1);
    return found;
}

/* Of explain and lint, of what compares models or policies, of a policy and of the list of them. */
static bool is_report(const Head *h) {
    return first_line(h, "{\"model\":", "\"decisions\":") || first_line(h, "{\"model\":", "\"findings\":") ||
           first_line(h, "{\"before\":{", "\"same\":") || first_line(h, "{\"policy\":", "\"algorithm\":") ||
           first_line(h, "{\"policies\":[", "\"algorithm\":");
}

typedef struct Kind {
    const char *name;
    const char *start, *middle; /* of its first line that is not empty; NULL: another test says */
    const char *section;        /* of ELF that it has */
    const char *format;         /* of safetensors */
} Kind;

static const Kind kinds[] = {
    [OUTPUT_MODEL] = {"a model that ampc compiled", .section = ".amp.sha256"},
    [OUTPUT_OBJECT] = {"an object that ampc compiled", .section = ".amp.ir"},
    [OUTPUT_C] = {"C that ampc wrote", "/* Model ", " by ampc "},
    [OUTPUT_IR] = {"IR that ampc wrote", "module \"", " stage "},
    [OUTPUT_CUDA] = {"CUDA C that ampc wrote", "/* Model ", " for CUDA."},
    [OUTPUT_PTX] = {"PTX that ampc wrote"},
    [OUTPUT_EXPLANATION] = {"JSON that ampc wrote"},
    [OUTPUT_DRAWING] = {"a drawing that ampc wrote", "/* Drawn by ampc explain", ""},
    [OUTPUT_REPORT] = {"a report that ampc wrote"},
    [OUTPUT_RULES] = {"a rule for make", "", ": \\"},
    [OUTPUT_ONNX] = {"empty"},
    [OUTPUT_PARAMS] = {"parameters that amprun saved", .format = "params"},
    [OUTPUT_CHECKPOINT] = {"a checkpoint", .format = "checkpoint"},
    [OUTPUT_CHOICES] = {"choices of products", .format = "choices"},
    [OUTPUT_TENSORS] = {"tensors that amprun wrote", .format = "tensors"},
    [OUTPUT_SCHEMA] = {"a schema that amprun wrote"},
    [OUTPUT_LOG] = {"a log of amprun", "{\"model\": ", "\"policy\": "},
    [OUTPUT_TRACE] = {"a trace that amprun wrote", "{\"traceEvents\":[", "\"amprun: "},
    [OUTPUT_FOLDER] = {"a folder"},
};

static bool is_of_kind(const Head *h, const char *path, OutputKind kind) {
    const Kind *k = &kinds[kind];
    if (k->start) return first_line(h, k->start, k->middle);
    if (k->section) return has_section(path, k->section);
    if (k->format) return tensors_of(h, k->format);
    switch (kind) {
    case OUTPUT_PTX: return strstr(h->text, "NVVM Compiler") && strstr(h->text, "_k00");
    case OUTPUT_EXPLANATION: return is_report(h);
    case OUTPUT_REPORT: return strstr(h->text, "<meta name=\"generator\" content=\"ampc ");
    case OUTPUT_SCHEMA: return first_line(h, "amp csv 1", "") && strstr(h->text, "\nfitted ");
    default: return false;
    }
}

bool outputs_are_own(const char *path, OutputKind kind) {
    static const Head empty;
    struct stat st;
    Head h = empty;
    if (stat(path, &st) || !S_ISREG(st.st_mode) || st.st_size == 0) return true;
    return read_head(path, &h) && is_of_kind(&h, path, kind);
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

static void add(Outputs *o, NamedFile **files, int *count, NamedFile file) {
    if (!file.path || !strcmp(file.path, "-")) return;
    NamedFile *more = realloc(*files, sizeof *more * (size_t)(*count + 1));
    if (!more) {
        o->out_of_memory = true;
        return;
    }
    *files = more;
    more[(*count)++] = file;
}

void outputs_input(Outputs *o, const char *option, const char *path) {
    add(o, &o->input, &o->inputs, (NamedFile){.option = option, .path = path});
}

void outputs_input_but(Outputs *o, const char *option, const char *path, const char *except) {
    add(o, &o->input, &o->inputs, (NamedFile){.option = option, .path = path, .except = except});
}

void outputs_output(Outputs *o, const char *option, const char *path, OutputKind kind) {
    add(o, &o->output, &o->outputs, (NamedFile){.option = option, .path = path, .kind = kind});
}

void outputs_folder(Outputs *o, const char *option, const char *path) {
    outputs_output(o, option, path, OUTPUT_FOLDER);
}

static void tell(const Outputs *o, const char *format, ...) AMP_PRINTF(2, 3);
static void tell(const Outputs *o, const char *format, ...) {
    char text[4 * AMP_FILE_PATH];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (o->report) (void)o->report("%s", text);
    else fprintf(stderr, "%s: %s\n", o->tool, text);
}

static int report_same(const Outputs *o, const NamedFile *out, const NamedFile *other, const char *why) {
    tell(o, "%s %s: is the same file as %s %s, %s; name another file", out->option, out->path, other->option,
         other->path, why);
    return 2;
}

/* |count| outputs are looked at. */
static int check_same(const Outputs *o, const NamedFile *out, int count) {
    if (o->out_of_memory) return tell(o, "no memory for the list of files"), 1;
    for (int i = 0; i < o->inputs; i++)
        if (!(o->input[i].except && !strcmp(o->input[i].except, out->option)) && same_file(out->path, o->input[i].path))
            return report_same(o, out, &o->input[i], "which is read and would be overwritten");
    for (int i = 0; i < count; i++)
        if (strcmp(out->option, o->output[i].option) && same_file(out->path, o->output[i].path))
            return report_same(o, out, &o->output[i], "which is written too");
    return 0;
}

/* The path itself or, where nothing is there, the nearest folder above it in which it can be made. */
static void find_there(const char *path, char there[AMP_FILE_PATH]) {
    struct stat st;
    snprintf(there, AMP_FILE_PATH, "%s", path);
    while (stat(there, &st) && errno == ENOENT && strcmp(there, ".") != 0 && strcmp(there, "/") != 0) {
        char *slash = strrchr(there, '/');
        if (!slash) snprintf(there, AMP_FILE_PATH, ".");
        else slash[slash == there] = '\0';
    }
}

static int check_folder(const Outputs *o, const NamedFile *out) {
    char there[AMP_FILE_PATH];
    struct stat st;
    const char *why = NULL;
    if (!*out->path) return tell(o, "%s: names no folder", out->option), 1;
    find_there(out->path, there);
    if (stat(there, &st)) why = strerror(errno);
    else if (!S_ISDIR(st.st_mode)) why = "is there already and is no folder; name another one";
    else if (access(there, W_OK | X_OK)) why = strerror(errno);
    if (!why) return 0;
    tell(o, "%s %s: %s%s%s", out->option, out->path, strcmp(there, out->path) ? there : "",
         strcmp(there, out->path) ? ": " : "", why);
    return 1;
}

/* What it would replace, and whether it can. */
static int check_target(const Outputs *o, const NamedFile *out) {
    amp_error err = {0};
    if (out->kind == OUTPUT_FOLDER) return check_folder(o, out);
    if (!o->force && !outputs_are_own(out->path, out->kind)) {
        tell(o,
             "%s %s: is there already and is not %s, so it is not replaced; name another file, or give "
             "--force",
             out->option, out->path, kinds[out->kind].name);
        return 1;
    }
    if (!amp_file_try(out->path, &err)) return 0;
    tell(o, "%s %s", out->option, err.message);
    return 1;
}

int outputs_check(const Outputs *o) {
    int wrong = 0;
    for (int i = 0; !wrong && i < o->outputs; i++) wrong = check_same(o, &o->output[i], i);
    for (int i = 0; !wrong && i < o->outputs; i++) wrong = check_target(o, &o->output[i]);
    return wrong;
}

int outputs_check_one(const Outputs *o, const char *option, const char *path, OutputKind kind) {
    NamedFile out = {.option = option, .path = path, .kind = kind};
    if (!path || !strcmp(path, "-")) return 0;
    int wrong = check_same(o, &out, o->outputs);
    return wrong ? wrong : check_target(o, &out);
}

void outputs_free(Outputs *o) {
    free(o->input);
    free(o->output);
}

/* ---- files that are gone when the tool ends ---------------------------------------------------------------------- */

const char *temporary_folder(void) {
    const char *named = getenv("TMPDIR");
    return named && *named ? named : "/tmp";
}

bool temporary_make_folder(const char *what, char path[TEMPORARY_PATH]) {
    const int length = snprintf(path, TEMPORARY_PATH, "%s/%s-XXXXXX", temporary_folder(), what);
    if (length < TEMPORARY_PATH) return mkdtemp(path) != NULL;
    errno = ENAMETOOLONG;
    return false;
}
