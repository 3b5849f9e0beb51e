/* codegen.c: the C file of a module, put together. */
#include "codegen/codegen.h"

#include "amp/model_abi.h"
#include "amp/version.h"
#include "codegen/cpu/cpu.h"

/* One file, compiled once for each instruction set and once for the tables, or in one go. */
static const char head[] =
    " *\n"
    " * cc -std=gnu11 -O1 -ffp-contract=off -fno-math-errno -fno-trapping-math -fwrapv -ffreestanding -Wno-psabi -fPIC "
    "-shared -nostdlib -march=native\n"
    " *    model.c -o model.so\n"
    " * makes a model for this machine alone.  ampc compiles it four times: with -DAMP_ISA=portable, v3 and v4 (the "
    "kernels, with -march=x86-64, x86-64-v3 and\n"
    " * x86-64-v4) and with -DAMP_TABLES (the descriptor), links these and writes the file's hash into its section ";

static const char switches[] =
    "#pragma GCC visibility push(hidden)\n"
    "\n"
    "#if !defined AMP_ISA && !defined AMP_TABLES\n"
    "#define AMP_ISA native\n"
    "#define AMP_TABLES 1\n"
    "#define RUN(name) {name##_native, name##_native, name##_native}\n"
    "#define DECLARE(name) void name##_native(const amp_kernel_args *);\n"
    "#else\n"
    "#if defined(AMP_TOP_ISA) && AMP_TOP_ISA == 0\n"
    "#define RUN(name) {name##_portable}\n"
    "#elif defined(AMP_TOP_ISA) && AMP_TOP_ISA == 1\n"
    "#define RUN(name) {name##_portable, name##_v3}\n"
    "#else\n"
    "#define RUN(name) {name##_portable, name##_v3, name##_v4}\n"
    "#endif\n"
    "#define DECLARE(name) void name##_portable(const amp_kernel_args *), name##_v3(const amp_kernel_args *), "
    "name##_v4(const amp_kernel_args *);\n"
    "#endif\n"
    "\n"
    "#ifdef AMP_ISA\n"
    "#define JOIN_(a, b) a##_##b\n"
    "#define JOIN(a, b) JOIN_(a, b)\n"
    "#define K(name) JOIN(name, AMP_ISA)\n"
    "/* An operand of the kernel, moved to its first row and column; a watched value that the session does not keep is "
    "NULL. */\n"
    "#define OPERAND(T, i, offset) ((T *)a->buffer[i] + (offset))\n"
    "#define OPTIONAL_OPERAND(T, i, offset) (a->buffer[i] ? OPERAND(T, i, offset) : (T *)0)\n"
    "\n";

static const char query[] =
    "static const uint8_t digest[32] __attribute__((section(AMP_MODEL_HASH_SECTION), used, aligned(32))) = {0};\n"
    "\n"
    "#pragma GCC visibility push(default)\n"
    "const amp_model_desc *amp_model_query(uint32_t host_major, uint32_t host_minor);\n"
    "#pragma GCC visibility pop\n"
    "const amp_model_desc *amp_model_query(uint32_t host_major, uint32_t host_minor)\n"
    "{\n"
    "    (void)host_minor;\n"
    "    return host_major == AMP_MODEL_ABI_MAJOR ? &descriptor : 0;\n"
    "}\n";

/* A C compiler may call these in any code; the model is linked with no library.  The empty asm keeps it from seeing a
 * call of itself in the loop. */
static const char freestanding[] = "void *memset(void *to, int value, size_t size);\n"
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
                                   "}\n";

static void put_head(const Module *m, Text *t) {
    text_puts(t, "/* Model ");
    c_comment(t, m->name);
    if (m->source_name) text_puts(t, ", compiled from ");
    c_comment(t, m->source_name);
    text_puts(t, " by ampc " AMP_VERSION ".\n");
    text_puts(t, head);
    text_puts(t, AMP_MODEL_HASH_SECTION ".\n */\n\n");
}

amp_status codegen_c(const Module *m, const CodegenCuda *cuda, Text *out, amp_error *err) {
    KernelNames names = {0};
    if (m->stage != STAGE_PLAN)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "module %s is at stage %s: C can be emitted after the pass plan",
                        m->name, ir_stage_names[m->stage]);
    put_head(m, out);
    text_puts(out, cpu_abi);
    text_puts(out, switches);
    text_puts(out, cpu_prelude);
    text_puts(out, "\n/* ---- kernels ---- */\n\n");
    AMP_TRY(cpu_emit_kernels(m, &names, out, err));
    text_puts(out, "#endif\n\n#ifdef AMP_TABLES\n\n");
    AMP_TRY(descriptor_emit(m, &names, cuda, out, err));
    text_puts(out, query);
    text_puts(out, freestanding);
    text_puts(out, "#endif\n");
    return AMP_OK;
}
