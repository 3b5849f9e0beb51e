// planted_test.cc: bugs planted in generated kernels are found (planted.h).
#include "tests/base/pattern.h"
#include "tests/codegen/cuda/planted.h"

namespace {

// ---- models, one kernel each where the planner makes one

const char tile_model[] = R"(  input %x : f32[N, 100]
  input %h : f16[N, 100]
  %f = cast(%h) : f32[N, 100]
  %y = mul(%x, %f) : f32[N, 100]
  result y = %y
)";

// A warp per row up to 1024 columns, else a block per row.
const char row_model[] = R"(  input %x : f16[N, COLS]
  %f = cast(%x) : f32[N, COLS]
  %m = reduce_max(%f; dims = (1), keep = true) : f32[N, 1]
  %d = sub(%f, %m) : f32[N, COLS]
  %e = exp(%d) : f32[N, COLS]
  %s = reduce_sum(%e; dims = (1), keep = true) : f32[N, 1]
  %y = div(%e, %s) : f32[N, COLS]
  %q = mul(%y, %y) : f32[N, COLS]
  %t = reduce_sum(%q; dims = (1), keep = true) : f32[N, 1]
  %z = div(%y, %t) : f32[N, COLS]
  result z = %z
)";

const char column_model[] = R"(  input %x : f32[N, 70]
  %q = mul(%x, %x) : f32[N, 70]
  %s = reduce_sum(%x; dims = (0)) : f32[70]
  %t = reduce_sum(%q; dims = (0)) : f32[70]
  result s = %s
  result t = %t
)";

const char single_pass_model[] = R"(  input %x : f32[N, 50, 70]
  %s = reduce_sum(%x; dims = (1)) : f32[N, 70]
  %t = reduce_sum(%s; dims = (0)) : f32[70]
  result t = %t
)";

// Both operands' k runs along the line; both run down the lines.
const char product_model[] = R"(  input %x : TYPE[N, 136]
  input %w : TYPE[40, 136]
  %y = contract(%x, %w; tb = true) : f32[N, 40]
  result y = %y
)";
const char turned_product_model[] = R"(  input %x : TYPE[200, 72]
  input %w : TYPE[200, 40]
  %y = contract(%x, %w; ta = true) : f32[72, 40]
  result y = %y
)";

const char pitch_model[] = R"(  input %x : f16[N, 24]
  input %w : f16[24, 257]
  input %b : f32[N, 257]
  %1 = contract(%x, %w) : f32[N, 257]
  %2 = add(%1, %b) : f32[N, 257]
  %3 = cast(%2) : f16[N, 257]
  %y = contract(%3, %w; tb = true) : f32[N, 24]
  result y = %y
)";

const char parts_model[] = R"(  input %x : f16[64 * N, 72]
  input %w : f16[64 * N, 40]
  %p = contract(%x, %w; ta = true, parts = 3) : f32[3, 72, 40]
  %y = sum_parts(%p) : f32[72, 40]
  result y = %y
)";

// Products of different text, in one launch; the second one's blocks stand along three dimensions.
const char bundle_model[] = R"(  input %a : f16[N, 136]
  input %b : f16[N, 72]
  input %x : f16[3, 40 * N, 24]
  input %w : f16[3, 24, 88]
  %z = contract(%a, %b; ta = true) : f32[136, 72]
  %y = batch_contract(%x, %w) : f32[3, 40 * N, 88]
  result z = %z
  result y = %y
)";

// ---- barriers

const char before_tile[] = "        await_copies<STAGES - 2>();\n        __syncthreads();\n";

TEST_F(Planted, BarrierOfAProductIsMissing) {
    for (int arch : {75, 80, 90}) {
        Use(Of(product_model, "TYPE", "f16"), 70, arch);
        ExpectRight();
        // another warp's part of the tile: not awaited, not ordered, or not there at all
        ExpectFault({{before_tile, "        await_copies<STAGES - 2>();\n"}}, EXEC_LAUNCH_FAILED,
                    "race in shared memory|of shared memory: uninitialised|a cp.async is in flight");
        // results go through the memory of tiles that other warps still read
        ExpectFault({{"        __syncthreads(); /* shared memory is free */\n", ""}}, EXEC_LAUNCH_FAILED,
                    "race in shared memory at .*with no barrier between");
    }
}

