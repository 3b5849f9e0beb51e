"""CUDA C without includes, for gpu-check's probe: numbers, comparisons, products by mma.sync and by wgmma.

A product is rows x cols = A B over k.  A is stored by rows, [rows][k], or down, [k][rows]; B [cols][k], or down,
[k][cols].  Results are sums in f32, or 16-bit: the rounded sum, plus a bias before and a residual after it."""
from collections import namedtuple

# size: bytes; word: that holds it; step: of k in an instruction; kind: CUtensorMapDataType; of_f32: an f32 to a word
Type = namedtuple("Type", "name size word step kind of_f32 to_f32")
TYPES = {
    "f16": Type("f16", 2, "uint16_t", 16, 6, 'asm("cvt.rn.f16.f32 %0, %1;" : "=h"(w) : "f"(x));',
                'asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(w));'),
    "bf16": Type("bf16", 2, "uint16_t", 16, 9, 'asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(w) : "f"(x));',
                 "x = __uint_as_float((uint32_t)w << 16);"),
    "tf32": Type("tf32", 4, "uint32_t", 8, 7, 'asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(w) : "f"(x));',
                 "x = __uint_as_float(w);"),
}
LINE = 128  # bytes of k, or of rows, in a row of a tile in shared memory
MAX_SHARED = 227 << 10
ROWS, CONSUMERS, THREADS = 128, 2, 384
HEAD = """typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef long long int64_t;
#define INLINE __device__ __forceinline__
#define MAYBE_UNUSED __attribute__((unused))
"""


def conversions(kind):
    t = TYPES[kind]
    return f"""
INLINE {t.word} rounded(float x) {{ {t.word} w; {t.of_f32} return w; }}
INLINE float widened({t.word} w) {{ float x; {t.to_f32} return x; }}
"""


def plain(kind, down=(0, 0)):
    """fill, differ, and product, by mma.sync: |down|: whether A, B are stored down."""
    t = TYPES[kind]
    wide = t.size == 4
    first, second = ("q", "q + 4") if wide else ("2 * q", "2 * q + 8")
    load = ", ".join(f"a(row0 + g + {i}, at + {c})" for c in (first, second) for i in (0, 8))
    form = "m16n8k8.row.col.f32.tf32.tf32.f32" if wide else f"m16n8k16.row.col.f32.{kind}.{kind}.f32"
    word = "return one(i, at);" if wide else "return one(i, at) | (uint32_t)one(i, at + 1) << 16;"
    store = "" if wide else """
            float x = d[j][i];
            if (bias) x += widened(bias[col]);
            if (residual) x = widened(rounded(x)) + widened(residual[row * cols + col]);
            if (results) results[row * cols + col] = rounded(x);"""
    return HEAD + conversions(kind) + f"""
INLINE uint32_t mixed(uint32_t x) {{
    x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu;
    return x ^ x >> 16;
}}

/* About normal; |spread|: times 2 to the power of 0 .. spread - 1, or its inverse. */
extern "C" __global__ void fill({t.word} *to, int64_t count, int64_t seed, int64_t spread) {{
    for (int64_t i = blockIdx.x * 256ll + threadIdx.x; i < count; i += gridDim.x * 256ll) {{
        const uint32_t h = mixed((uint32_t)i + mixed((uint32_t)seed + (uint32_t)(i >> 32))), g = mixed(h + 1);
        float x = (float)(h & 65535) + (float)(h >> 16) + (float)(g & 65535) + (float)(g >> 16) - 131070.0f;
        const uint32_t power = (mixed(g) >> 8) % (uint32_t)(2 * spread - 1);
        x *= __uint_as_float((uint32_t)(127 - 15 + (int)power - (int)spread + 1) << 23);
        to[i] = rounded(x);
    }}
}}

/* found: how many words differ, and the first of them. */
extern "C" __global__ void differ(const {t.word} *x, const {t.word} *y, int64_t count, uint32_t *found) {{
    for (int64_t i = blockIdx.x * 256ll + threadIdx.x; i < count; i += gridDim.x * 256ll)
        if (x[i] != y[i]) atomicAdd(found, 1u), atomicMin(found + 1, (uint32_t)i);
}}

template <bool DOWN> struct Lines {{
    const {t.word} *from;
    int64_t lines, k;
    INLINE {t.word} one(int64_t i, int64_t at) const {{
        return i < lines && at < k ? from[DOWN ? at * lines + i : i * k + at] : ({t.word})0;
    }}
    INLINE uint32_t operator()(int64_t i, int64_t at) const {{ {word} }}
}};

/* Each warp 16 x 32; sums in the order of k. */
template <class A, class B>
INLINE void multiply(A a, B b, float *sums, {t.word} *results, const {t.word} *bias, const {t.word} *residual,
                     int64_t rows, int64_t cols, int64_t k) {{
    const int lane = threadIdx.x % 32, g = lane / 4, q = lane % 4;
    const int64_t row0 = blockIdx.y * 128ll + threadIdx.x / 32 * 16, col0 = blockIdx.x * 32ll;
    float d[4][4] = {{}};
    if (row0 >= rows) return;
    for (int64_t at = 0; at < k; at += {t.step}) {{
        const uint32_t x[4] = {{{load}}};
#pragma unroll
        for (int j = 0; j < 4; j++) {{
            const uint32_t y0 = b(col0 + 8 * j + g, at + {first}), y1 = b(col0 + 8 * j + g, at + {second});
            asm("mma.sync.aligned.{form} {{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
                : "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
                : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y0), "r"(y1));
        }}
    }}
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {{
            const int64_t row = row0 + g + i / 2 * 8, col = col0 + 8 * j + 2 * q + i % 2;
            if (row >= rows || col >= cols) continue;
            if (sums) sums[row * cols + col] = d[j][i];{store}
        }}
}}

extern "C" __global__ void __launch_bounds__(256) product(const {t.word} *a, const {t.word} *b, float *sums,
    {t.word} *results, const {t.word} *bias, const {t.word} *residual, int64_t rows, int64_t cols, int64_t k) {{
    multiply(Lines<{down[0]}>{{a, rows, k}}, Lines<{down[1]}>{{b, cols, k}}, sums, results, bias, residual, rows, cols,
             k);
}}
"""


