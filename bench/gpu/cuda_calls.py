"""The CUDA driver and NVRTC by ctypes, for what gpu-check measures without libamp."""
import ctypes
import glob
import os

NVRTC = ["libnvrtc.so.13", "libnvrtc.so.12"]
NO_CACHE = 12, 9  # knows --no-cache; its cache would open the driver
TOOLKIT = ["lib64", "lib", "targets/*/lib"]
DYNAMIC_SHARED, CAPTURE_THREAD_LOCAL = 8, 1  # CUfunction_attribute, CUstreamCaptureMode
MULTIPROCESSORS, CC_MAJOR, CC_MINOR = 16, 75, 76  # CUdevice_attribute
SWIZZLE_NONE, SWIZZLE_128B, PROMOTE_256B = 0, 3, 3
MAP_BYTES, MAP_ALIGN = 128, 64

# Parameters: p a pointer, an address, a size or a handle; i an int.
DRIVER = {
    "cuInit": "i", "cuDeviceGetAttribute": "pii", "cuDevicePrimaryCtxRetain": "pi", "cuCtxPushCurrent_v2": "p",
    "cuModuleLoadDataEx": "ppipp", "cuGetErrorName": "ip",
    "cuModuleGetFunction": "ppp", "cuFuncSetAttribute": "pii", "cuMemAlloc_v2": "pp", "cuMemFree_v2": "p",
    "cuMemcpyHtoDAsync_v2": "pppp", "cuMemcpyDtoHAsync_v2": "pppp", "cuMemsetD8Async": "pipp", "cuStreamCreate": "pi",
    "cuStreamSynchronize": "p", "cuEventCreate": "pi", "cuEventRecord": "pp", "cuEventElapsedTime": "ppp",
    "cuStreamBeginCapture_v2": "pi", "cuStreamEndCapture": "pp", "cuGraphInstantiateWithFlags": "ppp",
    "cuGraphLaunch": "pp", "cuGraphExecDestroy": "p", "cuGraphDestroy": "p", "cuLaunchKernel": "piiiiiiippp",
    "cuTensorMapEncodeTiled": "pii" + "p" * 5 + "iiii", "cuTensorMapEncodeIm2col": "pii" + "p" * 5 + "iip" + "iiii",
}
KINDS = {"p": ctypes.c_void_p, "i": ctypes.c_int}
VERSION = 12030  # of the calls that the driver is asked for


def typed(address, kinds):
    return ctypes.CFUNCTYPE(ctypes.c_int, *(KINDS[kind] for kind in kinds))(address)


def open_first(names, folders):
    """(library, its place); without one (None, where it was looked for)."""
    patterns = [f"{folder}/{name}" for folder in folders for name in names]
    for place in [*names, *(found for pattern in patterns for found in sorted(glob.glob(pattern)))]:
        try:
            return ctypes.CDLL(place), place
        except OSError:
            continue
    return None, ", ".join([*names, *folders])


def toolkit_folders():
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda*"]
    return [f"{root}/{folder}" for root in roots if root for folder in TOOLKIT]


