// state_test.cc: states that are written in place, predicates, flags, watched values, batches, scalars of any type.
#include "tests/codegen/cuda/cuda_run.h"

namespace {

// An update of parameters of several shapes, skipped where a gradient is not finite.
std::string Update(bool scaled) {
    std::string states = "state %step : i64 counter\n", inputs, ops, tests, results;
    const char *shapes[] = {"[33, 10]", "[512]", "[1]", "[64, 64]"};
    for (int i = 0; i < 4; i++) {
        const std::string k = std::to_string(i), type = std::string("f32") + shapes[i];
        const std::string bools = std::string("bool") + shapes[i], when = scaled ? " if %ok" : "";
        states += "state %w" + k + " : " + type + " param = constant(v = 0.0)\n";
        states += "state %\"w" + k + "/m\" : " + type + " moment m of w" + k + "\n";
        inputs += "  input %g" + k + " : " + type + "\n";
        tests += "  %f" + k + " = is_finite(%g" + k + ") : " + bools + "\n  %n" + k + " = not(%f" + k + ") : " + bools +
                 "\n  %any" + k + " = reduce_or(%n" + k + ") : bool\n";
        ops += "  %a" + k + " = mul(%\"w" + k + "/m\", %beta) : " + type + "\n  %b" + k + " = add(%a" + k + ", %g" + k +
               ") : " + type + "\n  %c" + k + " = mul(%b" + k + ", %rate) : " + type + "\n  %d" + k + " = sub(%w" + k +
               ", %c" + k + ") : " + type + "\n  assign(%w" + k + ", %d" + k + ")" + when + "\n  assign(%\"w" + k +
               "/m\", %b" + k + ")" + when + "\n";
    }
    for (int i = 0; i < 4; i++) {
        const std::string k = std::to_string(i), type = std::string("f32") + shapes[i];
        inputs += "  state %w" + k + " : " + type + "\n  state %\"w" + k + "/m\" : " + type + "\n";
    }
    std::string head =
        "  %beta = const(; value = 0.9) : f32\n  %t = increment(%step) : i64\n  %p = power(%t; base = 0.5) : f64\n"
        "  %rate = cast(%p) : f32\n";
    std::string flag = "  %o1 = or(%any0, %any1) : bool\n  %o2 = or(%any2, %any3) : bool\n  %o = or(%o1, %o2) : bool\n "
                       " %ok = not(%o) : bool\n";
    return "module \"core\" stage lower {\n}\n" + states + "func train_step {\n" + inputs + "  state %step : i64\n" +
           head + (scaled ? tests + flag : "") + ops + "  assign(%step, %t)" + (scaled ? " if %ok" : "") + "\n" +
           (scaled ? "  result ok = %ok\n" : "  result rate = %rate\n") + "}\n";
}

class States : public CudaRunTest {
  protected:
    void Expect(const Built &b, const Values &given, const std::string &what) {
        const Func *f = b.m->funcs.data[0];
        Values after = given;
        const Values want = Interpret(f, 1, &after);
        Values got = RunOnCuda(b.cuda, *b.ptx, 1, given);
        for (int i = 0; i < f->inputs.len; i++) {
            const Value *v = ir_value(f, f->inputs.data[i]);
            if (v->kind == VAL_STATE)
                Compare(got["state " + std::string(v->name)], after[v->name], 1e-6, what + v->name);
        }
        for (int i = 0; i < f->results.len; i++)
            Compare(got[f->results.data[i].name], want.at(ir_value(f, f->results.data[i].value)->name), 1e-6,
                    what + f->results.data[i].name);
    }
};

TEST_F(States, UpdatesAreOneLaunch) {
    for (bool scaled : {false, true}) {
        Built b = Build(Update(scaled));
        ASSERT_NE(b.ptx, nullptr);
        int batches = 0;
        const CudaProgram &p = b.cuda->programs.data[0];
        for (int i = 0; i < p.kernels.len; i++) {
            const CudaKernelEntry &e = p.kernels.data[i];
            if (!e.batch_elements.len) continue;
            batches++;
            EXPECT_EQ(e.batch_elements.len, e.members.len);
            EXPECT_TRUE(e.body.operand_table);
        }
        EXPECT_GE(batches, 1) << Functions(b.cuda);
        Values given = Draw(b.m, b.m->funcs.data[0], 1);
        Expect(b, given, "");
        if (!scaled) continue;
        for (const char *bad : {"g0", "g1", "g3"}) {
            Values one = given;
            one[bad].back() = INFINITY;
            Expect(b, one, std::string(bad) + " infinite: ");
        }
    }
}

TEST_F(States, NotFused) {
    Built b = Build(Update(true), true);
    ASSERT_NE(b.ptx, nullptr);
    Values given = Draw(b.m, b.m->funcs.data[0], 1);
    Expect(b, given, "");
    given["g2"][0] = NAN;
    Expect(b, given, "not a number: ");
}

// One kernel of many counters, as a deep network with batch norm has; every third is read by its neighbour, before and
// after its step.
std::string Counters(int count) {
    std::string states, inputs, ops, assigns, results, reads, writes, buffers;
    for (int i = 0; i < count; i++) {
        const std::string k = std::to_string(i), last = std::to_string(i - 1), state = "b" + std::to_string(2 * i + 2),
                          result = "b" + std::to_string(2 * i + 3), y = (i % 3 == 1 ? "%e" : "%y") + k;
        states += "state %c" + k + " : i64 counter\n";
        inputs += "  state %c" + k + " : i64\n";
        ops += "    %t" + k + " = increment(%c" + k + ") : i64\n    %f" + k + " = cast(%t" + k + ") : f32\n    %y" + k +
               " = mul(%f" + k + ", %n) : f32\n";
        if (i % 3 == 1)
            ops += "    %b" + k + " = cast(%c" + last + ") : f32\n    %d" + k + " = add(%b" + k + ", %f" + last +
                   ") : f32\n    " + y + " = sub(%y" + k + ", %d" + k + ") : f32\n";
        assigns += "    assign(%c" + k + ", %t" + k + ")\n";
        reads += ", " + state;
        writes += (i ? ", " : "") + state + ", " + result;
        buffers += "  buffer " + state + " state of c" + k + " %c" + k + " i64 rows live 0 to 0\n  buffer " + result +
                   " output " + y + " f32 rows live 0 to 0\n";
        results += "  result y" + k + " = " + y + "\n";
    }
    return "module \"counters\" stage plan {\n  target cuda\n}\n" + states +
           "func train_step {\n  input %x : f32[N, 3]\n" + inputs + "  kernel k00 scalar \"counters\" reads b1" +
           reads + " writes " + writes + " {\n    %n = extent(%x) : f32\n" + ops + assigns +
           "  }\n  buffer b1 input %x f32 rows live 0 to 0\n" + buffers + results + "}\n";
}

TEST_F(States, ManyScalars) {
    for (int count : {16, 150, 400}) {
        Module *m = Read(Counters(count));
        ASSERT_NE(m, nullptr);
        const CudaModule *cuda = Emit(m);
        ASSERT_NE(cuda, nullptr);
        Ptx(cuda, 80); // fails where something spills
        const Built b = {m, cuda, std::make_unique<LoadedPtx>(Ptx(cuda, 90), 90)};
        Expect(b, Draw(m, m->funcs.data[0], 1), std::to_string(count) + " counters: ");
    }
}

const char watched[] = R"(module "flag" stage plan {
  target cuda
}
state %w : f32[40, 50] param
func train_step {
  input %g : f32[40, 50]
  state %w : f32[40, 50]
  kernel k00 tile "finite?" reads b1 writes b2, b6 {
    %1 = is_finite(%g) : bool[40, 50]
    %2 = not(%1) : bool[40, 50]
    %bad = reduce_or(%2) : bool
    %g2 = cast(%g) : f32[40, 50]
  }
  kernel k01 scalar "ok" reads b2 writes b3 {
    %ok = not(%bad) : bool
  }
  kernel k02 tile "w: update" if %ok reads b1, b4 writes b4, b5 {
    %3 = sub(%w, %g) : f32[40, 50]
    assign(%w, %3) if %ok
  }
  buffer b1 input %g f32 rows live 0 to 2
  buffer b2 flag %bad bool rows live 0 to 1
  buffer b3 output %ok bool rows live 1 to 2
  buffer b4 state of w %w f32 rows live 2 to 2
  buffer b5 watch %3 f32 rows live 2 to 2
  buffer b6 watch %g2 f32 rows live 0 to 0
  result ok = %ok
}
)";

