/* faults.c: FAKECUDA_CUBLASLT, a list with commas between its parts:
 *
 *     fail:CALL:K          the Kth call of that name fails with LT_INTERNAL_ERROR
 *     version:V            the library says that it is of version V, 13020 for 13.2
 *     value:ALGORITHM:S    a wrong element, anywhere by the seed S
 *     ulp:ALGORITHM:S      the same, wrong in its lowest bit
 *     tie:ALGORITHM:0      results halfway between two numbers of f16 or bf16 are rounded to the other one
 *     later:ALGORITHM:K    a wrong element from the algorithm's Kth run on
 *     rows:ALGORITHM:R     a wrong element where a column of the result has more than R rows, in row R: counted as a
 *                          row-major caller does
 *
 *     order:ALGORITHM:0    it sums two halves of k, and does not say so
 *
 * Calls and runs are counted from when the variable's text last changed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda/cublaslt/stand_in.h"

enum { MOST = 16 };
typedef struct Fault {
    char what[48];
    uint64_t number, seen;
    int algorithm;
} Fault;
static Fault faults[MOST];
static int count;
static char text[512];

static const char *const kinds[] = {[PLANT_VALUE] = "value", [PLANT_ULP] = "ulp",   [PLANT_TIE] = "tie",
                                    [PLANT_LATER] = "later", [PLANT_ROWS] = "rows", [PLANT_ORDER] = "order"};
enum { KINDS = sizeof kinds / sizeof *kinds };

static bool is_call(const char *name) {
#define IS(member, symbol, parameters)                                                                                 \
    if (!strcmp(name, #symbol)) return true;
    CUBLASLT_CALLS(IS)
#undef IS
    return false;
}

static bool read_one(const char *from, Fault *f) {
    unsigned long long number;
    char end;
    *f = (Fault){.algorithm = -1};
    if (sscanf(from, "fail:%47[A-Za-z]:%llu%c", f->what, &number, &end) == 2)
        return f->number = number, is_call(f->what);
    if (sscanf(from, "version:%llu%c", &number, &end) == 1) {
        strcpy(f->what, "version");
        return f->number = number, true;
    }
    if (sscanf(from, "%15[a-z]:%d:%llu%c", f->what, &f->algorithm, &number, &end) != 3) return false;
    f->number = number;
    for (int i = PLANT_VALUE; i < KINDS; i++)
        if (!strcmp(f->what, kinds[i])) return f->algorithm >= 0 && f->algorithm < ALGORITHMS;
    return false;
}

/* A part that cannot be read is misuse: no test that plants it passes. */
static void read_all(void) {
    const char *now = getenv("FAKECUDA_CUBLASLT");
    char copy[sizeof text], problem[128], *save = NULL;
    if (!strcmp(text, now ? now : "")) return;
    count = 0;
    snprintf(text, sizeof text, "%s", now ? now : "");
    strcpy(copy, text);
    for (char *one = strtok_r(copy, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
        if (count < MOST && read_one(one, &faults[count])) {
            count++;
            continue;
        }
        snprintf(problem, sizeof problem, "FAKECUDA_CUBLASLT: %.60s: no fault that is known", one);
        fakecuda_misuse(problem);
    }
}

bool fault_call(const char *call) {
    read_all();
    for (int i = 0; i < count; i++)
        if (!strcmp(faults[i].what, call) && ++faults[i].seen == faults[i].number) return true;
    return false;
}

int fault_version(int otherwise) {
    read_all();
    for (int i = 0; i < count; i++)
        if (!strcmp(faults[i].what, "version")) return (int)faults[i].number;
    return otherwise;
}

Plant fault_plant(int algorithm) {
    read_all();
    for (int i = 0; i < count; i++)
        for (int kind = PLANT_VALUE; kind < KINDS; kind++)
            if (faults[i].algorithm == algorithm && !strcmp(faults[i].what, kinds[kind]))
                return (Plant){.kind = (PlantKind)kind, .number = faults[i].number};
    return (Plant){.kind = PLANT_NONE};
}

uint64_t fault_run(int algorithm) {
    for (int i = 0; i < count; i++)
        if (faults[i].algorithm == algorithm && !strcmp(faults[i].what, kinds[PLANT_LATER])) return ++faults[i].seen;
    return 0;
}
