/* model.c: the model: inputs, body, results. */
#include "frontend/elaborate.h"

static void add_model_inputs(Elab *e, const Decl *model) {
    for (int i = 0; i < model->tensors.len; i++) {
        const Parameter *p = &model->tensors.data[i];
        Dtype dtype;
        Shape shape;
        Item item = ERROR_ITEM;
        bool twice = table_get(&e->frame->names, p->name->text) != NULL;
        if (twice) bind_error(e, p->name);
        if (elaborate_input_type(e, p->type, &dtype, &shape) && !twice)
            item = item_tensor(add_input(e, p->name, dtype, shape));
        if (!twice) bind(e, p->name, item);
    }
}

static void add_model_results(Elab *e, const Decl *model) {
    if (!model->results.len) {
        Diag *diag = report(e, model->loc, "model %s has no results", model->name->text);
        diag_help(e->d, diag, "name them behind the inputs: model %s(...) -> logits {", model->name->text);
    }
    for (int i = 0; i < model->results.len; i++) {
        Name *name = model->results.data[i];
        if (!find_binding(e, name->text)) {
            Diag *diag = report(e, name->loc, "model %s binds no '%s', which is to be its result", model->name->text,
                                name->text);
            help_nearest_key(e, diag, name->text, &e->frame->names);
            if (!diag->notes.len) diag_help(e->d, diag, "bind it in the body: %s = ...", name->text);
            continue;
        }
        Item item = read_name(e, name);
        if (item.kind == ITEM_TENSOR) ir_add_result(e->f, name->text, item.tensor);
        else if (item.kind != ITEM_ERROR)
            report(e, name->loc, "a result is a tensor; %s is %s", name->text, item_describe(e, &item));
    }
}

static void elaborate_inits(Elab *e, const Decl *model) {
    for (int i = 0; i < model->body.len; i++)
        if (model->body.data[i]->kind == STMT_INIT) elaborate_init(e, model->body.data[i]);
}

Frame *begin_model(Elab *e, const Decl *model) {
    Frame *frame = arena_new(e->a, Frame);
    *frame = (Frame){.unit = e->units.data[0], .decl = model, .scope = ""};
    e->frame = frame;
    add_model_inputs(e, model);
    return frame;
}

void elaborate_model(Elab *e, Frame *frame) {
    e->frame = frame;
    elaborate_body(e, &frame->decl->body);
    if (!e->d->errors) elaborate_inits(e, frame->decl); /* else params may be missing */
    add_model_results(e, frame->decl);
}
