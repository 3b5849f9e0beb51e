/* mpi_ranks.c: one rank of a test under mpirun, or without an MPI.  tests/checks/distributed_engine.sh and
 * distributed_files.sh start it.
 *
 *     mpi_ranks values [ordered]     every collective, type and size against what has to come out
 *     mpi_ranks loop SECONDS         all_reduce without end, deadline SECONDS; the check kills or stops a rank
 *     mpi_ranks large MIB [ordered]  one all_reduce of so much, in pieces where it is more than a message holds
 *     mpi_ranks mismatch             rank 1 meets for something else
 *     mpi_ranks absent               rank 1 does not come, deadline 1 s
 *     mpi_ranks open [LIBRARY]       opens and releases
 *     mpi_ranks time MIB             how long all_reduce takes
 *
 * AMP_PLANTED: one bit is wrong.  AMP_LIBRARY: the library to open.  AMP_FOLDER: where ranks meet without an MPI.
 * AMP_LOADS_MPI=FILE and AMP_THREADS=LEVEL: the program initialises MPI itself, and hands its communicator over.
 * Each rank says `rank R of N: WHAT`, and failures as `FAIL ..`.  Exit status 3 after AMP_PEER_FAILED.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "amp/comm.h"
#include "base/file.h"
#include "base/rounding.h"
#include "runtime/device/comm_calls.h"

static amp_comm *comm;
static amp_error err;
static int failures;

/* One write each, so that the lines of ranks do not mix. */
#define SAY(...)                                                                                                       \
    do {                                                                                                               \
        char line_[1400];                                                                                              \
        int length_ = snprintf(line_, sizeof line_, "rank %d of %d: ", amp_comm_rank(comm), amp_comm_size(comm));      \
        length_ += snprintf(line_ + length_, sizeof line_ - (size_t)length_ - 1, __VA_ARGS__);                         \
        line_[length_++] = '\n';                                                                                       \
        if (write(1, line_, (size_t)length_) < 0) exit(9);                                                             \
    } while (0)

#define FAILED(...)                                                                                                    \
    do {                                                                                                               \
        if (failures++ < 5) SAY("FAIL " __VA_ARGS__);                                                                  \
    } while (0)

static void nap(int ms) {
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    nanosleep(&t, NULL);
}

/* What cannot go on is said, and the process ends as an application's has to. */
static void check(amp_status status, const char *what) {
    if (!status) return;
    SAY("%s: %s: %s", what, amp_status_name(status), err.message);
    nap(600); /* so that others speak before the launcher ends them */
    _Exit(status == AMP_PEER_FAILED ? 3 : 1);
}

