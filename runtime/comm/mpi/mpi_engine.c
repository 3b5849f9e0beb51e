/* mpi_engine.c: see mpi_engine.h.
 *
 * A lane is a communicator of its own, so that messages of two lanes may be started in any order.  Where the engine
 * initialises MPI, one thread makes all calls from MPI_Init_thread to MPI_Finalize, which every MPI allows; a program
 * that has initialised MPI itself may call it at any time, so that another thread needs MPI_THREAD_MULTIPLE.
 */
#include "runtime/comm/mpi/mpi_engine.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/comm/launcher.h"
#include "runtime/comm/mpi/mpi_library.h"

typedef struct MpiEngine {
    amp_engine head;
    amp_mpi mpi;
    bool initialises; /* and finalises */
    bool given;       /* |comm| */
    unsigned char comm[sizeof(amp_mpi_handle)];
    int32_t duplicates;
    struct {
        void *to, *from; /* where the result of a message has to be, and where MPI left it */
        size_t bytes;
    } moves[AMP_LANES];
} MpiEngine;

/* ---- joining and leaving ----------------------------------------------------------------------------------------- */

static amp_status check_launcher(const MpiEngine *e, int rank, int size, amp_error *err) {
    const char *variable;
    const int32_t started = amp_launcher_size(&variable);
    if (!started || started == size) return AMP_OK;
    return amp_fail(
        err, AMP_MISMATCH,
        "the launcher started %d processes (%s), but %s says that this is rank %d of %d: they do not belong "
        "together; start it with the mpirun of that MPI, name the launcher's library (amp_comm_options.library, "
        "--dist-library), or have the ranks meet in a folder, without MPI (amp_comm_options.folder, --dist-folder)",
        started, variable, e->mpi.name, rank, size);
}

static amp_status initialise(MpiEngine *e, amp_error *err) {
    amp_mpi_thread granted;
    int code = e->mpi.dialect->init(&e->mpi, AMP_MPI_SERIALIZED, &granted);
    if (code) return amp_mpi_fail(&e->mpi, AMP_MPI_Init_thread, code, err);
    if (granted == AMP_MPI_SINGLE)
        return amp_fail(err, AMP_UNSUPPORTED, "%s allows a program no threads (MPI_THREAD_SINGLE)", e->mpi.name);
    return AMP_OK;
}

static amp_status connect_ranks(amp_engine *engine, amp_error *err) {
    MpiEngine *e = (MpiEngine *)engine;
    const amp_mpi_dialect *dialect = e->mpi.dialect;
    const void *comm = e->given ? e->comm : NULL;
    int rank = 0, size = 0, code;
    if (e->initialises) AMP_TRY(initialise(e, err));
    if ((code = dialect->rank_and_size(&e->mpi, comm, &rank, &size)))
        return amp_mpi_fail(&e->mpi, AMP_MPI_Comm_size, code, err);
    if (!e->given) AMP_TRY(check_launcher(e, rank, size, err));
    for (; e->duplicates < AMP_MPI_COMMS; e->duplicates++)
        if ((code = dialect->duplicate(&e->mpi, comm, e->duplicates)))
            return amp_mpi_fail(&e->mpi, AMP_MPI_Comm_dup, code, err);
    engine->rank = rank;
    engine->size = size;
    return AMP_OK;
}

/* No caller is left to hear of what fails here. */
static void disconnect_ranks(amp_engine *engine) {
    MpiEngine *e = (MpiEngine *)engine;
    int code = 0;
    for (int32_t i = 0; i < e->duplicates && !code; i++) code = e->mpi.dialect->free_duplicate(&e->mpi, i);
    if (e->initialises && !code) amp_mpi_finalize(&e->mpi);
}

