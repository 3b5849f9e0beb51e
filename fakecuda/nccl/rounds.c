/* rounds.c: one collective, as work of a stream. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rounding.h"
#include "fakecuda/nccl/stand_in.h"

int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

size_t type_size(int32_t type) {
    switch (type) {
    case NCCL_UINT8: return 1;
    case NCCL_FLOAT16:
    case NCCL_BFLOAT16: return 2;
    case NCCL_INT32:
    case NCCL_FLOAT32: return 4;
    case NCCL_INT64:
    case NCCL_FLOAT64: return 8;
    default: return 0;
    }
}

uint64_t asked_bytes(const Asked *a) {
    return a->count * type_size(a->type) *
           (a->kind == ALL_GATHER || a->kind == REDUCE_SCATTER ? (uint64_t)a->comm->ranks : 1);
}

/* ---- adding ------------------------------------------------------------------------------------------------------ */

/* Short types are added in f32 and rounded at each rank, as by a ring. */
static void add(int32_t type, void *sum, const void *term, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (type == NCCL_FLOAT32) ((float *)sum)[i] += ((const float *)term)[i];
        else if (type == NCCL_FLOAT64) ((double *)sum)[i] += ((const double *)term)[i];
        else if (type == NCCL_FLOAT16)
            ((uint16_t *)sum)[i] =
                amp_f32_to_f16(amp_f16_to_f32(((uint16_t *)sum)[i]) + amp_f16_to_f32(((const uint16_t *)term)[i]));
        else
            ((uint16_t *)sum)[i] =
                amp_f32_to_bf16(amp_bf16_to_f32(((uint16_t *)sum)[i]) + amp_bf16_to_f32(((const uint16_t *)term)[i]));
    }
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static Place *mine(const Asked *a) { return &a->comm->segment->places[a->comm->rank]; }

/* Elements of this round. */
static uint64_t width(const Asked *a) {
    uint64_t most = PIECE / type_size(a->type) / (a->kind == REDUCE_SCATTER ? (uint64_t)a->comm->ranks : 1);
    return a->count - a->at < most ? a->count - a->at : most;
}

static bool all(const Asked *a, bool left, uint64_t rounds) {
    for (int32_t r = 0; r < a->comm->ranks; r++) {
        Place *p = &a->comm->segment->places[r];
        if (atomic_load(left ? &p->left : &p->arrived) < rounds) return false;
    }
    return true;
}

/* From the device; false: the work is gone. */
static bool write_piece(const Asked *a) {
    const size_t size = type_size(a->type), n = width(a);
    unsigned char *to = a->comm->segment->pieces[a->comm->rank];
    if (a->kind == BROADCAST && a->root != a->comm->rank) return true;
    if (a->kind != REDUCE_SCATTER) return fakecuda_read(a->context, a->send + a->at * size, to, n * size);
    for (int32_t r = 0; r < a->comm->ranks; r++) {
        const uint64_t from = a->send + ((uint64_t)r * a->count + a->at) * size;
        if (!fakecuda_read(a->context, from, to + (size_t)r * n * size, n * size)) return false;
    }
    return true;
}

static bool write_sum(const Asked *a, size_t offset, uint64_t to) {
    const size_t n = width(a), bytes = n * type_size(a->type);
    unsigned char *sum = malloc(bytes);
    if (!sum) abort();
    memcpy(sum, a->comm->segment->pieces[0] + offset, bytes);
    for (int32_t r = 1; r < a->comm->ranks; r++) add(a->type, sum, a->comm->segment->pieces[r] + offset, n);
    bool there = fakecuda_write(a->context, to, sum, bytes);
    free(sum);
    return there;
}

