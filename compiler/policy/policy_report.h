/* policy_report.h: what is told of policies: the list of those built in, one of them, and what differs between two.
 *   policies.c       the calls
 *   policy_report.c  the list, and one
 *   policy_diff.c    two */
#ifndef AMP_COMPILER_POLICY_REPORT_H
#define AMP_COMPILER_POLICY_REPORT_H

#include "amp/compile.h"
#include "base/json.h"
#include "base/text.h"
#include "precision/policy.h"

/* ---- policy_report.c --------------------------------------------------------------------------------------------- */

typedef VEC(const Policy *) Policies; /* of one arena */

void policies_as_text(Text *t, const Policies *list);
amp_status policies_as_json(Text *t, Arena *a, const Policies *list, amp_error *err);

void policy_as_text(Text *t, const Policy *p);
amp_status policy_as_json(Text *t, Arena *a, const Policy *p, amp_error *err);

/* "policy", "version", "algorithm", "low", "precision", "masters", "moments", "file": what every report has. */
void policy_put_head(amp_json_writer *w, Arena *a, const Policy *p);
/* "f16(rounding = nearest)"; NULL: f32. */
const char *policy_state_type(Arena *a, const Call *type);
void policy_tell_head(Text *t, const Policy *p); /* "version 2.12, algorithm eager, low f16" */

/* ---- policy_diff.c ----------------------------------------------------------------------------------------------- */

typedef struct NameClass {  /* how a policy decides for a name */
    const PolicyLine *line; /* NULL: a layer that it does not list, whose ops go by their own lines */
    bool listed;            /* by that name; else by a wider one, "*" at last */
} NameClass;

typedef struct NamePair {
    const char *name;
    NameClass before, after;
} NamePair;

typedef struct PolicyDiff {
    const Policy *before, *after;
    VEC(NamePair) changed; /* another class; in the order of |before|, then of |after|; "*" last */
    int names;             /* that either lists */
} PolicyDiff;

PolicyDiff policy_diff(Arena *a, const Policy *before, const Policy *after);
/* No class and nothing of the head differs, names aside. */
bool policy_diff_is_same(const PolicyDiff *d);

void policy_diff_as_text(Text *t, const PolicyDiff *d);
amp_status policy_diff_as_json(Text *t, Arena *a, const PolicyDiff *d, amp_error *err);

#endif
