/* report.h: a report as one HTML file: a page, with what other calls tell as JSON inside of it.
 *   page/report.html   the page; {{css}}, {{js}}, {{title}}, {{command}} and {{data}} are put in
 *   page/report.css    its looks
 *   page/inflate.js ... main.js  its program, in the order of the build files; autocast.js: for ampc autocast
 *   report.c           puts it together
 * The page is made of the JSON alone: what it shows is what --json has. */
#ifndef AMP_COMPILER_REPORT_REPORT_H
#define AMP_COMPILER_REPORT_REPORT_H

#include "amp/compile.h"
#include "base/text.h"

/* The files, embedded by the build. */
extern const char report_html[], report_css[], report_js[], autocast_js[];

/* Whether each has a name of a part, and JSON that reads; else AMP_INVALID_ARGUMENT. */
amp_status report_check_parts(const amp_report_part *parts, size_t count, const amp_allocator *a, amp_error *err);

/* The page with |first|, JSON of amp_explain or amp_onnx_autocast, as the part "explain" or "autocast", and |parts|. */
void report_put(Text *t, const char *title, const amp_report_part *first, const amp_report_part *parts, size_t count);

#endif
