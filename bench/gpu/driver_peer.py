"""What gpu-check measures without libamp, in a process of its own: a kernel that hangs or fails ends no more than that.
Answers each line of JSON with a line of JSON; without an argument by machine code, with --ptx by PTX:

{"same": TYPE, "down": [A, B], "columns": N, "stages": S, "k": [K, ..]}
                     sums of k by mma.sync and by wgmma, tiles of N columns: how many differ; N 0: mma.sync twice
{"corners": true}    in which order the corners of an im2col map are
{"speed": [ROWS, COLS, K], "tiles": [[N, S], ..]}
                     a product by wgmma, alone and with a residual: microseconds, results that differ from mma.sync's
{"library": [ROWS, COLS, K], "down": [A, B], "batch": B, "bias": true}
                     a product by each of cuBLASLt's algorithms: microseconds, results that differ
"""
import ctypes
import json
import statistics
import sys

import probe_kernels
from cublaslt import Library, Missing
from cuda_calls import Device, Nvrtc
from probe_kernels import LINE, ROWS, THREADS, TYPES

COLD = 256 << 20  # bytes of operands in turns, more than the cache has
SIZES = 200, 264  # of the products whose sums are compared; no multiple of a tile
SPREADS = 1, 12  # all numbers of one size, and of many


class Peer:
    def __init__(self, ptx):
        self.device, self.nvrtc, self.ptx = Device(), Nvrtc(), ptx
        self.modules, self.library, self.found = {}, None, self.device.alloc(8)

    def kernel(self, text, name="product", shared=0):
        if text not in self.modules:
            arch = "compute_90" if self.ptx else f"sm_{self.device.arch}{'a' if self.device.arch == 90 else ''}"
            self.modules[text] = self.device.load(self.nvrtc.compile(text, arch)[0])
        return self.device.function(self.modules[text], name, shared)

    def filled(self, kind, count, seed, spread=1):
        t, text = TYPES[kind], probe_kernels.plain(kind)
        at = self.device.alloc(count * t.size + 16)
        blocks = min(4096, -(-count // 256))
        self.device.launcher(self.kernel(text, "fill"), [blocks], 256, [at, count, seed, spread])()
        return at

    def differing(self, kind, x, y, count):
        """How many words differ."""
        found = (ctypes.c_uint32 * 2)(0, 0xFFFFFFFF)
        self.device.put(self.found, found)
        text, blocks = probe_kernels.plain(kind), min(4096, -(-count // 256))
        self.device.launcher(self.kernel(text, "differ"), [blocks], 256, [x, y, count, self.found])()
        return self.device.get(self.found, found)[0]

    def plain(self, kind, shape, down, a, b, sums=0, results=0, bias=0, residual=0):
        """By mma.sync."""
        rows, cols, k = shape
        text = probe_kernels.plain(kind, tuple(down))
        self.device.launcher(self.kernel(text), [-(-cols // 32), -(-rows // 128)], 256,
                             [a, b, sums, results, bias, residual, rows, cols, k])()

    def hopper(self, kind, shape, tile, down, a, b, sums=0, results=0, residual=0):
        """A call that launches it."""
        (rows, cols, k), (columns, stages), t = shape, tile, TYPES[kind]
        d, line = self.device, LINE // t.size

        def operand(at, lines, stored_down, most):
            dims, box = ((lines, k), (64, 64)) if stored_down else ((k, lines), (line, most))
            return d.tiled(t.kind, t.size, at, dims, dims[0], box)

        text = probe_kernels.product(kind, columns, stages, tuple(down), bool(sums), bool(residual))
        shared = probe_kernels.shared_bytes(columns, stages)
        maps = [operand(a, rows, down[0], ROWS), operand(b, cols, down[1], columns)]
        if sums:
            maps += [maps[0]] * 2
        else:
            maps += [d.tiled(t.kind, t.size, at, (cols, rows), cols, (64, 64)) for at in (residual or results, results)]
        tiles = -(-rows // ROWS) * -(-cols // columns)
        return d.launcher(self.kernel(text, shared=shared), [min(tiles, d.multiprocessors)], THREADS,
                          [*maps, sums, rows, cols, k], shared)

    # ---- the same bits

    def same(self, ask):
        kind, down, (rows, cols), answer = ask["same"], ask["down"], SIZES, []
        x, y = (self.device.alloc(4 * rows * cols) for _ in range(2))
        for k, spread in ((k, spread) for k in ask["k"] for spread in SPREADS):
            a, b = self.filled(kind, rows * k, 1, spread), self.filled(kind, cols * k, 2, spread)
            self.device.clear(x, 4 * rows * cols)
            self.device.clear(y, 4 * rows * cols, 0xFF)
            self.plain(kind, (rows, cols, k), down, a, b, sums=x)
            row = {"k": k, "spread": spread, "of": rows * cols}
            try:
                if ask["columns"]:
                    self.hopper(kind, (rows, cols, k), (ask["columns"], ask["stages"]), down, a, b, sums=y)()
                else:
                    self.plain(kind, (rows, cols, k), down, a, b, sums=y)
                row["differing"] = self.differing("tf32", x, y, rows * cols)
            except RuntimeError as error:  # such as a map that the driver refuses
                row["error"] = str(error)
            answer.append(row)
            self.device.free(a, b)
        self.device.free(x, y)
        return {"sums": answer}

    # ---- im2col

    def corners(self, _):
        """An image whose pixels are numbered from 1 on: 7 wide, 5 high, windows of 3 x 3, padding 2 to the left and
        right, 1 above and below.  Outside is 0."""
        channels, wide, high, pad, pixels = 64, 7, 5, (2, 1), 64
        count = channels * wide * high
        image = (ctypes.c_uint16 * count)(*(1 + i // channels for i in range(count)))
        at, to = self.device.alloc(ctypes.sizeof(image)), self.device.alloc(2 * channels * pixels)
        self.device.put(at, image)
        across, down = wide + 2 * pad[0] - 2, high + 2 * pad[1] - 2
        wanted = []
        for i in range(pixels):
            n, y, x = i // (across * down), i // across % down - pad[1], i % across - pad[0]
            wanted.append(1 + y * wide + x if n == 0 and 0 <= x < wide and 0 <= y < high else 0)
        found = {}
        lower, upper = [-pad[0], -pad[1]], [pad[0] - 2, pad[1] - 2]
        for order, turn in (("width, height", 1), ("height, width", -1)):
            tensor_map = self.device.windows(TYPES["f16"].kind, 2, at, (channels, wide, high, 1), lower[::turn],
                                             upper[::turn], channels, pixels)
            self.device.clear(to, 2 * channels * pixels, 0xFF)
            kernel = self.kernel(probe_kernels.windows(channels, pixels), "windows")
            self.device.launcher(kernel, [1], 128, [tensor_map, to, -pad[0], -pad[1], 0, 0])()
            got = self.device.get(to, (ctypes.c_uint16 * (channels * pixels))())
            found[order] = [got[i * channels] for i in range(pixels)]
        right = [order for order, numbers in found.items() if numbers == wanted]
        return {"right": right, "wanted": wanted, "found": found}

    # ---- times

    def sets(self, kind, counts, results):
        """Sets of buffers of |counts| elements, and of |results|, that take turns: no cache keeps them."""
        one = sum(counts + results) * TYPES[kind].size
        return [[self.filled(kind, count, 10 * number + i) for i, count in enumerate(counts)] +
                [self.device.alloc(count * TYPES[kind].size + 16) for count in results]
                for number in range(max(2, min(16, COLD // one + 1)))]

    def speed(self, ask):
        rows, cols, k = shape = ask["speed"]
        flops, answer = 2.0 * rows * cols * k, []
        repeats = max(8, min(200, int(6e12 / flops)))
        sets = self.sets("f16", [rows * k, cols * k, rows * cols], [rows * cols])
        wanted = self.device.alloc(2 * rows * cols)
        for with_residual in (False, True):
            a, b, residual, _ = sets[0]
            self.plain("f16", shape, (0, 0), a, b, results=wanted, residual=residual if with_residual else 0)
            for tile in ask["tiles"]:
                launches = [self.hopper("f16", shape, tile, (0, 0), a, b, results=d, residual=c if with_residual else 0)
                            for a, b, c, d in sets]
                self.device.clear(sets[0][3], 2 * rows * cols, 0xFF)
                launches[0]()
                differing = self.differing("f16", wanted, sets[0][3], rows * cols)
                us = statistics.median(self.device.time(launches, repeats, 3))
                answer.append({"tile": tile, "residual": with_residual, "us": us, "tflops": flops / us / 1e6,
                               "differing": differing})
        self.device.free(wanted, *sum(sets, []))
        return {"times": answer}

    def ask_library(self, ask):
        if not self.library:
            self.library = Library(self.device)
        (rows, cols, k), down, batch = ask["library"], ask["down"], ask.get("batch", 1)
        sets = self.sets("f16", [batch * rows * k, batch * cols * k, cols], [batch * rows * cols])
        a, b, bias, d = sets[0]
        bias = bias if ask.get("bias") else 0
        wanted, answer = self.device.alloc(2 * batch * rows * cols), []
        for i in range(batch):
            self.plain("f16", (rows, cols, k), down, a + 2 * i * rows * k, b + 2 * i * cols * k,
                       results=wanted + 2 * i * rows * cols, bias=bias)
        product = self.library.product(rows, cols, k, down, batch, bias)
        repeats = max(6, min(100, int(2e12 / (2.0 * batch * rows * cols * k))))
        why, algorithms = "", []
        try:
            algorithms = product.algorithms()
        except RuntimeError as error:  # it has none for this product
            why = str(error)
        for found in algorithms:
            row = product.config(found)
            try:
                launches = [product.launcher(found, one[0], one[1], one[3]) for one in sets]
                self.device.clear(d, 2 * batch * rows * cols, 0xFF)
                launches[0]()
                row["differing"] = self.differing("f16", wanted, d, batch * rows * cols)
                row["us"] = statistics.median(self.device.time(launches, repeats, 3))
            except RuntimeError as error:
                row["error"] = str(error)
            answer.append(row)
        product.close()
        self.device.free(wanted, *sum(sets, []))
        return {"version": self.library.version, "algorithms": answer, "why": why}

    def answer(self, ask):
        call = {"same": self.same, "corners": self.corners, "speed": self.speed, "library": self.ask_library}
        return next(call[name](ask) for name in call if name in ask)


def main():
    peer = Peer("--ptx" in sys.argv)
    print(json.dumps({"arch": peer.device.arch, "multiprocessors": peer.device.multiprocessors}), flush=True)
    for line in sys.stdin:
        try:
            result = peer.answer(json.loads(line))
        except Missing as missing:
            result = {"missing": str(missing)}
        except RuntimeError as error:
            result = {"error": str(error)}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
