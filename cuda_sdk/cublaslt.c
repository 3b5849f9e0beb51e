/* cublaslt.c: see cublaslt.h. */
#include "cuda_sdk/cublaslt.h"

enum { OLDEST_MAJOR = 11, NEWEST_MAJOR = 13 };

static const char symbols[] =
#define CUBLASLT_SYMBOL(name, symbol, parameters) #symbol "\0"
    CUBLASLT_CALLS(CUBLASLT_SYMBOL);
#undef CUBLASLT_SYMBOL

/* ctx: the amp_cublaslt to fill. */
static amp_status accept_library(void *ctx, void *library, amp_error *err) {
    amp_cublaslt *c = ctx;
    int major, minor, patch;
    AMP_TRY(amp_library_fill(library, symbols, &c->calls, err));
    if (c->calls.get_property(LT_MAJOR, &major) || c->calls.get_property(LT_MINOR, &minor) ||
        c->calls.get_property(LT_PATCH, &patch))
        return amp_fail(err, AMP_BAD_FILE, "it does not report its version");
    const int newest = c->driver && c->driver / 1000 < NEWEST_MAJOR ? c->driver / 1000 : NEWEST_MAJOR;
    if (major < OLDEST_MAJOR || major > newest)
        return amp_fail(err, AMP_BAD_FILE,
                        "it is of CUDA %d, and one of CUDA 11 to %d is needed: install that, or a newer driver", major,
                        newest);
    c->version = 1000 * major + 10 * minor;
    c->patch = patch;
    return AMP_OK;
}

const amp_library_places amp_cublaslt_places = {.variable = "CUBLASLT_PATH",
                                                .names = "libcublasLt.so.13\0libcublasLt.so.12\0libcublasLt.so.11\0",
                                                .wheels = "nvidia/cu1[3-9]/lib\0nvidia/cublas/lib\0",
                                                .title = "NVIDIA's cuBLASLt (libcublasLt.so.13, .12 or .11)",
                                                .package = "nvidia-cublas"};

amp_status amp_cublaslt_open(amp_cublaslt *out, int driver, amp_error *err) {
    *out = (amp_cublaslt){.driver = driver};
    return amp_library_search(&amp_cublaslt_places, accept_library, out, &out->library, err);
}
