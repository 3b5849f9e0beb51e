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
    const amp_model_desc *desc = model(AMP_MODEL_ABI_MAJOR, AMP_MODEL_ABI_MINOR);
    if (!desc)
        return amp_fail(err, AMP_UNSUPPORTED,
                        "static model: does not serve model ABI %u.%u; compile it again with this version",
                        AMP_MODEL_ABI_MAJOR, AMP_MODEL_ABI_MINOR);
    amp_allocator a = amp_allocator_or_default(o.allocator);
    return amp_model_from_desc(desc, desc->name ? desc->name : "static model", &a, out, err);
}