static void collective(amp_collective_op op, amp_dtype dtype, void *data, size_t count, int32_t root,
                       const char *what) {
    uint64_t number;
    check(comm->calls->start(comm, op, dtype, data, count, root, what, &number, &err), "start");
    check(comm->calls->wait(comm, number, &err), "wait");
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static double value(int32_t rank, size_t i) {
    uint64_t x = ((uint64_t)rank + 1) * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u;
    x ^= x >> 29, x *= 0x94d049bb133111ebu, x ^= x >> 32;
    return ldexp((double)(x >> 12) / 0x1p52 - 0.5, (int)(x % 9) - 4);
}

static void put(amp_dtype dtype, void *to, size_t i, double v) {
    uint16_t half = dtype == AMP_DT_F16 ? amp_f32_to_f16((float)v) : amp_f32_to_bf16((float)v);
    float f32 = (float)v;
    if (dtype == AMP_DT_F32) memcpy((char *)to + i * sizeof f32, &f32, sizeof f32);
    else if (dtype == AMP_DT_F64) memcpy((char *)to + i * sizeof v, &v, sizeof v);
    else memcpy((char *)to + i * sizeof half, &half, sizeof half);
}

static double get(amp_dtype dtype, const void *from, size_t i) {
    if (dtype == AMP_DT_F32) return (double)((const float *)from)[i];
    if (dtype == AMP_DT_F64) return ((const double *)from)[i];
    uint16_t half = ((const uint16_t *)from)[i];
    return (double)(dtype == AMP_DT_F16 ? amp_f16_to_f32(half) : amp_bf16_to_f32(half));
}

static double brought(amp_dtype dtype, int32_t rank, size_t i) {
    double one = 0;
    put(dtype, &one, 0, value(rank, i));
    return get(dtype, &one, 0);
}

static void fill(amp_dtype dtype, void *data, size_t count) {
    for (size_t i = 0; i < count; i++) put(dtype, data, i, value(comm->rank, i));
}

/* Against float64, and where the order is promised the bits of adding from left to right. */
static void check_sum(amp_dtype dtype, const void *data, size_t i, const char *what) {
    double exact = 0, magnitude = 0, left = 0;
    for (int32_t r = 0; r < comm->size; r++) {
        const double v = brought(dtype, r, i);
        exact += v, magnitude += fabs(v);
        left = !r ? v : dtype == AMP_DT_F64 ? left + v : (double)((float)left + (float)v);
    }
    const double got = get(dtype, data, i),
                 last = dtype == AMP_DT_F16    ? fabs(exact) * 0x1p-11 + 0x1p-25
                        : dtype == AMP_DT_BF16 ? fabs(exact) * 0x1p-8
                                               : 0,
                 bound = magnitude * comm->size * (dtype == AMP_DT_F64 ? 0x1p-53 : 0x1p-24) + last;
    if (fabs(got - exact) > bound * 1.01)
        FAILED("%s %s [%zu]: %.17g, not %.17g within %g", what, amp_dtype_name(dtype), i, got, exact, bound);
    if (!comm->ordered && (dtype == AMP_DT_F32 || dtype == AMP_DT_F64)) return;
    double wanted = 0;
    put(dtype, &wanted, 0, left);
    if (memcmp((const char *)data + i * amp_dtype_size(dtype), &wanted, amp_dtype_size(dtype)))
        FAILED("%s %s [%zu]: %.17g, not the bits of %.17g", what, amp_dtype_name(dtype), i, got, left);
}

/* Every rank has the same bits. */
static void check_same(const void *data, size_t bytes, const char *what) {
    uint64_t hash = 14695981039346656037u, *all = malloc((size_t)comm->size * sizeof hash);
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    check(amp_comm_meet(comm, &hash, sizeof hash, all, "hashes", &err), "meet");
    for (int32_t r = 0; r < comm->size; r++)
        if (all[r] != hash) FAILED("%s: rank %d has other bits", what, r);
    free(all);
}

static void check_collectives(amp_dtype dtype, size_t count) {
    const size_t size = amp_dtype_size(dtype), ranks = (size_t)comm->size, part = count / ranks;
    char *data = malloc(count * size + 1), *guard = data + count * size;
    *guard = 77;
    fill(dtype, data, count);
    collective(AMP_COLLECTIVE_ALL_REDUCE, dtype, data, count, 0, "all_reduce");
    if (count && getenv("AMP_PLANTED")) data[0] ^= 1; /* what the tests have to see */
    for (size_t i = 0; i < count; i++) check_sum(dtype, data, i, "all_reduce");
    check_same(data, count * size, "all_reduce");

    for (int32_t root = 0; root < comm->size; root++) {
        fill(dtype, data, count);
        collective(AMP_COLLECTIVE_BROADCAST, dtype, data, count, root, "broadcast");
        for (size_t i = 0; i < count; i++)
            if (get(dtype, data, i) != brought(dtype, root, i)) FAILED("broadcast from %d [%zu]", root, i);
    }

    fill(dtype, data, count);
    collective(AMP_COLLECTIVE_REDUCE_SCATTER, dtype, data, part * ranks, 0, "reduce_scatter");
    for (size_t i = part * (size_t)comm->rank; i < part * ((size_t)comm->rank + 1); i++)
        check_sum(dtype, data, i, "reduce_scatter");
    collective(AMP_COLLECTIVE_ALL_GATHER, dtype, data, part * ranks, 0, "all_gather");
    for (size_t i = 0; i < part * ranks; i++) check_sum(dtype, data, i, "all_gather of sums");
    if (*guard != 77) FAILED("%s: written past the end", amp_dtype_name(dtype));
    free(data);
}

/* Several under way at once, waited for in another order than they are done. */
static void check_many(void) {
    enum { MANY = 20, COUNT = 3000 };
    static float data[MANY][COUNT];
    uint64_t numbers[MANY];
    for (int k = 0; k < MANY; k++) {
        fill(AMP_DT_F32, data[k], COUNT);
        check(comm->calls->start(comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data[k], COUNT, 0, "many", &numbers[k],
                                 &err),
              "start");
        if (numbers[k] != numbers[0] + (uint64_t)k) FAILED("number %llu", (unsigned long long)numbers[k]);
    }
    for (int k = MANY; k-- > 0;) {
        check(comm->calls->wait(comm, numbers[k], &err), "wait");
        for (size_t i = 0; i < COUNT; i++) check_sum(AMP_DT_F32, data[k], i, "many");
    }
}

static void run_values(void) {
    static const amp_dtype dtypes[] = {AMP_DT_F32, AMP_DT_F64, AMP_DT_F16, AMP_DT_BF16};
    static const size_t counts[] = {0, 1, 2, 5, 1000, 4099, 300007};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) check_collectives(dtypes[d], counts[i]);
    check_many();
    SAY("%s", failures ? "wrong" : "all values are right");
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static void run_loop(void) {
    static float data[100000];
    for (int step = 0;; step++) {
        if (step == 5) SAY("pid %d", (int)getpid());
        collective(AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data, 100000, 0, "all_reduce bucket 1 (fc2.weight ..)");
        nap(20);
    }
}

static void run_mismatch(void) {
    char mine[8] = "", *all = malloc(8 * (size_t)comm->size);
    check(amp_comm_meet(comm, mine, 8, all, comm->rank == 1 ? "checkpoint" : "hello", &err), "meet");
    free(all);
}

static void run_absent(void) {
    float data[10] = {0};
    amp_comm_does(comm, AMP_RANK_COMPUTES, 117);
    if (comm->rank == 1) nap(6000);
    collective(AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data, 10, 0, "all_reduce bucket 0 (fc1.weight ..)");
}

static void run_large(size_t mib) {
    const size_t count = (mib << 20) / sizeof(float) + 5;
    float *data = malloc(count * sizeof *data);
    for (size_t i = 0; i < count; i++) data[i] = (float)((i & 0xffff) + (size_t)comm->rank);
    collective(AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data, count, 0, "large");
    const size_t ranks = (size_t)comm->size;
    for (size_t i = 0; i < count; i++)
        if (data[i] != (float)((i & 0xffff) * ranks + ranks * (ranks - 1) / 2))
            FAILED("large [%zu]: %g", i, (double)data[i]);
    free(data);
    SAY("%s", failures ? "wrong" : "all values are right");
}

static void run_time(double mib) {
    const size_t count = (size_t)(mib * 1048576 / sizeof(float));
    static const amp_dtype dtypes[] = {AMP_DT_F32, AMP_DT_BF16, AMP_DT_F16};
    float *data = calloc(count, sizeof *data);
    for (size_t d = 0; d < 3; d++) {
        double best = 1e9;
        for (int k = 0; k < 12; k++) {
            const double begin = amp_seconds();
            collective(AMP_COLLECTIVE_ALL_REDUCE, dtypes[d], data, count * 4 / amp_dtype_size(dtypes[d]), 0, "time");
            best = fmin(best, amp_seconds() - begin);
        }
        if (!comm->rank) SAY("%g MiB of %s: %.3f ms", mib, amp_dtype_name(dtypes[d]), best * 1e3);
    }
    free(data);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

#include <dlfcn.h>

/* As an application of that MPI would: handles are given as their bytes. */
static void *symbol(void *library, const char *name) {
    void *address = dlsym(library, name);
    if (!address) _Exit(8);
    return address;
}

static void open_own(const amp_comm_options *o, const char *file, int level) {
    void *library = dlopen(file, RTLD_NOW | RTLD_GLOBAL),
         *address = library ? symbol(library, "MPI_Init_thread") : NULL;
    int (*init)(int *, char ***, int, int *), granted;
    if (!library) _Exit(8);
    memcpy(&init, &address, sizeof init);
    if (init(NULL, NULL, level, &granted) || granted < level) _Exit(8);
    void *world = dlsym(library, "ompi_mpi_comm_world");
    int number = 0x44000000;
    if (world) check(amp_comm_from_mpi(&world, sizeof world, o, &comm, &err), "amp_comm_from_mpi");
    else check(amp_comm_from_mpi(&number, sizeof number, o, &comm, &err), "amp_comm_from_mpi");
}

static void finalise(const char *file) {
    void *library = dlopen(file, RTLD_NOW | RTLD_NOLOAD), *address = symbol(library, "MPI_Finalize");
    int (*finalize)(void);
    memcpy(&finalize, &address, sizeof finalize);
    if (finalize()) _Exit(8);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "open", *word = argc > 2 ? argv[2] : "", *file = getenv("AMP_LOADS_MPI");
    amp_comm_options o = {.struct_size = sizeof o, .engine = "mpi", .timeout = 20};
    o.ordered = !strcmp(argv[argc - 1], "ordered");
    if (!strcmp(mode, "loop")) o.timeout = atof(word);
    if (!strcmp(mode, "absent")) o.timeout = 1;
    o.library = getenv("AMP_LIBRARY");
    o.folder = getenv("AMP_FOLDER");
    if (o.folder) o.engine = "files";
    if (!strcmp(mode, "open") && *word) o.library = word;
    if (file) open_own(&o, file, atoi(getenv("AMP_THREADS")));
    else check(amp_comm_open(&o, &comm, &err), "amp_comm_open");
    if (!strcmp(mode, "values")) run_values();
    else if (!strcmp(mode, "loop")) run_loop();
    else if (!strcmp(mode, "mismatch")) run_mismatch();
    else if (!strcmp(mode, "absent")) run_absent();
    else if (!strcmp(mode, "large")) run_large((size_t)atoi(word));
    else if (!strcmp(mode, "time")) run_time(atof(word));
    else SAY("opened");
    amp_comm_release(comm);
    if (file) finalise(file);
    return failures != 0;
}