TEST_F(Planted, BarrierOfAWideRowIsMissing) {
    Use(Of(row_model, "COLS", "1500"), 3, 90);
    ExpectRight();
    ExpectFault({{"    __syncthreads(); /* no thread reads an earlier result any more */\n", ""}}, EXEC_LAUNCH_FAILED,
                "race in shared memory at .*with no barrier between");
    ExpectFault({{"partial.put(threadIdx.x / 32, v);\n    __syncthreads();\n", "partial.put(threadIdx.x / 32, v);\n"}},
                EXEC_LAUNCH_FAILED,
                "race in shared memory at .*with no barrier between|of shared memory: uninitialised");
}

TEST_F(Planted, BarrierOfAColumnIsMissing) {
    Use(column_model, 300, 90);
    ExpectRight();
    ExpectFault({{"    __syncthreads();\n    T all = partial", "    T all = partial"}}, EXEC_LAUNCH_FAILED,
                "race in shared memory at .*with no barrier between|of shared memory: uninitialised");
    ExpectFault({{"    __syncthreads(); /* earlier sums have been read */\n", ""}}, EXEC_LAUNCH_FAILED,
                "race in shared memory at .*with no barrier between");
}

// ---- what orders blocks: a barrier, a fence of one thread and a counter on either side

const char between_blocks[] = "race in global memory at .*with nothing that orders|uninitialised";

const char counts_ticket[] = "    if (threadIdx.x == 0) {\n        last = ",
           counts_turn[] = "    if (threadIdx.x == 0) counts_on";

class PlantedOrder : public Planted {
  protected:
    void ExpectRaces(const std::vector<std::vector<Change>> &all) {
        for (const std::vector<Change> &changes : all) ExpectFault(changes, EXEC_LAUNCH_FAILED, between_blocks);
    }

    // |counts|: what comes after the barrier of takes_last_ticket or ends_turn.
    void ExpectLostStores(const std::string &counts) {
        const Change relaxed = {"atom.release.gpu", "atom.relaxed.gpu"};
        const std::string right = "    __syncthreads(); /* all threads have stored */\n" + counts;
        ExpectRaces(
            {{relaxed},
             {{right, counts}},                                                             // no barrier
             {{right, "    if (threadIdx.x == 0) acquires_counted();\n" + right}, relaxed}, // before the barrier
             {{right, "    acquires_counted();\n" + right}, relaxed}}); // of each thread, before the barrier
    }

    void ExpectLostLoadsOfTickets() {
        const std::string right = "        if (last) acquires_counted();\n    }\n";
        ExpectRaces({{{right, "    }\n"}},
                     {{right, "    }\n    if (threadIdx.x == 1) acquires_counted();\n"}}}); // who has not counted
    }

    void ExpectLostLoadsOfTurns() {
        const std::string barrier = "    __syncthreads(); /* before any thread loads */\n", end = "    }\n",
                          right = "        acquires_counted();\n" + end + barrier;
        ExpectRaces({{{right, end + barrier}},
                     {{barrier, ""}},
                     {{right, end + "    if (threadIdx.x == 1) acquires_counted();\n" + barrier}}});
    }
};

// ---- tickets

const char blocks_model[] = R"(  input %x : f16[N, 40]
  %f = cast(%x) : f32[N, 40]
  %s = reduce_sum(%f; dims = (0)) : f32[40]
  result s = %s
)";

TEST_F(PlantedOrder, FenceOfATicketIsMissing) {
    Use(single_pass_model, 9, 90);
    ExpectRight();
    ExpectLostStores(counts_ticket);
    ExpectLostLoadsOfTickets();
}

