/* doctor.c: amprun doctor: what this machine has of what a model needs, and what to do about the rest; as text and as
 * JSON.  Each check looks through the library's own functions, so that what is found here is what a session finds. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/processor.h"
#include "tools/amprun/amprun.h"
#include "tools/amprun/profile/profile.h"
#include "tools/standard_streams.h"

/* ---- what is found ----------------------------------------------------------------------------------------------- */

typedef enum Verdict { FOUND, LACKING, FAILED } Verdict; /* LACKING: what is asked for does without it */
static const char *const verdict_words[] = {"ok", "note", "FAILED"};

typedef struct Doctor {
    const Args *args;
    bool on_cuda;
    amp_model *model; /* NULL: none was given */
    amp_model_info info;
    int32_t devices;
    bool has_driver;
    amp_gpu_info gpu;
    bool has_gpu; /* the one that is asked for, else the first */
    int failures;
    amp_json_writer json;
    char text[AMP_FILE_PATH + 256];
} Doctor;

/* Between these, fields may be put into |json|. */
static void begin(Doctor *d, const char *about) {
    amp_json_begin_object(&d->json, NULL);
    amp_json_put_string(&d->json, "about", about);
    if (!d->args->as_json) printf("%-9s ", about);
}

static void end(Doctor *d, Verdict verdict) {
    amp_json_put_string(&d->json, "state", verdict == FOUND ? "ok" : verdict == LACKING ? "note" : "failed");
    amp_json_put_string(&d->json, "text", d->text);
    amp_json_end_object(&d->json);
    d->failures += verdict == FAILED;
    if (!d->args->as_json) print_plain_line("%-6s %s", verdict_words[verdict], d->text);
}

#define SAY(d, ...) ((void)snprintf((d)->text, sizeof(d)->text, __VA_ARGS__))

/* What the device that is asked for cannot do without. */
static Verdict unless_on_cuda(const Doctor *d) { return d->on_cuda ? FAILED : LACKING; }

/* ---- the processor and memory ------------------------------------------------------------------------------------ */

static const struct {
    unsigned bit;
    const char *name;
} features[] = {
    {AMP_CPU_X86_64_V3, "x86-64-v3 (AVX2, FMA, F16C)"},
    {AMP_CPU_X86_64_V4, "x86-64-v4 (AVX-512)"},
    {AMP_CPU_AVX512_BF16, "AVX512_BF16"},
    {AMP_CPU_NEON, "NEON"},
};

static void check_cpu(Doctor *d) {
    const unsigned has = amp_cpu_features();
    amp_cpu_rates rates;
    amp_error err = {0};
    char names[160] = "", source[PEAKS_SOURCE];
    begin(d, "cpu");
    amp_json_begin_array(&d->json, "features");
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++) {
        if (!(has & features[i].bit)) continue;
        amp_json_put_string(&d->json, NULL, features[i].name);
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names ? ", " : "", features[i].name);
    }
    amp_json_end_array(&d->json);
    const amp_status status = peaks_of_products(d->args, d->model, &rates, source, &err);
    amp_json_put_int(&d->json, "processors", rates.processors);
    amp_json_put_string(&d->json, "isa", rates.level ? rates.level : "none");
    amp_json_put_int(&d->json, "f32_flops", (int64_t)rates.f32);
    amp_json_put_int(&d->json, "bf16_flops", (int64_t)rates.bf16);
    if (status) SAY(d, "%s", err.message);
    else
        SAY(d, "%d processors, %s; kernels run as %s; %s", rates.processors, *names ? names : "no vectors", rates.level,
            source);
    end(d, !status ? FOUND : d->on_cuda ? LACKING : FAILED);
}

/* Of the system; 0: it does not say. */
static uint64_t available_bytes(void) {
    char line[128];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/meminfo", "r");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "MemAvailable: %llu kB", &kib) != 1) kib = 0;
    if (f) fclose(f);
    return (uint64_t)kib << 10;
}

/* On "cuda" a session cannot be planned without being made: there the device says what it has. */
static void check_memory(Doctor *d) {
    amp_error err = {0};
    amp_memory_info m = {0};
    const uint64_t available = available_bytes();
    const int64_t batch = d->args->batch ? d->args->batch : 1;
    begin(d, "memory");
    amp_json_put_int(&d->json, "available", (int64_t)available);
    SAY(d, "%" PRIu64 " MiB are available", available >> 20);
    amp_status status = AMP_OK;
    if (d->model && !d->on_cuda) {
        const amp_session_options options = run_options(d->args, batch, NULL);
        status = amp_session_plan(d->model, NULL, &options, &m, &err);
        amp_json_put_int(&d->json, "needed", (int64_t)m.total);
        if (status) SAY(d, "%s", err.message);
        else
            SAY(d, "%" PRIu64 " MiB are available; a session of batch %" PRId64 " takes %" PRIu64 "%s", available >> 20,
                batch, m.total >> 20,
                m.total > available ? ": amprun info --batch auto --memory BYTES finds one that fits" : "");
    }
    end(d, status || (available && m.total > available) ? FAILED : FOUND);
}

