/* model_file.c: amp_model_load: a model.so on disk is read and checked as data before the system's loader, which trusts
 * its input, sees it. */
#include <dlfcn.h>
#include <string.h>

#include "base/alloc.h"
#include "base/elf.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "runtime/model.h"
#include "runtime/options.h"

enum { HASH_SIZE = 32 };

/* ELF machine numbers (System V ABI); 0: this library was built for one that is not listed, so nothing is checked. */
#if defined(__x86_64__)
enum { THIS_MACHINE = 62 };
#elif defined(__aarch64__)
enum { THIS_MACHINE = 183 };
#else
enum { THIS_MACHINE = 0 };
#endif

/* ---- damage ------------------------------------------------------------------------------------------------------ */

/* SHA-256 of the file with the hash's own place zero. */
static void hash_without(const char *data, size_t size, size_t at, uint8_t out[HASH_SIZE]) {
    static const uint8_t zeros[HASH_SIZE];
    amp_sha256 hash;
    amp_sha256_init(&hash);
    amp_sha256_update(&hash, data, at);
    amp_sha256_update(&hash, zeros, HASH_SIZE);
    amp_sha256_update(&hash, data + at + HASH_SIZE, size - at - HASH_SIZE);
    amp_sha256_final(&hash, out);
}

static amp_status check_bytes(const char *path, const char *data, size_t size, amp_error *err) {
    size_t at, length;
    uint8_t hash[HASH_SIZE];
    amp_error why = {0};
    if (amp_elf_section(data, size, AMP_MODEL_HASH_SECTION, &at, &length, &why))
        return amp_fail(err, AMP_BAD_FILE, "%s: not a model of ampc, or damaged: %s", path, why.message);
    if (length != HASH_SIZE)
        return amp_fail(err, AMP_BAD_FILE, "%s: section %s has %zu bytes, not %d: not a model of ampc, or damaged",
                        path, AMP_MODEL_HASH_SECTION, length, HASH_SIZE);
    hash_without(data, size, at, hash);
    if (memcmp(hash, data + at, HASH_SIZE))
        return amp_fail(err, AMP_BAD_FILE,
                        "%s: the file is damaged: its SHA-256 is not the one that it was written with; "
                        "copy or compile it again",
                        path);
    int machine = amp_elf_machine(data, size);
    if (THIS_MACHINE && machine != THIS_MACHINE)
        return amp_fail(err, AMP_UNSUPPORTED, "%s: compiled for another processor (ELF machine %d, here %d)", path,
                        machine, THIS_MACHINE);
    return AMP_OK;
}

static amp_status check_file(const char *path, const amp_allocator *a, amp_error *err) {
    char *data;
    size_t size;
    AMP_TRY(amp_file_read(path, 0, a, &data, &size, err));
    amp_status status = check_bytes(path, data, size, err);
    amp_free(a, data, size + 1, 16);
    return status;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* dlopen looks for a name without a slash in the system's folders: "./" keeps it here. */
static amp_status open_library(const char *path, const amp_allocator *a, void **out, amp_error *err) {
    size_t bytes = strlen(path) + sizeof "./";
    char *name = amp_alloc(a, bytes, 16);
    if (!name) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to load it", path);
    strcpy(name, strchr(path, '/') ? "" : "./");
    strcat(name, path);
    *out = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    amp_status status =
        *out ? AMP_OK : amp_fail(err, AMP_BAD_FILE, "%s: the system cannot load it: %s", path, dlerror());
    amp_free(a, name, bytes, 16);
    return status;
}

static amp_status query(void *library, const char *path, const amp_model_desc **out, amp_error *err) {
    amp_model_query_fn function;
    void *symbol = dlsym(library, AMP_MODEL_SYMBOL);
    if (!symbol) return amp_fail(err, AMP_BAD_FILE, "%s: has no %s: not a model of ampc", path, AMP_MODEL_SYMBOL);
    memcpy(&function, &symbol, sizeof function); /* ISO C has no cast from object to function pointers */
    *out = function(AMP_MODEL_ABI_MAJOR, AMP_MODEL_ABI_MINOR);
    if (*out) return AMP_OK;
    return amp_fail(err, AMP_UNSUPPORTED,
                    "%s: does not serve model ABI %u.%u; compile the model again with this version", path,
                    AMP_MODEL_ABI_MAJOR, AMP_MODEL_ABI_MINOR);
}

amp_status amp_model_load(const char *path, const amp_model_options *options, amp_model **out, amp_error *err) {
    amp_model_options o;
    void *library = NULL;
    const amp_model_desc *desc;
    if (out) *out = NULL;
    if (!path || !out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_model_load: path or out is NULL");
    AMP_TRY(amp_options_read(&o, sizeof o, options, "amp_model_options", err));
    amp_allocator a = amp_allocator_or_default(o.allocator);
    AMP_TRY(check_file(path, &a, err));
    AMP_TRY(open_library(path, &a, &library, err));
    amp_status status = query(library, path, &desc, err);
    if (!status) status = amp_model_from_desc(desc, path, &a, out, err);
    if (status) dlclose(library);
    else (*out)->library = library;
    return status;
}
