/* nccl_program.c: one rank of a program that has a communicator of NCCL of its own, as one has that also trains with
 * PyTorch.  tests/checks/cuda_distributed.sh starts it, with RANK and WORLD_SIZE in the environment.
 *
 *     nccl_program given MODEL STEPS FOLDER ID    hands its communicator over, and destroys it afterwards
 *     nccl_program own MODEL STEPS FOLDER         has libamp_comm make one
 *     nccl_program wrong MODEL STEPS FOLDER ID    says that the ranks are others than its communicator has
 *
 * ID: a file by which rank 0 gives its others NCCL's id.  Rank 0 prints the loss of each step, in hexadecimal.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "amp/amp.h"
#include "amp/comm.h"
#include "amp/cuda.h"
#include "runtime/comm/nccl/nccl_api.h"
#include "runtime/device/cuda/driver_api.h"

enum { BATCH = 16, WIDTH = 40, CLASSES = 5 };

static amp_error err;

static void check(amp_status status, const char *what) {
    if (!status) return;
    fprintf(stderr, "%s: %s: %s\n", what, amp_status_name(status), err.message);
    exit(1);
}

static void check_call(int result, const char *what) {
    if (!result) return;
    fprintf(stderr, "%s: %d\n", what, result);
    exit(1);
}

static void nap(void) {
    const struct timespec t = {.tv_nsec = 5000000};
    nanosleep(&t, NULL);
}

/* ---- the program's own ------------------------------------------------------------------------------------------- */

static void *open_library(const char *name) {
    void *library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (library) return library;
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
}

static void find(void *library, const char *name, void *to) {
    void *address = dlsym(library, name);
    if (!address) exit(1);
    memcpy(to, &address, sizeof address);
}

static NcclApi nccl;

/* The primary context of the rank's device is current from now on. */
static void make_current(int device) {
    void *library = open_library("libcuda.so.1");
    CuResult (*init)(unsigned), (*get)(CuDevice *, int), (*retain)(CuContext *, CuDevice), (*push)(CuContext);
    CuDevice d;
    CuContext context;
    find(library, "cuInit", &init);
    find(library, "cuDeviceGet", &get);
    find(library, "cuDevicePrimaryCtxRetain", &retain);
    find(library, "cuCtxPushCurrent_v2", &push);
    check_call(init(0), "cuInit");
    check_call(get(&d, device), "cuDeviceGet");
    check_call(retain(&context, d), "cuDevicePrimaryCtxRetain");
    check_call(push(context), "cuCtxPushCurrent");
}

static NcclId exchange_id(const char *path, int rank) {
    char beside[4096];
    NcclId id;
    snprintf(beside, sizeof beside, "%s.new", path);
    if (!rank) {
        check_call(nccl.get_unique_id(&id), "ncclGetUniqueId");
        FILE *out = fopen(beside, "wb");
        if (!out || fwrite(&id, sizeof id, 1, out) != 1 || fclose(out) || rename(beside, path)) exit(1);
        return id;
    }
    FILE *in;
    while (!(in = fopen(path, "rb"))) nap();
    if (fread(&id, sizeof id, 1, in) != 1) exit(1);
    fclose(in);
    return id;
}

static void await(NcclComm comm, const char *what) {
    NcclResult state = NCCL_IN_PROGRESS;
    for (; state == NCCL_IN_PROGRESS; nap()) check_call(nccl.get_async_error(comm, &state), what);
    check_call(state, what);
}

static NcclComm make_communicator(const char *path, int rank, int ranks) {
    NcclConfig config = {sizeof config,  NCCL_CONFIG_MAGIC, NCCL_CONFIG_VERSION, 0,
                         NCCL_UNDEFINED, NCCL_UNDEFINED,    NCCL_UNDEFINED,      NULL};
    NcclComm comm = NULL;
    void *library = open_library("libnccl.so.2");
#define FIND(name, symbol, parameters) find(library, #symbol, &nccl.name);
    NCCL_CALLS(FIND)
#undef FIND
    make_current(rank);
    const NcclId id = exchange_id(path, rank);
    const NcclResult result = nccl.comm_init(&comm, ranks, id, rank, &config);
    if (result != NCCL_IN_PROGRESS) check_call(result, "ncclCommInitRankConfig");
    await(comm, "ncclCommInitRankConfig");
    return comm;
}

static void destroy(NcclComm comm) {
    const NcclResult result = nccl.comm_finalize(comm);
    if (result != NCCL_IN_PROGRESS) check_call(result, "ncclCommFinalize");
    await(comm, "ncclCommFinalize");
    check_call(nccl.comm_destroy(comm), "ncclCommDestroy");
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static void train(amp_comm *comm, const char *file, int steps) {
    static float x[BATCH][WIDTH];
    static int32_t targets[BATCH];
    const void *inputs[] = {x, targets};
    const int32_t rank = amp_comm_rank(comm);
    amp_model *model;
    amp_params *params;
    amp_session *session;
    amp_step_report report;
    check(amp_model_load(file, NULL, &model, &err), "amp_model_load");
    const amp_params_options seed = {.struct_size = sizeof seed, .seed = 3};
    check(amp_params_create(model, &seed, &params, &err), "amp_params_create");
    const amp_cuda_options cuda = {.struct_size = sizeof cuda, .index = rank};
    const amp_session_options o = {
        .struct_size = sizeof o, .capacity.n = BATCH, .device = "cuda", .cuda = &cuda, .comm = comm, .seed = 3};
    check(amp_session_create(model, params, &o, &session, &err), "amp_session_create");
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < BATCH * WIDTH; i++)
            x[i / WIDTH][i % WIDTH] = (float)((i * 37 + step * 11 + rank * 5) % 17 - 8) / 8;
        for (int i = 0; i < BATCH; i++) targets[i] = (i * 3 + step + rank) % CLASSES;
        check(amp_step(session, inputs, (amp_sizes){.n = BATCH}, &report, &err), "amp_step");
        if (!rank) printf("%a\n", report.loss);
    }
    amp_session_release(session);
    amp_params_release(params);
    amp_model_release(model);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "", *rank_text = getenv("RANK"), *size_text = getenv("WORLD_SIZE");
    if (argc < 5 + (*mode != 'o') || !rank_text || !size_text) return 2;
    const int rank = atoi(rank_text), ranks = atoi(size_text);
    amp_comm_options o = {.struct_size = sizeof o, .engine = "nccl", .folder = argv[4], .timeout = 5};
    amp_comm *comm;
    NcclComm own = NULL;
    if (*mode != 'o') own = make_communicator(argv[5], rank, ranks);
    if (*mode == 'w') o.rank = ranks - 1 - rank, o.ranks = ranks;
    if (own) check(amp_comm_from_nccl(own, &o, &comm, &err), "amp_comm_from_nccl");
    else check(amp_comm_open(&o, &comm, &err), "amp_comm_open");
    train(comm, argv[2], atoi(argv[3]));
    amp_comm_release(comm);
    if (own) destroy(own);
    return 0;
}
