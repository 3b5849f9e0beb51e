/* process.c: from the library's loading to the process's end, and what tests may ask. */
#include "fakecuda/driver/fakecuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fakecuda/driver/driver.h"

static pid_t process; /* children of fork write no report */

static void begin(void) {
    settings_read(&driver.settings);
    if (!inject_plan(getenv("FAKECUDA_FAIL")))
        snprintf(driver.settings.problem, sizeof driver.settings.problem,
                 "FAKECUDA_FAIL=%.100s: not CALL:K[:ERROR][,..] of known calls and errors", getenv("FAKECUDA_FAIL"));
    driver.random = driver.settings.seed;
}

__attribute__((constructor)) static void loaded(void) {
    process = getpid();
    begin();
}

/* "%p" in the file's name becomes the process's number: a command may start several processes. */
static void write_report(const char *pattern) {
    char name[sizeof driver.settings.report + 32];
    const char *mark = strstr(pattern, "%p");
    if (mark) snprintf(name, sizeof name, "%.*s%ld%s", (int)(mark - pattern), pattern, (long)process, mark + 2);
    else snprintf(name, sizeof name, "%s", pattern);
    char *text = report_json();
    FILE *file = text ? fopen(name, "w") : NULL;
    if (!file || fputs(text, file) < 0) fprintf(stderr, "fakecuda: the report cannot be written to %s\n", name);
    if (file) fclose(file);
    free(text);
}

__attribute__((destructor)) static void unloaded(void) {
    if (getpid() != process) return;
    driver_lock();
    contexts_leaks();
    if (driver.settings.report[0]) write_report(driver.settings.report);
    driver_unlock();
}

int fakecuda_report_json(char **text) {
    driver_lock();
    *text = report_json();
    driver_unlock();
    return 0;
}

void fakecuda_reset_counters(void) {
    driver_lock();
    report_reset();
    driver_unlock();
}

void fakecuda_set_seed(uint64_t seed) {
    driver_lock();
    driver.settings.seed = driver.random = seed;
    driver.launches = 0;
    driver_unlock();
}

int fakecuda_set_fail(const char *plan) {
    driver_lock();
    bool read = inject_plan(plan);
    driver_unlock();
    return read ? 0 : 1;
}

void fakecuda_restart(void) {
    driver_lock();
    contexts_abandon();
    report_reset();
    uint64_t sequence = driver.sequence;
    driver = (Driver){.sequence = sequence};
    begin();
    driver_unlock();
}
