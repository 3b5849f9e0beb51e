/* ampc_signals.c: see command.h. */
#include "tools/ampc/command.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t compilers_run, caught;

static void on_signal(int number) {
    if (compilers_run && !caught) {
        caught = number;
        return;
    }
    signal(number, SIG_DFL);
    raise(number); /* delivered when the handler returns */
}

void ampc_signals_watch(void) {
    static const int watched[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++)
        if (!sigaction(watched[i], NULL, &before) && before.sa_handler != SIG_IGN) sigaction(watched[i], &action, NULL);
}

int32_t ampc_signals_cancelled(void *user) {
    (void)user;
    compilers_run = 1;
    return caught != 0;
}

void ampc_signals_end(void) {
    if (!caught) return;
    signal(caught, SIG_DFL);
    raise(caught);
}