class Nvrtc:
    def __init__(self):
        self.library, looked = open_first(NVRTC, toolkit_folders())
        if not self.library:
            raise RuntimeError("libnvrtc not found; looked for it in " + looked)
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        self.version = major.value, minor.value

    def call(self, name, *arguments):
        result = getattr(self.library, name)(*arguments)
        if result:
            raise RuntimeError(f"{name}: {result}")

    def text(self, program, what):
        size = ctypes.c_size_t()
        self.call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        data = ctypes.create_string_buffer(size.value)
        self.call(f"nvrtcGet{what}", program, data)
        return data.raw

    def compile(self, source, arch):
        """(image, ptxas's log): machine code for "sm_90a", PTX for "compute_90"."""
        program = ctypes.c_void_p()
        self.call("nvrtcCreateProgram", ctypes.byref(program), source.encode(), b"probe.cu", 0, None, None)
        options = [f"--gpu-architecture={arch}".encode(), b"--fmad=false"]
        options += [b"--ptxas-options=-v"] if arch.startswith("sm_") else []
        options += [b"--no-cache"] if self.version >= NO_CACHE else []
        failed = self.library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        log = self.text(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
        if failed:
            raise RuntimeError(f"NVRTC: {next((line for line in log.splitlines() if 'error' in line), log or failed)}")
        image = self.text(program, "CUBIN" if arch.startswith("sm_") else "PTX")
        self.call("nvrtcDestroyProgram", ctypes.byref(program))
        return image, log


class Device:
    """The first device, its primary context and one stream."""

    def __init__(self):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise RuntimeError(f"no CUDA driver: {error}") from error
        self.find = typed(ctypes.cast(self.library.cuGetProcAddress_v2, ctypes.c_void_p).value, "ppipp")
        self.calls, self.modules = {}, []
        self.call("cuInit", 0)
        self.context = self.made("cuDevicePrimaryCtxRetain", 0)
        self.call("cuCtxPushCurrent_v2", self.context)
        self.stream = self.made("cuStreamCreate", 1)
        self.start, self.end = self.made("cuEventCreate", 0), self.made("cuEventCreate", 0)
        self.multiprocessors = self.attribute(MULTIPROCESSORS)
        self.arch = 10 * self.attribute(CC_MAJOR) + self.attribute(CC_MINOR)

    def entry(self, name):
        if name not in self.calls:
            address, status = ctypes.c_void_p(), ctypes.c_int()
            plain = name.rsplit("_v", 1)[0]
            if self.find(plain.encode(), ctypes.byref(address), VERSION, 0, ctypes.byref(status)) or not address.value:
                raise RuntimeError(f"the driver has no {plain}")
            self.calls[name] = typed(address.value, DRIVER[name])
        return self.calls[name]

    def call(self, name, *arguments):
        result = self.entry(name)(*arguments)
        if result:
            text = ctypes.c_char_p()
            self.entry("cuGetErrorName")(result, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'').decode() or result}")

    def made(self, name, *arguments):
        handle = ctypes.c_void_p()
        self.call(name, ctypes.byref(handle), *arguments)
        return handle

    def attribute(self, number):
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, 0)
        return value.value

    def sync(self):
        self.call("cuStreamSynchronize", self.stream)

    # ---- memory

    def alloc(self, size):
        return self.made("cuMemAlloc_v2", size).value

    def free(self, *addresses):
        for address in addresses:
            self.call("cuMemFree_v2", address)

    def clear(self, address, size, byte=0):
        self.call("cuMemsetD8Async", address, byte, size, self.stream)

    def put(self, address, data):
        self.call("cuMemcpyHtoDAsync_v2", address, data, ctypes.sizeof(data), self.stream)
        self.sync()

    def get(self, address, data):
        self.call("cuMemcpyDtoHAsync_v2", data, address, ctypes.sizeof(data), self.stream)
        self.sync()
        return data

    # ---- kernels

    def load(self, image):
        self.modules.append(self.made("cuModuleLoadDataEx", image, 0, None, None))
        return self.modules[-1]

    def function(self, module, name, shared=0):
        found = self.made("cuModuleGetFunction", module, name.encode())
        if shared:
            self.call("cuFuncSetAttribute", found, DYNAMIC_SHARED, shared)
        return found

    def launcher(self, function, grid, block, arguments, shared=0):
        """A call that launches it: integers are 64 bits, bytes are passed as they are (tensor maps)."""
        values = [value if isinstance(value, ctypes.Array) else ctypes.c_int64(value) for value in arguments]
        places = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        grid = (*grid, 1, 1)[:3]

        def launch():
            self.call("cuLaunchKernel", function, *grid, block, 1, 1, shared, self.stream, places, None)

        launch.values = values  # as long as the call
        return launch

    def time(self, launches, repeats, rounds=1):
        """Microseconds of one launch, in a graph of |repeats|, the |launches| in turn; one figure for each round."""
        self.call("cuStreamBeginCapture_v2", self.stream, CAPTURE_THREAD_LOCAL)
        try:
            for i in range(repeats):
                launches[i % len(launches)]()
        finally:
            graph = self.made_last("cuStreamEndCapture", self.stream)
        program = self.made("cuGraphInstantiateWithFlags", graph, 0)
        times, elapsed = [], ctypes.c_float()
        for i in range(rounds + 1):  # the first brings it to the device
            self.call("cuEventRecord", self.start, self.stream)
            self.call("cuGraphLaunch", program, self.stream)
            self.call("cuEventRecord", self.end, self.stream)
            self.sync()
            self.call("cuEventElapsedTime", ctypes.byref(elapsed), self.start, self.end)
            times += [1e3 * elapsed.value / repeats] if i else []
        self.call("cuGraphExecDestroy", program)
        self.call("cuGraphDestroy", graph)
        return times

    def made_last(self, name, *arguments):
        handle = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(handle))
        return handle

    # ---- tensor maps

    def encode(self, name, *arguments):
        room = (ctypes.c_char * (MAP_BYTES + MAP_ALIGN))()
        at = -ctypes.addressof(room) % MAP_ALIGN
        tensor_map = (ctypes.c_char * MAP_BYTES).from_buffer(room, at)
        self.call(name, ctypes.addressof(tensor_map), *arguments)
        return tensor_map

    def tiled(self, kind, size, address, dims, pitch, box):
        """Rows of |dims| (inner first) elements of |size| bytes, |pitch| elements apart; boxes of 128 bytes a row."""
        numbers = lambda t, values: (t * len(values))(*values)
        return self.encode("cuTensorMapEncodeTiled", kind, 2, address, numbers(ctypes.c_uint64, dims),
                           numbers(ctypes.c_uint64, [pitch * size]), numbers(ctypes.c_uint32, box),
                           numbers(ctypes.c_uint32, [1, 1]), 0, SWIZZLE_128B, PROMOTE_256B, 0)

    def windows(self, kind, size, address, dims, lower, upper, channels, pixels):
        """im2col of an image of (channels, width, height, images)."""
        strides, at = [], size
        for count in dims[:3]:
            at *= count
            strides.append(at)
        numbers = lambda t, values: (t * len(values))(*values)
        return self.encode("cuTensorMapEncodeIm2col", kind, 4, address, numbers(ctypes.c_uint64, dims),
                           numbers(ctypes.c_uint64, strides), numbers(ctypes.c_int, lower),
                           numbers(ctypes.c_int, upper), channels, pixels, numbers(ctypes.c_uint32, [1] * 4), 0,
                           SWIZZLE_NONE, PROMOTE_256B, 0)