TEST_F(Planted, TicketsAreWrong) {
    Use(single_pass_model, 9, 90);
    // the block of the first ticket adds what others have yet to store; every block adds; the one before the last does
    for (const char *last : {"== 0;", "< blocks;", "== blocks - 2;"})
        ExpectFault({{"== blocks - 1;", last}}, EXEC_LAUNCH_FAILED,
                    "race in global memory at .*with nothing that orders|uninitialised");
    // the next run finds a counter that is not zero: no block is the last
    ExpectWrong({{"last = counts_on(counter, blocks - 1)", "last = counts_on(counter, ~0u)"}},
                [&](CudaRun *run) { RunOthersFirst(run); });
}

// Of 40 columns, whose rows three blocks have.
TEST_F(PlantedOrder, PartsOfColumnsAreWrong) {
    Use(blocks_model, 600, 90);
    ExpectRight();
    ExpectLostStores(counts_ticket);
    ExpectLostLoadsOfTickets();
    ExpectFault({{"if (!takes_last_ticket(tickets + block0, parts)) return;", "if (blockIdx.x) return;"}},
                EXEC_LAUNCH_FAILED, between_blocks);
    ExpectWrong({{"threadIdx.x < THREADS && i < count", "threadIdx.x < THREADS && i + 1 < count"}});
    ExpectFault({{"block0 + blockIdx.x, 0,", "block0 + blockIdx.x / 2 * 2, 0,"}}, EXEC_LAUNCH_FAILED,
                "race in global memory at .*with nothing that orders");
}

const char phases_model[] = R"(  input %x : f16[N, 40]
  %f = cast(%x) : f32[N, 40]
  %s = reduce_sum(%f; dims = (0)) : f32[40]
  %n = extent(%x; dims = (0)) : f32
  %m = div(%s, %n) : f32[40]
  %d = sub(%f, %m) : f32[N, 40]
  %q = mul(%d, %d) : f32[N, 40]
  %v = reduce_sum(%q; dims = (0)) : f32[40]
  result m = %m
  result v = %v
)";

// Blocks of the second phase wait for the sums of the first.
TEST_F(PlantedOrder, PhasesOfColumnsAreWrong) {
    const std::string race = between_blocks;
    Use(phases_model, 600, 90);
    ExpectRight();
    ExpectLostStores(counts_turn);
    ExpectLostLoadsOfTurns();
    ExpectFault({{"waits_for_turns(tickets, parts); }", "waits_for_turns(tickets, parts - 1); }"}}, EXEC_LAUNCH_FAILED,
                race);
    ExpectFault({{"a3);\n            ends_part(tickets", "a3);\n            if (own_part.part) ends_part(tickets"}},
                EXEC_LAUNCH_FAILED, "wait|deadlock|longer");
    // the next run finds parts that are not its own
    ExpectFault({{"forgets_parts(tickets, grid", "if (!parts) forgets_parts(tickets, grid"}}, EXEC_LAUNCH_FAILED, race,
                [&](CudaRun *run) { RunOthersFirst(run); });
}

// Supersteps: a product and a row kernel of 64 rows in each block, a product that reads them all, a sum of that.
const char supersteps_model[] = R"(  input %x : f16[N, 40]
  input %w : f16[24, 40]
  %p = contract(%x, %w; tb = true) : f32[N, 24]
  %m = reduce_max(%p; dims = (1), keep = true) : f32[N, 1]
  %d = sub(%p, %m) : f32[N, 24]
  %h = cast(%d) : f16[N, 24]
  %g = contract(%h, %x; ta = true) : f32[24, 40]
  %s = reduce_sum(%g; dims = (0)) : f32[40]
  result s = %s
)";

TEST_F(PlantedOrder, FenceBetweenSuperstepsIsMissing) {
    Use(supersteps_model, 150, 80);
    ASSERT_EQ(cuda_->programs.data[0].kernels.len, 1) << Functions(cuda_);
    ExpectRight();
    ExpectLostStores(counts_turn);
    ExpectLostLoadsOfTurns();
}

