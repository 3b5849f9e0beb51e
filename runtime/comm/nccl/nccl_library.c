/* nccl_library.c: opening NCCL, and its errors. */
#define _GNU_SOURCE /* RTLD_NODELETE, dladdr */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "runtime/comm/nccl/nccl.h"

static const int mode = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 0" is NCCL's since 2.5. */
static const char *remedy_for(const char *last) {
    return strstr(last, "Duplicate GPU") ? "start no more ranks on a host than it has GPUs"
                                         : "NCCL_DEBUG=INFO in the environment says more";
}

/* NCCL's last error ends with a newline, and may be empty; NULL is enough for it. */
amp_status amp_nccl_fail(const amp_nccl *n, const char *call, NcclResult result, amp_error *err) {
    const char *what = n->calls.get_error_string(result), *last = n->calls.get_last_error(n->comm);
    if (!last) last = "";
    const int length = (int)strcspn(last, "\r\n");
    return amp_fail(err, AMP_PEER_FAILED, "%s: %s (%d)%s%.*s; %s; %s", call, what ? what : "an error without a text",
                    result, length ? ": " : "", length, last, n->name, remedy_for(last));
}

amp_status amp_nccl_fail_cuda(const amp_nccl *n, const char *call, CuResult result, amp_error *err) {
    const char *name = NULL;
    if (n->cuda.get_error_name(result, &name)) name = NULL;
    return amp_fail(err, AMP_DEVICE_FAILED, "%s: %s (%d)", call, name ? name : "an error without a name", result);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* POSIX: pointers to functions are like those to data. */
static bool find(void *library, const char *symbol, void *to) {
    void *address = dlsym(library, symbol);
    if (address) memcpy(to, &address, sizeof address);
    return address != NULL;
}

static amp_status find_calls(amp_nccl *n, const char *file, amp_error *err) {
#define FIND(name, symbol, parameters)                                                                                 \
    if (!find(n->library, #symbol, &n->calls.name))                                                                    \
        return amp_fail(err, AMP_BAD_FILE, "%s is no NCCL of version 2.18 or newer: it has no %s", file, #symbol);
    NCCL_CALLS(FIND)
    NCCL_TEXTS(FIND)
#undef FIND
    return AMP_OK;
}

/* The file that the library really is, without its folder where that is long. */
static void name_it(amp_nccl *n, const char *asked) {
    Dl_info info;
    void *address = dlsym(n->library, "ncclGetVersion");
    const char *file = address && dladdr(address, &info) && info.dli_fname ? info.dli_fname : asked;
    const char *slash = strrchr(file, '/');
    snprintf(n->name, sizeof n->name, "%.80s, NCCL %d.%d.%d", strlen(file) > 80 && slash ? slash + 1 : file,
             n->version / 10000, n->version / 100 % 100, n->version % 100);
}

static amp_status check_version(amp_nccl *n, const char *asked, amp_error *err) {
    snprintf(n->name, sizeof n->name, "%.100s", asked);
    NcclResult result = n->calls.get_version(&n->version);
    if (result) return amp_nccl_fail(n, "ncclGetVersion", result, err);
    name_it(n, asked);
    if (n->version >= AMP_NCCL_LEAST) return AMP_OK;
    return amp_fail(err, AMP_UNSUPPORTED,
                    "%s is older than 2.18; install a newer one, or name its file "
                    "(amp_comm_options.library, --dist-library)",
                    n->name);
}

amp_status amp_nccl_open(amp_nccl *n, const char *file, amp_error *err) {
    const char *asked = file ? file : "libnccl.so.2";
    memset(n, 0, sizeof *n);
    amp_error why_not;
    if (strchr(asked, '/') && amp_file_check_regular(asked, &why_not))
        return amp_fail(err, AMP_NOT_FOUND, "the NCCL library cannot be opened: %s", why_not.message);
    n->library = dlopen(asked, mode);
    const char *why = n->library ? NULL : dlerror();
    if (!n->library && file)
        return amp_fail(err, AMP_NOT_FOUND, "the NCCL library cannot be opened: %s", why ? why : file);
    if (!n->library)
        return amp_fail(err, AMP_NOT_FOUND,
                        "no NCCL: %s; install it (libnccl2 of NVIDIA's packages, nvidia-nccl-cu12 or -cu13 of PyPI), "
                        "name its file (amp_comm_options.library, --dist-library), or take the engine \"mpi\"",
                        why ? why : asked);
    AMP_TRY(find_calls(n, asked, err));
    AMP_TRY(check_version(n, asked, err));
    int failed = pthread_mutex_init(&n->lock, NULL);
    return failed ? amp_fail_errno(err, AMP_OUT_OF_MEMORY, failed, "no lock for NCCL") : AMP_OK;
}

void amp_nccl_close(amp_nccl *n) { pthread_mutex_destroy(&n->lock); }

amp_status amp_nccl_find_cuda(amp_nccl *n, amp_error *err) {
    void *driver = dlopen("libcuda.so.1", mode);
    const char *why = driver ? NULL : dlerror();
    if (!driver) return amp_fail(err, AMP_NOT_FOUND, "the CUDA driver cannot be opened: %s", why ? why : "");
#define FIND(name, symbol, parameters)                                                                                 \
    if (!find(driver, #symbol, &n->cuda.name))                                                                         \
        return amp_fail(err, AMP_BAD_FILE, "libcuda.so.1 has no %s: install a newer driver", #symbol);
    AMP_NCCL_CUDA_CALLS(FIND)
#undef FIND
    return AMP_OK;
}
