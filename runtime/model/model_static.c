/* model_static.c: models that are linked into the program: no file, and no loader of the system. */
#include "base/alloc.h"
#include "base/error.h"
#include "runtime/model/model.h"

amp_status amp_model_from_static(amp_static_model model, const amp_model_options *options, amp_model **out,
                                 amp_error *err) {
    amp_model_options o;
    if (out) *out = NULL;
    if (!model || !out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_model_from_static: model or out is NULL");
    AMP_TRY(amp_options_read(&o, sizeof o, options, "amp_model_options", err));
    amp_allocator a = amp_allocator_or_default(o.allocator);
    return amp_model_from_desc(model(), "static model", &a, out, err);
}
