/* c_compiler.c: see c_compiler.h. */
#define _POSIX_C_SOURCE 200809L /* access */
#include "codegen/c_compiler.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/processor.h"

/* ---- targets ----------------------------------------------------------------------------------------------------- */

/* Processors without AVX2 are rare: their kernels compile in half the time with -Og and run a sixth slower. */
static const CompilerUnit x86_units[] = {
    {AMP_ISA_PORTABLE, {"-DAMP_ISA=portable", "-march=x86-64", "-Og", NULL}},
    {AMP_ISA_V3, {"-DAMP_ISA=v3", "-march=x86-64-v3", NULL}},
    {AMP_ISA_V4, {"-DAMP_ISA=v4", "-march=x86-64-v4", "-mprefer-vector-width=512", NULL}},
    {EVERY_ISA, {"-DAMP_TABLES", NULL}},
};
static const char *const x86_flags[] = {"-fcf-protection=none", NULL};

/* Four lanes are a register of these; their products come from the runtime. */
static const CompilerUnit portable_units[] = {
    {AMP_ISA_PORTABLE, {"-DAMP_ISA=portable", NULL}},
    {EVERY_ISA, {"-DAMP_TABLES", NULL}},
};
static const char *const no_flags[] = {NULL};

#define COUNT(units) (int)(sizeof(units) / sizeof *(units))
static const CompilerTarget targets[] = {
    {"x86-64", {"x86_64", "amd64", NULL}, x86_units, COUNT(x86_units), x86_flags, AMP_ISA_V4},
    {"AArch64", {"aarch64", "arm64", NULL}, portable_units, COUNT(portable_units), no_flags, AMP_ISA_PORTABLE},
    {"another processor", {NULL}, portable_units, COUNT(portable_units), no_flags, AMP_ISA_PORTABLE},
};
enum { TARGETS = sizeof targets / sizeof *targets };

#if defined(__x86_64__)
enum { THIS_MACHINE = 0 };
#elif defined(__aarch64__)
enum { THIS_MACHINE = 1 };
#else
enum { THIS_MACHINE = 2 };
#endif

static bool is_machine(const CompilerTarget *t, const char *machine) {
    for (int i = 0; t->machines[i]; i++)
        if (!strncmp(machine, t->machines[i], strlen(t->machines[i]))) return true;
    return !t->machines[0];
}

void c_compiler_set_machine(CCompiler *c, const char *machine) {
    int i = machine ? 0 : THIS_MACHINE;
    while (machine && !is_machine(&targets[i], machine)) i++; /* the last is any */
    c->target = &targets[i];
}

/* ---- instruction sets -------------------------------------------------------------------------------------------- */

static const char *const isa_names[AMP_ISA_COUNT] = AMP_ISA_WORDS;

static int isa_of_machine(void) {
    unsigned features = amp_cpu_features();
    return features & AMP_CPU_X86_64_V4 ? AMP_ISA_V4 : features & AMP_CPU_X86_64_V3 ? AMP_ISA_V3 : AMP_ISA_PORTABLE;
}

static amp_status find_native(const CCompiler *c, IsaRange *out, amp_error *err) {
    if (c->target != &targets[THIS_MACHINE])
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "isa native: '%s' makes code for %s, and this machine is %s: leave it out", c->command,
                        c->target->name, targets[THIS_MACHINE].name);
    out->lowest = out->top = isa_of_machine();
    return AMP_OK;
}

amp_status c_compiler_find_isa(const CCompiler *c, const char *name, IsaRange *out, amp_error *err) {
    *out = (IsaRange){AMP_ISA_PORTABLE, c->target->top};
    if (!name) return AMP_OK;
    if (!strcmp(name, "native")) return find_native(c, out, err);
    for (out->top = 0; out->top < AMP_ISA_COUNT; out->top++)
        if (!strcmp(name, isa_names[out->top])) break;
    if (out->top == AMP_ISA_COUNT)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "isa '%s': portable, v3, v4 or native", name);
    if (out->top <= c->target->top) return AMP_OK;
    return amp_fail(err, AMP_INVALID_ARGUMENT,
                    "isa %s: an instruction set of x86-64; '%s' makes code for %s: leave it out", name, c->command,
                    c->target->name);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

typedef struct Splitter {
    const char *at;
    char *to, *end; /* what is left of the text */
} Splitter;

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n'; }

/* Copies a word without its quotes; false: there is no room, or a quote is not closed. */
static bool read_word(Splitter *s) {
    char quote = 0;
    for (; *s->at && (quote || !is_space(*s->at)); s->at++) {
        char c = *s->at;
        if (quote ? c == quote : c == '\'' || c == '"') {
            quote = quote ? 0 : c;
            continue;
        }
        if (c == '\\' && quote != '\'' && s->at[1]) c = *++s->at;
        if (s->to + 1 >= s->end) return false;
        *s->to++ = c;
    }
    *s->to++ = 0;
    return !quote;
}

static bool split(CCompiler *c) {
    Splitter s = {c->command, c->text, c->text + sizeof c->text};
    for (;;) {
        while (is_space(*s.at)) s.at++;
        if (!*s.at) return c->word_count > 0;
        if (c->word_count == C_COMPILER_WORDS || s.to == s.end) return false;
        c->words[c->word_count++] = s.to;
        if (!read_word(&s)) return false;
    }
}

amp_status c_compiler_read(CCompiler *c, const char *command, amp_error *err) {
    c->command = command && *command ? command : "cc";
    c->word_count = 0;
    if (strchr(c->command, '/') && !access(c->command, X_OK)) {
        c->words[c->word_count++] = c->command;
        return AMP_OK;
    }
    if (split(c)) return AMP_OK;
    return amp_fail(err, AMP_INVALID_ARGUMENT,
                    "the C compiler '%s': a quote is not closed, or it is more than %d words or %d characters",
                    c->command, C_COMPILER_WORDS, C_COMPILER_TEXT);
}
