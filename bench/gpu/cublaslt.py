"""cuBLASLt by ctypes, where it is installed: a product of the models, by the algorithms that its heuristic names."""
import ctypes
import importlib.util

from cuda_calls import open_first, toolkit_folders

NAMES = ["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"]
WHEELS = ["cu13/lib", "cublas/lib"]  # below the package nvidia
COMPUTE_F32, TYPE_F32, TYPE_F16 = 68, 0, 2
STATUS = {1: "not initialised", 3: "out of memory", 7: "invalid value", 8: "architecture", 13: "execution failed",
          14: "internal", 15: "not supported"}
TRANS_A, TRANS_B, EPILOGUE, BIAS_POINTER, EPILOGUE_BIAS = 3, 4, 7, 8, 4  # cublasLtMatmulDescAttributes_t
BATCH_COUNT, BATCH_STRIDE = 5, 6  # cublasLtMatrixLayoutAttribute_t
MAX_WORKSPACE, ALGORITHMS, WORKSPACE = 1, 16, 32 << 20
# cublasLtMatmulAlgoConfigAttributes_t
CONFIG = {"algorithm": 0, "tile": 1, "split_k": 2, "reduction": 3, "stages": 6, "cluster": 8}
NAMES_OF_CALLS = {  # p: a pointer, a size or a handle; i: an int
    "cublasLtGetProperty": "ip",
    "cublasLtCreate": "p", "cublasLtMatmulDescCreate": "pii", "cublasLtMatmulDescDestroy": "p",
    "cublasLtMatmulDescSetAttribute": "pipp", "cublasLtMatrixLayoutCreate": "pippp", "cublasLtMatrixLayoutDestroy": "p",
    "cublasLtMatrixLayoutSetAttribute": "pipp", "cublasLtMatmulPreferenceCreate": "p",
    "cublasLtMatmulPreferenceSetAttribute": "pipp", "cublasLtMatmulAlgoGetHeuristic": "p" * 7 + "ipp",
    "cublasLtMatmulAlgoConfigGetAttribute": "pippp", "cublasLtMatmul": "p" * 16,
}
KINDS = {"p": ctypes.c_void_p, "i": ctypes.c_int}


class Found(ctypes.Structure):  # cublasLtMatmulHeuristicResult_t
    _fields_ = [("algorithm", ctypes.c_uint64 * 8), ("workspace", ctypes.c_size_t), ("state", ctypes.c_int),
                ("waves", ctypes.c_float), ("reserved", ctypes.c_int * 4)]


class Missing(Exception):
    """It is not here, or does not start."""


class Library:
    def __init__(self, device):
        spec = importlib.util.find_spec("nvidia")
        places = (spec.submodule_search_locations or []) if spec else []
        wheels = [f"{place}/{folder}" for place in places for folder in WHEELS]
        self.library, looked = open_first(NAMES, wheels + toolkit_folders())
        if not self.library:
            raise Missing("libcublasLt not found; looked for it in " + looked)
        for name, kinds in NAMES_OF_CALLS.items():
            getattr(self.library, name).argtypes = [KINDS[kind] for kind in kinds]
        self.device, self.handle = device, ctypes.c_void_p()
        self.version = ".".join(str(self.property(which)) for which in range(3))
        status = self.library.cublasLtCreate(ctypes.byref(self.handle))
        if status:
            raise Missing(f"cublasLtCreate: {STATUS.get(status, status)} (version {self.version})")
        self.workspace = device.alloc(WORKSPACE)
        self.preference = self.made("cublasLtMatmulPreferenceCreate")
        self.set("cublasLtMatmulPreference", self.preference, MAX_WORKSPACE, ctypes.c_uint64(WORKSPACE))

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            raise RuntimeError(f"{name}: {STATUS.get(status, status)}")

    def property(self, which):
        value = ctypes.c_int()
        self.call("cublasLtGetProperty", which, ctypes.byref(value))
        return value.value

    def made(self, name, *arguments):
        handle = ctypes.c_void_p()
        self.call(name, ctypes.byref(handle), *arguments)
        return handle

    def set(self, what, of, attribute, value):
        self.call(f"{what}SetAttribute", of, attribute, ctypes.byref(value), ctypes.sizeof(value))

    def layout(self, rows, cols, batch):
        made = self.made("cublasLtMatrixLayoutCreate", TYPE_F16, rows, cols, rows)
        if batch > 1:
            self.set("cublasLtMatrixLayout", made, BATCH_COUNT, ctypes.c_int(batch))
            self.set("cublasLtMatrixLayout", made, BATCH_STRIDE, ctypes.c_int64(rows * cols))
        return made

    def product(self, rows, cols, k, down, batch=1, bias=None):
        return Product(self, rows, cols, k, down, batch, bias)


class Product:
    """Column-major is what all algorithms have, so this is D^T = B^T A^T of matrices that are stored by rows."""

    def __init__(self, library, rows, cols, k, down, batch, bias):
        self.library = library
        self.description = library.made("cublasLtMatmulDescCreate", COMPUTE_F32, TYPE_F32)
        self.describe(TRANS_A, ctypes.c_int(not down[1]))
        self.describe(TRANS_B, ctypes.c_int(bool(down[0])))
        if bias:
            self.describe(EPILOGUE, ctypes.c_uint32(EPILOGUE_BIAS))
            self.describe(BIAS_POINTER, ctypes.c_void_p(bias))
        self.layouts = [library.layout(*((cols, k) if down[1] else (k, cols)), batch),
                        library.layout(*((rows, k) if down[0] else (k, rows)), batch),
                        library.layout(cols, rows, batch)]
        self.one, self.zero = ctypes.c_float(1), ctypes.c_float(0)

    def describe(self, attribute, value):
        self.library.set("cublasLtMatmulDesc", self.description, attribute, value)

    def algorithms(self):
        """What the heuristic names, the best first by its own account."""
        found, count = (Found * ALGORITHMS)(), ctypes.c_int()
        b, a, d = self.layouts
        status = self.library.library.cublasLtMatmulAlgoGetHeuristic(
            self.library.handle, self.description, b, a, d, d, self.library.preference, ALGORITHMS, found,
            ctypes.byref(count))
        if status:
            raise RuntimeError(f"cublasLtMatmulAlgoGetHeuristic: {STATUS.get(status, status)}")
        return [found[i] for i in range(count.value) if not found[i].state]

    def launcher(self, found, a, b, d):
        first, second, third = self.layouts

        def launch():
            self.library.call(
                "cublasLtMatmul", self.library.handle, self.description, ctypes.byref(self.one), b, first, a, second,
                ctypes.byref(self.zero), d, third, d, third, ctypes.byref(found.algorithm), self.library.workspace,
                found.workspace, self.library.device.stream)

        return launch

    def config(self, found):
        told = {"workspace": found.workspace, "waves": round(found.waves, 2)}
        value, written = ctypes.c_int(), ctypes.c_size_t()
        for name, attribute in CONFIG.items():
            size = 2 if name == "cluster" else 4
            value.value = 0
            if not self.library.library.cublasLtMatmulAlgoConfigGetAttribute(
                    ctypes.byref(found.algorithm), attribute, ctypes.byref(value), size, ctypes.byref(written)):
                told[name] = value.value
        return told

    def close(self):
        for layout in self.layouts:
            self.library.call("cublasLtMatrixLayoutDestroy", layout)
        self.library.call("cublasLtMatmulDescDestroy", self.description)
