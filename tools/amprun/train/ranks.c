/* ranks.c: see ranks.h. */
#include "tools/amprun/train/ranks.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "amp/inspect.h"
#include "base/file.h"

/* Seconds between meetings; and before a process ends, so that others can print before the launcher ends them. */
#define MEETING_SECONDS 0.25
enum { LAST_WORDS = 1 };

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static long number_of(const char *variable) {
    const char *text = getenv(variable);
    return text ? strtol(text, NULL, 10) : 0;
}

/* Of a launcher that started several processes; NULL: none is known to have.  A script of SLURM's has the number of its
 * tasks before any was started, so only a later task can tell. */
static const char *launched_by(void) {
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (number_of(sizes[i]) > 1) return sizes[i];
    return number_of("SLURM_NTASKS") > 1 && number_of("SLURM_PROCID") > 0 ? "SLURM_NTASKS" : NULL;
}

static int check_alone(const Args *a) {
    const char *variable = launched_by();
    if (!variable || a->allowed & ALLOW_ALONE) return 0;
    return report_text("%ld processes were started (%s), and each would train alone and write the same files; give "
                       "--dist mpi, or --dist files --dist-folder DIR where there is no MPI, or --allow alone",
                       number_of(variable), variable) +
           1;
}

static amp_status join(Ranks *r, const Args *a, amp_error *err) {
    *r = (Ranks){.count = 1};
    const amp_comm_options options = {.struct_size = sizeof options,
                                      .engine = a->dist,
                                      .library = a->dist_library,
                                      .timeout = a->dist_timeout,
                                      .ordered = a->ordered,
                                      .folder = a->dist_folder,
                                      .rank = a->dist_rank,
                                      .ranks = a->dist_ranks};
    AMP_TRY(amp_comm_open(&options, &r->comm, err));
    r->rank = amp_comm_rank(r->comm);
    r->count = amp_comm_size(r->comm);
    return AMP_OK;
}

/* The others come to their deadlines in the same moment, and the launcher ends all with the first that ends. */
static int end_unjoined(void) {
    fflush(NULL);
    if (launched_by()) sleep(LAST_WORDS);
    return 1;
}

int ranks_open(Ranks *r, const Args *a) {
    amp_error err = {0};
    *r = (Ranks){.count = 1};
    if (!a->dist) return check_alone(a);
    if (join(r, a, &err)) return report(&err) && end_unjoined();
    report_as_rank(r->count > 1 ? r->rank : -1);
    ranks_does(r, AMP_RANK_LOADS);
    return 0;
}

int ranks_refuse(const Args *a, int status) {
    Ranks r;
    amp_error err;
    if (!a->dist || join(&r, a, &err)) return status;
    ranks_end(&r, status);
    amp_comm_release(r.comm);
    return status;
}

void ranks_does(const Ranks *r, amp_rank_does what) {
    if (r->count > 1) amp_comm_does(r->comm, what, -1);
}

void ranks_give_up(const Ranks *r) {
    const char *why = report_last();
    if (r->count > 1) amp_comm_give_up(r->comm, *why ? why : "it has ended by an error of its own");
}

void ranks_end(const Ranks *r, int status) {
    if (!r->comm || r->count == 1) return;
    ranks_give_up(r);
    fflush(NULL);
    sleep(LAST_WORDS);
    _Exit(status);
}

void ranks_close(Ranks *r) {
    amp_error err = {0};
    if (r->count > 1 && amp_comm_leave(r->comm, &err)) {
        report_text("%s%s", err.message, r->rank ? "" : "; its work was done before that, and its files are written");
        ranks_end(r, 1);
    }
    amp_comm_release(r->comm);
    *r = (Ranks){.count = 1};
}

/* ---- what a rank does -------------------------------------------------------------------------------------------- */

/* Those of this host, by what launchers say. */
static long ranks_of_host(const Ranks *r) {
    static const char *const sizes[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "LOCAL_WORLD_SIZE",
                                        "SLURM_NTASKS_PER_NODE"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (number_of(sizes[i]) > 0) return number_of(sizes[i]);
    return r->count;
}

/* Ranks of a host share its processors; a launcher may have given each its own already. */
static int64_t threads_of(const Ranks *r) {
    cpu_set_t set;
    const long here = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set), all = sysconf(_SC_NPROCESSORS_ONLN);
    const long threads = here < all ? here : here / ranks_of_host(r);
    return threads < 1 ? 1 : threads;
}

