/* simulate_ring.c: how long MPI_Allreduce takes, by the clock of SimGrid's SMPI, on a modelled cluster. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int count = argc > 1 ? atoi(argv[1]) : 1;
    float *from = calloc((size_t)count, sizeof *from), *to = calloc((size_t)count, sizeof *to);
    if (!from || !to) return 1;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    MPI_Allreduce(from, to, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    const double took = MPI_Wtime() - begin;
    double longest;
    MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (!rank) printf("took %.9f\n", longest);
    free(from);
    free(to);
    MPI_Finalize();
    return 0;
}
