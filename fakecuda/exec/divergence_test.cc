// Random programs of branches, loops, breaks and early ends: every thread must compute what it computes alone, and all
// that are left meet after each statement.  Each statement has registers of its own, as NVRTC writes programs: what is
// kept in one meanwhile must not be where others, or lanes on another way, keep theirs.
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "fakecuda/exec/kernel.h"

namespace {

enum class Kind { kMix, kIf, kLoop, kBreak, kContinue, kReturn };

struct Statement {
    Kind kind;
    uint32_t a, b, bit;
    std::vector<Statement> yes, no;
};

using Statements = std::vector<Statement>;

struct Generator {
    std::mt19937 random;
    uint32_t below(uint32_t n) { return static_cast<uint32_t>(random() % n); }
    Statements list(int depth, bool in_loop) {
        Statements s;
        for (uint32_t n = 1 + below(4); n > 0; n--) s.push_back(one(depth, in_loop));
        return s;
    }
    Statement one(int depth, bool in_loop) {
        Statement s{Kind::kMix, 2 * below(1000) + 1, below(100000), 3 + below(20), {}, {}};
        uint32_t what = below(10);
        if (depth > 0 && what < 4)
            s.kind = Kind::kIf, s.yes = list(depth - 1, in_loop),
            s.no = below(2) ? list(depth - 1, in_loop) : Statements();
        else if (depth > 0 && what < 6) s.kind = Kind::kLoop, s.yes = list(depth - 1, true);
        else if (in_loop && what == 6) s.kind = Kind::kBreak;
        else if (in_loop && what == 7) s.kind = Kind::kContinue;
        else if (what == 8 && below(3) == 0) s.kind = Kind::kReturn;
        return s;
    }
};

// What one thread computes.  False: break, continue or return (|how|).
bool evaluate(const Statements &list, uint32_t &x, uint32_t tid, Kind &how) {
    for (const Statement &s : list) {
        bool bit = x >> s.bit & 1;
        switch (s.kind) {
        case Kind::kMix: x = (x * s.a + s.b) ^ tid; break;
        case Kind::kIf: {
            const uint32_t kept = x + s.a;
            if (!evaluate(bit ? s.yes : s.no, x, tid, how)) return false;
            x ^= kept;
            break;
        }
        case Kind::kLoop: {
            const uint32_t kept = x + s.a, first = x + s.b; // which is read where an iteration begins, and nowhere else
            for (uint32_t n = (x >> s.bit & 3) + 1; n > 0; n--) {
                x = (x + n) ^ first;
                if (evaluate(s.yes, x, tid, how)) continue;
                if (how == Kind::kReturn) return false;
                if (how == Kind::kBreak) break;
            }
            x ^= kept;
            break;
        }
        default:
            if (bit && (s.kind != Kind::kReturn || (x >> 24) < 40)) return how = s.kind, false;
        }
    }
    return true;
}

struct Emitter {
    std::string text;
    int labels = 0, registers = 0;
    std::string fresh() { return "%t" + std::to_string(registers++); }
    std::string label() { return "L" + std::to_string(labels++); }
    void bit(const Statement &s) {
        text += "shr.u32 %r8, %r4, " + std::to_string(s.bit) + "; and.b32 %r8, %r8, 1; setp.ne.u32 %p1, %r8, 0;\n";
    }
    void emit(const Statements &list, const std::string &brk, const std::string &next, const std::string &end) {
        for (const Statement &s : list) one(s, brk, next, end);
    }
    void one(const Statement &s, const std::string &brk, const std::string &next, const std::string &end) {
        std::string a = label(), b = label(), c = label(), counter = fresh(), kept = fresh(), first = fresh();
        const std::string keep = "add.s32 " + kept + ", %r4, " + std::to_string(s.a) + ";\n",
                          take = "xor.b32 %r4, %r4, " + kept + ";\n";
        bit(s);
        switch (s.kind) {
        case Kind::kMix:
            text += "mad.lo.s32 " + kept + ", %r4, " + std::to_string(s.a) + ", " + std::to_string(s.b) +
                    "; xor.b32 %r4, " + kept + ", %r3;\n";
            break;
        case Kind::kIf:
            text += keep + "@!%p1 bra " + a + ";\n";
            emit(s.yes, brk, next, end);
            text += "bra " + b + ";\n" + a + ":\n";
            emit(s.no, brk, next, end);
            text += b + ":\n" + take;
            break;
        case Kind::kLoop:
            text += keep + "add.s32 " + first + ", %r4, " + std::to_string(s.b) + "; shr.u32 %r8, %r4, " +
                    std::to_string(s.bit) + "; and.b32 %r8, %r8, 3; add.s32 " + counter + ", %r8, 1;\n" + a +
                    ": add.s32 %r4, %r4, " + counter + "; xor.b32 %r4, %r4, " + first + ";\n";
            emit(s.yes, c, b, end);
            text += b + ": sub.s32 " + counter + ", " + counter + ", 1; setp.ne.u32 %p1, " + counter +
                    ", 0; @%p1 bra " + a + ";\n" + c + ":\n" + take;
            break;
        case Kind::kReturn:
            text += "shr.u32 %r8, %r4, 24; setp.lt.u32 %p2, %r8, 40; and.pred %p1, %p1, %p2; @!%p1 bra " + a +
                    "; st.global.u32 [%d4], %r4; exit; " + a + ":\n";
            break;
        default: text += "@%p1 bra " + (s.kind == Kind::kBreak ? brk : next) + ";\n";
        }
    }
};

TEST(Divergence, RandomProgramsAndMeetings) {
    int exits = 0;
    for (uint32_t program = 0; program < 60; program++) {
        Generator g{std::mt19937(program)};
        Statements list = g.list(4, false);
        Emitter e;
        e.text = "ld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1]; mov.u32 %r3, %tid.x; mul.wide.u32 %d2, %r3, 4; "
                 "add.s64 %d4, %d1, %d2; mad.lo.s32 %r4, %r3, 0x9e3779b1, 12345; mov.u32 %r30, 0;\n";
        for (const Statement &s : list) {
            e.one(s, "", "", "");
            // Together are all lanes that have not left.
            e.text += "activemask.b32 %r9; bar.warp.sync %r9; popc.b32 %r9, %r9; mad.lo.s32 %r30, %r30, 37, %r9;\n";
        }
        e.text += "add.s32 %r4, %r4, %r30; st.global.u32 [%d4], %r4; ret;";
        const uint32_t threads = 64;
        std::vector<uint32_t> x(threads), meetings(threads), expected(threads);
        std::vector<bool> left(threads);
        for (uint32_t t = 0; t < threads; t++) x[t] = t * 0x9e3779b1u + 12345;
        for (const Statement &s : list) {
            Kind how = Kind::kMix;
            for (uint32_t t = 0; t < threads; t++)
                if (!left[t] && !evaluate({s}, x[t], t, how)) left[t] = true, expected[t] = x[t], exits++;
            for (uint32_t t = 0; t < threads; t++) {
                uint32_t together = 0;
                for (uint32_t k = t / 32 * 32; k < t / 32 * 32 + 32; k++) together += !left[k];
                if (!left[t]) meetings[t] = meetings[t] * 37 + together;
            }
        }
        for (uint32_t t = 0; t < threads; t++)
            if (!left[t]) expected[t] = x[t] + meetings[t];
        for (uint64_t seed = 1; seed <= 3; seed++) {
            Gpu gpu;
            gpu.seed = seed;
            gpu.load_body(".reg .b32 %t<" + std::to_string(e.registers) + ">;\n" + e.text);
            uint64_t out = gpu.room(4 * threads);
            Result r = gpu.launch({1}, {threads}, {0, out});
            ASSERT_EQ(r.fault, EXEC_OK) << r.message;
            ASSERT_EQ(gpu.get<uint32_t>(out, threads), expected) << "program " << program << ", seed " << seed << "\n"
                                                                 << e.text;
        }
    }
    EXPECT_GT(exits, 100);
}

} // namespace
