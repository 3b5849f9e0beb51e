/* report_parts.h: what `ampc explain --html` puts into a report besides what explain itself tells (docs/explain.md). */
#ifndef AMP_TOOLS_AMPC_REPORT_PARTS_H
#define AMP_TOOLS_AMPC_REPORT_PARTS_H

#include "base/json.h"
#include "tools/ampc/command.h"

enum { REPORT_PARTS = 6 };

typedef struct ReportParts {
    amp_report_part part[REPORT_PARTS];
    int count;
    amp_compile_result *kept[REPORT_PARTS]; /* that own the JSON of parts */
    int kept_count;
    amp_json_writer written[REPORT_PARTS]; /* the same */
    int written_count;
    char *run; /* the same; NULL: there is no log */
} ReportParts;

/* What the model, or the machine, does not have (no CUDA code, no `dot`) is no part, and the report says so.  |other|:
 * what the model is compared with; NULL: nothing. */
amp_status report_parts_gather(Command *c, const amp_compile_options *other, const Gpu *gpu, ReportParts *out,
                               amp_error *err);
void report_parts_free(ReportParts *p);

#endif
