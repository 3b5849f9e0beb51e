/* inject.c: calls that fail on request. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda/driver/driver.h"

typedef struct Plan {
    char call[64]; /* "*": any */
    unsigned long long number, seen;
    CuResult error; /* 0: by call */
} Plan;
enum { MAX_PLANS = 32 };
static Plan plans[MAX_PLANS];
static int plan_count;

static bool known(const char *call) {
    if (strcmp(call, "*") == 0) return true;
    for (int i = 0; i < CALL_COUNT; i++) {
        size_t n = strlen(call);
        if (strncmp(call_names[i], call, n) == 0 && (!call_names[i][n] || strcmp(call_names[i] + n, "_v2") == 0))
            return true;
    }
    return false;
}

/* "CALL:K[:ERROR]" at |*text|, which goes behind it. */
static bool read_plan(const char **text, Plan *out) {
    const char *colon = strchr(*text, ':');
    if (!colon || colon == *text || (size_t)(colon - *text) >= sizeof out->call) return false;
    *out = (Plan){0};
    memcpy(out->call, *text, (size_t)(colon - *text));
    char *end;
    out->number = strtoull(colon + 1, &end, 10);
    if (end == colon + 1 || out->number == 0 || !known(out->call)) return false;
    if (*end == ':') {
        const char *error = end + 1;
        out->error = (CuResult)strtol(error, &end, 10);
        if (end == error || !error_name(out->error) || out->error == CU_SUCCESS) return false;
    }
    *text = end;
    return true;
}

bool inject_plan(const char *text) {
    plan_count = 0;
    if (!text || !*text) return true;
    for (;; text++) {
        if (plan_count == MAX_PLANS || !read_plan(&text, &plans[plan_count])) break;
        plan_count++;
        if (!*text) return true;
        if (*text != ',') break;
    }
    plan_count = 0;
    return false;
}

static bool matches(const Plan *p, CallId id) {
    if (strcmp(p->call, "*") == 0)
        return id != CALL_cuGetErrorName && id != CALL_cuGetErrorString && id != CALL_cuGetProcAddress_v2;
    return strncmp(call_names[id], p->call, strlen(p->call)) == 0 &&
           (strcmp(call_names[id], p->call) == 0 || strcmp(call_names[id] + strlen(p->call), "_v2") == 0);
}

CuResult inject_next(CallId id) {
    CuResult error = CU_SUCCESS;
    for (int i = 0; i < plan_count; i++) {
        Plan *p = &plans[i];
        if (!matches(p, id) || ++p->seen != p->number) continue;
        bool allocates = id == CALL_cuMemAlloc_v2 || id == CALL_cuMemHostAlloc;
        error = p->error ? p->error : allocates ? CU_OUT_OF_MEMORY : CU_UNKNOWN;
        text_add(&report.injected, "%s: call %llu of %s fails with %s", call_names[id], p->number, p->call,
                 error_name(error));
    }
    return error;
}
