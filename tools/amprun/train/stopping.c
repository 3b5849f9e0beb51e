/* stopping.c: see training.h. */
#include "tools/amprun/train/training.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

static const struct {
    int number;
    const char *name;
} watched[] = {{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}};

static volatile sig_atomic_t asked; /* the first signal */
static struct timespec asked_at;    /* read and written by the handler alone, which blocks itself */

static bool just_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double passed = (double)(now.tv_sec - asked_at.tv_sec) + 1e-9 * (double)(now.tv_nsec - asked_at.tv_nsec);
    return passed < 0.1;
}

static void on_signal(int number) {
    if (!asked) {
        asked = number;
        clock_gettime(CLOCK_MONOTONIC, &asked_at);
    } else if (number != SIGHUP && !just_now()) {
        signal(number, SIG_DFL);
        raise(number); /* delivered when the handler returns */
    }
}

void stopping_watch(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) sigaddset(&action.sa_mask, watched[i].number);
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++)
        if (!sigaction(watched[i].number, NULL, &before) && before.sa_handler != SIG_IGN)
            sigaction(watched[i].number, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

int stopping_signal(void) { return asked; }

const char *stopping_name(int number) {
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++)
        if (watched[i].number == number) return watched[i].name;
    return "a signal";
}
