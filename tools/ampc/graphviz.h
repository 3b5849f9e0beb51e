/* graphviz.h: the places that Graphviz's `dot`, where it is installed, gives to what a report draws. */
#ifndef AMP_TOOLS_AMPC_GRAPHVIZ_H
#define AMP_TOOLS_AMPC_GRAPHVIZ_H

#include <stdbool.h>
#include <stddef.h>

/* What `dot -Tplain` makes of |drawings|.  false: there is none, or it failed, and the report lays them out itself.
 * |out| is freed with amp_free(NULL, *out, *size + 1). */
bool graphviz_plain(const void *drawings, size_t size, char **out, size_t *out_size);

#endif