# ---- TMA and wgmma -------------------------------------------------------------------------------------------------

HOPPER = HEAD + r"""
struct alignas(64) TensorMap { uint64_t words[16]; };
INLINE uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
INLINE void init(uint32_t bar, uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(arrivals) : "memory");
}
INLINE void expect(uint32_t bar, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
INLINE void arrive(uint32_t bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory"); }
INLINE void await(uint32_t bar, uint32_t parity) {
    uint32_t done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(bar), "r"(parity) : "memory");
}
INLINE void load(uint32_t to, const TensorMap *map, uint32_t bar, int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];"
                 ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(bar) : "memory");
}
INLINE void store(const TensorMap *map, uint32_t from, int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                 ::"l"(map), "r"(x), "r"(y), "r"(from) : "memory");
}
/* Of a tile with lines of 128 bytes, swizzled: eight lines are 1,024 bytes; |next|: 64 elements on, stored down. */
INLINE uint64_t descriptor(uint32_t at, uint32_t next) {
    return (uint64_t)(at >> 4 & 0x3FFF) | (uint64_t)(next >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 | 1ull << 62;
}
template <int LATEST> INLINE void await_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LATEST) : "memory");
}
INLINE void meet(int warpgroup) { asm volatile("bar.sync %0, 128;" ::"r"(1 + warpgroup) : "memory"); }
"""


def tile_bytes(cols):
    """Of a stage: (A's, B's)."""
    return ROWS * LINE, cols * LINE


def shared_bytes(cols, stages):
    """Stages, the result tile and the barriers, from a multiple of 1,024 on."""
    return stages * sum(tile_bytes(cols)) + ROWS * cols * 2 + 16 * stages + 16 + 1024


def instruction(kind, cols, down):
    count = cols // 2
    sums = ", ".join(f"%{i}" for i in range(count))
    orders = "" if kind == "tf32" else f", {down[0]}, {down[1]}"
    places = ", ".join(f'"+f"(d[{i}])' for i in range(count))
    return f"""
INLINE void multiply(float (&d)[{count}], uint64_t a, uint64_t b) {{
    asm volatile("wgmma.mma_async.sync.aligned.m64n{cols}k{TYPES[kind].step}.f32.{kind}.{kind} "
                 "{{{sums}}}, %{count}, %{count + 1}, 1, 1, 1{orders};" : {places} : "l"(a), "l"(b));
}}
"""