/* To the device; false: the work is gone. */
static bool read_pieces(const Asked *a) {
    const size_t size = type_size(a->type), n = width(a);
    const Segment *s = a->comm->segment;
    if (a->kind == ALL_REDUCE) return write_sum(a, 0, a->receive + a->at * size);
    if (a->kind == REDUCE_SCATTER) return write_sum(a, (size_t)a->comm->rank * n * size, a->receive + a->at * size);
    if (a->kind == BROADCAST)
        return fakecuda_write(a->context, a->receive + a->at * size, s->pieces[a->root], n * size);
    for (int32_t r = 0; r < a->comm->ranks; r++) {
        const uint64_t to = a->receive + ((uint64_t)r * a->count + a->at) * size;
        if (!fakecuda_write(a->context, to, s->pieces[r], n * size)) return false;
    }
    return true;
}

static void say(const Asked *a) {
    Place *p = mine(a);
    p->round = (Round){a->number, (int32_t)a->kind, a->type, a->root, a->count, a->at};
    p->round.count += fault_at("count", a->comm->rank, a->number);
    p->round.number += fault_at("order", a->comm->rank, a->number);
    atomic_store(&p->arrived, a->comm->rounds + 1);
}

/* NCCL would hang, or mix up memory. */
static bool agree(const Asked *a) {
    const Place *places = a->comm->segment->places;
    for (int32_t r = 1; r < a->comm->ranks; r++) {
        if (!memcmp(&places[r].round, &places[0].round, sizeof(Round))) continue;
        last_error("rank %d is in collective %llu, of %llu elements, rank 0 in %llu, of %llu", (int)r,
                   (unsigned long long)places[r].round.number, (unsigned long long)places[r].round.count,
                   (unsigned long long)places[0].round.number, (unsigned long long)places[0].round.count);
        atomic_store(&a->comm->error, NCCL_INVALID_USAGE);
        return false;
    }
    return true;
}

static void begin(Asked *a) {
    struct ncclComm *c = a->comm;
    a->begun = true;
    a->number = ++c->collectives;
    a->starts = now() + fault_delay(c->rank);
    if (fault_at("stop", c->rank, a->number)) raise(SIGSTOP);
    if (fault_at("kill", c->rank, a->number)) raise(SIGKILL);
    if (!fault_at("async", c->rank, a->number)) return;
    last_error("planted: collective %llu", (unsigned long long)a->number);
    atomic_store(&c->error, NCCL_REMOTE_ERROR);
}

/* What an aborted collective leaves in memory is not defined. */
static bool spoil(const Asked *a) {
    static const unsigned char some[4096] = {0x3f, 0x12, 0x3a};
    const uint64_t bytes = asked_bytes(a);
    for (uint64_t at = 0; at < bytes && a->kind != REDUCE_SCATTER; at += sizeof some) {
        const uint64_t n = bytes - at < sizeof some ? bytes - at : sizeof some;
        if (!fakecuda_write(a->context, a->receive + at, some, n)) return false;
    }
    return true;
}

/* True: it is done. */
static bool run(Asked *a) {
    struct ncclComm *c = a->comm;
    if (!a->begun) begin(a);
    if (atomic_load(&c->aborted)) return spoil(a);
    if (atomic_load(&c->error) || fault_at("dead", c->rank, a->number) || now() < a->starts) return false;
    while (a->at < a->count) {
        if (!a->wrote) {
            if (!all(a, true, c->rounds) || !write_piece(a)) return false;
            say(a);
            a->wrote = true;
        }
        if (!all(a, false, c->rounds + 1) || !agree(a) || !read_pieces(a)) return false;
        a->at += width(a);
        a->wrote = false;
        atomic_store(&mine(a)->left, ++c->rounds);
    }
    return true;
}

/* In a graph it is run again. */
bool asked_run(void *asked, void *context) {
    Asked *a = asked;
    a->context = context;
    if (!run(a)) return false;
    a->begun = a->wrote = false;
    a->at = 0;
    return true;
}

void asked_stays(Asked *a) {
    a->captured = true;
    atomic_fetch_add(&a->comm->captured, 1);
}

void asked_drop(void *asked) {
    Asked *a = asked;
    if (a->captured) atomic_fetch_sub(&a->comm->captured, 1);
    comm_drop(a->comm);
    free(a);
}
