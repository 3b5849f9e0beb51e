/* open.c: opening and releasing a comm. */
#define _POSIX_C_SOURCE 200809L /* pthread_condattr_setclock */
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/files/files_engine.h"
#include "runtime/comm/launcher.h"
#include "runtime/comm/mpi/mpi_engine.h"

enum { DEFAULT_TIMEOUT = 30, CONNECT_SECONDS = 30 };

static const double shortest_timeout = 0.01, longest_timeout = 1e6; /* seconds */

int32_t amp_comm_rank(const amp_comm *comm) { return comm ? comm->rank : 0; }
int32_t amp_comm_size(const amp_comm *comm) { return comm ? comm->size : 1; }

/* ---- making ------------------------------------------------------------------------------------------------------ */

static bool init_locks(amp_comm_state *c) {
    pthread_condattr_t monotonic;
    if (pthread_condattr_init(&monotonic)) return false;
    bool ok = !pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) && !pthread_mutex_init(&c->lock, NULL);
    if (ok && pthread_cond_init(&c->work, &monotonic)) {
        pthread_mutex_destroy(&c->lock);
        ok = false;
    }
    if (ok && pthread_cond_init(&c->news, &monotonic)) {
        pthread_cond_destroy(&c->work);
        pthread_mutex_destroy(&c->lock);
        ok = false;
    }
    pthread_condattr_destroy(&monotonic);
    return ok;
}

static void free_collectives(const amp_comm_state *c, amp_collective *list) {
    for (amp_collective *next; list; list = next) {
        next = list->next;
        if (list->grown) amp_free_aligned(&c->allocator, list->grown, list->grown->size, AMP_STAGING_ALIGN);
        amp_free(&c->allocator, list, sizeof *list);
    }
}

/* Everything but the engine. */
static void free_comm(amp_comm_state *c) {
    const amp_allocator allocator = c->allocator;
    amp_comm_free_devices(c);
    amp_comm_free_retired(c);
    free_collectives(c, c->first);
    free_collectives(c, c->idle);
    for (int32_t i = 0; i < AMP_LANES; i++) {
        amp_lane *l = &c->lanes[i];
        if (l->staging) amp_free_aligned(&allocator, l->staging, l->staging->size, AMP_STAGING_ALIGN);
        if (l->now) {
            l->now->next = NULL;
            free_collectives(c, l->now);
        }
    }
    amp_free(&allocator, c->ranks, (size_t)c->head.size * sizeof *c->ranks);
    amp_free(&allocator, c->heads, amp_meeting_bytes(c->head.size));
    pthread_cond_destroy(&c->news);
    pthread_cond_destroy(&c->work);
    pthread_mutex_destroy(&c->lock);
    amp_free(&allocator, c, sizeof *c);
}

/* What a thread that hangs may still touch stays where it is. */
static void close_comm(amp_comm_state *c) {
    amp_engine *engine = c->engine;
    if (!amp_comm_end(c)) return;
    free_comm(c);
    engine->type->close(engine);
}

static amp_status join(amp_comm_state *c, amp_error *err) {
    AMP_TRY(amp_comm_start_thread(c, err));
    c->heads = amp_alloc_zeroed(&c->allocator, amp_meeting_bytes(c->head.size));
    amp_roll_rank *ranks = amp_alloc_zeroed(&c->allocator, (size_t)c->head.size * sizeof *ranks);
    if (!c->heads || !ranks) {
        amp_free(&c->allocator, ranks, (size_t)c->head.size * sizeof *ranks);
        return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for %d ranks", c->head.size);
    }
    pthread_mutex_lock(&c->lock);
    c->ranks = ranks;
    pthread_mutex_unlock(&c->lock);
    return amp_comm_hello(c, err);
}

static double timeout_of(const amp_comm_options *o) { return o->timeout > 0 ? o->timeout : DEFAULT_TIMEOUT; }

amp_status amp_comm_open_engine(amp_engine *engine, const amp_comm_options *options, const amp_lane_limits *limits,
                                amp_comm **out, amp_error *err) {
    amp_comm_state *c = amp_alloc_zeroed(&engine->allocator, sizeof *c);
    *out = NULL;
    if (!c || !init_locks(c)) {
        if (c) amp_free(&engine->allocator, c, sizeof *c);
        engine->type->close(engine);
        return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for a comm");
    }
    c->engine = engine;
    c->allocator = engine->allocator;
    c->limits = *limits;
    c->step = -1;
    c->timeout = (int64_t)(timeout_of(options) * 1e9);
    c->head.calls = &amp_comm_state_calls;
    c->head.ordered = options->ordered != 0;
    amp_status status = join(c, err);
    if (status) close_comm(c);
    else *out = &c->head;
    return status;
}