TEST_F(Planted, BarrierInADivergentBranch) {
    Use(Of(row_model, "COLS", "1500"), 3, 80);
    ExpectRight();
    const std::string writes =
        "    if (threadIdx.x % 32 == 0) partial.put(threadIdx.x / 32, v);\n    __syncthreads();\n";
    ExpectFault({{writes, "    if (threadIdx.x % 32 == 0) {\n        partial.put(threadIdx.x / 32, v);\n        "
                          "__syncthreads();\n    }\n"}},
                EXEC_LAUNCH_FAILED, "in a divergent branch");
    // whole warps that do not come
    ExpectFault({{writes, "    if (threadIdx.x % 32 == 0) partial.put(threadIdx.x / 32, v);\n    if (threadIdx.x < 64) "
                          "__syncthreads();\n"}},
                EXEC_LAUNCH_FAILED, "not all threads of the block reach it|race in shared memory|uninitialised");
    Use(Of(product_model, "TYPE", "f16"), 70, 80);
    ExpectFault(
        {{before_tile, "        await_copies<STAGES - 2>();\n        if (threadIdx.x % 32 < 16) __syncthreads();\n"}},
        EXEC_LAUNCH_FAILED, "in a divergent branch");
}

// ---- launches that overlap

const char follows_model[] = R"(  input %x : f16[N, 136]
  input %w : f16[40, 136]
  %p = contract(%x, %w; tb = true) : f32[N, 40]
  %m = reduce_max(%p; dims = (1), keep = true) : f32[N, 1]
  %d = sub(%p, %m) : f32[N, 40]
  %s = reduce_sum(%d; dims = (0)) : f32[40]
  result d = %d
  result s = %s
)";

// Of no kernel, of some threads; of the row kernel, of the column kernel after it.
TEST_F(Planted, WaitForEarlierLaunchesIsMissing) {
    Use(follows_model, 9, 90);
    ExpectRight();
    for (const char *by : {"    if (false) asm volatile(", "    if (threadIdx.x) asm volatile("}) {
        const auto ptx =
            Compile(Changed({{"    asm volatile(\"griddepcontrol.wait;", by + std::string("\"griddepcontrol.wait;")}}));
        ASSERT_NE(ptx, nullptr);
        std::string message;
        Run(*ptx, 1, &message, nullptr);
        EXPECT_NE(message.find("a thread does not wait for earlier launches"), std::string::npos) << message;
    }
    const std::string race = "reads what an earlier launch wrote, which may not have ended: this thread has not "
                             "executed griddepcontrol.wait",
                      row = "    await_earlier_launches();\n    admit_next_launch();\n",
                      column = "    await_earlier_launches();\n    const int32_t COLS";
    ExpectFault({{row, "    admit_next_launch();\n"}}, EXEC_LAUNCH_FAILED, race);
    ExpectFault({{column, "    const int32_t COLS"}}, EXEC_LAUNCH_FAILED, race);
}

TEST_F(Planted, WaitForEarlierLaunchesComesLate) {
    Use(pitch_model, 9, 90);
    ExpectFault(
        {{"        await_earlier_launches();\n", ""},
         {"        int left = steps, now = 0", "        await_earlier_launches();\n        int left = steps, now = 0"}},
        EXEC_LAUNCH_FAILED, "cp.async.*reads what an earlier launch wrote");
}

// The epilogue of the second product reads what the first one wrote, before it takes its sums.
TEST_F(Planted, EpilogueReadsBeforeTheWait) {
    Use(R"(  input %x : f16[N, 136]
  input %w : f16[40, 136]
  input %v : f16[40, 136]
  %p = contract(%x, %w; tb = true) : f32[N, 40]
  %h = cast(%p) : f16[N, 40]
  %q = contract(%x, %v; tb = true) : f32[N, 40]
  %f = cast(%h) : f32[N, 40]
  %y = add(%q, %f) : f32[N, 40]
  result h = %h
  result y = %y
)",
        9, 90);
    ExpectRight();
    const std::string takes = "            const int row = run * ROWS_AT_ONCE + first;\n";
    ExpectFault(
        {{"        await_earlier_launches();\n", ""}, {takes, "            await_earlier_launches();\n" + takes}},
        EXEC_LAUNCH_FAILED, "ld.*reads what an earlier launch wrote, which may not have ended");
}

