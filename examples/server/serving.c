/* serving.c: see serving.h.
 *
 * All sockets are in one epoll set.  A worker takes one that is ready, reads what is there, answers when a request is
 * complete, and puts it back; EPOLLONESHOT keeps the other workers away meanwhile.
 */
#define _GNU_SOURCE /* accept4, signalfd */
#include "serving.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 128, MAX_THREADS = 256, PATIENCE_MS = 5000 };

typedef struct Connection {
    struct Connection *next, **link; /* of all that are open */
    int fd;
    size_t have; /* bytes of the next request */
    char request[];
} Connection;

typedef struct Server {
    const Backend *backend;
    int epoll, listener, stop;
    size_t request_bytes, answer_bytes;
    pthread_mutex_t lock; /* of the list */
    Connection *connections;
} Server;

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    return 1;
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

static void hang_up(Server *s, Connection *c) {
    pthread_mutex_lock(&s->lock);
    *c->link = c->next;
    if (c->next) c->next->link = c->link;
    pthread_mutex_unlock(&s->lock);
    close(c->fd);
    free(c);
}

/* Waits a while for a client that does not read. */
static int send_all(int fd, const void *data, size_t size) {
    const char *at = data;
    while (size) {
        ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            if (poll(&wait, 1, PATIENCE_MS) <= 0) return 1;
            continue;
        }
        if (sent < 0) return 1;
        at += sent;
        size -= (size_t)sent;
    }
    return 0;
}

static void welcome(Server *s) {
    int fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;
    if (fd < 0) return; /* another worker has it, or the client is gone */
    const uint32_t sizes[] = {s->backend->inputs, s->backend->outputs};
    Connection *c = calloc(1, sizeof *c + s->request_bytes);
    if (!c || send_all(fd, sizes, sizeof sizes)) {
        free(c);
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* fails on other sockets, which do not need it */
    c->fd = fd;
    pthread_mutex_lock(&s->lock);
    c->next = s->connections;
    c->link = &s->connections;
    if (c->next) c->next->link = &c->next;
    s->connections = c;
    pthread_mutex_unlock(&s->lock);
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = c};
    if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event)) hang_up(s, c);
}

/* ---- workers ----------------------------------------------------------------------------------------------------- */

typedef struct Worker {
    Server *server;
    pthread_t thread;
    void *state; /* of the backend */
    float *x;
    char *answer; /* a version, then numbers */
} Worker;

static int answer(Worker *w, const Connection *c) {
    Server *s = w->server;
    float *y = (float *)(void *)(w->answer + sizeof(uint64_t));
    memcpy(w->x, c->request, s->request_bytes);
    uint64_t version = s->backend->answer(w->state, w->x, y);
    memcpy(w->answer, &version, sizeof version);
    return !version || send_all(c->fd, w->answer, s->answer_bytes);
}

/* Everything that has arrived.  1: the connection has ended. */
static int attend(Worker *w, Connection *c) {
    for (;;) {
        ssize_t got = recv(c->fd, c->request + c->have, w->server->request_bytes - c->have, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return 0;
        if (got <= 0) return 1;
        c->have += (size_t)got;
        if (c->have < w->server->request_bytes) continue;
        c->have = 0;
        if (answer(w, c)) return 1;
    }
}

static void *work(void *arg) {
    Worker *w = arg;
    Server *s = w->server;
    struct epoll_event event;
    for (;;) {
        int ready = epoll_wait(s->epoll, &event, 1, -1);
        if (ready < 0 && errno == EINTR) continue;
        if (ready < 0 || event.data.ptr == &s->stop) return NULL; /* it stays readable, for all workers */
        if (event.data.ptr == &s->listener) {
            welcome(s);
            continue;
        }
        Connection *c = event.data.ptr;
        struct epoll_event again = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = c};
        if (attend(w, c) || epoll_ctl(s->epoll, EPOLL_CTL_MOD, c->fd, &again)) hang_up(s, c);
    }
}

static int start(Worker *w, Server *s) {
    *w = (Worker){.server = s, .state = s->backend->open(s->backend->ctx)};
    w->x = malloc(s->request_bytes);
    w->answer = malloc(s->answer_bytes);
    if (!w->state || !w->x || !w->answer) return 1;
    return pthread_create(&w->thread, NULL, work, w) != 0;
}

static void finish(Worker *w) {
    if (w->state) w->server->backend->close(w->state);
    free(w->x);
    free(w->answer);
}

/* ---- the server -------------------------------------------------------------------------------------------------- */

static int listen_at(const char *address) {
    char *end;
    long port = strtol(address, &end, 10);
    int fd, on = 1;
    if (*address && !*end) {
        struct sockaddr_in in = {
            .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        return bind(fd, (struct sockaddr *)&in, sizeof in) || listen(fd, BACKLOG) ? -1 : fd;
    }
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    if (strlen(address) >= sizeof un.sun_path) return errno = ENAMETOOLONG, -1;
    strcpy(un.sun_path, address);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return bind(fd, (struct sockaddr *)&un, sizeof un) || listen(fd, BACKLOG) ? -1 : fd;
}

static int watch(Server *s, int fd, void *what) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};
    return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event);
}

/* Until it is told to end. */
static void obey_signals(const Server *s, const sigset_t *signals) {
    for (int signal; !sigwait(signals, &signal) && signal == SIGHUP;)
        if (s->backend->reload) s->backend->reload(s->backend->ctx);
}

static int run(Server *s, int threads, const sigset_t *signals) {
    Worker *workers = calloc((size_t)threads, sizeof *workers);
    int started = 0, failed = !workers;
    while (!failed && started < threads) {
        failed = start(&workers[started], s);
        if (failed) finish(&workers[started]);
        else started++;
    }
    if (failed) fprintf(stderr, "worker %d of %d could not be started\n", started + 1, threads);
    else obey_signals(s, signals);
    eventfd_write(s->stop, 1);
    for (int i = 0; i < started; i++) pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < started; i++) finish(&workers[i]);
    while (s->connections) hang_up(s, s->connections);
    free(workers);
    return failed;
}

int serve(const char *address, int threads, const Backend *backend) {
    Server s = {.backend = backend,
                .request_bytes = backend->inputs * sizeof(float),
                .answer_bytes = sizeof(uint64_t) + backend->outputs * sizeof(float),
                .lock = PTHREAD_MUTEX_INITIALIZER};
    sigset_t signals;
    if (threads < 1 || threads > MAX_THREADS) return errno = EINVAL, fail("threads");
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM), sigaddset(&signals, SIGINT), sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* workers inherit it: signals come here alone */
    s.listener = listen_at(address);
    if (s.listener < 0) return fail(address);
    s.epoll = epoll_create1(EPOLL_CLOEXEC);
    s.stop = eventfd(0, EFD_CLOEXEC);
    int failed = s.epoll < 0 || s.stop < 0 || watch(&s, s.listener, &s.listener) || watch(&s, s.stop, &s.stop);
    if (failed) fail("epoll");
    else failed = run(&s, threads, &signals);
    close(s.listener), close(s.epoll), close(s.stop);
    if (strchr(address, '/')) unlink(address);
    return failed;
}
