/* launcher.c: see launcher.h. */
#include "runtime/comm/launcher.h"

#include <stdlib.h>

typedef struct Launcher {
    const char *size, *rank;
} Launcher;

/* Inside an allocation of SLURM mpirun may start fewer, so its own variables come first. */
static const Launcher launchers[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                     {"PMI_SIZE", "PMI_RANK"},
                                     {"WORLD_SIZE", "RANK"},
                                     {"SLURM_NTASKS", "SLURM_PROCID"}};

/* From |least| on; less than that: the variable says no such number. */
static int32_t number_of(const char *variable, int32_t least) {
    const char *text = getenv(variable);
    char *end = NULL;
    const long number = text ? strtol(text, &end, 10) : 0;
    return text && end != text && number >= least && number <= INT32_MAX ? (int32_t)number : least - 1;
}

static const Launcher *launcher(void) {
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (number_of(launchers[i].size, 1)) return &launchers[i];
    return NULL;
}

int32_t amp_launcher_size(const char **variable) {
    const Launcher *l = launcher();
    if (!l) return 0;
    *variable = l->size;
    return number_of(l->size, 1);
}

int32_t amp_launcher_rank(void) {
    const Launcher *l = launcher();
    return l ? number_of(l->rank, 0) : -1;
}

const char *const *amp_launcher_libraries(void) {
    static const char *const openmpi[] = {"libmpi.so.40", NULL};
    static const char *const mpich[] = {"libmpi_abi.so.1", "libmpich.so.12", "libmpi.so.12", NULL};
    static const char *const all[] = {"libmpi.so.40", "libmpi_abi.so.1", "libmpich.so.12", "libmpi.so.12", NULL};
    if (getenv("OMPI_COMM_WORLD_SIZE")) return openmpi;
    if (getenv("PMI_SIZE")) return mpich;
    return all;
}