// ---- asynchronous copies

TEST_F(Planted, WaitForCopiesIsMissing) {
    for (const char *type : {"f16", "tf32"}) {
        Use(Of(product_model, "TYPE", type), 70, 80);
        ExpectRight();
        ExpectFault({{before_tile, "        __syncthreads();\n"}}, EXEC_LAUNCH_FAILED, "a cp.async is in flight");
        ExpectFault({{before_tile, "        await_copies<STAGES - 1>();\n        __syncthreads();\n"}},
                    EXEC_LAUNCH_FAILED, "a cp.async is in flight");
        // a group that is never closed is not waited for
        ExpectFault(
            {{"        copy_b.fetch(stage, last);\n        close_copies();\n", "        copy_b.fetch(stage, last);\n"}},
            EXEC_LAUNCH_FAILED, "a cp.async is in flight");
    }
}

// ---- spills

const char spilling[] = R"(
extern "C" __global__ void __launch_bounds__(1024) spills(const float *x, float *y) {
    float all[200];
#pragma unroll
    for (int i = 0; i < 200; i++) all[i] = x[i * 1024 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 200; i++) y[i * 1024 + threadIdx.x] = all[i];
}
)";

// What NothingSpills and each compilation look for.
TEST_F(Planted, SpillIsFound) {
    const CudaModule *cuda =
        Emit(PlannedForCuda(Text("  input %x : f32[N, 7]\n  %y = exp(%x) : f32[N, 7]\n  result y = %y\n")));
    ASSERT_NE(cuda, nullptr);
    cuda->functions.data[0].source = spilling;
    ExpectFound("200 numbers in 64 registers", "sm_90 spills", [&] { Ptx(cuda, 90); });
}

// ---- numbers

const char mma_operands[] = "form, d, a[0], a[1], a[2], a[3], b[0], b[1]";

TEST_F(Planted, OperandsOfMmaAreSwapped) {
    for (const char *type : {"f16", "tf32"}) {
        const std::string form = std::string(type) == "f16" ? "\"m16n8k16.row.col.f32.f16.f16.f32\""
                                                            : "\"m16n8k8.row.col.f32.tf32.tf32.f32\"";
        Use(Of(product_model, "TYPE", type), 70, 80);
        ExpectRight();
        auto swapped = [&](const char *operands) { ExpectWrong({{Of(mma_operands, "form", form), form + operands}}); };
        swapped(", d, a[1], a[0], a[2], a[3], b[0], b[1]");
        swapped(", d, a[0], a[2], a[1], a[3], b[0], b[1]");
        swapped(", d, a[0], a[1], a[2], a[3], b[1], b[0]");
    }
    Use(Of(product_model, "TYPE", "f16"), 70, 75);
    ExpectRight();
    ExpectWrong({{"d, a[0], a[1], b[0]);", "d, a[0], a[2], b[0]);"}});
    ExpectWrong({{"d, a[2], a[3], b[1]);", "d, a[2], a[3], b[0]);"}});
}

