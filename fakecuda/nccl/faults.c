/* faults.c: FAKECUDA_NCCL, a list of faults with commas between them:
 *
 *     fail:CALL:K      the Kth call of that name fails
 *     late:RANK:MS     each collective of the rank starts so much later
 *     dead:RANK:K      the rank never comes to its Kth collective
 *     stop:RANK:K      the process stops itself there (SIGSTOP); kill: ends (SIGKILL)
 *     count:RANK:K     the rank says another count there; order:RANK:K: another collective
 *     async:RANK:K     the rank's Kth collective fails after it was enqueued
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda/nccl/stand_in.h"

enum { MOST = 16 };
typedef struct Fault {
    char what[16], call[32]; /* of "fail" */
    int64_t rank, number, seen;
} Fault;
static Fault faults[MOST];
static int count = -1; /* not read yet */
static char problem[128];

static const char *const kinds[] = {"late", "dead", "stop", "kill", "count", "order", "async"};

static bool is_call(const char *name) {
#define IS(member, symbol, parameters)                                                                                 \
    if (!strcmp(name, #symbol)) return true;
    NCCL_CALLS(IS)
#undef IS
    return false;
}

static bool read_one(const char *text, Fault *f) {
    char end;
    *f = (Fault){0};
    if (sscanf(text, "fail:%31[A-Za-z]:%lld%c", f->call, (long long *)&f->number, &end) == 2) {
        snprintf(f->what, sizeof f->what, "fail");
        return is_call(f->call);
    }
    if (sscanf(text, "%15[a-z]:%lld:%lld%c", f->what, (long long *)&f->rank, (long long *)&f->number, &end) != 3)
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(f->what, kinds[i])) return true;
    return false;
}

static void read_all(void) {
    const char *text = getenv("FAKECUDA_NCCL");
    char copy[512], *save = NULL;
    count = 0;
    snprintf(copy, sizeof copy, "%s", text ? text : "");
    for (char *one = strtok_r(copy, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
        if (count < MOST && read_one(one, &faults[count])) count++;
        else snprintf(problem, sizeof problem, "FAKECUDA_NCCL: %.60s: no fault that is known", one);
    }
}

const char *faults_problem(void) {
    if (count < 0) read_all();
    return *problem ? problem : NULL;
}

bool fault_at(const char *what, int32_t rank, uint64_t number) {
    for (int i = 0; i < count; i++)
        if (!strcmp(faults[i].what, what) && faults[i].rank == rank && (uint64_t)faults[i].number == number)
            return true;
    return false;
}

int64_t fault_delay(int32_t rank) {
    for (int i = 0; i < count; i++)
        if (!strcmp(faults[i].what, "late") && faults[i].rank == rank) return faults[i].number * 1000000;
    return 0;
}

bool fault_call(const char *call) {
    if (count < 0) read_all();
    for (int i = 0; i < count; i++)
        if (!strcmp(faults[i].what, "fail") && !strcmp(faults[i].call, call) && ++faults[i].seen == faults[i].number)
            return true;
    return false;
}
