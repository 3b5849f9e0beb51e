// limits_test.cc: graphs that reach the constant limits of passes, from below to above: what a full kernel leaves out
// takes what depends on it along.
#include "passes/fuse/fuse.h"
#include "passes/fuse/kernel_check.h"
#include "passes/launch/plan_check.h"
#include "precision/policy.h"
#include "targets/target.h"
#include "tests/passes/core_pass_test.h"

namespace {

const Source *BuiltinPolicy(void *arena, const char *name) { return policy_builtin(static_cast<Arena *>(arena), name); }

class LimitsTest : public CorePassTest {
  protected:
    // To the last stage, for a target; each pass's result is verified.
    Module *Planned(const std::string &text, const Target *target, int kernel_ops = 0, bool no_fuse = false) {
        PassOptions o = {};
        o.find_policy = BuiltinPolicy;
        o.user = &arena_;
        o.target = target;
        o.kernel_ops = kernel_ops;
        o.without[STAGE_FUSE] = no_fuse;
        Module *m = Read(text);
        amp_error err = {};
        EXPECT_EQ(AMP_OK, passes_run(m, &diags_, &o, STAGE_PLAN, nullptr, nullptr, &err))
            << err.message << Diagnostics();
        for (int i = 0; i < m->funcs.len; i++) {
            const char *wrong = kernel_check(m->funcs.data[i]);
            EXPECT_EQ(nullptr, wrong) << wrong;
        }
        return m;
    }

    // The function f of a model, for both targets, computes what it computes without fusion.
    void ExpectSameWithoutFusion(const std::string &body, const std::string &states) {
        const std::string text = FuncText("lower", body, states);
        for (const Target *target : {&target_cpu, &target_cuda}) {
            SCOPED_TRACE(target->name);
            const Func *f = Planned(text, target)->funcs.data[0], *each = Planned(text, target, 0, true)->funcs.data[0];
            ExpectEqual(Interpret(each, 5, true, 1), Interpret(f, 5, true, 1), 0);
            for (int i = 0; i < f->kernels.len; i++) EXPECT_LE(f->kernels.data[i]->count, KERNEL_MAX_OPS + 16);
        }
    }
};

// The models of the other tests in kernels of at most 1, 2, 3, .. ops.
TEST_F(LimitsTest, KernelsOfFewOps) {
    for (const char *name : {"mlp.ir", "images.ir", "tokens.ir", "cnn_16.ir"})
        for (const Target *target : {&target_cpu, &target_cuda}) {
            const std::string text = File(std::string("tests/passes/") + name);
            for (int ops : {1, 2, 3, 4, 5, 6, 7, 9, 11, 14, 18, 24, 32}) {
                SCOPED_TRACE(std::string(name) + " " + target->name + " " + std::to_string(ops));
                Planned(text, target, ops);
                if (HasFailure()) return;
            }
        }
}

// What reads only states waits for its user, and comes along with it: a tree of more ops than a kernel takes.
TEST_F(LimitsTest, MoreOpsWaitThanAKernelTakes) {
    for (int leaves : {KERNEL_MAX_OPS / 2, KERNEL_MAX_OPS / 2 + 1, KERNEL_MAX_OPS + 0}) {
        SCOPED_TRACE(leaves);
        std::string states, body = "  input %x : f32[N, 8]\n", ops;
        std::vector<std::string> row;
        for (int i = 0; i < leaves; i++) {
            const std::string w = "w" + std::to_string(i);
            states += "state %" + w + " : f32[8] param = ones()\n";
            body += "  state %" + w + " : f32[8]\n";
            ops += "  %e" + std::to_string(i) + " = exp(%" + w + ") : f32[8]\n";
            row.push_back("e" + std::to_string(i));
        }
        for (int made = 0; row.size() > 1;) {
            std::vector<std::string> next;
            for (size_t i = 0; i + 1 < row.size(); i += 2) {
                next.push_back("s" + std::to_string(made++));
                ops += "  %" + next.back() + " = add(%" + row[i] + ", %" + row[i + 1] + ") : f32[8]\n";
            }
            if (row.size() % 2) next.push_back(row.back());
            row = next;
        }
        ops += "  %p = reduce_sum(%x; dims = (1), keep = true) : f32[N, 1]\n  %q = mul(%x, %p) : f32[N, 8]\n"
               "  %y = add(%q, %" +
               row[0] + ") : f32[N, 8]\n  result y = %y\n";
        ExpectSameWithoutFusion(body + ops, states);
    }
}

// Movement that waits, under a predicate, so that it cannot run before all else.
TEST_F(LimitsTest, MoreMovementWaitsThanAKernelTakes) {
    for (int moves = FUSE_MAX_MOVES - 1; moves <= FUSE_MAX_MOVES + 3; moves++) {
        SCOPED_TRACE(moves);
        std::string states = "state %z : f32[8, 40] buffer\n", ops;
        std::string body = "  input %x : f32[N, 8]\n  state %z : f32[8, 40]\n", last = "z";
        for (int i = 0; i < moves; i++) {
            const std::string n = std::to_string(i);
            states += "state %w" + n + " : f32[40, 8] param = ones()\n";
            body += "  state %w" + n + " : f32[40, 8]\n";
            ops += "  %m" + n + " = permute(%w" + n + "; dims = (1, 0)) : f32[8, 40]\n  %s" + n + " = add(%" + last +
                   ", %m" + n + ") : f32[8, 40]\n";
            last = "s" + n;
        }
        ops += "  %bad = is_finite(%x) : bool[N, 8]\n  %ok = reduce_or(%bad) : bool\n  assign(%z, %" + last +
               ") if %ok\n  result ok = %ok\n";
        ExpectSameWithoutFusion(body + ops, states);
    }
}

// A chain of what waits.
TEST_F(LimitsTest, ALongerRowWaitsThanMay) {
    for (int depth = FUSE_MAX_DEPTH - 1; depth <= FUSE_MAX_DEPTH + 2; depth++) {
        SCOPED_TRACE(depth);
        std::string ops, last = "w";
        for (int i = 0; i < depth; i++) {
            const std::string h = "h" + std::to_string(i);
            ops += "  %" + h + " = " + (i % 2 ? "neg" : "tanh") + "(%" + last + ") : f32[8]\n";
            last = h;
        }
        ops += "  %p = exp(%x) : f32[N, 8]\n  %y = add(%p, %" + last + ") : f32[N, 8]\n  result y = %y\n";
        ExpectSameWithoutFusion("  input %x : f32[N, 8]\n  state %w : f32[8]\n" + ops,
                                "state %w : f32[8] param = ones()\n");
    }
}

} // namespace
