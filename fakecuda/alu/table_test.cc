// Which instructions there are: all that NVRTC emits for real kernels, on the architectures that have them; what does
// not exist is refused with a reason.
#include "fakecuda/alu/alu_test.h"

#include <set>
#include <sstream>

namespace {

// What NVRTC 13.0 made of pointwise, normalisation, softmax, random, optimizer, product and math kernels, for sm_75 to
// sm_120, precise and fast.
const char kEmitted[] = R"(
abs.f32 abs.ftz.f32 abs.s32
add.s64 add.s32 add.f32 add.ftz.f32 add.rn.f32 add.f64 add.u64 add.rz.f32 add.rn.ftz.f32 add.rz.ftz.f32 add.rn.f64
add.s16
and.b32 and.b64 and.pred and.b16
bfi.b32 bfi.b64 bfind.shiftamt.u32 brev.b32 clz.b32 popc.b32 prmt.b32 brev.b64 clz.b64 popc.b64
sad.s32 dp4a.s32.s32
copysign.f32 cos.approx.ftz.f32 sin.approx.ftz.f32
cvt.u64.u32 cvt.u32.u64 cvt.s64.s32 cvt.f32.f16 cvt.rn.f32.s32 cvt.rn.f32.u32 cvt.rn.f32.s64 cvt.rn.f32.u64
cvt.rn.f32.f64
cvt.rn.f16.f32 cvt.f64.f32 cvt.rzi.f32.f32 cvt.rni.f32.f32 cvt.rmi.f32.f32 cvt.rpi.f32.f32 cvt.sat.f32.f32
cvt.rzi.s32.f32 cvt.rni.s32.f32 cvt.rzi.u32.f32 cvt.rni.u32.f32 cvt.rzi.s64.f32 cvt.rni.s64.f32 cvt.rzi.s32.f64
cvt.rn.f64.s64 cvt.rn.f64.s32 cvt.rn.f64.s16 cvt.s32.s16 cvt.u32.u16 cvt.u16.u32 cvt.s64.s16 cvt.s16.s8 cvt.u16.u8
cvt.u16.u64
cvt.ftz.f64.f32 cvt.rzi.ftz.f32.f32 cvt.rni.ftz.f32.f32 cvt.rmi.ftz.f32.f32 cvt.rpi.ftz.f32.f32 cvt.ftz.sat.f32.f32
cvt.rn.ftz.f32.f64
cvt.rzi.ftz.s32.f32 cvt.rni.ftz.s32.f32 cvt.rzi.ftz.u32.f32 cvt.rzi.ftz.s64.f32
div.rn.f32 div.approx.ftz.f32 div.approx.f32 div.full.f32 div.full.ftz.f32 div.rn.f64 div.s32 div.u32 div.s64 div.u64
ex2.approx.ftz.f32 ex2.approx.f32 lg2.approx.f32 lg2.approx.ftz.f32 rcp.approx.ftz.f32 rcp.approx.f32 rcp.rn.f32
rcp.approx.ftz.f64
rsqrt.approx.f32 rsqrt.approx.ftz.f32 sqrt.rn.f32 sqrt.approx.ftz.f32 sqrt.approx.f32 sqrt.rn.f64 tanh.approx.f32
fma.rn.f32 fma.rn.ftz.f32 fma.rn.f64 fma.rm.f32 fma.rm.ftz.f32 fma.rz.f32 fma.rz.ftz.f32
mad.lo.s32 mad.lo.s64 mad.wide.u32 max.f32 max.ftz.f32 max.s32 max.u32 max.u64 min.f32 min.ftz.f32 min.s32 min.u32
min.u64
mov.u32 mov.f32 mov.b32 mov.u64 mov.b64 mov.f64 mov.pred mov.u16 mov.b16
mul.f32 mul.ftz.f32 mul.wide.s32 mul.wide.u32 mul.wide.u16 mul.lo.s32 mul.lo.s64 mul.lo.s16 mul.hi.u32 mul.hi.s32
mul.hi.u64
mul.rn.f32 mul.rn.ftz.f32 mul.f64
neg.f32 neg.ftz.f32 neg.f64 neg.s32 neg.s64 not.b32 not.pred or.b32 or.b64 or.pred xor.b32 rem.u32 rem.s64 rem.u64
selp.f32 selp.b32 selp.u32 selp.u16 selp.f64 selp.b64 selp.u64
shf.l.wrap.b32 shl.b32 shl.b64 shr.u32 shr.s32 shr.u64 shr.u16 sub.f32 sub.ftz.f32 sub.s32 sub.f64 sub.s64
setp.eq.f32 setp.ne.f32 setp.lt.f32 setp.le.f32 setp.gt.f32 setp.ge.f32
setp.eq.ftz.f32 setp.ne.ftz.f32 setp.lt.ftz.f32 setp.le.ftz.f32 setp.gt.ftz.f32 setp.ge.ftz.f32
setp.equ.f32 setp.neu.f32 setp.ltu.f32 setp.leu.f32 setp.gtu.f32 setp.geu.f32 setp.num.f32 setp.nan.f32
setp.equ.ftz.f32 setp.neu.ftz.f32 setp.ltu.ftz.f32 setp.leu.ftz.f32 setp.gtu.ftz.f32 setp.geu.ftz.f32 setp.num.ftz.f32
setp.nan.ftz.f32
setp.eq.s32 setp.ne.s32 setp.lt.s32 setp.le.s32 setp.gt.s32 setp.ge.s32 setp.lt.u32 setp.gt.u32 setp.ge.u32 setp.ne.u32
setp.eq.s64 setp.ne.s64 setp.lt.s64 setp.ge.s64 setp.lt.u64 setp.eq.s16 setp.eq.b32
)";