TEST_F(Planted, FragmentIndexIsWrong) {
    // along k, down k with 16 bits, down k with 32 bits
    Use(Of(product_model, "TYPE", "f16"), 70, 80);
    ExpectRight();
    ExpectWrong({{"lane % 16, chunk = OF_B ? lane / 8 % 2 : lane / 16;", "lane % 16, chunk = lane / 8 % 2;"}});
    ExpectWrong({{"OF_B ? lane / 16 * 8 + lane % 8 : lane % 16, chunk = OF_B ? lane / 8 % 2 :",
                  "OF_B ? lane / 8 % 2 * 8 + lane % 8 : lane % 16, chunk = OF_B ? lane / 16 :"}});
    ExpectWrong({{"const unsigned pair[2] = {b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]};",
                  "const unsigned pair[2] = {b[n / 2][n % 2], b[n / 2][n % 2 + 2]};"}});
    ExpectWrong({{"load_shared(x + i, from + chunk(row,", "load_shared(x + i, from + chunk(row + 1,"}});
    Use(Of(turned_product_model, "TYPE", "f16"), 1, 80);
    ExpectRight();
    ExpectWrong({{"lane / 16 * 8 + lane % 8, chunk = OF_B ? lane / 16 : lane / 8 % 2;",
                  "lane / 8 % 2 * 8 + lane % 8, chunk = OF_B ? lane / 16 : lane / 16;"}});
    ExpectWrong({{"load_matrices_transposed(x,", "load_matrices(x,"}});
    Use(Of(turned_product_model, "TYPE", "tf32"), 1, 80);
    ExpectRight();
    ExpectWrong({{"down = OF_B ? i % 2 : i / 2, across = OF_B ? i / 2 : i % 2;",
                  "down = OF_B ? i % 2 : i % 2, across = OF_B ? i / 2 : i / 2;"}});
}

// A block of a kernel in a bundle is another one's, or is in another one's place.
TEST_F(Planted, BlocksOfABundleAreOffByOne) {
    Use(bundle_model, 2, 80);
    ExpectRight();
    ExpectUnwritten({{"if (blockIdx.x < (uint32_t)first1)", "if (blockIdx.x <= (uint32_t)first1)"}});
    ExpectUnwritten(
        {{"make_uint3(number % across, number / across % down,", "make_uint3(number % across, number / across,"}});
    ExpectFault({{"::run({first1, x1, y1}", "::run({first1 - 1, x1, y1}"}}, EXEC_ILLEGAL_ADDRESS, "past the end");
}

// Parts that overlap, parts in one another's place, and one that the second sum leaves out.
TEST_F(Planted, PartsAreWrong) {
    Use(parts_model, 3, 80);
    ExpectRight();
    ExpectWrong({{"const int64_t end = begin + chunk < k ? begin + chunk : k;", "const int64_t end = k;"}});
    ExpectWrong({{"part < 3; part++", "part < 2; part++"}});
    ExpectFault({{"first_row = part * rows;", "first_row = 0;"}}, EXEC_LAUNCH_FAILED, "race");
}

// ---- addresses

TEST_F(Planted, BoundIsOffByOne) {
    const std::string past =
        "(reads|writes) \\d+ bytes at 0x[0-9a-f]+, \\d+ past the end of an allocation of \\d+ bytes";
    Use(tile_model, 37, 90);
    ExpectRight();
    ExpectFault({{"if (at >= elements) return;", "if (at > elements) return;"}}, EXEC_ILLEGAL_ADDRESS, past);
    Use(Of(row_model, "COLS", "10"), 37, 90);
    ExpectRight();
    ExpectFault({{"if (r >= rows) return;", "if (r > rows) return;"}}, EXEC_ILLEGAL_ADDRESS, past);
    Use(column_model, 37, 90);
    ExpectRight();
    ExpectFault({{"const bool own = c0 < COLS;", "const bool own = c0 <= COLS;"}}, EXEC_ILLEGAL_ADDRESS, past);
    for (int arch : {75, 80}) {
        Use(Of(product_model, "TYPE", "f16"), 70, arch);
        ExpectRight();
        ExpectFault({{"r < rows &&", "r <= rows &&"}}, EXEC_ILLEGAL_ADDRESS, past);
        ExpectFault({{"if (first + across < extent)", "if (first + across <= extent)"}}, EXEC_ILLEGAL_ADDRESS, past);
    }
}

// A product reads 16 bytes at once, of rows that end before: zeros, which whoever makes them writes.
TEST_F(Planted, RowIsNotFilledUp) {
    Use(pitch_model, 37, 80);
    ExpectRight();
    ExpectFault({{"c0 < 264", "c0 < COLS"}, {"c0 < 264", "c0 < COLS"}}, EXEC_LAUNCH_FAILED, "uninitialised");
}

