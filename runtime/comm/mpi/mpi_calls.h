/* mpi_calls.h: what is called of an MPI, and what its handles are.
 *
 * There is no header of MPI that fits all: handles are ints in MPICH and what descends from it, pointers in Open MPI
 * and in the ABI of MPI 5.  A dialect is one of these three: the types and numbers that dialect.inc is compiled with.
 */
#ifndef AMP_RUNTIME_COMM_MPI_MPI_CALLS_H
#define AMP_RUNTIME_COMM_MPI_MPI_CALLS_H

#include "runtime/comm/engine.h"

/* X(name, parameters); H is the type of handles. */
#define AMP_MPI_CALLS(X, H)                                                                                            \
    X(Initialized, (int *))                                                                                            \
    X(Finalized, (int *))                                                                                              \
    X(Init_thread, (int *, char ***, int, int *))                                                                      \
    X(Query_thread, (int *))                                                                                           \
    X(Get_library_version, (char *, int *))                                                                            \
    X(Error_string, (int, char *, int *))                                                                              \
    X(Comm_rank, (H, int *))                                                                                           \
    X(Comm_size, (H, int *))                                                                                           \
    X(Comm_dup, (H, H *))                                                                                              \
    X(Comm_free, (H *))                                                                                                \
    X(Comm_set_errhandler, (H, H))                                                                                     \
    X(Iallreduce, (const void *, void *, int, H, H, H, H *))                                                           \
    X(Ireduce_scatter_block, (const void *, void *, int, H, H, H, H *))                                                \
    X(Iallgather, (const void *, int, H, void *, int, H, H, H *))                                                      \
    X(Ialltoall, (const void *, int, H, void *, int, H, H, H *))                                                       \
    X(Ibcast, (void *, int, H, int, H, H *))                                                                           \
    X(Test, (H *, int *, void *))                                                                                      \
    X(Isend, (const void *, int, H, int, int, H, H *))                                                                 \
    X(Iprobe, (int, int, H, int *, void *))                                                                            \
    X(Recv, (void *, int, H, int, int, H, void *))                                                                     \
    X(Finalize, (void))

typedef enum amp_mpi_call {
#define AMP_MPI_NUMBER(name, parameters) AMP_MPI_##name,
    AMP_MPI_CALLS(AMP_MPI_NUMBER, int)
#undef AMP_MPI_NUMBER
        AMP_MPI_CALL_COUNT
} amp_mpi_call;

enum {
    AMP_MPI_VERSION_MOST = 8192 + 1, /* characters of MPI_Get_library_version, of any MPI */
    AMP_MPI_ERROR_MOST = 1024,       /* of MPI_Error_string */
    AMP_MPI_LETTERS = AMP_LANES,     /* the communicator of letters, after the lanes' */
    AMP_MPI_COMMS
};

typedef union amp_mpi_handle {
    int number;
    void *pointer;
} amp_mpi_handle;

typedef enum amp_mpi_thread { AMP_MPI_SINGLE, AMP_MPI_FUNNELED, AMP_MPI_SERIALIZED, AMP_MPI_MULTIPLE } amp_mpi_thread;

struct amp_mpi_dialect;

/* A library of MPI, opened. */
typedef struct amp_mpi {
    const struct amp_mpi_dialect *dialect;
    void *library;
    void (*calls[AMP_MPI_CALL_COUNT])(void);
    /* Handles that the library has */
    amp_mpi_handle world, f32, f64, byte, sum, errors_return;
    amp_mpi_handle comms[AMP_MPI_COMMS], requests[AMP_LANES]; /* ours */
    char name[200];                                           /* file and version, for errors */
} amp_mpi;

/* Every function returns the number that MPI returns: 0 is success. */
typedef struct amp_mpi_dialect {
    const char *name;
    size_t handle_size;
    /* false: the library lacks one of the handles. */
    bool (*find_handles)(amp_mpi *m);
    /* The level that the program has asked for, or that is granted now. */
    int (*query_thread)(const amp_mpi *m, amp_mpi_thread *out);
    int (*init)(const amp_mpi *m, amp_mpi_thread wanted, amp_mpi_thread *granted);
    /* |comm|: the address of one of its communicators; NULL: all ranks */
    int (*rank_and_size)(const amp_mpi *m, const void *comm, int *rank, int *size);
    int (*duplicate)(amp_mpi *m, const void *comm, int32_t index);
    int (*free_duplicate)(amp_mpi *m, int32_t index);
    /* |call|: which one it was, for errors */
    int (*start)(amp_mpi *m, int32_t lane, const amp_message *message, int32_t ranks, amp_mpi_call *call);
    int (*test)(amp_mpi *m, int32_t lane, int *done);
    int (*send)(amp_mpi *m, int32_t to, amp_letter *letter);
    int (*sent)(amp_mpi *m, amp_letter *letter, int *done);
    int (*receive)(amp_mpi *m, unsigned char *bytes, int *came);
} amp_mpi_dialect;

extern const amp_mpi_dialect amp_mpi_abi, amp_mpi_mpich, amp_mpi_openmpi;

/* "MPI_Iallreduce" */
const char *amp_mpi_call_name(amp_mpi_call call);

#endif
