/* modules.c: modules, their functions, and launches of kernels. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda/driver/driver.h"

/* ---- the header of PTX ------------------------------------------------------------------------------------------- */

/* .version and .target, which decide whether it is for this driver and device at all, before anything else of it is
 * read. */

static const char *skip(const char *t) { /* blanks and comments */
    for (;;) {
        if (isspace((unsigned char)*t)) t++;
        else if (t[0] == '/' && t[1] == '/') t += strcspn(t, "\n");
        else if (t[0] == '/' && t[1] == '*') {
            const char *end = strstr(t + 2, "*/");
            t = end ? end + 2 : t + strlen(t);
        } else return t;
    }
}

PtxHeader ptx_header(const char *text) {
    PtxHeader h = {0};
    int major, minor, used = 0;
    text = skip(text);
    if (sscanf(text, ".version %d.%d%n", &major, &minor, &used) != 2) return h;
    h.version = major * 10 + minor;
    text = skip(text + used);
    char suffix = 0;
    if (sscanf(text, ".target sm_%d%c", &h.target, &suffix) < 1) h.target = 0;
    h.suffix = isalpha((unsigned char)suffix) ? suffix : 0;
    return h;
}

/* ---- modules ----------------------------------------------------------------------------------------------------- */

/* ---- the caller's logs ------------------------------------------------------------------------------------------- */

enum { JIT_OPTIONS = 35 };

static int find_option(unsigned int count, const int *options, int option) {
    for (unsigned int i = 0; i < count; i++)
        if (options[i] == option) return (int)i;
    return -1;
}

