# What the checks over MPI share; sourced after checks.bash.
#
#     openmpi N COMMAND...   N ranks of it, on this machine alone, and more than it has processors
#     mpich N COMMAND...
#     mpis                   those of them that are installed (tools/setup --mpi)
#
# MPI_LIMIT in the environment: seconds after which they are ended, in place of 120.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

openmpi() {
    timeout "${MPI_LIMIT:-120}" mpirun.openmpi --oversubscribe --bind-to none --mca pml ob1 --mca btl self,vader,tcp \
        --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo -n "$@"
}
mpich() { timeout "${MPI_LIMIT:-120}" mpiexec.mpich -iface lo -n "$@"; }

mpis() {
    ! command -v mpirun.openmpi >/dev/null || echo openmpi
    ! command -v mpiexec.mpich >/dev/null || echo mpich
}