/* Of this host: the ranks take its GPUs in turn.  A launcher may show each its own only, which is number 0 then. */
static int32_t cuda_device_of(const Ranks *r) {
    static const char *const ranks[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "LOCAL_RANK", "SLURM_LOCALID"};
    amp_cuda_found driver;
    long rank = r->rank;
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        if (getenv(ranks[i])) {
            rank = number_of(ranks[i]);
            break;
        }
    if (amp_cuda_find(AMP_CUDA_DRIVER, &driver, NULL)) return 0; /* the session says why */
    return driver.devices > 1 && rank >= 0 ? (int32_t)(rank % driver.devices) : 0;
}

Args ranks_args(const Ranks *r, const Args *a) {
    Args mine = *a;
    mine.comm = r->comm;
    if (r->count == 1) return mine;
    if (!mine.numbers_device && mine.device && !strcmp(mine.device, "cuda")) mine.cuda.index = cuda_device_of(r);
    if (!mine.threads) mine.threads = threads_of(r);
    if (!r->rank) return mine;
    mine.sends_checkpoint = mine.checkpoint;
    mine.save = mine.checkpoint = mine.best_file = mine.log = mine.tensorboard = mine.profile = mine.save_like = NULL;
    mine.stats = 0;
    mine.quiet = true;
    return mine;
}

/* ---- what ranks tell each other ---------------------------------------------------------------------------------- */

typedef struct Meeting {
    int64_t signal, next, saves;
} Meeting;

/* Steps until the next meeting, by how long those since the last one took. */
static int64_t steps_between(const Ranks *r, int64_t step) {
    const double each =
        step > r->met_before ? (amp_seconds() - r->met) / (double)(step - r->met_before) : MEETING_SECONDS;
    const double steps = each > 0 ? MEETING_SECONDS / each : 1;
    return steps < 1 ? 1 : steps > 1000 ? 1000 : (int64_t)steps;
}

int ranks_meet(Ranks *r, int64_t step, int *signal, bool *saves) {
    amp_error err = {0};
    if (r->count == 1) return 0;
    if (step < r->next_meeting) {
        *signal = 0; /* the others do not know of it yet */
        *saves = false;
        return 0;
    }
    const Meeting mine = {*signal, step + steps_between(r, step), *saves};
    Meeting *all = calloc((size_t)r->count, sizeof *all);
    if (!all) return report_text("no memory for what %d ranks say", r->count);
    int failed = amp_comm_meet(r->comm, &mine, sizeof mine, all, "whether training goes on", &err) ? report(&err) : 0;
    for (int32_t i = 0; i < r->count && !failed && !*signal; i++) *signal = (int)all[i].signal;
    *saves = all[0].saves;
    r->next_meeting = all[0].next;
    r->met_before = step;
    r->met = amp_seconds();
    free(all);
    return failed;
}

int ranks_agree(const Ranks *r, const RankOption *options, int count) {
    amp_error err = {0};
    if (r->count == 1) return 0;
    const size_t bytes = (size_t)count * sizeof(int64_t);
    int64_t *all = calloc((size_t)r->count + 1, bytes);
    if (!all) return report_text("no memory for what %d ranks say", r->count);
    int64_t *mine = all + (size_t)r->count * (size_t)count;
    for (int j = 0; j < count; j++) mine[j] = options[j].value;
    int failed = amp_comm_meet(r->comm, mine, bytes, all, "options of the training", &err) ? report(&err) : 0;
    for (int32_t i = 1; i < r->count && !failed; i++)
        for (int j = 0; j < count && !failed; j++)
            if (all[i * count + j] != all[j])
                failed = report_text("rank %d has another %s than rank 0: %" PRId64 " instead of %" PRId64
                                     "; start all ranks with the same options and data",
                                     i, options[j].name, all[i * count + j], all[j]);
    free(all);
    return failed;
}

int ranks_sum(const Ranks *r, double *values, int count) {
    amp_error err = {0};
    if (r->count == 1) return 0;
    const size_t bytes = (size_t)count * sizeof *values;
    double *all = calloc((size_t)r->count, bytes);
    if (!all) return report_text("no memory for the sums of %d ranks", r->count);
    int failed = amp_comm_meet(r->comm, values, bytes, all, "sums of an evaluation", &err) ? report(&err) : 0;
    memset(values, 0, bytes);
    for (int32_t i = 0; i < r->count; i++)
        for (int j = 0; j < count; j++) values[j] += all[i * count + j];
    free(all);
    return failed;
}