def loads(what, lines, down, offset, of):
    """The TMA loads of one stage's operand of |lines|: one box, or one for each 64 lines that are stored down."""
    if not down:
        return f"load(stage + {offset}, &{what}, full, at, {of});"
    return " ".join(f"load(stage + {offset + i * 64 * LINE}, &{what}, full, {of} + {64 * i}, at);"
                    for i in range(lines // 64))


def epilogue(cols, sums_out, residual):
    if sums_out:
        return f"""
#pragma unroll
            for (int i = 0; i < {cols // 2}; i++) {{
                const int64_t r = row0 + 64 * own + warp * 16 + lane / 4 + i / 2 % 2 * 8;
                const int64_t c = col0 + i / 4 * 8 + lane % 4 * 2 + i % 2;
                if (r < rows && c < cols) sums[r * cols + c] = d[i];
            }}"""
    pairs = [f"d[8 * j + {2 * i}], d[8 * j + {2 * i + 1}]" for i in range(4)]
    add = "\n".join(f"                word[{i}] = added(word[{i}], {pair});" for i, pair in enumerate(pairs))
    pack = "\n".join(f"                word[{i}] = packed({pair});" for i, pair in enumerate(pairs))
    read = f"""asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%0, %1, %2, %3}}, [%4];"
                    : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3]) : "r"(at) : "memory");
{add}""" if residual else pack.lstrip()
    before = "await(residual_full, turn & 1);" if residual else """
            if (threadIdx.x % 128 == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
            meet(own);"""
    after = """
                asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
                arrive(residual_free);""" if residual else ""
    return f"""
            {before}
#pragma unroll
            for (int j = 0; j < {cols // 16}; j++) {{
                const int r = warp * 16 + lane % 16, chunk = 2 * j + lane / 16;
                const uint32_t at = mine + chunk / 8 * {64 * LINE} + r * {LINE} + ((chunk % 8 ^ r % 8) << 4);
                uint32_t word[4];
                {read}
                asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {{%1, %2, %3, %4}};"
                    ::"r"(at), "r"(word[0]), "r"(word[1]), "r"(word[2]), "r"(word[3]) : "memory");
            }}
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            meet(own);
            if (threadIdx.x % 128 == 0) {{
                for (int i = 0; i < {cols // 64}; i++)
                    store(&map_d, mine + i * {64 * LINE}, (int)col0 + 64 * i, (int)row0 + 64 * own);
                asm volatile("cp.async.bulk.commit_group;" ::: "memory");{after}
            }}"""


def product(kind, cols, stages, down=(0, 0), sums_out=False, residual=False):
    """Entry `product`: maps of A, B, result and residual, then sums, rows, cols, k.  One thread of the first warpgroup
    loads, two warpgroups multiply 64 x |cols| each; blocks take tiles in turn."""
    t, (a_bytes, b_bytes) = TYPES[kind], tile_bytes(cols)
    step, stage = LINE // t.size, a_bytes + b_bytes
    assert shared_bytes(cols, stages) <= MAX_SHARED and not (kind == "tf32" and any(down))
    a_at = f"own * {64 * LINE} + j * {16 * LINE}" if down[0] else f"own * {64 * LINE} + j * 32"
    b_at = f"{a_bytes} + j * {16 * LINE}" if down[1] else f"{a_bytes} + j * 32"
    pairs = "" if kind == "tf32" else """
INLINE uint32_t packed(float x, float y) { return rounded(x) | (uint32_t)rounded(y) << 16; }
INLINE uint32_t added(uint32_t old, float x, float y) {
    return packed(widened(rounded(x)) + widened((uint16_t)old), widened(rounded(y)) + widened((uint16_t)(old >> 16)));
}
"""
    take_residual = f"""
                await(residual_free, (turn & 1) ^ 1);
                expect(residual_full, {ROWS * cols * 2});
                for (int i = 0; i < {ROWS // 64}; i++)
                    for (int j = 0; j < {cols // 64}; j++)
                        load(results + i * {64 * cols * 2} + j * {64 * LINE}, &map_c, residual_full,
                             (int)col0 + 64 * j, (int)row0 + 64 * i);""" if residual else ""
    tiles = f"""for (int tile = blockIdx.x, turn = 0; tile < down * across; tile += gridDim.x, turn++) {{
            const int stripe = tile / (16 * across), height = down - 16 * stripe < 16 ? down - 16 * stripe : 16;
            const int in = tile - 16 * across * stripe;
            const int64_t row0 = (16 * stripe + in % height) * {ROWS}ll, col0 = in / height * {cols}ll;"""
    return HOPPER + conversions(kind) + pairs + instruction(kind, cols, down) + f"""
extern "C" __global__ void __launch_bounds__({THREADS}, 1) product(
    const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
    const __grid_constant__ TensorMap map_c, const __grid_constant__ TensorMap map_d,
    float *sums, int64_t rows, int64_t cols, int64_t k) {{
    extern __shared__ char shared[];
    const uint32_t base = (shared_address(shared) + 1023) & ~1023u, results = base + {stages * stage};
    const uint32_t bars = results + {ROWS * cols * 2};
    const uint32_t residual_full = bars + {16 * stages}, residual_free = residual_full + 8;
    const int warpgroup = __shfl_sync(~0u, threadIdx.x / 128, 0), steps = (int)((k + {step - 1}) / {step});
    const int down = (int)((rows + {ROWS - 1}) / {ROWS}), across = (int)((cols + {cols - 1}) / {cols});
    if (threadIdx.x == 0) {{
        for (int s = 0; s < {stages}; s++) init(bars + 16 * s, 1), init(bars + 16 * s + 8, {4 * CONSUMERS});
        init(residual_full, 1), init(residual_free, {CONSUMERS});
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }}
    __syncthreads();
    if (warpgroup == 0) {{
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x) return;
        int it = 0;
        {tiles}
            for (int i = 0; i < steps; i++, it++) {{
                const int s = it % {stages}, at = i * {step};
                const uint32_t full = bars + 16 * s, stage = base + s * {stage};
                await(full + 8, (it / {stages} & 1) ^ 1);
                expect(full, {stage});
                {loads("map_a", ROWS, down[0], 0, "(int)row0")}
                {loads("map_b", cols, down[1], a_bytes, "(int)col0")}
            }}{take_residual}
        }}
    }} else {{
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        const int own = warpgroup - 1, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
        MAYBE_UNUSED const uint32_t mine = results + own * {64 * cols * 2};
        int it = 0;
        {tiles}
            float d[{cols // 2}];
#pragma unroll
            for (int i = 0; i < {cols // 2}; i++) d[i] = 0.0f;
            for (int i = 0; i < steps; i++, it++) {{
                const int s = it % {stages};
                const uint32_t full = bars + 16 * s, stage = base + s * {stage};
                await(full, it / {stages} & 1);
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
                for (int j = 0; j < 4; j++)
                    multiply(d, descriptor(stage + {a_at}, {64 * LINE}), descriptor(stage + {b_at}, {64 * LINE}));
                asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
                await_products<1>();
                if (i > 0 && lane == 0) arrive(bars + 16 * ((it - 1) % {stages}) + 8);
            }}
            await_products<0>();
            if (lane == 0) arrive(bars + 16 * ((it - 1) % {stages}) + 8);
            {epilogue(cols, sums_out, residual)}
        }}
        if (threadIdx.x % 128 == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }}
}}
"""


# ---- im2col --------------------------------------------------------------------------------------------------------

def windows(channels, pixels):
    """Entry `windows`: one box of an im2col map, from the base pixel (x, y) of image 0 and at the offsets."""
    return HOPPER + f"""
extern "C" __global__ void windows(const __grid_constant__ TensorMap map, uint16_t *to, int64_t x, int64_t y,
    int64_t right, int64_t down) {{
    __shared__ __align__(1024) uint16_t box[{channels * pixels}];
    __shared__ __align__(8) uint64_t bar[1];
    if (threadIdx.x == 0) {{
        init(shared_address(bar), 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        expect(shared_address(bar), {2 * channels * pixels});
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {{%2, %3, %4, %2}}], [%5], {{%6, %7}};"
                     ::"r"(shared_address(box)), "l"(&map), "r"(0), "r"((int)x), "r"((int)y), "r"(shared_address(bar)),
                     "h"((uint16_t)right), "h"((uint16_t)down) : "memory");
    }}
    __syncthreads();
    await(shared_address(bar), 0);
    for (int i = threadIdx.x; i < {channels * pixels}; i += blockDim.x) to[i] = box[i];
}}
"""
