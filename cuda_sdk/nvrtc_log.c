/* nvrtc_log.c: see nvrtc_log.h.
 *
 *     k.cu(2): error: identifier "y" is undefined
 *         x[0] = y;
 *                ^
 *     ptxas application ptx input, line 23; error   : Not a name of any known instruction: 'bogus'
 *     ptxas error   : Entry function 'k' uses too much shared data (0x61a80 bytes, 0xc000 max)
 *     nvrtc: error: invalid value for --gpu-architecture (-arch)
 *
 *     ptxas info    : Compiling entry function 'k' for 'sm_80'
 *     ptxas info    : Function properties for k
 *     ptxas         .     1712 bytes stack frame, 964 bytes spill stores, 1372 bytes spill loads
 *     ptxas info    : Used 64 registers, used 1 barriers, 1712 bytes cumulative stack size, 128 bytes smem
 */
#include "cuda_sdk/nvrtc_log.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One line of a text, without its end. */
typedef struct Line {
    const char *text;
    size_t size;
} Line;

static bool next_line(const char **at, Line *line) {
    if (!**at) return false;
    line->text = *at;
    line->size = strcspn(*at, "\n");
    *at += line->size + ((*at)[line->size] == '\n');
    return true;
}

/* Where |word| begins in the line; NULL: nowhere. */
static const char *find(Line line, const char *word) {
    size_t size = strlen(word);
    for (size_t i = 0; i + size <= line.size; i++)
        if (!memcmp(line.text + i, word, size)) return line.text + i;
    return NULL;
}

/* The number before |unit|, as in "964 bytes spill stores". */
static bool number_before(Line line, const char *unit, int *out) {
    const char *end = find(line, unit);
    if (!end) return false;
    const char *start = end;
    while (start > line.text && start[-1] >= '0' && start[-1] <= '9') start--;
    if (start == end) return false;
    *out = atoi(start);
    return true;
}

/* 'name' after "entry function ". */
static void copy_entry_name(Line line, char *out, size_t size) {
    const char *start = find(line, "'");
    size_t room = start ? line.size - (size_t)(start + 1 - line.text) : 0, n = 0;
    while (n < room && n + 1 < size && start[1 + n] != '\'') n++;
    if (n) memcpy(out, start + 1, n);
    out[n] = '\0';
}

int amp_nvrtc_log_uses(const char *log, amp_nvrtc_kernel_use *uses, int size) {
    int count = 0;
    amp_nvrtc_kernel_use unused, *use = NULL;
    bool own_properties = false; /* device functions that are not inlined have properties, too */
    for (Line line; next_line(&log, &line);) {
        if (find(line, "Compiling entry function")) {
            use = count < size ? &uses[count] : &unused;
            count++;
            *use = (amp_nvrtc_kernel_use){.name = ""};
            copy_entry_name(line, use->name, sizeof use->name);
        } else if (use && find(line, "Function properties for ")) {
            const char *name = find(line, "Function properties for ") + strlen("Function properties for ");
            size_t length = line.size - (size_t)(name - line.text);
            own_properties = length == strlen(use->name) && !memcmp(name, use->name, length);
        } else if (use && own_properties && find(line, " bytes stack frame")) {
            number_before(line, " bytes stack frame", &use->stack_bytes);
            number_before(line, " bytes spill stores", &use->spill_stores);
            number_before(line, " bytes spill loads", &use->spill_loads);
        } else if (use && number_before(line, " registers", &use->registers)) {
            number_before(line, " bytes cumulative stack size", &use->stack_bytes);
            number_before(line, " bytes smem", &use->shared_bytes);
        }
    }
    return count;
}

/* An error's line is not indented, as echoed source is; what follows "error" up to the colon is the message. */
static const char *message_of(Line line) {
    static const char *const marks[] = {"catastrophic error: ", " error: ", "error   : ", "fatal   : "};
    if (line.size == 0 || line.text[0] == ' ' || find(line, "): warning ")) return NULL;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const char *at = find(line, marks[i]);
        if (at) return at + strlen(marks[i]);
    }
    return NULL;
}

/* The number in "name(2): "; 0: none. */
static int line_number(Line line, const char *name) {
    size_t size = strlen(name);
    if (line.size <= size || memcmp(line.text, name, size) || line.text[size] != '(') return 0;
    return atoi(line.text + size + 1);
}

static Line source_line(const char *source, int number) {
    Line line = {"", 0};
    for (int i = 0; i < number; i++)
        if (!next_line(&source, &line)) return (Line){"", 0};
    while (line.size && (*line.text == ' ' || *line.text == '\t')) line.text++, line.size--;
    return line;
}

void amp_nvrtc_log_error(const char *log, const char *name, const char *source, char *out, size_t size) {
    const char *at = log;
    for (Line line; next_line(&at, &line);) {
        const char *message = message_of(line);
        if (!message) continue;
        int length = (int)(line.size - (size_t)(message - line.text)), number = line_number(line, name);
        Line text = source_line(source, number);
        if (text.size)
            snprintf(out, size, "%s, line %d: %.*s: `%.*s`", name, number, length, message,
                     (int)(text.size < 200 ? text.size : 200), text.text);
        else snprintf(out, size, "%s: %.*s", name, (int)line.size, line.text);
        return;
    }
    snprintf(out, size, "%.*s", (int)strcspn(log, "\n"), log);
}
