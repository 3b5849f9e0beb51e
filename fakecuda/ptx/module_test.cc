// Modules: header, variables with initial values, functions, parameters, calls, debug information, errors.
#include "fakecuda/ptx/parse_ptx.h"

#include <cstring>

using namespace ptx_test;

namespace {

TEST(Header, VersionAndTarget) {
    Module m = parse(".version 9.0\n.target sm_90a, texmode_independent, debug\n.address_size 64\n");
    ASSERT_TRUE(m) << last_message();
    EXPECT_EQ(m->version, 90);
    EXPECT_EQ(m->target, 90);
    EXPECT_EQ(m->target_suffix, 'a');
    EXPECT_EQ(parse(".version 7.8 .target sm_120")->target, 120);
    EXPECT_FALSE(parse(""));
    EXPECT_FALSE(parse(".version 9.0\n.target compute_90"));
    EXPECT_FALSE(parse(".version 9.0\n.target sm_90\n.address_size 32"));
}

template <class T> T value(const PtxVariable *v, int at) {
    T x;
    memcpy(&x, v->init + at, sizeof x);
    return x;
}

TEST(Variables, InitialValues) {
    Module m = parse_items(
        ".global .align 4 .f32 fz = 0f40600000;\n.global .align 8 .u64 ll = -3;\n.global .align 4 .b8 big[8] = "
        "{0,0,0,128,5};\n.const .f64 d[] = { 1.5, -0d4000000000000000 };\n.global .s32 grid[3][2] = { {1,0}, "
        "{2,3} };\n.global .v4 .f32 v[2] = { {1.0,2.0}, {3.0} };\n.global .u16 h = 1 << 4;\n"
        ".visible .global .attribute(.managed) .align 16 .u32 zeros[5], more;\n.extern .global .u32 outside;");
    ASSERT_TRUE(m) << last_message();
    EXPECT_EQ(value<float>(ptx_variable(m.get(), "fz"), 0), 3.5f);
    EXPECT_EQ(value<int64_t>(ptx_variable(m.get(), "ll"), 0), -3);
    const PtxVariable *big = ptx_variable(m.get(), "big");
    EXPECT_EQ(big->bytes, 8u);
    EXPECT_EQ(value<uint64_t>(big, 0), 0x0000000580000000u);
    const PtxVariable *d = ptx_variable(m.get(), "d");
    EXPECT_EQ(d->space, PTX_CONST);
    EXPECT_EQ(d->bytes, 16u);
    EXPECT_EQ(value<double>(d, 0), 1.5);
    EXPECT_EQ(value<double>(d, 8), -2.0);
    const PtxVariable *grid = ptx_variable(m.get(), "grid");
    const int32_t expected[6] = {1, 0, 2, 3, 0, 0};
    ASSERT_EQ(grid->bytes, sizeof expected);
    EXPECT_EQ(memcmp(grid->init, expected, sizeof expected), 0);
    const PtxVariable *v = ptx_variable(m.get(), "v");
    EXPECT_EQ(v->align, 16u);
    EXPECT_EQ(value<float>(v, 4), 2.f);
    EXPECT_EQ(value<float>(v, 16), 3.f);
    EXPECT_EQ(value<uint16_t>(ptx_variable(m.get(), "h"), 0), 16);
    const PtxVariable *zeros = ptx_variable(m.get(), "zeros");
    EXPECT_EQ(zeros->bytes, 20u);
    EXPECT_EQ(zeros->align, 16u);
    EXPECT_EQ(zeros->init, nullptr);
    EXPECT_EQ(ptx_variable(m.get(), "more")->bytes, 4u);
    EXPECT_TRUE(ptx_variable(m.get(), "outside")->is_extern);
    EXPECT_EQ(ptx_variable(m.get(), "none"), nullptr);
}

TEST(Variables, InitialAddresses) {
    Module m = parse_items(
        ".func f1 { ret; }\n.global .align 8 .b8 arr[16];\n.global .align 8 .u64 ptr = generic(arr)+4;\n.global "
        ".u64 tab[3] = {f1, 7, arr-8};\n.global .align 8 .b8 odd[16] = {1,2, 0xFF(generic(arr+4)), "
        "0xFF00(generic(arr+4)), 0xFF0000(generic(arr+4)), 0xFF000000(generic(arr+4)), 0xFF00000000(generic(arr+4)), "
        "0xFF0000000000(generic(arr+4)), 0xFF000000000000(generic(arr+4)), 0xFF00000000000000(generic(arr+4)), 9};");
    ASSERT_TRUE(m) << last_message();
    const PtxVariable *ptr = ptx_variable(m.get(), "ptr"), *tab = ptx_variable(m.get(), "tab"),
                      *odd = ptx_variable(m.get(), "odd");
    ASSERT_EQ(ptr->address_count, 1);
    EXPECT_STREQ(ptr->addresses[0].of, "arr");
    EXPECT_EQ(ptr->addresses[0].offset, 4);
    EXPECT_TRUE(ptr->addresses[0].generic);
    ASSERT_EQ(tab->address_count, 2);
    EXPECT_STREQ(tab->addresses[0].of, "f1");
    EXPECT_FALSE(tab->addresses[0].generic);
    EXPECT_EQ(value<uint64_t>(tab, 8), 7u);
    EXPECT_EQ(tab->addresses[1].at, 16u);
    EXPECT_EQ(tab->addresses[1].offset, -8);
    ASSERT_EQ(odd->address_count, 1);
    EXPECT_EQ(odd->addresses[0].at, 2u);
    EXPECT_EQ(odd->init[10], 9);
}

TEST(Variables, WrongOnesAreRefused) {
    const char *wrong[] = {
        ".global .u32 a[2] = {1,2,3};",
        ".global .u32 a = {1,2};",
        ".global .u32 a[2][2] = { {1}, {2,3} };",
        ".global .f32 a = 1;",
        ".global .u32 a = 1.5;",
        ".global .u32 a = b;",
        ".global .u32 a[];",
        ".global .u32 a; .global .f32 a;",
        ".shared .u32 a = 1;",
        ".local .u32 a;",
        ".reg .u32 a;",
        ".global a;",
        ".global .u32 .f32 a;",
        ".global .pred a;",
        ".global .align 3 .u32 a;",
        ".global .u32 a[-1];",
        ".global .texref t;",
        ".global .b8 a[1<<40][1<<40];",
        ".global .u32 a[2][] = {1};",
        ".global .u32 b; .global .u32 a = b;",
    };
    for (const char *text : wrong) EXPECT_FALSE(parse_items(text)) << text;
}

TEST(Variables, SharedMemoryOfBothKinds) {
    Module m = parse_items(
        ".extern .shared .align 1024 .b8 dyn[];\n.shared .align 4 .b8 st[64];\n.entry k() { .shared .align 8 .f64 "
        "demoted[4]; .reg .b64 %a; .local .align 16 .b8 depot[80]; mov.u64 %a, dyn; ld.shared.f64 %a, "
        "[demoted+8]; mov.u64 %a, depot; }");
    ASSERT_TRUE(m) << last_message();
    const PtxVariable *dyn = ptx_variable(m.get(), "dyn");
    EXPECT_TRUE(dyn->is_extern);
    EXPECT_EQ(dyn->bytes, 0u);
    EXPECT_EQ(dyn->align, 1024u);
    EXPECT_EQ(kernel(m).local_count, 2);
    EXPECT_EQ(instruction(m, 0).operands[1].variable, dyn);
    EXPECT_EQ(instruction(m, 1).operands[1].variable, &kernel(m).locals[0]);
    EXPECT_EQ(instruction(m, 1).operands[1].offset, 8);
    EXPECT_EQ(instruction(m, 2).operands[1].variable, &kernel(m).locals[1]);
    EXPECT_EQ(kernel(m).locals[1].space, PTX_LOCAL);
}

TEST(Functions, ParametersHaveOffsets) {
    Module m = parse_items(
        ".visible .entry k(\n\t.param .u64 .ptr .global .align 1 p0,\n\t.param .u8 p1,\n\t.param .align 64 .b8 "
        "p2[100],\n\t.param .u16 p3, .param .v4 .f32 p4, .param .u32 p5\n)\n.maxntid 256, 1, 1 .minnctapersm 2\n"
        ".maxnreg 64 .reqntid 32,4\n{ ret; }\n.entry e .maxntid 128 .reqnctapercluster 2, 1, 1 .pragma \"x\"; { ret; "
        "}");
    ASSERT_TRUE(m) << last_message();
    const PtxFunction &k = kernel(m);
    ASSERT_EQ(k.param_count, 6);
    const uint64_t offsets[6] = {0, 8, 64, 164, 176, 192};
    for (int i = 0; i < 6; i++) EXPECT_EQ(k.param_offsets[i], offsets[i]);
    EXPECT_EQ(k.param_bytes, 196u);
    EXPECT_EQ(k.params[0].align, 8u) << "the alignment after .ptr belongs to what it points to";
    EXPECT_EQ(k.params[2].bytes, 100u);
    EXPECT_TRUE(k.is_entry);
    EXPECT_EQ(k.max_threads[0], 256);
    EXPECT_EQ(k.required_threads[1], 4);
    EXPECT_EQ(k.required_threads[2], 1);
    EXPECT_EQ(k.min_blocks, 2);
    EXPECT_EQ(k.max_registers, 64);
    const PtxFunction *e = ptx_function(m.get(), "e");
    EXPECT_EQ(e->max_threads[0], 128);
    EXPECT_EQ(e->max_threads[2], 1);
    EXPECT_EQ(e->cluster[0], 2);
}

TEST(Functions, CallsAndPrototypes) {
    Module m = parse_items(
        ".extern .func  (.param .b32 func_retval0) vprintf\n(\n\t.param .b64 vprintf_param_0,\n\t.param .b64 "
        "vprintf_param_1\n)\n;\n"
        ".func (.param .b32 r) twice(.param .b32 a, .param .align 8 .b8 _[16]);\n.func (.reg .u32 out) inc (.reg .u32 "
        "in, .reg .pred q) "
        "{ add.u32 out, in, 1; ret; }\n.func (.param .b32 r) twice(.param .b32 a, .param .align 8 .b8 s[16]) { .reg "
        ".b32 x; "
        "ld.param.b32 x, [a]; st.param.b32 [r], x; ret; }\n.func .attribute(.unified(1, 2)) gone() .noreturn;\n"
        ".entry k() { .reg .b32 %r<3>; .reg .b64 %rd<3>; .reg .pred %p; { .param .b32 param0; st.param.b32 [param0+0], "
        "%r1; .param "
        ".b32 retval0; call.uni (retval0), \ntwice, \n(\nparam0, param0\n);\nld.param.b32 %r2, [retval0+0]; }\n"
        "prototype_1 : .callprototype (.param .b32 _) _ (.param .b32 _, .param .align 8 .b8 _[16]) ;\n{ .param .b32 "
        "param0; call "
        "(param0), %rd1, (param0), prototype_1; }\n call (%r1), inc, (%r2, %p); call (_), inc, (5, %p); call gone; "
        "call (), gone, ();\n"
        "list: .calltargets twice, inc; call (%r1), %rd1, (%r2), list; }");
    ASSERT_TRUE(m) << last_message();
    EXPECT_TRUE(ptx_function(m.get(), "vprintf")->is_declaration);
    const PtxFunction *twice = ptx_function(m.get(), "twice"), *inc = ptx_function(m.get(), "inc");
    EXPECT_FALSE(twice->is_declaration);
    EXPECT_FALSE(twice->is_entry);
    EXPECT_EQ(twice->count, 3);
    EXPECT_STREQ(twice->params[1].name, "s");
    EXPECT_EQ(twice->result_count, 1);
    EXPECT_EQ(twice->code[0].operands[1].variable, &twice->params[0]);
    EXPECT_EQ(twice->code[1].operands[0].variable, &twice->results[0]);
    EXPECT_EQ(inc->results[0].space, PTX_REG);
    EXPECT_EQ(inc->code[0].operands[0].index, inc->results[0].reg);
    EXPECT_EQ(inc->code[0].operands[1].index, inc->params[0].reg);
    EXPECT_EQ(inc->params[1].type, PTX_PRED);
    EXPECT_EQ(shown(m, 1), "(retval0), function twice, (param0, param0)");
    EXPECT_STREQ(instruction(m, 1).full, "call.uni");
    EXPECT_EQ(shown(m, 3), "(param0), %rd1#4, (param0), prototype prototype_1");
    EXPECT_NE(instruction(m, 3).operands[0].items[0].variable, instruction(m, 1).operands[2].items[0].variable);
    EXPECT_EQ(shown(m, 4), "(%r1#1), function inc, (%r2#2, %p#6)");
    EXPECT_EQ(shown(m, 5), "(_), function inc, (5, %p#6)");
    EXPECT_EQ(shown(m, 6), "function gone");
    EXPECT_EQ(shown(m, 7), "(), function gone, ()");
    EXPECT_EQ(shown(m, 8), "(%r1#1), %rd1#4, (%r2#2), (function twice, function inc)");
    EXPECT_FALSE(parse_items(".func f() { ret; } .func f() { ret; }"));
    EXPECT_FALSE(parse_items(".entry k(.reg .u32 a) { ret; }"));
    EXPECT_FALSE(parse_items(".entry k() .unheard 3 { ret; }"));
}

TEST(Debug, LinesFilesAndSectionsAreRead) {
    Module m = parse_items(
        ".entry k() {\n.loc 1 5 0\nret;\n.pragma \"nounroll\";\n}\n.file 1 \"/tmp/a b.cu\"\n.file 2 \"x\", 12, 34\n"
        ".section .debug_str\n{\n$L__info_string0:\n.b8 95,90\n.b32 .debug_abbrev\n.b64 $L__a+4\n}\n@@DWARF .byte 1\n");
    ASSERT_TRUE(m) << last_message();
    EXPECT_EQ(kernel(m).count, 1);
}

TEST(Errors, SayWhereAndWhat) {
    EXPECT_FALSE(parse_body("add.s32 %r1, %r2"));
    EXPECT_EQ(last_message(), "ptx:8:1: '}' cannot stand here, expected ';' or ','");
    EXPECT_FALSE(parse_items(".entry k() { ret;"));
    EXPECT_EQ(last_message().substr(0, 8), "ptx:4:18");
    EXPECT_FALSE(parse_items("/* no end"));
    EXPECT_FALSE(parse_items(".file 1 \"no end\n"));
    EXPECT_FALSE(parse_items("\x80"));
    EXPECT_FALSE(parse_items(std::string("\0", 1)));
    EXPECT_FALSE(parse_items(".entry k() " + std::string(100000, '{')));
    EXPECT_FALSE(parse_items(".global .u32 a = " + std::string(100000, '(')));
    char tiny[8];
    EXPECT_EQ(ptx_parse("x", 1, tiny, sizeof tiny), nullptr);
    EXPECT_EQ(std::string(tiny), "ptx:1:1");
    EXPECT_EQ(ptx_parse("x", 1, nullptr, 0), nullptr);
}

} // namespace
