/* settings.c: what the environment asks for; from the library's loading to the process's end, and what tests may ask.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fakecuda/driver/driver.h"
#include "fakecuda/driver/fakecuda.h"

/* ---- settings ---------------------------------------------------------------------------------------------------- */

/* An unsigned number, with K, M or G (of 1024) after it; |fallback| where the variable is not set or empty. */
static uint64_t number(Settings *s, const char *name, uint64_t fallback, uint64_t most) {
    const char *text = getenv(name);
    if (!text || !*text) return fallback;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    static const char units[] = "KMG";
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (unit) {
        int shift = 10 * (int)(unit - units + 1);
        if (value > UINT64_MAX >> shift) errno = ERANGE;
        value <<= shift;
        end++;
    }
    if (errno || *end || text[0] == '-' || end == text || value > most) {
        snprintf(s->problem, sizeof s->problem, "%s=%s: not a number from 0 to %llu", name, text,
                 (unsigned long long)most);
        return fallback;
    }
    return value;
}

/* NAME=US[,..] */
static void read_times(Settings *s) {
    const char *text = getenv("FAKECUDA_TIMES");
    if (!text) return;
    snprintf(s->times, sizeof s->times, "%s", text);
    bool good = strlen(text) < sizeof s->times;
    for (const char *at = text; good && *at;) {
        int used = 0;
        good = sscanf(at, "%*[A-Za-z0-9_]=%*u%n", &used) == 0 && used && (!at[used] || at[used] == ',');
        at += used + (good && at[used] == ',');
    }
    if (!good) snprintf(s->problem, sizeof s->problem, "FAKECUDA_TIMES=%.100s: not NAME=MICROSECONDS[,..]", text);
}

uint64_t settings_time(const char *name, uint64_t otherwise) {
    const size_t size = strlen(name);
    for (const char *at = driver.settings.times; *at; at += strcspn(at, ","), at += *at == ',')
        if (!strncmp(at, name, size) && at[size] == '=') return strtoull(at + size + 1, NULL, 10) * 1000;
    return otherwise;
}

void settings_read(Settings *s) {
    *s = (Settings){0};
    s->arch = (int)number(s, "FAKECUDA_ARCH", 90, 999);
    s->devices = (int)number(s, "FAKECUDA_DEVICES", 1, MAX_DEVICES);
    s->driver_version = (int)number(s, "FAKECUDA_DRIVER_VERSION", 13000, 99990);
    s->threads = (int)number(s, "FAKECUDA_THREADS", 1, 64);
    s->resident = (int)number(s, "FAKECUDA_RESIDENT", EXEC_RESIDENT, EXEC_MOST_RESIDENT);
    s->seed = number(s, "FAKECUDA_SEED", 1, UINT64_MAX);
    s->memory = number(s, "FAKECUDA_MEMORY", 80ull << 30, 1ull << 42);
    s->exact = number(s, "FAKECUDA_EXACT", 0, 1) != 0;
    s->verbose = number(s, "FAKECUDA_VERBOSE", 0, 9) != 0;
    read_times(s);
    const char *file = getenv("FAKECUDA_REPORT");
    if (file && strlen(file) < sizeof s->report) strcpy(s->report, file);
    else if (file) snprintf(s->problem, sizeof s->problem, "FAKECUDA_REPORT: the name is too long");
    if (!device_arch_known(s->arch))
        snprintf(s->problem, sizeof s->problem, "FAKECUDA_ARCH=%d: not 75, 80, 86, 89, 90 or 120", s->arch);
    if (!settings_ptx_version(s->driver_version))
        snprintf(s->problem, sizeof s->problem,
                 "FAKECUDA_DRIVER_VERSION=%d: not 11000 to 13000 (1000 * major + 10 * minor)", s->driver_version);
}

/* The table "PTX Release History" of the PTX ISA document. */
int settings_ptx_version(int driver_version) {
    static const struct {
        int driver, ptx;
    } releases[] = {{13000, 90}, {12090, 88}, {12080, 87}, {12070, 86}, {12050, 85}, {12040, 84}, {12030, 83},
                    {12020, 82}, {12010, 81}, {12000, 80}, {11080, 78}, {11070, 77}, {11060, 76}, {11050, 75},
                    {11040, 74}, {11030, 73}, {11020, 72}, {11010, 71}, {11000, 70}};
    for (size_t i = 0; i < sizeof releases / sizeof *releases; i++)
        if (driver_version >= releases[i].driver) return releases[i].ptx;
    return 0;
}

/* ---- the process ------------------------------------------------------------------------------------------------- */

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
