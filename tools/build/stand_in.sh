# When the tests of the stand-in for the driver (fakecuda/) run; sourced by tools/test and .ci/run after test_totals.sh.
#
#     stand_in_tests always|changed   runs //fakecuda/... if that is asked for, or if fakecuda/tested does not hold the
#                                     hash of what they depend on; a run without a failure writes it
#     STAND_IN                        target patterns that leave these tests out, not what check scripts take of it:
#                                     `bazel_tests NAME ... -- //... "${STAND_IN[@]}"`
#
# What they depend on: all code of fakecuda/, the tables of the driver's, NCCL's and cuBLASLt's calls that the product
# uses, how tensor cores add, which the CPU's kernels have, too, and a header of tests.

readonly STAND_IN=(-//fakecuda/... //fakecuda:libcuda.so.1 //fakecuda/nccl:libnccl.so.2
    //fakecuda/cublaslt:libcublasLt.so.13 //fakecuda/isa:on_device)
readonly STAND_IN_STAMP=fakecuda/tested

stand_in_hash() {
    local LC_ALL=C
    {
        find fakecuda -type f ! -name '*.md' ! -path "$STAND_IN_STAMP"
        printf '%s\n' runtime/device/cuda/driver_api.h runtime/comm/nccl/nccl_api.h cuda_sdk/cublaslt_api.h \
            tests/cuda_sdk/lt_product.h \
            codegen/cpu/prelude/{device_block,vector}.h
    } | sort | xargs sha256sum | sha256sum | cut -d' ' -f1
}

stand_in_is_tested() { [[ -f $STAND_IN_STAMP && $(<"$STAND_IN_STAMP") == "$(stand_in_hash)" ]]; }

# Without NVRTC cases are skipped: such a run says less than the stamp would.
stand_in_passed() { (($1 == failed)) && [[ -n ${NVRTC_PATH:-} ]]; }

stand_in_tests() {
    local when=$1 failed_before=$failed hash
    shift
    if [[ $when == changed ]] && stand_in_is_tested; then
        printf '== the stand-in for the driver is as it was tested (%s): its tests are left to tools/test --full\n' \
            "$STAND_IN_STAMP"
        return
    fi
    hash=$(stand_in_hash)
    bazel_tests 'tests of the stand-in for the driver' "$@" //fakecuda/...
    if stand_in_passed "$failed_before" && ! stand_in_is_tested; then
        printf '%s\n' "$hash" >"$STAND_IN_STAMP"
        printf '%s is written: it belongs into the commit\n' "$STAND_IN_STAMP"
    fi
}