/* ---- the driver and its devices ---------------------------------------------------------------------------------- */

static void check_driver(Doctor *d) {
    amp_error err = {0};
    amp_cuda_found driver;
    begin(d, "driver");
    const amp_status status = amp_cuda_find(AMP_CUDA_DRIVER, &driver, &err);
    if (status) SAY(d, "%s", err.message);
    else {
        d->has_driver = true;
        d->devices = driver.devices;
        amp_json_put_string(&d->json, "library", driver.path);
        amp_json_put_int(&d->json, "cuda_version", driver.version);
        SAY(d, "CUDA %d.%d, %s", driver.version / 1000, driver.version % 1000 / 10, driver.path);
    }
    end(d, status ? unless_on_cuda(d) : FOUND);
}

static bool is_stand_in(const char *name) { return strstr(name, "(fakecuda)") != NULL; }

static void describe_device(Doctor *d, const amp_gpu_info *gpu) {
    amp_json_put_string(&d->json, "name", gpu->name);
    amp_json_put_int(&d->json, "arch", gpu->arch);
    amp_json_put_int(&d->json, "memory", (int64_t)gpu->memory);
    amp_json_put_bool(&d->json, "stand_in", is_stand_in(gpu->name));
    SAY(d, "%d: %s, sm_%d, %" PRIu64 " MiB%s", gpu->index, gpu->name, gpu->arch, gpu->memory >> 20,
        is_stand_in(gpu->name) ? "; this is the project's stand-in: it interprets PTX, and no GPU is used" : "");
}

/* All of them; the one that is asked for has to be there. */
static void check_devices(Doctor *d) {
    const int wanted = d->args->cuda.index;
    for (int i = 0; d->has_driver && (i < d->devices || i <= wanted); i++) {
        amp_error err = {0};
        amp_gpu_info gpu;
        if (i >= d->devices && i != wanted) continue;
        begin(d, "device");
        amp_status status = amp_gpu_at(i, &gpu, &err);
        if (!status) {
            describe_device(d, &gpu);
            if (i == wanted) {
                d->gpu = gpu;
                d->has_gpu = true;
                if (d->model) status = amp_model_check_gpu(d->model, &gpu, &err);
            }
        }
        if (status) SAY(d, "%s", err.message);
        end(d, !status ? FOUND : i == wanted ? unless_on_cuda(d) : LACKING);
    }
}

/* ---- NVIDIA's libraries, and the cache of kernels -------------------------------------------------------------- */

/* Whether the model needs it says check_kernels. */
static void check_nvrtc(Doctor *d) {
    amp_error err = {0};
    amp_cuda_found nvrtc;
    begin(d, "nvrtc");
    const amp_status status = amp_cuda_find(AMP_CUDA_NVRTC, &nvrtc, &err);
    if (status) SAY(d, "%s", err.message);
    else {
        amp_json_put_string(&d->json, "library", nvrtc.path);
        amp_json_put_int(&d->json, "version", nvrtc.version);
        SAY(d, "%d.%d, %s, for sm_%d to sm_%d", nvrtc.version / 1000, nvrtc.version % 1000 / 10, nvrtc.path,
            nvrtc.least_arch, nvrtc.most_arch);
    }
    end(d, status ? LACKING : FOUND);
}

static void check_cublaslt(Doctor *d) {
    static const char use[] = "for matrix products that it makes faster (--products)";
    amp_error err = {0};
    amp_cuda_found cublaslt;
    begin(d, "cublaslt");
    const amp_status status = amp_cuda_find(AMP_CUDA_CUBLASLT, &cublaslt, &err);
    if (status) SAY(d, "%s; it takes 540 MB, under NVIDIA's licence, and is %s", err.message, use);
    else {
        amp_json_put_string(&d->json, "library", cublaslt.path);
        amp_json_put_int(&d->json, "version", cublaslt.version);
        SAY(d, "%d.%d, %s; %s", cublaslt.version / 1000, cublaslt.version % 1000 / 10, cublaslt.path, use);
    }
    end(d, status ? LACKING : FOUND);
}

static void count_files(const char *folder, int64_t *count, int64_t *bytes) {
    DIR *dir = opendir(folder);
    struct stat st;
    *count = *bytes = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode)) continue;
        ++*count;
        *bytes += st.st_size;
    }
    if (dir) closedir(dir);
}

