/* codegen.c: the C file of a module, put together. */
#include "codegen/codegen.h"

#include "amp/model_abi.h"
#include "amp/version.h"
#include "codegen/cpu/cpu.h"

/* One file, compiled once for each instruction set and once for the tables, or in one go. */
static const char head[] =
    " *\n"
    " * Linked into a program, for one kind of processor (-march), and opened by amp_model_from_static(AMP_SYMBOL):\n"
    " *     cc -std=gnu11 -O1 -w -c model.c\n"
    " * As a model.so for this machine alone, which amp_model_load takes without a hash to check:\n"
    " *     cc -std=gnu11 -O1 -w -ffreestanding -fPIC -shared -nostdlib -march=native -DAMP_SHARED model.c -o "
    "model.so\n"
    " * ampc compiles it several times: with -DAMP_ISA=portable, v3 and v4 (the kernels, with -march=x86-64, "
    "x86-64-v3\n"
    " * and x86-64-v4) and with -DAMP_TABLES (the descriptor), links these and writes the file's hash into its "
    "section\n"
    " * ";

static const char switches[] =
    "/* Whatever the flags: no product and sum become one, and integers wrap. */\n"
    "#ifdef __FAST_MATH__\n"
    "#error \"-ffast-math changes what the model computes; compile without it\"\n"
    "#endif\n"
    "#if defined(__clang__)\n"
    "#pragma clang fp contract(off)\n"
    "#elif defined(__GNUC__)\n"
    "#pragma GCC optimize(\"fp-contract=off,wrapv\")\n"
    "#endif\n"
    "\n"
    "#pragma GCC visibility push(hidden)\n"
    "\n"
    "#define JOIN_(a, b, c) a##_##b##_##c\n"
    "#define JOIN(a, b, c) JOIN_(a, b, c)\n"
    "#define IN(name, isa) JOIN(AMP_SYMBOL, name, isa) /* a program may hold several models */\n"
    "#if !defined AMP_ISA && !defined AMP_TABLES\n"
    "#define AMP_ISA native\n"
    "#define AMP_TABLES 1\n"
    "#ifndef AMP_SHARED\n"
    "#define AMP_STATIC 1\n"
    "#endif\n"
    "#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && "
    "defined(__AVX512VL__)\n"
    "#define AMP_LOWEST_ISA 2\n"
    "#define RUN(name) {0, 0, IN(name, native)}\n"
    "#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)\n"
    "#define AMP_LOWEST_ISA 1\n"
    "#define RUN(name) {0, IN(name, native)}\n"
    "#else\n"
    "#define RUN(name) {IN(name, native)}\n"
    "#endif\n"
    "#define DECLARE(name) void IN(name, native)(const amp_kernel_args *);\n"
    "#else\n"
    "#if defined(AMP_LOWEST_ISA) && AMP_LOWEST_ISA == 2\n"
    "#define RUN(name) {0, 0, IN(name, v4)}\n"
    "#elif defined(AMP_LOWEST_ISA) && AMP_LOWEST_ISA == 1\n"
    "#define RUN(name) {0, IN(name, v3)}\n"
    "#elif defined(AMP_TOP_ISA) && AMP_TOP_ISA == 0\n"
    "#define RUN(name) {IN(name, portable)}\n"
    "#elif defined(AMP_TOP_ISA) && AMP_TOP_ISA == 1\n"
    "#define RUN(name) {IN(name, portable), IN(name, v3)}\n"
    "#else\n"
    "#define RUN(name) {IN(name, portable), IN(name, v3), IN(name, v4)}\n"
    "#endif\n"
    "#define DECLARE(name) void IN(name, portable)(const amp_kernel_args *), IN(name, v3)(const amp_kernel_args *), "
    "IN(name, v4)(const amp_kernel_args *);\n"
    "#endif\n"
    "\n"
    "#ifdef AMP_ISA\n"
    "#define K(name) IN(name, AMP_ISA)\n"
    "/* An operand of the kernel, moved to its first row and column; a watched value that the session does not keep is "
    "NULL. */\n"
    "#define OPERAND(T, i, offset) ((T *)a->buffer[i] + (offset))\n"
    "#define OPTIONAL_OPERAND(T, i, offset) (a->buffer[i] ? OPERAND(T, i, offset) : (T *)0)\n"
    "\n";

