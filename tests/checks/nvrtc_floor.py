#!/usr/bin/env python3
"""How long NVRTC takes here for a kernel of one assignment, in milliseconds: what no kernel can be compiled faster than.

    nvrtc_floor.py ARCH     the least of nine; NVRTC_PATH or CUDA_HOME say where NVRTC is, as they do for ampc
"""
import ctypes
import glob
import os
import sys
import time

SOURCE = b'extern "C" __global__ void k(float *x) { *x = 1.0f; }\n'


def library():
    roots = [os.environ.get("NVRTC_PATH", ""), os.environ.get("CUDA_HOME", ""), *sorted(glob.glob("/usr/local/cuda*"), reverse=True)]
    for root in filter(None, roots):
        for inner in ("", "lib64", "lib", "nvidia/cu13/lib"):
            for path in sorted(glob.glob(os.path.join(root, inner, "libnvrtc.so.1[23]"))):
                return ctypes.CDLL(path)
    return ctypes.CDLL("libnvrtc.so.13")


def milliseconds(nvrtc, options):
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), SOURCE, b"k.cu", 0, None, None)
    begin = time.perf_counter()
    status = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    taken = (time.perf_counter() - begin) * 1e3
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if status:
        sys.exit(f"nvrtc_floor.py: NVRTC refuses it: {status}")
    return taken


def main():
    nvrtc = library()
    options = [b"--gpu-architecture=sm_" + sys.argv[1].encode(), b"--fmad=false", b"--ptxas-options=-v", b"--no-cache"]
    print(f"{min(milliseconds(nvrtc, options) for _ in range(9)):.1f}")


main()