const char kFromSm80[] = R"(
cvt.rn.f16x2.f32 cvt.rn.bf16x2.f32 cvt.rn.bf16.f32 cvt.rna.tf32.f32 cvt.rn.relu.f16x2.f32 fma.rn.bf16x2 max.NaN.f32
neg.bf16x2
)";

std::vector<std::string> words(const char *text) {
    std::istringstream in(text);
    std::vector<std::string> v;
    for (std::string s; in >> s;) v.push_back(s);
    return v;
}

const int kArchitectures[] = {75, 80, 86, 89, 90, 120};

int find(int arch, const std::string &name, std::string *reason = nullptr) {
    AluContext c = context(arch);
    AluOp op{};
    const char *why = nullptr;
    int rc = alu_find(&c, name.c_str(), &op, &why);
    if (reason) *reason = why ? why : "";
    if (rc == 0) {
        EXPECT_NE(op.run, nullptr) << name;
        EXPECT_GE(op.sources, 1) << name;
        EXPECT_LE(op.sources, 4) << name;
        EXPECT_TRUE(op.dst_bytes[0] == 4 || op.dst_bytes[0] == 8) << name;
        EXPECT_EQ(op.dst_bytes[0], op.dst_bits > 32 ? 8 : 4) << name;
        for (int s = 0; s < op.sources; ++s) EXPECT_TRUE(op.source_bytes[s] == 4 || op.source_bytes[s] == 8) << name;
        static const std::set<std::string> kinds = {"int", "f32", "f64", "f16", "cvt", "special", "pred", "move"};
        EXPECT_TRUE(op.kind && kinds.count(op.kind)) << name;
    }
    return rc;
}

TEST(Table, EverythingThatIsEmitted) {
    std::vector<std::string> names = words(kEmitted);
    EXPECT_GT(names.size(), 220u);
    for (const std::string &name : names)
        for (int arch : kArchitectures) EXPECT_EQ(find(arch, name), 0) << name << " on sm_" << arch;
}

