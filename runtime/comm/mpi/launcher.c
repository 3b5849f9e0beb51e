/* launcher.c: see launcher.h. */
#include "runtime/comm/mpi/launcher.h"

#include <stdlib.h>

/* Inside an allocation of SLURM mpirun may start fewer, so its own variables come first. */
static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE", "SLURM_NTASKS"};

int32_t amp_launcher_size(const char **variable) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const char *text = getenv(sizes[i]);
        long size = text ? strtol(text, NULL, 10) : 0;
        *variable = sizes[i];
        if (size > 0 && size <= INT32_MAX) return (int32_t)size;
    }
    return 0;
}

const char *const *amp_launcher_libraries(void) {
    static const char *const openmpi[] = {"libmpi.so.40", NULL};
    static const char *const mpich[] = {"libmpi_abi.so.1", "libmpich.so.12", "libmpi.so.12", NULL};
    static const char *const all[] = {"libmpi.so.40", "libmpi_abi.so.1", "libmpich.so.12", "libmpi.so.12", NULL};
    if (getenv("OMPI_COMM_WORLD_SIZE")) return openmpi;
    if (getenv("PMI_SIZE")) return mpich;
    return all;
}
