# What the checks over MPI share; sourced after checks.bash.
#
#     openmpi N COMMAND...   N ranks of it, on this machine alone, and more than it has processors
#     mpich N COMMAND...
#     mpis                   the ones that are installed (tools/setup --mpi), and whose launcher and library work;
#                            $no_mpi: why there is none
#     ranks_model ...        writes the model that ranks train
#
# MPI_LIMIT in the environment: seconds after which they are ended, in place of 120.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

openmpi() {
    timeout "${MPI_LIMIT:-120}" mpirun.openmpi --oversubscribe --bind-to none --mca pml ob1 --mca btl self,vader,tcp \
        --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo -n "$@"
}
mpich() { timeout "${MPI_LIMIT:-120}" mpiexec.mpich -iface lo -n "$@"; }

declare -Ar LAUNCHER=([openmpi]=mpirun.openmpi [mpich]=mpiexec.mpich)
declare -Ar LIBRARY=([openmpi]=libmpi.so.40 [mpich]=libmpich.so.12)
# has_mpi MPI: else $lacking says what is
has_mpi() {
    tried "${LAUNCHER[$1]}" python3 -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "${LIBRARY[$1]}" || return
    "$1" 1 true >"$work/mpi.said" 2>&1 && return
    lacking="${LAUNCHER[$1]} is here, but starts nothing: $(grep -m 1 . "$work/mpi.said")"
    return 1
}
found_mpis='' no_mpi=''
for mpi in openmpi mpich; do
    if has_mpi $mpi; then found_mpis+=$mpi$'\n'; else no_mpi+="${no_mpi:+; }$lacking"; fi
done
no_mpi+=' (tools/setup --mpi)'
mpis() { printf %s "$found_mpis"; }

# ranks_model FILE HIDDEN ACCUMULATE TRAIN PRECISION: for the data of distributed.py. HIDDEN: its first layer. TRAIN and
# PRECISION: one more line of these blocks.
ranks_model() {
    cat >"$1" <<AMP
amp 1
model small(x: f32[N, 40]) -> logits {
    h = relu($2)
    logits = linear(dropout(h; p = 0.1) as drop; out = 5) as fc2
}
train small {
    input targets: i32[N]
    loss = cross_entropy(logits, targets)
    metric acc = accuracy(logits, targets)
    optimizer = adamw(lr = 0.01)
    clip_norm = 1.0
    accumulate = $3
    $4
}
precision fp16 {
    loss_scale = dynamic(init = 65536.0, interval = 5)
    $5
}
AMP
}