TEST_F(States, WatchedValuesMayBeAbsent) {
    Module *m = Read(watched);
    ASSERT_NE(m, nullptr);
    const CudaModule *cuda = Emit(m);
    ASSERT_NE(cuda, nullptr);
    const LoadedPtx ptx(Ptx(cuda, 80, false), 80);
    const Values given = Draw(m, m->funcs.data[0], 1);
    std::vector<double> w[2];
    for (bool watch : {false, true}) {
        CudaRun run(cuda, ptx, "train_step", 1, watch);
        run.Set(given);
        ASSERT_TRUE(run.Run());
        w[watch] = run.Get(3);
        if (watch) {
            EXPECT_EQ(run.Get(5), given.at("g"));
        }
        EXPECT_EQ(run.Get(2), std::vector<double>{1.0});
    }
    EXPECT_EQ(w[0], w[1]);
    for (size_t i = 0; i < w[0].size(); i++)
        EXPECT_EQ(w[0][i],
                  static_cast<double>(static_cast<float>(given.at("w")[i]) - static_cast<float>(given.at("g")[i])));
}

TEST_F(States, ScalarsOfEveryType) {
    Built b = Build(R"(module "scalar" stage lower {
}
state %step : i64 counter
state %scale : f32 scaler scale
state %tracker : i32 scaler growth_tracker
func train_step {
  input %x : f32
  state %step : i64
  state %scale : f32
  state %tracker : i32
  %t = increment(%step) : i64
  %p = power(%t; base = 0.999) : f64
  %one = const(; value = 1.0) : f64
  %bc = sub(%one, %p) : f64
  %r = sqrt(%bc) : f64
  %co = cos(%bc) : f64
  %cf = cast(%co) : f32
  %root = cast(%r) : f32
  %wide = cast(%scale) : f64
  %q = div(%one, %wide) : f64
  %inverse = cast(%q) : f32
  %i = const(; value = 1.0) : i32
  %next = add(%tracker, %i) : i32
  %limit = const(; value = 3.0) : i32
  %grow = le(%limit, %next) : bool
  %fine = is_finite(%scale) : bool
  %both = and(%grow, %fine) : bool
  %zero = const(; value = 0.0) : i32
  %tr = select(%both, %zero, %next) : i32
  %ex = exp(%x) : f32
  %h = cast(%ex) : f16
  assign(%step, %t)
  assign(%tracker, %tr)
  result root = %root
  result cf = %cf
  result inverse = %inverse
  result both = %both
  result h = %h
}
)");
    ASSERT_NE(b.ptx, nullptr);
    for (double tracker : {0.0, 2.0})
        Expect(b, {{"x", {0.5}}, {"step", {41}}, {"scale", {3.0}}, {"tracker", {tracker}}}, "");
}

// More operands than a launch has parameters: they come by a table.
TEST_F(States, ManyOperands) {
    std::string inputs, ops, last = "%x0";
    for (int i = 0; i < 70; i++) {
        const std::string k = std::to_string(i);
        inputs += "  input %x" + k + " : f32[N, 5]\n";
        if (i) ops += "  %s" + k + " = add(" + last + ", %x" + k + ") : f32[N, 5]\n";
        if (i) last = "%s" + k;
    }
    const std::string text = Text(inputs + ops + "  result s = " + last + "\n");
    Built b = Build(text);
    ASSERT_NE(b.ptx, nullptr);
    const CudaProgram &p = b.cuda->programs.data[0];
    ASSERT_EQ(p.kernels.len, 1);
    EXPECT_TRUE(p.kernels.data[0].body.operand_table);
    Check(text, {3}, 1e-4, true);
}

} // namespace