TEST(Table, LaterArchitecturesOnly) {
    std::string why;
    for (const std::string &name : words(kFromSm80)) {
        EXPECT_EQ(find(75, name, &why), -2) << name;
        EXPECT_EQ(why, "needs sm_80 or higher") << name;
        for (int arch : {80, 86, 89, 90, 120}) EXPECT_EQ(find(arch, name), 0) << name << " on sm_" << arch;
    }
    for (const char *name : {"add.bf16", "add.rn.bf16x2", "cvt.f64.bf16", "tanh.approx.bf16", "ex2.approx.ftz.bf16x2",
                             "add.u16x2", "max.relu.s32", "cvt.rn.tf32.f32", "setp.lt.bf16"}) {
        EXPECT_EQ(find(80, name, &why), -2) << name;
        EXPECT_EQ(why, "needs sm_90 or higher") << name;
        EXPECT_EQ(find(90, name), 0) << name;
    }
    EXPECT_EQ(find(90, "add.f32x2", &why), -2);
    EXPECT_EQ(why, "needs sm_100 or higher");
    EXPECT_EQ(find(120, "add.f32x2"), 0);
    for (const char *name : {"fma.rn.f16x2", "tanh.approx.f16x2", "ex2.approx.f16", "cvt.pack.sat.u8.s32.b32",
                             "bmsk.clamp.b32", "szext.wrap.s32", "add.rn.ftz.sat.f16x2"})
        EXPECT_EQ(find(75, name), 0) << name;
}

TEST(Table, NoSuchForm) {
    std::string why;
    for (const char *name : {"add.sat.u32",    "add.ftz.f64",  "mul.s32",       "mul.wide.s64",    "div.f32",
                             "rcp.f32",        "sqrt.ftz.f32", "fma.f32",       "fma.rn.s32",      "setp.equ.s32",
                             "setp.lt.b32",    "setp.lo.s32",  "cvt.f16.f32",   "cvt.s32.f32",     "cvt.rzi.f64.f32",
                             "cvt.rn.s32.u32", "shl.s32",      "mov.f16",       "ex2.f32",         "tanh.approx.f64",
                             "abs.u32",        "neg.u32",      "add.rn.rz.f32", "add.ftz.ftz.f32", "add.f32.u32",
                             "add.f32.quick",  "add",          "popc.u32",      "prmt.b32.f4",     "shf.l.b32",
                             "min.xorsign.f32"}) {
        EXPECT_EQ(find(120, name, &why), -2) << name;
        EXPECT_NE(why, "") << name;
    }
}

TEST(Table, NotOurs) {
    for (const char *name : {"ld.global.f32", "bra.uni", "shfl.sync.bfly.b32", "bar.sync", "atom.global.add.f32",
                             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "", ".f32", "nonsense",
                             "averyveryverylongopcodename.f32"})
        EXPECT_EQ(find(90, name), -1) << name;
}

TEST(Table, Operands) {
    AluContext c = context();
    AluOp op = found(c, "mad.wide.s32");
    EXPECT_EQ(op.sources, 3);
    EXPECT_EQ(op.source_bytes[0], 4);
    EXPECT_EQ(op.source_bytes[2], 8);
    EXPECT_EQ(op.dst_bytes[0], 8);
    EXPECT_TRUE(op.dst_signed);
    op = found(c, "setp.lt.and.f64");
    EXPECT_EQ(op.sources, 3);
    EXPECT_EQ(op.source_bytes[0], 8);
    EXPECT_EQ(op.source_bytes[2], 4);
    EXPECT_EQ(op.dst_bytes[1], 4);
    EXPECT_TRUE(op.source_is_float[0]);
    EXPECT_FALSE(op.source_is_float[2]);
    op = found(c, "selp.b64");
    EXPECT_EQ(op.source_bytes[1], 8);
    EXPECT_EQ(op.source_bytes[2], 4);
    op = found(c, "shl.b64");
    EXPECT_EQ(op.source_bytes[1], 4);
    op = found(c, "and.pred");
    EXPECT_EQ(op.dst_bytes[1], 0);
    EXPECT_STREQ(op.kind, "pred");
    op = found(c, "cvt.rn.f16x2.f32");
    EXPECT_EQ(op.sources, 2);
    EXPECT_STREQ(op.kind, "cvt");
    EXPECT_STREQ(found(c, "ex2.approx.f32").kind, "special");
    EXPECT_STREQ(found(c, "selp.f32").kind, "move");
}

} // namespace
