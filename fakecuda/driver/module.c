/* module.c: modules and their functions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda/driver/driver.h"

/* ---- the caller's logs --------------------------------------------------------------------------- */

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

/* ---- loading ------------------------------------------------------------------------------------- */

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
    Module *m = must_alloc(sizeof *m);
    *m = (Module){.context = c, .code = code};
    m->handle = *out = handle_new(HANDLE_MODULE, m, c);
    return CU_SUCCESS;
}

void module_free(Module *m) {
    for (Function *f = m->functions, *next; f; f = next) {
        next = f->next;
        handle_end(f->handle);
        free(f);
    }
    exec_module_free(m->code);
    handle_end(m->handle);
    free(m);
}

CuResult module_unload(CuModule module) {
    Module *m = handle_object(HANDLE_MODULE, module);
    if (!m) return CU_INVALID_HANDLE;
    if (queue_length(m->context)) {
        report.waits[CALL_cuModuleUnload]++;
        queue_run_all(m->context);
    }
    if (!m->context->sticky) module_free(m);
    return CU_SUCCESS;
}

/* ---- functions ----------------------------------------------------------------------------------- */

CuResult module_function(CuModule module, CuFunction *out, const char *name) {
    Module *m = handle_object(HANDLE_MODULE, module);
    if (!m) return CU_INVALID_HANDLE;
    if (!out || !name) return CU_INVALID_VALUE;
    for (Function *f = m->functions; f; f = f->next)
        if (strcmp(f->ptx->name, name) == 0) {
            *out = f->handle;
            return CU_SUCCESS;
        }
    const PtxFunction *ptx = ptx_function(exec_module_ptx(m->code), name);
    ExecKernelInfo info;
    if (!ptx || !ptx->is_entry || !exec_kernel_info(m->code, name, &info)) return CU_NOT_FOUND;
    Function *f = must_alloc(sizeof *f);
    *f = (Function){.module = m,
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
    const Function *f = handle_object(HANDLE_FUNCTION, function);
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
    Function *f = handle_object(HANDLE_FUNCTION, function);
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