static void close_engine(amp_engine *engine) {
    const amp_allocator allocator = engine->allocator;
    amp_free(&allocator, engine, sizeof(MpiEngine));
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static amp_status start_message(amp_engine *engine, int32_t lane, const amp_message *message, amp_error *err) {
    MpiEngine *e = (MpiEngine *)engine;
    amp_mpi_call call;
    int code = e->mpi.dialect->start(&e->mpi, lane, message, engine->size, &call);
    if (code) return amp_mpi_fail(&e->mpi, call, code, err);
    e->moves[lane].bytes = 0;
    if (message->op != AMP_SUM_SHARE) return AMP_OK;
    /* MPI_Reduce_scatter_block in place leaves the sum at the beginning of the memory. */
    const size_t bytes = message->count / (size_t)engine->size * amp_dtype_size(message->dtype);
    e->moves[lane].from = message->data;
    e->moves[lane].to = (unsigned char *)message->data + bytes * (size_t)engine->rank;
    e->moves[lane].bytes = bytes;
    return AMP_OK;
}

static amp_status test_message(amp_engine *engine, int32_t lane, bool *done, amp_error *err) {
    MpiEngine *e = (MpiEngine *)engine;
    int flag = 0, code = e->mpi.dialect->test(&e->mpi, lane, &flag);
    if (code) return amp_mpi_fail(&e->mpi, AMP_MPI_Test, code, err);
    *done = flag != 0;
    if (flag && e->moves[lane].bytes) memmove(e->moves[lane].to, e->moves[lane].from, e->moves[lane].bytes);
    return AMP_OK;
}

/* ---- letters ----------------------------------------------------------------------------------------------------- */

static amp_status send_letter(amp_engine *engine, int32_t to, amp_letter *letter, amp_error *err) {
    MpiEngine *e = (MpiEngine *)engine;
    int code = e->mpi.dialect->send(&e->mpi, to, letter);
    letter->leaves = !code;
    return code ? amp_mpi_fail(&e->mpi, AMP_MPI_Isend, code, err) : AMP_OK;
}

static amp_status letter_sent(amp_engine *engine, amp_letter *letter, amp_error *err) {
    MpiEngine *e = (MpiEngine *)engine;
    int done = 0, code = e->mpi.dialect->sent(&e->mpi, letter, &done);
    if (done) letter->leaves = false;
    return code ? amp_mpi_fail(&e->mpi, AMP_MPI_Test, code, err) : AMP_OK;
}

static amp_status receive_letter(amp_engine *engine, unsigned char bytes[AMP_LETTER_BYTES], bool *came,
                                 amp_error *err) {
    MpiEngine *e = (MpiEngine *)engine;
    int flag = 0, code = e->mpi.dialect->receive(&e->mpi, bytes, &flag);
    *came = flag != 0;
    return code ? amp_mpi_fail(&e->mpi, AMP_MPI_Recv, code, err) : AMP_OK;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static const amp_engine_type type = {
    .name = "mpi",
    .sums = 1u << AMP_DT_F32 | 1u << AMP_DT_F64,
    .connect = connect_ranks,
    .start = start_message,
    .test = test_message,
    .send = send_letter,
    .sent = letter_sent,
    .receive = receive_letter,
    .disconnect = disconnect_ranks,
    .abandon = NULL, /* nothing of MPI is safe any more */
    .close = close_engine,
};

/* Who has initialised it, and what that allows. */
static amp_status look_at_program(MpiEngine *e, amp_error *err) {
    int initialised, finalised;
    amp_mpi_thread level = AMP_MPI_SINGLE;
    if (amp_mpi_state(&e->mpi, &initialised, &finalised))
        return amp_fail(err, AMP_BAD_FILE, "%s does not say whether it is initialised", e->mpi.name);
    if (finalised)
        return amp_fail(err, AMP_WRONG_STATE,
                        "%s was finalised in this process and cannot be initialised again: open a comm before, and "
                        "release the last one at the end",
                        e->mpi.name);
    if (e->given && !initialised)
        return amp_fail(err, AMP_WRONG_STATE, "%s is not initialised: call MPI_Init_thread first", e->mpi.name);
    e->initialises = !initialised;
    if (initialised && e->mpi.dialect->query_thread(&e->mpi, &level)) level = AMP_MPI_SINGLE;
    e->head.own_thread = !initialised || level == AMP_MPI_MULTIPLE;
    return AMP_OK;
}

static amp_status take_comm(MpiEngine *e, const void *comm, size_t size, amp_error *err) {
    if (!comm) return AMP_OK;
    if (size != e->mpi.dialect->handle_size)
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "amp_comm_from_mpi: an MPI_Comm of %s has %zu bytes, not %zu: give sizeof(MPI_Comm), and the "
                        "library that the program was built for",
                        e->mpi.name, e->mpi.dialect->handle_size, size);
    memcpy(e->comm, comm, size);
    e->given = true;
    return AMP_OK;
}

amp_status amp_mpi_engine_open(const char *file, const void *comm, size_t size, const amp_allocator *allocator,
                               amp_engine **out, amp_error *err) {
    *out = NULL;
    MpiEngine *e = amp_alloc_zeroed(allocator, sizeof *e);
    if (!e) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for the engine \"mpi\"");
    e->head.type = &type;
    e->head.connect_seconds = 30;
    e->head.allocator = *allocator;
    amp_status status = amp_mpi_open(&e->mpi, file, comm != NULL, err);
    if (!status) status = take_comm(e, comm, size, err);
    if (!status) status = look_at_program(e, err);
    e->head.library = e->mpi.name;
    if (status) close_engine(&e->head);
    else *out = &e->head;
    return status;
}