/* ---- the public calls -------------------------------------------------------------------------------------------- */

static bool is(const amp_comm_options *o, const char *engine) { return !strcmp(o->engine, engine); }

/* Where ranks meet without MPI, and who they are. */
static amp_status check_folder(const amp_comm_options *o, amp_error *err) {
    if (is(o, "files") && !o->folder)
        return amp_fail(
            err, AMP_INVALID_ARGUMENT,
            "the engine \"files\" needs the folder where ranks meet (amp_comm_options.folder, --dist-folder)");
    if (is(o, "mpi") && o->folder)
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "folder is \"%s\", and the ranks of the engine \"mpi\" meet by MPI: take the engine \"files\" "
                        "or \"nccl\", or leave it out",
                        o->folder);
    if (o->ranks < 0 || (o->ranks ? o->rank < 0 || o->rank >= o->ranks : o->rank != 0))
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "rank is %d of %d ranks; it must be from 0 to ranks - 1, or both 0 (by the launcher)", o->rank,
                        o->ranks);
    if (o->ranks && !o->folder)
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "rank and ranks are given without folder: MPI knows them itself; leave them out");
    return AMP_OK;
}

/* |engine|: where none is named. */
static amp_status read_options(amp_comm_options *o, const char *engine, const amp_comm_options *options,
                               amp_error *err) {
    AMP_TRY(amp_options_read(o, sizeof *o, options, "amp_comm_options", err));
    if (!o->engine) o->engine = engine;
    if (!is(o, "mpi") && !is(o, "nccl") && !is(o, "files"))
        return amp_fail(err, AMP_NOT_FOUND, "there is no engine \"%s\"; \"mpi\", \"nccl\" and \"files\" are there",
                        o->engine);
    if (!(o->timeout == 0 || (o->timeout >= shortest_timeout && o->timeout <= longest_timeout)))
        return amp_fail(err, AMP_INVALID_ARGUMENT, "timeout is %g; it must be from %g to %g seconds, or 0 (%d)",
                        o->timeout, shortest_timeout, longest_timeout, DEFAULT_TIMEOUT);
    if (o->ordered != 0 && o->ordered != 1)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "ordered is %d; it must be 0 or 1", o->ordered);
    if (o->ordered && is(o, "nccl"))
        return amp_fail(
            err, AMP_UNSUPPORTED,
            "the engine \"nccl\" adds in an order of its own: leave ordered out (--reduce fast), or take the "
            "engine \"mpi\", which goes by the host's memory");
    return check_folder(o, err);
}

static amp_status open_mpi(const amp_comm_options *options, const void *mpi_comm, size_t size, amp_comm **out,
                           amp_error *err) {
    amp_engine *engine;
    const amp_allocator allocator = amp_allocator_or_default(options->allocator);
    const char *library = is(options, "nccl") ? NULL : options->library;
    AMP_TRY(amp_mpi_engine_open(library, mpi_comm, size, &allocator, &engine, err));
    return amp_comm_open_engine(engine, options, &amp_lane_default_limits, out, err);
}

static amp_status find_rank(const amp_comm_options *options, int32_t *rank, int32_t *ranks, amp_error *err) {
    const char *variable = NULL;
    *ranks = options->ranks ? options->ranks : amp_launcher_size(&variable);
    *rank = options->ranks ? options->rank : amp_launcher_rank();
    if (*ranks && *rank >= 0 && *rank < *ranks) return AMP_OK;
    if (*ranks)
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "%s says that %d processes were started, but not which one of them this is", variable, *ranks);
    return amp_fail(err, AMP_INVALID_ARGUMENT,
                    "nothing says which rank this process is, and of how many: start it with torchrun (RANK, "
                    "WORLD_SIZE), srun (SLURM_PROCID, SLURM_NTASKS) or mpirun, or give rank and ranks "
                    "(amp_comm_options, --dist-rank)");
}