TEST_F(Planted, VectorLoadIsMisaligned) {
    Use(tile_model, 37, 90);
    ExpectRight();
    const std::string source = Source(cuda_);
    const std::vector<std::string> load = FirstMatch(source, "load_f32\\(x\\d+, b\\d+ \\+ at");
    ASSERT_EQ(load.size(), 1u);
    ExpectFault({{load[0], load[0] + " + 1"}}, EXEC_MISALIGNED, "reads 16 bytes at .*not aligned to 16 bytes");
    Use(Of(product_model, "TYPE", "f16"), 70, 80);
    ExpectFault({{"STRIDE = LINE_BYTES + (", "STRIDE = LINE_BYTES + 8 + ("}}, EXEC_MISALIGNED,
                "of shared memory.*not aligned to 16 bytes");
}

TEST_F(Planted, HostPointerInAKernel) {
    std::vector<float> host(3700);
    Use(tile_model, 37, 90);
    ExpectRight();
    ExpectFault({}, EXEC_ILLEGAL_ADDRESS, "no address of the device \\(a host pointer\\?\\)",
                [&](CudaRun *run) { run->Point("x", reinterpret_cast<uint64_t>(host.data())); });
    Use(Of(product_model, "TYPE", "f16"), 70, 80);
    ExpectFault({}, EXEC_ILLEGAL_ADDRESS, "no address of the device \\(a host pointer\\?\\)",
                [&](CudaRun *run) { run->Point("w", reinterpret_cast<uint64_t>(host.data())); });
    ExpectFault({}, EXEC_ILLEGAL_ADDRESS, "null pointer|no address of the device",
                [&](CudaRun *run) { run->Point("x", 0); });
}

TEST_F(Planted, SharedMemoryIsNotInitialised) {
    for (int arch : {75, 80}) { // the tile's edge must be cleared, not left out
        Use(Of(product_model, "TYPE", "f16"), 70, arch);
        ExpectRight();
        if (arch == 80)
            ExpectFault({{"        if (ASYNC) copy_async<BYTES>",
                          "        if (ASYNC && !moves) return;\n        if (ASYNC) copy_async<BYTES>"}},
                        EXEC_LAUNCH_FAILED, "of shared memory: uninitialised");
        else
            ExpectFault({{"            if (is_past(turn)) break;\n            *(typename",
                          "            if (turn + 1 == TURNS) break;\n            *(typename"}},
                        EXEC_LAUNCH_FAILED, "of shared memory: uninitialised");
    }
    Use(Of(row_model, "COLS", "1500"), 3, 90);
    ExpectFault({{"if (threadIdx.x % 32 == 0) partial", "if (threadIdx.x == 0) partial"}}, EXEC_LAUNCH_FAILED,
                "of shared memory: uninitialised");
}

// ---- shuffles

TEST_F(Planted, ShuffleReadsAnInactiveLane) {
    Use(Of(row_model, "COLS", "10"), 37, 80);
    ExpectRight();
    const std::string source = Source(cuda_);
    const std::vector<std::string> reduce = FirstMatch(source, "    (v\\d+ = warp_reduce<Max>\\(v\\d+\\);)");
    ASSERT_EQ(reduce.size(), 2u);
    const std::string line = reduce[1];
    // the mask says that all lanes come
    ExpectFault({{line, "if (lane < COLS) " + line}}, EXEC_LAUNCH_FAILED, "never come");
    // the mask says who comes, and the lane that is read is not among them
    ExpectFault({{line, "if (lane < COLS) " + line},
                 {"__shfl_xor_sync(0xFFFFFFFFu, v, d)", "__shfl_xor_sync(__activemask(), v, d)"}},
                EXEC_LAUNCH_FAILED, "reads lane \\d+.*inactive or outside the mask");
}

} // namespace
