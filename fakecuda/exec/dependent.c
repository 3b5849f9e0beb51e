/* dependent.c: launches that begin before the one before them has ended, and wait for it (griddepcontrol).
 *
 * They run here one after the other all the same.  What a thread touches before it waits is checked against what all
 * launches did that may not have ended by then, as against another block of its own launch (race_global.c): so a wait
 * that is missing or comes too late is found whatever the order, also where it would have gone well. */
#include "fakecuda/exec/inner.h"

static Step run_wait(Warp *w, const Inst *i) {
    (void)i;
    w->waited |= w->active;
    return STEP_NEXT;
}

/* When those that depend on this launch begin is left open: as early as they can, which is before all that it does. */
static Step run_launch_dependents(Warp *w, const Inst *i) {
    (void)w, (void)i;
    return STEP_NEXT;
}

bool decode_griddepcontrol(Decoder *d, Inst *i) {
    static const char *const known[] = {"wait", "launch_dependents", NULL};
    if (d->function->module->context.arch < 90) return refuse(d, "needs sm_90 or higher");
    if (!only_modifiers(d, known)) return false;
    if (d->ptx->modifier_count != 1) return refuse(d, "it is .wait or .launch_dependents");
    i->run = ptx_has(d->ptx, "wait") ? run_wait : run_launch_dependents;
    return true;
}

bool dependent_waited(const Block *b) {
    bool all = true;
    for (int v = 0; v < b->warp_count; v++) all &= !(b->warps[v].exists & ~b->warps[v].waited);
    return all;
}

bool dependent_may_run(const Warp *w, int lane, uint32_t serial) {
    const ExecBeside *beside = w->block->launch->beside;
    if (!beside || serial >= w->block->first_serial) return false;
    const ExecSpan *span = w->waited >> lane & 1 ? &beside->after : &beside->before;
    return serial >= span->first && serial < span->end;
}
