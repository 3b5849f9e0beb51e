/* handles.c: handles as numbers that are no addresses, so that an application that looks behind one faults. */
#include <stdlib.h>

#include "fakecuda/driver/driver.h"

/* 16 bits of mark, 8 of kind, 40 of slot.  The mark makes the number no valid address on x86-64 and ARM. */
#define MARK 0xfacaull
enum { SLOT_BITS = 40, MARK_SHIFT = 48 };

typedef struct Slot {
    void *object; /* NULL: ended */
    Context *owner;
    HandleKind kind;
} Slot;
static Slot *slots;
static size_t slot_count, slot_room;

const char *const handle_kind_names[HANDLE_KINDS] = {
    [HANDLE_CONTEXT] = "context",       [HANDLE_MODULE] = "module",
    [HANDLE_FUNCTION] = "function",     [HANDLE_STREAM] = "stream",
    [HANDLE_EVENT] = "event",           [HANDLE_GRAPH] = "graph",
    [HANDLE_GRAPH_NODE] = "graph node", [HANDLE_GRAPH_EXEC] = "executable graph"};

void *handle_new(HandleKind kind, void *object, Context *owner) {
    if (slot_count == slot_room) {
        slot_room = slot_room ? 2 * slot_room : 64;
        slots = must_grow(slots, slot_room * sizeof *slots);
    }
    slots[slot_count] = (Slot){.object = object, .owner = owner, .kind = kind};
    return (void *)(uintptr_t)(MARK << MARK_SHIFT | (uint64_t)kind << SLOT_BITS | ++slot_count);
}

static Slot *slot_of(const void *handle) {
    uint64_t bits = (uint64_t)(uintptr_t)handle, slot = bits & ((1ull << SLOT_BITS) - 1);
    if (bits >> MARK_SHIFT != MARK || slot == 0 || slot > slot_count) return NULL;
    Slot *s = &slots[slot - 1];
    return s->kind == (HandleKind)(bits >> SLOT_BITS & 0xff) ? s : NULL;
}

void *handle_object(HandleKind kind, const void *handle) {
    Slot *s = slot_of(handle);
    if (!s) {
        if (handle) report_misuse("%p is no %s", handle, handle_kind_names[kind]);
        return NULL;
    }
    if (s->kind != kind) report_misuse("a %s is used as a %s", handle_kind_names[s->kind], handle_kind_names[kind]);
    else if (!s->object)
        report_misuse("%s %llu is used after its end", handle_kind_names[kind], (unsigned long long)(s - slots + 1));
    return s->kind == kind ? s->object : NULL;
}

void handle_end(void *handle) {
    Slot *s = slot_of(handle);
    if (s) s->object = NULL;
}

void handle_each(Context *owner, void (*visit)(HandleKind kind, void *object, void *user), void *user) {
    for (size_t i = 0; i < slot_count; i++)
        if (slots[i].object && slots[i].owner == owner) visit(slots[i].kind, slots[i].object, user);
}
