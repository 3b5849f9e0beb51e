/* overlap.c: which launches may still run when one begins that need not wait for the one before it (programmatic
 * dependent launch), and when it has waited. */
#include "fakecuda/driver/driver.h"

static bool is_empty(ExecSpan s) { return s.first >= s.end; }

static ExecSpan hull(ExecSpan a, ExecSpan b) {
    if (is_empty(a) || is_empty(b)) return is_empty(a) ? b : a;
    return (ExecSpan){a.first < b.first ? a.first : b.first, a.end > b.end ? a.end : b.end};
}

/* When |launch| has ended. */
static ExecSpan left_by(const ExecBeside *launch) {
    ExecSpan left = launch->waited ? launch->after : launch->before;
    if (launch->start && left.end > launch->start) left.end = launch->start;
    return is_empty(left) ? (ExecSpan){0, 0} : left;
}

void overlap_wait(ExecBeside *next, const ExecBeside *last) {
    next->before = next->after = hull(next->after, left_by(last));
}

void overlap_depend(ExecBeside *next, const ExecBeside *last) {
    const ExecSpan own = {last->start, UINT32_MAX};
    *next = (ExecBeside){.before = hull(own, last->before), .after = left_by(last)};
}
