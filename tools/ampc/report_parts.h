/* report_parts.h: what `ampc explain --html` puts into a report besides what explain itself tells (docs/explain.md). */
#ifndef AMP_TOOLS_AMPC_REPORT_PARTS_H
#define AMP_TOOLS_AMPC_REPORT_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "amp/base.h"
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

/* ---- graphviz.c: the places that Graphviz's `dot`, where it is installed, gives to what a report draws ----------- */

/* What `dot -Tplain` makes of |drawings|.  false: there is none, or it failed, and the report lays them out itself.
 * |out| is freed with amp_free(NULL, *out, *size + 1). */
bool graphviz_plain(const void *drawings, size_t size, char **out, size_t *out_size);

/* ---- run_log_part.c: the log of a training (amprun train --log) as a part of a report ---------------------------- */

/* The lines of |path| as a JSON array: of steps as many as a page can draw, the last line of statistics, and all else.
 * A last line that is not whole is left out.  The caller frees |*out| with free.  AMP_NOT_FOUND, AMP_IO; AMP_BAD_FILE
 * names the line. */
amp_status run_log_part(const char *path, char **out, size_t *size, amp_error *err);

#endif