/* A model.so says that it has no hash until ampc has written one. */
static const char query[] =
    "#ifdef AMP_STATIC\n"
    "#define AMP_QUERY AMP_SYMBOL\n"
    "#else\n"
    "#define AMP_QUERY amp_model_query\n"
    "static const char digest[32] __attribute__((section(AMP_MODEL_HASH_SECTION), used, aligned(32))) =\n"
    "    AMP_MODEL_UNSEALED;\n"
    "#endif\n"
    "\n"
    "#pragma GCC visibility push(default)\n"
    "const amp_model_desc *AMP_QUERY(void);\n"
    "#pragma GCC visibility pop\n"
    "const amp_model_desc *AMP_QUERY(void)\n"
    "{\n"
    "    return &descriptor;\n"
    "}\n";

/* A C compiler may call these in any code; the model is linked with no library.  The empty asm keeps it from seeing a
 * call of itself in the loop. */
static const char freestanding[] = "#ifndef AMP_STATIC\n"
                                   "void *memset(void *to, int value, size_t size);\n"
                                   "void *memset(void *to, int value, size_t size)\n"
                                   "{\n"
                                   "    for (uint8_t *byte = to; size--; byte++) {\n"
                                   "        *byte = (uint8_t)value;\n"
                                   "        __asm__ volatile(\"\" ::: \"memory\");\n"
                                   "    }\n"
                                   "    return to;\n"
                                   "}\n"
                                   "void *memcpy(void *to, const void *from, size_t size);\n"
                                   "void *memcpy(void *to, const void *from, size_t size)\n"
                                   "{\n"
                                   "    uint8_t *byte = to;\n"
                                   "    for (const uint8_t *source = from; size--; source++) {\n"
                                   "        *byte++ = *source;\n"
                                   "        __asm__ volatile(\"\" ::: \"memory\");\n"
                                   "    }\n"
                                   "    return to;\n"
                                   "}\n"
                                   "#endif\n";

static void put_head(const Module *m, const char *symbol, Text *t) {
    text_puts(t, "/* Model ");
    c_comment(t, m->name);
    if (m->source_name) text_puts(t, ", compiled from ");
    c_comment(t, m->source_name);
    text_puts(t, " by ampc " AMP_VERSION ".\n");
    text_puts(t, head);
    text_puts(t, AMP_MODEL_HASH_SECTION ".\n */\n\n#ifndef AMP_SYMBOL\n#define AMP_SYMBOL ");
    c_identifier(t, symbol ? symbol : arena_printf(m->arena, "%s_model", m->name));
    text_puts(t, "\n#endif\n\n");
}

amp_status codegen_c(const Module *m, const CodegenCuda *cuda, const CodegenForm *form, Text *out, amp_error *err) {
    KernelNames names = {0};
    const CodegenForm plain = {0};
    if (!form) form = &plain;
    if (m->stage < STAGE_PLAN)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "module %s is at stage %s: C can be emitted after the pass plan",
                        m->name, ir_stage_names[m->stage]);
    put_head(m, form->symbol, out);
    text_puts(out, cpu_abi);
    text_puts(out, switches);
    text_puts(out, cpu_prelude);
    if (m->sums != SUMS_IEEE) cpu_put_sums_prelude(m, out);
    text_puts(out, "\n/* ---- kernels ---- */\n\n");
    AMP_TRY(cpu_emit_kernels(m, &names, out, err));
    text_puts(out, "#endif\n\n#ifdef AMP_TABLES\n\n");
    AMP_TRY(descriptor_emit(m, &names, cuda, form->no_ir, out, err));
    text_puts(out, query);
    text_puts(out, freestanding);
    text_puts(out, "#endif\n");
    return AMP_OK;
}
