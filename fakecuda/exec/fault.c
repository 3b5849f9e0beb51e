/* fault.c: the one message of a launch that failed. */
#include "fakecuda/exec/inner.h"

static int print_thread(const Block *b, int linear, char *to, size_t room) {
    uint32_t x = (uint32_t)linear % b->dimensions[0], y = (uint32_t)linear / b->dimensions[0] % b->dimensions[1];
    uint32_t z = (uint32_t)linear / b->dimensions[0] / b->dimensions[1];
    return snprintf(to, room, ", thread (%u,%u,%u)", x, y, z);
}

Step fault(Warp *w, const Inst *i, int lane, ExecFault kind, const char *format, ...) {
    Block *b = w->block;
    if (b->fault) return STEP_FAULT;
    b->fault = kind;
    const PtxInstruction *p = i->ptx;
    const char *inside = w->strand ? w->strand->frame->function->ptx->name : b->entry->ptx->name;
    char *to = b->message;
    size_t room = sizeof b->message, n = 0;
#define ADD(...) n += (size_t)snprintf(to + (n < room ? n : room), n < room ? room - n : 0, __VA_ARGS__)
    ADD("kernel %s", b->entry->ptx->name);
    if (strcmp(inside, b->entry->ptx->name)) ADD(" in %s", inside);
    ADD(", ptx line %d (%s), block (%u,%u,%u)", p->line, p->text, b->at[0], b->at[1], b->at[2]);
    if (lane >= 0 && n < room) n += (size_t)print_thread(b, w->index * LANES + lane, to + n, room - n);
    ADD(": ");
    if (n < room) {
        va_list args;
        va_start(args, format);
        n += (size_t)vsnprintf(to + n, room - n, format, args);
        va_end(args);
    }
    if (p->origin) ADD("; made from: %s", p->origin);
    else if (p->source_line > 0) ADD("; source line %d", p->source_line);
#undef ADD
    return STEP_FAULT;
}