/* Into the caller's buffer, cut to its size; the option of the size becomes the bytes written. */
static void write_log(unsigned int count, const int *options, void **values, int buffer_option, int size_option,
                      const char *text) {
    int buffer = find_option(count, options, buffer_option), size = find_option(count, options, size_option);
    if (buffer < 0 || size < 0 || !values[buffer]) return;
    size_t room = (unsigned int)(uintptr_t)values[size];
    if (room) snprintf(values[buffer], room, "%s", text);
    values[size] = (void *)(uintptr_t)(room == 0 ? 0 : strlen(text) < room ? strlen(text) : room - 1);
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static bool target_fits(PtxHeader h, int arch) {
    if (h.suffix == 'a') return h.target == arch;
    if (h.suffix == 'f') return h.target / 10 == arch / 10 && h.target <= arch;
    return h.target <= arch;
}

/* What the driver refuses before it compiles. */
static CuResult check_image(const char *image, char *message, size_t size) {
    static const unsigned char elf[] = {0x7f, 'E', 'L', 'F'}, fat[] = {0x50, 0xed, 0x55, 0xba};
    const Settings *s = &driver.settings;
    if (memcmp(image, elf, sizeof elf) == 0 || memcmp(image, fat, sizeof fat) == 0) {
        snprintf(message, size, "machine code: this stand-in runs PTX only");
        return CU_NO_BINARY_FOR_GPU;
    }
    PtxHeader h = ptx_header(image);
    int known = settings_ptx_version(s->driver_version);
    if (h.version == 0) {
        snprintf(message, size, "the image is neither a cubin nor PTX, which begins with .version");
        return CU_INVALID_IMAGE;
    }
    if (h.version > known) {
        snprintf(message, size, "PTX %d.%d: driver %d knows PTX up to %d.%d", h.version / 10, h.version % 10,
                 s->driver_version, known / 10, known % 10);
        return CU_UNSUPPORTED_PTX_VERSION;
    }
    if (h.target && target_fits(h, s->arch)) return CU_SUCCESS;
    snprintf(message, size, "PTX for sm_%d%.1s: this device is sm_%d", h.target, &h.suffix, s->arch);
    return CU_INVALID_PTX;
}

static CuResult check_entries(ExecModule *code, char *message, size_t size) {
    const PtxModule *ptx = exec_module_ptx(code);
    for (int i = 0; i < ptx->function_count; i++) {
        ExecKernelInfo info;
        const PtxFunction *f = &ptx->functions[i];
        if (!f->is_entry || !exec_kernel_info(code, f->name, &info) || info.static_shared <= SHARED_WITHOUT_OPTIN)
            continue;
        snprintf(message, size, "entry %s uses %d bytes of static shared memory, of %d", f->name, info.static_shared,
                 SHARED_WITHOUT_OPTIN);
        return CU_INVALID_PTX;
    }
    return CU_SUCCESS;
}

static CuResult load(Context *c, const char *image, ExecModule **out, char *message, size_t size) {
    CuResult result = check_image(image, message, size);
    if (result != CU_SUCCESS) return result;
    ExecModule *code = exec_module_load(c->memory, &c->alu, image, strlen(image), message, size);
    result = code ? check_entries(code, message, size) : CU_INVALID_PTX;
    if (result == CU_SUCCESS) *out = code;
    else {
        if (code) exec_module_free(code);
        report_misuse("module refused: %s", message);
    }
    return result;
}

CuResult module_load(Context *c, CuModule *out, const void *image, unsigned int count, int *options, void **values) {
    if (!out || !image || (count && (!options || !values))) return CU_INVALID_VALUE;
    for (unsigned int i = 0; i < count; i++)
        if (options[i] < 0 || options[i] >= JIT_OPTIONS) return CU_INVALID_VALUE;
    char message[MESSAGE_SIZE] = "";
    ExecModule *code = NULL;
    CuResult result = load(c, image, &code, message, sizeof message);
    if (result != CU_SUCCESS && driver.settings.verbose) fprintf(stderr, "fakecuda: %s\n", message);
    write_log(count, options, values, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_SIZE, "");
    write_log(count, options, values, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_SIZE, message);
    if (result != CU_SUCCESS) return result;
    LoadedModule *m = must_alloc(sizeof *m);
    *m = (LoadedModule){.context = c, .code = code};
    m->handle = *out = handle_new(HANDLE_MODULE, m, c);
    return CU_SUCCESS;
}

void module_free(LoadedModule *m) {
    for (LoadedFunction *f = m->functions, *next; f; f = next) {
        next = f->next;
        handle_end(f->handle);
        free(f);
    }
    exec_module_free(m->code);
    handle_end(m->handle);
    free(m);
}

CuResult module_unload(CuModule module) {
    LoadedModule *m = handle_object(HANDLE_MODULE, module);
    if (!m) return CU_INVALID_HANDLE;
    if (queue_length(m->context)) {
        report.waits[CALL_cuModuleUnload]++;
        queue_run_all(m->context);
    }
    if (!m->context->sticky) module_free(m);
    return CU_SUCCESS;
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

CuResult module_function(CuModule module, CuFunction *out, const char *name) {
    LoadedModule *m = handle_object(HANDLE_MODULE, module);
    if (!m) return CU_INVALID_HANDLE;
    if (!out || !name) return CU_INVALID_VALUE;
    for (LoadedFunction *f = m->functions; f; f = f->next)
        if (strcmp(f->ptx->name, name) == 0) {
            *out = f->handle;
            return CU_SUCCESS;
        }
    const PtxFunction *ptx = ptx_function(exec_module_ptx(m->code), name);
    ExecKernelInfo info;
    if (!ptx || !ptx->is_entry || !exec_kernel_info(m->code, name, &info)) return CU_NOT_FOUND;
    LoadedFunction *f = must_alloc(sizeof *f);
    *f = (LoadedFunction){.module = m,
                          .ptx = ptx,
                          .info = info,
                          .next = m->functions,
                          .max_dynamic_shared = SHARED_WITHOUT_OPTIN - info.static_shared};
    f->row = report_kernel(name);
    f->row->info = info;
    m->functions = f;
    f->handle = *out = handle_new(HANDLE_FUNCTION, f, m->context);
    return CU_SUCCESS;
}

CuResult function_attribute(int *value, int attribute, CuFunction function) {
    const LoadedFunction *f = handle_object(HANDLE_FUNCTION, function);
    if (!value) return CU_INVALID_VALUE;
    if (!f) return CU_INVALID_HANDLE;
    const PtxModule *ptx = exec_module_ptx(f->module->code);
    const int values[] = {f->info.max_threads ? f->info.max_threads : 1024,
                          f->info.static_shared,
                          0, /* constant memory of the user */
                          f->info.local_bytes,
                          f->info.registers,
                          ptx->version,
                          driver.settings.arch,
                          0, /* cache mode */
                          f->max_dynamic_shared,
                          -1 /* preferred carveout */};
    if (attribute < 0 || attribute >= (int)(sizeof values / sizeof *values)) return CU_INVALID_VALUE;
    *value = values[attribute];
    return CU_SUCCESS;
}

CuResult function_set_attribute(CuFunction function, int attribute, int value) {
    enum { CARVEOUT = 9 };
    LoadedFunction *f = handle_object(HANDLE_FUNCTION, function);
    if (!f) return CU_INVALID_HANDLE;
    if (attribute == CARVEOUT) return value >= -1 && value <= 100 ? CU_SUCCESS : CU_INVALID_VALUE;
    int most;
    if (attribute != CU_FUNC_MAX_DYNAMIC_SHARED ||
        !device_attribute_of(driver.settings.arch, CU_ATTR_MAX_SHARED_PER_BLOCK_OPTIN, &most))
        return CU_INVALID_VALUE;
    if (value < 0 || value > most - f->info.static_shared) return CU_INVALID_VALUE;
    f->max_dynamic_shared = value;
    return CU_SUCCESS;
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* What is refused at once, and the copy of the parameters. */

enum { PARAM_END = 0, PARAM_BUFFER = 1, PARAM_SIZE = 2, MAX_THREADS = 1024 };

static bool within(const uint32_t v[3], const uint32_t most[3]) {
    for (int i = 0; i < 3; i++)
        if (v[i] == 0 || v[i] > most[i]) return false;
    return true;
}

static CuResult check_cluster(const LoadedFunction *f, const uint32_t grid[3]) {
    const int *cluster = f->ptx->cluster;
    if (cluster[0] == 0) return CU_SUCCESS;
    for (int i = 0; i < 3; i++)
        if (cluster[i] && grid[i] % (uint32_t)cluster[i]) return CU_INVALID_CLUSTER_SIZE;
    return CU_SUCCESS;
}

static CuResult check_shape(const LoadedFunction *f, const uint32_t grid[3], const uint32_t block[3],
                            uint32_t dynamic_shared) {
    static const uint32_t grid_most[3] = {2147483647, 65535, 65535}, block_most[3] = {1024, 1024, 64};
    if (!within(grid, grid_most) || !within(block, block_most)) return CU_INVALID_VALUE;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (threads > MAX_THREADS) return CU_INVALID_VALUE;
    for (int i = 0; i < 3; i++) {
        const int *required = f->ptx->required_threads;
        if (required[0] && block[i] != (uint32_t)(required[i] ? required[i] : 1)) return CU_INVALID_VALUE;
    }
    if (f->info.max_threads && threads > (uint64_t)f->info.max_threads) return CU_LAUNCH_OUT_OF_RESOURCES;
    if (dynamic_shared > (uint32_t)f->max_dynamic_shared) {
        report_misuse("%s is launched with %u bytes of dynamic shared memory; "
                      "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES is %d",
                      f->ptx->name, dynamic_shared, f->max_dynamic_shared);
        return CU_INVALID_VALUE;
    }
    return check_cluster(f, grid);
}

/* |extra|: CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END, in any
 * order. */
static CuResult params_of_buffer(const LoadedFunction *f, void **extra, void *out) {
    const void *buffer = NULL;
    size_t size = 0;
    for (; (uintptr_t)*extra != PARAM_END; extra += 2) {
        if ((uintptr_t)*extra == PARAM_BUFFER) buffer = extra[1];
        else if ((uintptr_t)*extra == PARAM_SIZE) size = *(const size_t *)extra[1];
        else return CU_INVALID_VALUE;
    }
    if (!buffer || size != (size_t)f->info.param_bytes) return CU_INVALID_VALUE;
    memcpy(out, buffer, size);
    return CU_SUCCESS;
}

static CuResult copy_params(const LoadedFunction *f, void **params, void **extra, void *out) {
    if (params && extra) return CU_INVALID_VALUE;
    if (f->ptx->param_count == 0) return CU_SUCCESS;
    if (extra) return params_of_buffer(f, extra, out);
    if (!params) return CU_INVALID_VALUE;
    for (int i = 0; i < f->ptx->param_count; i++) {
        if (!params[i]) {
            report_misuse("parameter %d of %s is a null pointer", i, f->ptx->name);
            return CU_INVALID_VALUE;
        }
        memcpy((char *)out + f->ptx->param_offsets[i], params[i], f->ptx->params[i].bytes);
    }
    return CU_SUCCESS;
}

CuResult launch_kernel(Context *c, CuFunction function, const LaunchShape *shape, CuStream stream, void **params,
                       void **extra) {
    const LoadedFunction *f = handle_object(HANDLE_FUNCTION, function);
    Stream *s;
    if (!f || f->module->context != c) return CU_INVALID_HANDLE;
    CuResult result = stream_find(c, stream, &s);
    if (result == CU_SUCCESS) result = check_shape(f, shape->grid, shape->block, shape->shared_bytes);
    if (result != CU_SUCCESS) return result;
    Work work = {.kind = WORK_KERNEL,
                 .function = function,
                 .dynamic_shared = shape->shared_bytes,
                 .programmatic = shape->programmatic,
                 .bytes = (uint64_t)f->info.param_bytes};
    memcpy(work.grid, shape->grid, sizeof work.grid);
    memcpy(work.block, shape->block, sizeof work.block);
    work.params = must_alloc(work.bytes);
    work.seed = driver.settings.seed * 0x9e3779b97f4a7c15ull + ++driver.launches;
    result = copy_params(f, params, extra, work.params);
    if (result == CU_SUCCESS) return stream_submit(s, &work);
    work_free(&work);
    return result;
}

/* Graphs have had edges that are no full dependence since CUDA 12.3. */
enum { ARCH_OF_PROGRAMMATIC = 90, DRIVER_OF_PROGRAMMATIC_EDGES = 12030 };

static CuResult take_attribute(const CuLaunchAttribute *a, const Stream *s, LaunchShape *shape) {
    if (a->id == 0) return CU_SUCCESS; /* CU_LAUNCH_ATTRIBUTE_IGNORE */
    if (a->id != CU_LAUNCH_PROGRAMMATIC_SERIALIZATION) {
        text_add(&report.unknown, "an attribute of cuLaunchKernelEx that is not programmatic stream serialization");
        return CU_NOT_SUPPORTED;
    }
    if (!a->value.flag) return CU_SUCCESS;
    if (driver.settings.arch < ARCH_OF_PROGRAMMATIC) return CU_NOT_SUPPORTED;
    if (s->capture && driver.settings.driver_version < DRIVER_OF_PROGRAMMATIC_EDGES) return CU_NOT_SUPPORTED;
    shape->programmatic = true;
    return CU_SUCCESS;
}

CuResult launch_configured(Context *c, const CuLaunchConfig *config, CuFunction function, void **params, void **extra) {
    Stream *s;
    if (!config || (config->attribute_count && !config->attributes)) return CU_INVALID_VALUE;
    CuResult result = stream_find(c, config->stream, &s);
    LaunchShape shape = {config->grid, config->block, config->shared_bytes, false};
    for (unsigned i = 0; i < config->attribute_count && result == CU_SUCCESS; i++)
        result = take_attribute(&config->attributes[i], s, &shape);
    return result == CU_SUCCESS ? launch_kernel(c, function, &shape, config->stream, params, extra) : result;
}
