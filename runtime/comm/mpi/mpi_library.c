/* mpi_library.c: see mpi_library.h. */
#define _GNU_SOURCE /* dladdr, RTLD_DEFAULT */
#include "runtime/comm/mpi/mpi_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "runtime/comm/launcher.h"

static const char *const call_names[] = {
#define CALL_NAME(name, parameters) "MPI_" #name,
    AMP_MPI_CALLS(CALL_NAME, int)
#undef CALL_NAME
};

const char *amp_mpi_call_name(amp_mpi_call call) { return call_names[call]; }

/* Calls without handles are the same in every MPI. */
#define FLAG_OF(m, name, out) ((int (*)(int *))(m)->calls[AMP_MPI_##name])(out)
#define TEXT_OF(m, name, text, length) ((int (*)(char *, int *))(m)->calls[AMP_MPI_##name])(text, length)

int amp_mpi_finalize(const amp_mpi *m) { return ((int (*)(void))m->calls[AMP_MPI_Finalize])(); }

int amp_mpi_state(const amp_mpi *m, int *initialized, int *finalized) {
    *initialized = *finalized = 0;
    int status = FLAG_OF(m, Initialized, initialized);
    return status ? status : FLAG_OF(m, Finalized, finalized);
}

amp_status amp_mpi_fail(const amp_mpi *m, amp_mpi_call call, int code, amp_error *err) {
    char text[AMP_MPI_ERROR_MOST] = "";
    int length = 0;
    int (*error_string)(int, char *, int *) = (int (*)(int, char *, int *))m->calls[AMP_MPI_Error_string];
    if (error_string(code, text, &length)) text[0] = '\0';
    text[sizeof text - 1] = '\0';
    return amp_fail(err, AMP_PEER_FAILED, "%s: %s (%d; %s)", amp_mpi_call_name(call),
                    text[0] ? text : "an error without a text", code, m->name);
}

/* ---- which kind -------------------------------------------------------------------------------------------------- */

/* Its first words: "Open MPI v4.1.4, package: ..", "MPICH Version:\t4.0.2\nMPICH Release date: ..". */
static void read_version(const amp_mpi *m, char *out, size_t size) {
    char text[AMP_MPI_VERSION_MOST] = "";
    int length = 0;
    if (TEXT_OF(m, Get_library_version, text, &length)) text[0] = '\0';
    text[sizeof text - 1] = '\0';
    text[strcspn(text, ",\r\n")] = '\0';
    for (char *tab = text; (tab = strchr(tab, '\t')); tab++) *tab = ' ';
    snprintf(out, size, "%.100s", text[0] ? text : "an MPI without a version");
}

/* By the file's name, because libmpi_abi may bring the variables of an Open MPI with it; by these; by what the library
 * calls itself.  That an MPI has MPI_Abi_get_version says nothing: MPICH's own libmpi has it. */
static const amp_mpi_dialect *dialect_of(const amp_mpi *m, const char *file, const char *version) {
    static const char *const mpich[] = {"MPICH", "Intel(R) MPI", "MVAPICH"};
    const char *slash = strrchr(file, '/');
    if (!strncmp(slash ? slash + 1 : file, "libmpi_abi", strlen("libmpi_abi"))) return &amp_mpi_abi;
    if (dlsym(m->library, "ompi_mpi_comm_world")) return &amp_mpi_openmpi;
    for (size_t i = 0; i < sizeof mpich / sizeof *mpich; i++)
        if (strstr(version, mpich[i])) return &amp_mpi_mpich;
    return NULL;
}

/* The file that the library really is. */
static const char *file_of(const amp_mpi *m, const char *asked) {
    Dl_info info;
    void *address = dlsym(m->library, "MPI_Initialized");
    return address && dladdr(address, &info) && info.dli_fname ? info.dli_fname : asked;
}

static amp_status find_calls(amp_mpi *m, const char *file, amp_error *err) {
    for (int i = 0; i < AMP_MPI_CALL_COUNT; i++) {
        void *address = dlsym(m->library, call_names[i]);
        if (!address)
            return amp_fail(err, AMP_BAD_FILE, "%s is no MPI of version 3 or newer: it has no %s", file, call_names[i]);
        memcpy(&m->calls[i], &address, sizeof address); /* POSIX: pointers to functions are like those to data */
    }
    return AMP_OK;
}

static amp_status recognise(amp_mpi *m, const char *asked, amp_error *err) {
    char version[128];
    const char *file = file_of(m, asked);
    AMP_TRY(find_calls(m, file, err));
    read_version(m, version, sizeof version);
    const char *tail = strlen(file) > 90 && strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
    snprintf(m->name, sizeof m->name, "%.90s, %.100s", tail, version);
    m->dialect = dialect_of(m, file, version);
    if (!m->dialect)
        return amp_fail(err, AMP_UNSUPPORTED,
                        "%s: not a known kind of MPI; Open MPI, MPICH, Intel MPI, MVAPICH, and libmpi_abi.so.1 of any "
                        "MPI are",
                        m->name);
    if (!m->dialect->find_handles(m))
        return amp_fail(err, AMP_UNSUPPORTED, "%s: it lacks variables that Open MPI has", m->name);
    return AMP_OK;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static const int mode = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;

/* The handle of what the process has linked: its file, opened once more. */
static void *linked(void) {
    Dl_info info;
    void *address = dlsym(RTLD_DEFAULT, "MPI_Initialized");
    return address && dladdr(address, &info) && info.dli_fname ? dlopen(info.dli_fname, mode | RTLD_NOLOAD) : NULL;
}

static amp_status fail_not_found(bool loaded, const char *tried, amp_error *err) {
    if (loaded)
        return amp_fail(err, AMP_NOT_FOUND,
                        "this process has no MPI loaded that is known (%s); name its file "
                        "(amp_comm_options.library)",
                        tried);
    return amp_fail(err, AMP_NOT_FOUND,
                    "no MPI: tried %s; install Open MPI or MPICH, name the file of another one "
                    "(amp_comm_options.library, --dist-library), or have the ranks meet in a folder, without MPI "
                    "(amp_comm_options.folder, --dist-folder)",
                    tried);
}

static amp_status open_by_name(amp_mpi *m, bool loaded, amp_error *err) {
    char tried[600] = "";
    for (const char *const *name = amp_launcher_libraries(); *name; name++) {
        m->library = dlopen(*name, loaded ? mode | RTLD_NOLOAD : mode);
        if (m->library) return recognise(m, *name, err);
        const char *why = dlerror();
        const size_t at = strlen(tried);
        snprintf(tried + at, sizeof tried - at, "%s%s%s%s", at ? "; " : "", *name, why ? ": " : "", why ? why : "");
    }
    return fail_not_found(loaded, tried, err);
}

amp_status amp_mpi_open(amp_mpi *m, const char *file, bool loaded, amp_error *err) {
    memset(m, 0, sizeof *m);
    if (file) {
        amp_error why_not;
        if (strchr(file, '/') && amp_file_check_regular(file, &why_not))
            return amp_fail(err, AMP_NOT_FOUND, "the MPI library cannot be opened: %s", why_not.message);
        m->library = dlopen(file, mode);
        const char *why = m->library ? NULL : dlerror();
        if (!m->library) return amp_fail(err, AMP_NOT_FOUND, "the MPI library cannot be opened: %s", why ? why : file);
        return recognise(m, file, err);
    }
    m->library = linked();
    return m->library ? recognise(m, "the program", err) : open_by_name(m, loaded, err);
}
