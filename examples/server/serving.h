/* serving.h: answering fixed-size requests on a socket with several threads, whatever computes the answers.
 *
 * The protocol, in the machine's byte order.  On connecting the client gets two uint32: the numbers of a request, and
 * the numbers of an answer.  A request is that many f32.  An answer is a uint64, the version of the weights that
 * computed it, and that many f32.  Requests of one connection are answered in order.
 */
#ifndef SERVING_H
#define SERVING_H

#include <stdint.h>

typedef struct Backend {
    uint32_t inputs, outputs; /* numbers of a request and of an answer */
    void *ctx;
    /* A thread begins: what it computes with.  NULL: it cannot. */
    void *(*open)(void *ctx);
    /* |y| for |x|; the version, or 0 where it failed. */
    uint64_t (*answer)(void *worker, const float *x, float *y);
    void (*close)(void *worker);
    int (*reload)(void *ctx); /* on SIGHUP, while others answer; may be NULL */
} Backend;

/* Listens at |address| (a path, or the number of a port of 127.0.0.1) until SIGTERM or SIGINT: then the answers that
 * are being computed are sent, and everything is closed.  0: ended by a signal; 1: an error, which was printed. */
int serve(const char *address, int threads, const Backend *backend);

#endif