static amp_status open_files(const amp_comm_options *options, amp_comm **out, amp_error *err) {
    const amp_allocator allocator = amp_allocator_or_default(options->allocator);
    const double timeout = timeout_of(options);
    amp_files_options f = {.folder = options->folder, .seconds = timeout > CONNECT_SECONDS ? timeout : CONNECT_SECONDS};
    amp_engine *engine;
    AMP_TRY(find_rank(options, &f.rank, &f.ranks, err));
    AMP_TRY(amp_files_engine_open(&f, &allocator, &engine, err));
    return amp_comm_open_engine(engine, options, &amp_lane_default_limits, out, err);
}

static amp_status open_host(const amp_comm_options *options, const void *mpi_comm, size_t size, amp_comm **out,
                            amp_error *err) {
    return options->folder ? open_files(options, out, err) : open_mpi(options, mpi_comm, size, out, err);
}

/* Those that meet in a folder are the ranks of the communicator that is given. */
static amp_status ranks_of_given(const amp_nccl *n, amp_comm_options *o, amp_error *err) {
    int rank, count;
    if (!n->given || !o->folder || o->ranks) return AMP_OK;
    NcclResult result = n->calls.comm_rank(n->given, &rank);
    if (result) return amp_nccl_fail(n, "ncclCommUserRank", result, err);
    result = n->calls.comm_count(n->given, &count);
    if (result) return amp_nccl_fail(n, "ncclCommCount", result, err);
    o->rank = rank;
    o->ranks = count;
    return AMP_OK;
}

/* NCCL has no start of its own: ranks come together over MPI or in a folder, which also moves what the host has. */
static amp_status open_nccl(amp_comm_options *options, const void *mpi_comm, size_t size, NcclComm given,
                            amp_comm **out, amp_error *err) {
    const amp_allocator allocator = amp_allocator_or_default(options->allocator);
    amp_comm *comm;
    amp_nccl *n = amp_alloc_zeroed(&allocator, sizeof *n);
    if (!n) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for the engine \"nccl\"");
    amp_status status = amp_nccl_open(n, options->library, err), joined = status;
    n->given = given;
    if (!joined) joined = ranks_of_given(n, options, err);
    if (!joined) joined = open_host(options, mpi_comm, size, &comm, err);
    if (joined) {
        if (!status) amp_nccl_close(n);
        amp_free(&allocator, n, sizeof *n);
        return joined;
    }
    status = amp_comm_use_nccl((amp_comm_state *)comm, n, err);
    if (status) amp_comm_release(comm);
    else *out = comm;
    return status;
}

static amp_status open_ranks(const amp_comm_options *options, const void *mpi_comm, size_t size, amp_comm **out,
                             amp_error *err) {
    amp_comm_options o;
    AMP_TRY(read_options(&o, "mpi", options, err));
    if (mpi_comm && o.folder)
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "amp_comm_from_mpi: folder is \"%s\", and the ranks of mpi_comm meet by MPI: leave it out",
                        o.folder);
    return is(&o, "nccl") ? open_nccl(&o, mpi_comm, size, NULL, out, err) : open_host(&o, mpi_comm, size, out, err);
}

amp_status amp_comm_open(const amp_comm_options *options, amp_comm **out, amp_error *err) {
    if (!out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_comm_open: out is NULL");
    *out = NULL;
    return open_ranks(options, NULL, 0, out, err);
}

amp_status amp_comm_from_mpi(const void *mpi_comm, size_t size, const amp_comm_options *options, amp_comm **out,
                             amp_error *err) {
    if (out) *out = NULL;
    if (!out || !mpi_comm) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_comm_from_mpi: mpi_comm or out is NULL");
    return open_ranks(options, mpi_comm, size, out, err);
}

amp_status amp_comm_from_nccl(void *nccl_comm, const amp_comm_options *options, amp_comm **out, amp_error *err) {
    amp_comm_options o;
    if (out) *out = NULL;
    if (!out || !nccl_comm) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_comm_from_nccl: nccl_comm or out is NULL");
    AMP_TRY(read_options(&o, "nccl", options, err));
    if (!is(&o, "nccl"))
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_comm_from_nccl: engine is \"%s\"; it must be \"nccl\", or NULL",
                        o.engine);
    return open_nccl(&o, NULL, 0, nccl_comm, out, err);
}

void amp_comm_release(amp_comm *comm) {
    amp_comm_state *c = (amp_comm_state *)comm;
    if (!c) return;
    const amp_status left = c->ended ? AMP_OK : amp_comm_leave(comm, NULL);
    (void)left; /* who wants to know calls amp_comm_leave first */
    close_comm(c);
}