static void check_cache(Doctor *d) {
    const char *limit = getenv("AMPC_CACHE_LIMIT");
    amp_cuda_found cache;
    int64_t count, bytes;
    begin(d, "cache");
    const amp_status status = amp_cuda_find(AMP_CUDA_CACHE, &cache, NULL);
    if (!status) {
        count_files(cache.path, &count, &bytes);
        amp_json_put_string(&d->json, "folder", cache.path);
        amp_json_put_int(&d->json, "kernels", count);
        amp_json_put_int(&d->json, "bytes", bytes);
        SAY(d, "%s: %" PRId64 " kernels, %" PRId64 " KiB", cache.path, count, bytes >> 10);
    } else if (limit && !strcmp(limit, "0")) SAY(d, "is off, because AMPC_CACHE_LIMIT is 0: unset it");
    else
        SAY(d, "no cache, so every process compiles its kernels: AMPC_CACHE_DIR, XDG_CACHE_HOME or HOME must "
               "name a folder that you own and no other user may write to");
    end(d, status ? LACKING : FOUND);
}

/* ---- the model's kernels ----------------------------------------------------------------------------------------- */

static void check_cpu_kernels(Doctor *d) {
    char sets[64] = "";
    begin(d, "kernels");
    for (int i = 0; amp_model_isa_name(d->model, i); i++)
        snprintf(sets + strlen(sets), sizeof sets - strlen(sets), "%s%s", i ? ", " : "",
                 amp_model_isa_name(d->model, i));
    SAY(d, "of the CPU: in the model, for %s", sets);
    end(d, FOUND);
}

static void put_sources(Doctor *d, const amp_kernel_sources *found) {
    amp_json_put_int(&d->json, "from_model", found->model);
    amp_json_put_int(&d->json, "of_those_ptx", found->model_ptx);
    amp_json_put_int(&d->json, "from_cache", found->cache);
    amp_json_put_int(&d->json, "by_nvrtc", found->nvrtc);
}

/* Why not all are ready, and what to do. */
static const char *remedy_of(const amp_kernel_sources *found) {
    if (found->model_ptx) return "; PTX is compiled by the driver in every process: install NVRTC, or ampc --gpu-arch";
    if (found->nvrtc)
        return "; the first session compiles those for the cache: ampc --gpu-arch puts machine code into the model";
    return "";
}

static void check_cuda_kernels(Doctor *d) {
    const bool cuda = d->info.has_cuda;
    amp_error err = {0};
    amp_kernel_sources found = {0};
    begin(d, "kernels");
    amp_status status = AMP_OK;
    if (!cuda) SAY(d, "of CUDA: the model has none: %s", d->info.cuda_missing);
    else if (!d->has_gpu)
        SAY(d, "of CUDA: %d in the model; for which architecture is not known without a device", d->info.cuda_kernels);
    else {
        status = amp_model_kernel_sources(d->model, &d->gpu, is_stand_in(d->gpu.name), &found, &err);
        put_sources(d, &found);
        if (status) SAY(d, "%s", err.message);
        else
            SAY(d, "of CUDA, for sm_%d: %d from the model, %d from the cache, %d by NVRTC%s", d->gpu.arch, found.model,
                found.cache, found.nvrtc, remedy_of(&found));
    }
    const bool known = d->has_gpu && !found.model_ptx; /* what there is without a device says check_devices */
    end(d, !cuda || status ? unless_on_cuda(d) : known ? FOUND : LACKING);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static int open_model(Doctor *d) {
    amp_error err = {0};
    if (!d->args->model) return 0;
    if (amp_model_load(d->args->model, NULL, &d->model, &err)) return report(&err);
    amp_model_get_info(d->model, &d->info);
    return 0;
}

static void check_all(Doctor *d) {
    check_cpu(d);
    check_memory(d);
    check_driver(d);
    check_devices(d);
    check_nvrtc(d);
    check_cublaslt(d);
    check_cache(d);
    if (d->model && !d->on_cuda) check_cpu_kernels(d);
    if (d->model) check_cuda_kernels(d);
}

static void print_verdict(const Doctor *d, const char *device) {
    const char *what = d->args->model ? d->args->model : "a model";
    if (d->failures) print_plain_line("verdict   something that %s needs on %s is missing", what, device);
    else print_plain_line("verdict   %s has all it needs on %s", what, device);
}

int command_doctor(const Args *a) {
    const char *device = a->device ? a->device : "cpu";
    Doctor d = {.args = a, .on_cuda = !strcmp(device, "cuda")};
    if (strcmp(device, "cpu") && !d.on_cuda) return report_text("--device %s: doctor looks at cpu and cuda", device), 2;
    if (open_model(&d)) return 1;
    amp_json_writer_init(&d.json, NULL);
    amp_json_begin_object(&d.json, NULL);
    amp_json_put_string(&d.json, "version", amp_version());
    amp_json_put_string(&d.json, "device", device);
    amp_json_begin_array(&d.json, "checks");
    check_all(&d);
    amp_json_end_array(&d.json);
    amp_json_put_bool(&d.json, "ok", !d.failures);
    const int failed = a->as_json ? json_print(&d.json) : 0;
    if (!a->as_json) print_verdict(&d, device), amp_json_writer_free(&d.json);
    amp_model_release(d.model);
    return failed || d.failures;
}
