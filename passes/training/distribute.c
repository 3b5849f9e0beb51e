/* distribute: what one step does over several micro-batches, and over several ranks.
 * needs: paint.  breaks: nothing.
 */
#include "passes/passes.h"
#include "passes/training/accumulate.h"

bool pass_distribute(PassContext *c) {
    accumulate_split(c->m);
    return true;
}
