/* load.c: loads two servers in turn with the protocol of examples/server/serving.h, and compares them.
 *
 *     load SECONDS ROUNDS CONNECTIONS PATH [PATH]
 *
 * In each round every server is asked for SECONDS by CONNECTIONS clients; each sends the next request when it
 * has the answer.  Prints requests/s and latencies of each server (medians over the rounds), and the largest
 * difference between their answers to the same requests.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "bench/server/median.h"

enum { SERVERS = 2, SAMPLES = 16, MAX_CLIENTS = 64, MAX_ROUNDS = 101, MAX_ASKED = 1 << 20 };

typedef struct Client {
    const char *path;
    pthread_t thread;
    double seconds;
    long asked;
    float *latency; /* microseconds, of each request */
    float *answers; /* to each of the samples */
    uint32_t outputs;
    int failed;
} Client;

typedef struct Figures { /* of each round */
    double rate[MAX_ROUNDS], p50[MAX_ROUNDS], p99[MAX_ROUNDS];
} Figures;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int move(int fd, void *data, size_t size, int out) {
    for (char *at = data; size;) {
        ssize_t done = out ? send(fd, at, size, MSG_NOSIGNAL) : recv(fd, at, size, 0);
        if (done <= 0) return 1;
        at += done;
        size -= (size_t)done;
    }
    return 0;
}

static int connect_to(const char *path) {
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    strncpy(un.sun_path, path, sizeof un.sun_path - 1);
    return connect(fd, (struct sockaddr *)&un, sizeof un) ? close(fd), -1 : fd;
}

static float *make_samples(uint32_t inputs) {
    float *x = malloc(sizeof *x * SAMPLES * inputs);
    for (uint32_t i = 0; x && i < SAMPLES * inputs; i++) x[i] = (float)((i * 2654435761u >> 9) % 1000) / 1000.0f;
    return x;
}

static int ask(Client *c, int fd, float *x, uint32_t inputs, char *answer, size_t bytes) {
    double end = now() + c->seconds * 1e6;
    for (double start = now(); start < end && c->asked < MAX_ASKED; c->asked++) {
        uint32_t sample = (uint32_t)c->asked % SAMPLES;
        if (move(fd, x + (size_t)sample * inputs, inputs * sizeof *x, 1) || move(fd, answer, bytes, 0)) return 1;
        double done = now();
        c->latency[c->asked] = (float)(done - start);
        start = done;
        memcpy(c->answers + sample * c->outputs, answer + sizeof(uint64_t), bytes - sizeof(uint64_t));
    }
    return 0;
}

static void *run_client(void *arg) {
    Client *c = arg;
    uint32_t sizes[2];
    int fd = connect_to(c->path);
    c->failed = fd < 0 || move(fd, sizes, sizeof sizes, 0);
    if (c->failed) return NULL;
    size_t bytes = sizeof(uint64_t) + sizes[1] * sizeof(float);
    float *x = make_samples(sizes[0]);
    char *answer = malloc(bytes);
    c->outputs = sizes[1];
    c->latency = malloc(sizeof *c->latency * MAX_ASKED);
    c->answers = calloc((size_t)SAMPLES * sizes[1], sizeof *c->answers);
    c->failed = !x || !answer || !c->latency || !c->answers || ask(c, fd, x, sizes[0], answer, bytes);
    free(x);
    free(answer);
    close(fd);
    return NULL;
}

static int by_latency(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* All clients' latencies in one list, in order. */
static int summarise(Client *clients, int count, double seconds, Figures *f, int round) {
    long total = 0;
    for (int i = 0; i < count; i++) total += clients[i].asked;
    float *all = malloc(sizeof *all * (size_t)(total + 1));
    if (!all || !total) return 1;
    long at = 0;
    for (int i = 0; i < count; at += clients[i++].asked)
        memcpy(all + at, clients[i].latency, sizeof *all * (size_t)clients[i].asked);
    qsort(all, (size_t)total, sizeof *all, by_latency);
    f->rate[round] = (double)total / seconds;
    f->p50[round] = all[total / 2];
    f->p99[round] = all[total * 99 / 100];
    free(all);
    return 0;
}

/* One server for one round.  |answers|: of the first client, to be freed. */
static int load(const char *path, double seconds, int count, Figures *f, int round, Client *first) {
    Client clients[MAX_CLIENTS];
    int failed = 0;
    double start = now();
    for (int i = 0; i < count; i++) {
        clients[i] = (Client){.path = path, .seconds = seconds};
        if (pthread_create(&clients[i].thread, NULL, run_client, &clients[i])) return 1;
    }
    for (int i = 0; i < count; i++) {
        pthread_join(clients[i].thread, NULL);
        failed |= clients[i].failed;
    }
    failed = failed || summarise(clients, count, (now() - start) / 1e6, f, round);
    *first = clients[0];
    for (int i = 0; i < count; i++) {
        free(clients[i].latency);
        if (i) free(clients[i].answers);
    }
    return failed;
}

static double difference(const Client *a, const Client *b) {
    double largest = 0;
    for (uint32_t i = 0; a->answers && b->answers && i < SAMPLES * a->outputs; i++)
        largest = fmax(largest, fabs((double)a->answers[i] - (double)b->answers[i]));
    return largest;
}

int main(int argc, char **argv) {
    static Figures figures[SERVERS];
    Client first[SERVERS] = {{0}};
    int servers = argc - 4, rounds = argc > 4 ? atoi(argv[2]) : 0, clients = argc > 4 ? atoi(argv[3]) : 0;
    if (servers < 1 || servers > SERVERS || rounds < 1 || rounds > MAX_ROUNDS || clients < 1 || clients > MAX_CLIENTS)
        return fprintf(stderr, "usage: load SECONDS ROUNDS CONNECTIONS PATH [PATH]\n"), 2;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < servers; i++) {
            int which = round % 2 ? servers - 1 - i : i; /* each goes first in half of the rounds */
            free(first[which].answers);
            if (load(argv[4 + which], atof(argv[1]), clients, &figures[which], round, &first[which]))
                return fprintf(stderr, "load: %s does not answer\n", argv[4 + which]), 1;
        }
    for (int i = 0; i < servers; i++)
        printf("%-24s %8.0f requests/s  p50 %7.1f us  p99 %8.1f us\n", argv[4 + i], median(figures[i].rate, rounds),
               median(figures[i].p50, rounds), median(figures[i].p99, rounds));
    if (servers == SERVERS) printf("largest difference of answers: %.2g\n", difference(&first[0], &first[1]));
    for (int i = 0; i < servers; i++) free(first[i].answers);
    return 0;
}
