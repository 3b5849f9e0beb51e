/* exec_memory.c: the device's address range, its allocations, and copies from and to the host. */
#define _GNU_SOURCE
#include "fakecuda/exec/exec_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, LEAD = 512 /* so that nothing is aligned better than cuMemAlloc promises */, WHY = 256 };

static void *map(void *hint, uint64_t bytes, int rights) {
    void *p = mmap(hint, bytes, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

ExecMemory *exec_memory_new(uint64_t capacity) {
    ExecMemory *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    uint64_t least = 1ull << 36, most = 1ull << 41;
    m->capacity = capacity;
    m->span = capacity > most / 16 ? most : capacity * 16 < least ? least : (capacity * 16 + PAGE - 1) / PAGE * PAGE;
    void *range = map((void *)0x300000000000ull, m->span, PROT_NONE);
    m->base = (uint64_t)(uintptr_t)range;
    m->bytes = map(NULL, m->span, PROT_READ | PROT_WRITE);
    m->written = map(NULL, m->span, PROT_READ | PROT_WRITE);
    m->words = map(NULL, 4 * m->span, PROT_READ | PROT_WRITE);
    m->next = m->base + WINDOW_GLOBAL;
    if (range && m->bytes && m->written && m->words) return m;
    exec_memory_free(m);
    return NULL;
}

void exec_memory_free(ExecMemory *m) {
    if (!m) return;
    if (m->base) munmap((void *)(uintptr_t)m->base, m->span);
    if (m->bytes) munmap(m->bytes, m->span);
    if (m->written) munmap(m->written, m->span);
    if (m->words) munmap(m->words, 4 * m->span);
    if (m->stamps) munmap(m->stamps, 4 * m->span);
    free(m->ranges);
    free(m);
}

/* ---- who touched what ---- */

uint32_t memory_serials(ExecMemory *m, uint64_t blocks) {
    if (blocks > MOST_SERIALS - m->serials) {
        madvise(m->words, 4 * m->span, MADV_DONTNEED);
        m->serials = 0;
    }
    uint32_t first = m->serials + 1;
    m->serials += (uint32_t)blocks;
    return first;
}

bool memory_need_stamps(ExecMemory *m) {
    if (!m->stamps) m->stamps = map(NULL, 4 * m->span, PROT_READ | PROT_WRITE);
    return m->stamps != NULL;
}

/* ---- ranges ---- */

static uint64_t pages(uint64_t bytes) { return (LEAD + bytes + PAGE - 1) / PAGE * PAGE + PAGE; }

/* Index of the first range that starts above |address|. */
static int above(const ExecMemory *m, uint64_t address) {
    int low = 0, high = m->count;
    while (low < high) {
        int mid = (low + high) / 2;
        if (m->ranges[mid].start > address) high = mid;
        else low = mid + 1;
    }
    return low;
}

const MemoryRange *memory_before(const ExecMemory *m, uint64_t address) {
    int i = above(m, address);
    return i ? &m->ranges[i - 1] : NULL;
}

static void drop_range(ExecMemory *m, int i) {
    memmove(m->ranges + i, m->ranges + i + 1, (size_t)(m->count - i - 1) * sizeof *m->ranges);
    m->count--;
}

/* The end of the address range is reached: the first gap between live ranges, forgetting the freed ones in it. */
static uint64_t find_gap(ExecMemory *m, uint64_t need) {
    uint64_t at = m->base + WINDOW_GLOBAL;
    for (int i = 0; i < m->count; i++) {
        if (m->ranges[i].freed) continue;
        uint64_t page = m->ranges[i].start - LEAD;
        if (page >= at && page - at >= need) break;
        at = page + pages(m->ranges[i].bytes);
    }
    if (at + need > m->base + m->span) return 0;
    for (int i = m->count; i-- > 0;)
        if (m->ranges[i].freed && m->ranges[i].start < at + need && m->ranges[i].start + m->ranges[i].bytes > at)
            drop_range(m, i);
    return at;
}

uint64_t exec_alloc(ExecMemory *m, uint64_t bytes) {
    if (!bytes || bytes > m->capacity - m->used) return 0;
    uint64_t need = pages(bytes), at = m->next;
    if (at + need <= m->base + m->span) m->next += need;
    else if (!(at = find_gap(m, need))) return 0;
    if (m->count == m->room) {
        int room = m->room ? 2 * m->room : 64;
        MemoryRange *grown = realloc(m->ranges, (size_t)room * sizeof *grown);
        if (!grown) return 0;
        m->ranges = grown;
        m->room = room;
    }
    MemoryRange r = {at + LEAD, bytes, false};
    int i = above(m, r.start);
    memmove(m->ranges + i + 1, m->ranges + i, (size_t)(m->count - i) * sizeof r);
    m->ranges[i] = r;
    m->count++;
    m->used += bytes;
    return r.start;
}

bool exec_release(ExecMemory *m, uint64_t address) {
    int i = above(m, address) - 1;
    if (i < 0 || m->ranges[i].start != address || m->ranges[i].freed) return false;
    MemoryRange *r = &m->ranges[i];
    r->freed = true;
    m->used -= r->bytes;
    uint64_t from = address - LEAD - m->base, length = pages(r->bytes) - PAGE;
    madvise(m->bytes + from, length, MADV_DONTNEED);
    madvise(m->written + from, length, MADV_DONTNEED);
    madvise((uint8_t *)m->words + 4 * from, 4 * length, MADV_DONTNEED);
    if (m->stamps) madvise((uint8_t *)m->stamps + 4 * from, 4 * length, MADV_DONTNEED);
    return true;
}

bool exec_range(const ExecMemory *m, uint64_t address, uint64_t *start, uint64_t *bytes, bool *freed) {
    const MemoryRange *r = memory_before(m, address);
    if (!r || address - r->start >= r->bytes) return false;
    if (start) *start = r->start;
    if (bytes) *bytes = r->bytes;
    if (freed) *freed = r->freed;
    return true;
}

uint64_t exec_bytes_in_use(const ExecMemory *m) { return m->used; }

/* ---- copies ---- */

void memory_explain(const ExecMemory *m, uint64_t address, uint64_t size, char *text, size_t room) {
    const MemoryRange *r = memory_before(m, address);
    unsigned long long at = address;
    if (address < 4096) {
        snprintf(text, room, "0x%llx is a null pointer", at);
    } else if (address < m->base || address - m->base >= m->span) {
        snprintf(text, room, "0x%llx is no address of the device (a host pointer?)", at);
    } else if (r && address - r->start < r->bytes && r->freed) {
        snprintf(text, room, "0x%llx is %llu bytes into an allocation of %llu bytes that has been freed", at,
                 at - r->start, (unsigned long long)r->bytes);
    } else if (r && address - r->start < r->bytes) {
        snprintf(text, room, "0x%llx, %llu of them past the end of an allocation of %llu bytes", at,
                 (unsigned long long)(address + size - r->start - r->bytes), (unsigned long long)r->bytes);
    } else if (r && address - r->start < pages(r->bytes)) {
        snprintf(text, room, "0x%llx, %llu past the end of an allocation of %llu bytes%s", at,
                 (unsigned long long)(address - r->start - r->bytes), (unsigned long long)r->bytes,
                 r->freed ? " that has been freed" : "");
    } else {
        const MemoryRange *next = m->ranges + above(m, address);
        if (next < m->ranges + m->count && next->start - address <= 2 * PAGE)
            snprintf(text, room, "0x%llx, %llu before an allocation of %llu bytes", at,
                     (unsigned long long)next->start - at, (unsigned long long)next->bytes);
        else snprintf(text, room, "0x%llx is in no allocation", at);
    }
}

static bool inside(const ExecMemory *m, uint64_t address, uint64_t bytes, const char *verb, char *why) {
    const MemoryRange *r = memory_before(m, address);
    if (r && !r->freed && address - r->start <= r->bytes && bytes <= r->bytes - (address - r->start)) return true;
    int n = snprintf(why, WHY, "%s %llu bytes at ", verb, (unsigned long long)bytes);
    memory_explain(m, address, bytes, why + n, (size_t)(WHY - n));
    return false;
}

bool exec_write(ExecMemory *m, uint64_t address, const void *from, uint64_t bytes, char *why) {
    if (!inside(m, address, bytes, "writes", why)) return false;
    memcpy(m->bytes + (address - m->base), from, bytes);
    memset(m->written + (address - m->base), 1, bytes);
    return true;
}

bool exec_read(ExecMemory *m, uint64_t address, void *to, uint64_t bytes, char *why) {
    if (!inside(m, address, bytes, "reads", why)) return false;
    const uint8_t *written = m->written + (address - m->base), *hole = memchr(written, 0, bytes);
    if (hole) {
        snprintf(why, WHY, "reads %llu bytes at 0x%llx: byte %llu of them was never written", (unsigned long long)bytes,
                 (unsigned long long)address, (unsigned long long)(hole - written));
        return false;
    }
    memcpy(to, m->bytes + (address - m->base), bytes);
    return true;
}

bool exec_fill(ExecMemory *m, uint64_t address, uint32_t value, int width, uint64_t count, char *why) {
    uint64_t bytes = count * (uint64_t)width;
    if (width != 1 && width != 2 && width != 4) {
        snprintf(why, WHY, "fills with values of %d bytes; 1, 2 or 4 are possible", width);
        return false;
    }
    if (address % (uint64_t)width) {
        snprintf(why, WHY, "fills at 0x%llx, which is not aligned to %d bytes", (unsigned long long)address, width);
        return false;
    }
    if (count > m->span) bytes = m->span; /* does not fit anywhere, and the product may have wrapped */
    if (!inside(m, address, bytes, "fills", why)) return false;
    uint8_t *to = m->bytes + (address - m->base);
    for (uint64_t i = 0; i < bytes; i += (uint64_t)width) memcpy(to + i, &value, (size_t)width);
    memset(m->written + (address - m->base), 1, bytes);
    return true;
}

bool exec_copy(ExecMemory *m, uint64_t to, uint64_t from, uint64_t bytes, char *why) {
    if (!inside(m, from, bytes, "reads", why) || !inside(m, to, bytes, "writes", why)) return false;
    memmove(m->bytes + (to - m->base), m->bytes + (from - m->base), bytes);
    memmove(m->written + (to - m->base), m->written + (from - m->base), bytes);
    return true;
}
