/* statements.c: bodies of blocks and models: bindings, parameters and states, repeat, if, require, checkpoint,
 * return. */
#include "frontend/elaborate.h"

/* ---- a, b = value ----------------------------------------------------------------------------------------- */

/* A value made by this statement gets the name it is bound to; an alias keeps its first name.  Inside the prelude,
 * names mean nothing to the user, so messages name the value by its op. */
static void name_value(Elab *e, const Name *name, Val v, int made_from) {
    if ((int)v.id < made_from || ir_value(e->f, v)->kind != VAL_RESULT) return;
    bool in_layer = e->frame->layer != NULL;
    ir_rename(e->f, v, elab_unique_value_name(e, name->text));
    elab_set_origin(e, v, in_layer ? ir_def(e->f, v)->path : name->text, name->loc);
}

void elab_binding(Elab *e, const Stmt *s) {
    Item items[MAX_RESULTS];
    int made_from = e->f->values.len, count = elab_eval_results(e, s->bind.value, items);
    int names = s->bind.names.len;
    if (names != count && (count != 1 || items[0].kind != ITEM_ERROR))
        elab_error(e, s->loc, "%d name%s for %d value%s", names, names == 1 ? "" : "s", count, count == 1 ? "" : "s");
    for (int i = 0; i < names; i++) {
        Name *name = s->bind.names.data[i];
        Item item = names == count ? items[i] : ERROR_ITEM;
        if (item.kind == ITEM_TENSOR) name_value(e, name, item.tensor, made_from);
        elab_bind(e, name, item);
    }
}

/* ---- param and state -------------------------------------------------------------------------------------- */

/* A parameter is f32; a state may be a counter too. */
static bool check_state_type(Elab *e, const Stmt *s, Dtype dtype, const Shape *shape) {
    bool is_param = s->kind == STMT_PARAM;
    if (dtype != AMP_DT_F32 && (is_param || dtype != AMP_DT_I64)) {
        elab_error(e, s->declare.type->loc, is_param ? "a parameter is f32, not %s" : "a state is f32 or i64, not %s",
                   amp_dtype_name(dtype));
        return false;
    }
    if (!shape_varies(shape)) return true;
    const bool by_n = shape_batch_dims(shape) > 0;
    const char *what = is_param ? "parameter" : "state", *layer = e->frame->layer;
    if (layer && !by_n) {
        elab_help_one_length(e, elab_error(e, s->declare.type->loc, "%s: the %s %s cannot be as large as T says", layer,
                                           what, s->declare.name->text));
        return false;
    }
    Diag *diag = elab_error(e, s->declare.type->loc, "the shape of a %s cannot depend on %s", what, by_n ? "N" : "T");
    if (!by_n)
        diag_help(e->d, diag, "give it the largest T, %lld, and take the first T: slice(%s; dim = 0, from = 0, to = T)",
                  (long long)e->m->length.most, s->declare.name->text);
    return false;
}

/* The innermost call in which both are, or what |a| is in at last: the model, a train block. */
static Frame *common_frame(Frame *a, const Frame *b) {
    for (; a->caller; a = a->caller)
        for (const Frame *f = b; f; f = f->caller)
            if (f == a) return a;
    return a;
}

/* The call of a block in |outer|, or in a declaration, by which |frame| was reached; NULL: there is none, or it is of a
 * layer. */
static const Frame *call_from(const Frame *outer, const Frame *frame) {
    while (frame != outer && frame->caller && frame->caller != outer && frame->caller->caller) frame = frame->caller;
    return frame == outer || !frame->caller || frame->unit->is_prelude ? NULL : frame;
}

static bool same_loc(Loc a, Loc b) { return a.source == b.source && a.begin == b.begin; }

/* Names both calls, and the calls around them. */
static void report_path_twice(Elab *e, const char *path, Loc loc, const Declared *first) {
    Frame *inner = e->frame, *outer = common_frame(inner, first->frame);
    const Frame *call = call_from(outer, inner), *before = call_from(outer, first->frame);
    const bool again = same_loc(call ? call->call : loc, before ? before->call : first->loc);
    Diag *diag = elab_error_text(e, loc, arena_printf(e->a, "there is already a parameter or state '%s'", path));
    if (again) diag_note(e->d, diag, call ? call->call : loc, "an iteration of `repeat` before this one has made it");
    if (call && !again) diag_note(e->d, diag, call->call, "in this call of %s", call->decl->name->text);
    if (!again && !same_loc(loc, first->loc)) diag_note(e->d, diag, first->loc, "it is declared here");
    if (before && !again)
        diag_note(e->d, diag, before->call, "it was made in this call of %s", before->decl->name->text);
    e->frame = outer;
    elab_note_calls(e, diag);
    e->frame = inner;
    diag_help(e->d, diag,
              again ? "name the call's scope with `as` and the index, as in `as h[i]`; to share a parameter, call its "
                      "block again by `sharing`"
                    : "name the call's scope with `as`; to share a parameter, use the same param, or call its block "
                      "again by `sharing`");
}

static bool claim_path(Elab *e, const char *path, const Stmt *s) {
    Loc loc = elab_user_loc(e, s->declare.name->loc);
    const Declared *first = table_get(&e->param_names, path);
    if (first) {
        report_path_twice(e, path, loc, first);
        return false;
    }
    Declared *declared = arena_new(e->a, Declared);
    *declared = (Declared){loc, e->frame, s, e->m->states.len};
    table_set(e->a, &e->param_names, path, declared);
    return true;
}

static State *make_state(Elab *e, const Stmt *s) {
    Dtype dtype;
    Shape shape;
    Call init = {0};
    const char *path = s->declare.as ? elab_path(e, s->declare.as) : s->declare.name->text;
    if (e->averaging) {
        elab_error(e, s->loc, "a metric that is computed from averages cannot declare parameters");
        return NULL;
    }
    bool good = elab_type(e, s->declare.type, &dtype, &shape);
    good = elab_signature(e, s->declare.value, SIGNATURE_INITIALISER, &init) && good;
    if (!path || !good || !check_state_type(e, s, dtype, &shape)) return NULL;
    path = elab_join_path(e, e->frame->scope, path);
    if (e->sharing) return elab_shared_state(e, s, path, dtype, &shape);
    if (!claim_path(e, path, s) || !elab_charge_param(e, s->loc)) return NULL;
    State *state = ir_state_new(e->m, path, s->kind == STMT_PARAM ? STATE_PARAM : STATE_BUFFER, dtype, shape);
    state->init = init;
    state->pos = elab_pos(e, s->declare.name->loc);
    return elab_check_initialiser(e, s->declare.value->loc, &init, state) ? state : NULL;
}

static void elaborate_param(Elab *e, const Stmt *s) {
    const State *state = make_state(e, s);
    Item item = ERROR_ITEM;
    if (state) item = (Item){.kind = ITEM_PARAM, .param = state};
    elab_bind(e, s->declare.name, item);
}

/* ---- update ----------------------------------------------------------------------------------------------- */

/* The state with that name; an error if the same call of its block updates it already. */
static const State *state_to_update(Elab *e, const Name *name) {
    const Binding *b = elab_find(e, name->text);
    if (!b) elab_read(e, name); /* reports it */
    if (!b || b->item.kind == ITEM_ERROR) return NULL;
    b->name->use.read = true;
    if (b->item.kind != ITEM_PARAM || b->item.param->role != STATE_BUFFER) {
        Diag *diag =
            elab_error(e, name->loc, "update writes a state; '%s' is %s", name->text,
                       b->item.kind == ITEM_PARAM ? "a parameter, which training writes" : item_describe(e, &b->item));
        diag_note(e->d, diag, elab_user_loc(e, b->name->loc), "'%s' is defined here", name->text);
        return NULL;
    }
    const Updated *first = table_get(&e->updates, b->item.param->name);
    if (!first || first->sharing != elab_sharing_number(e)) return b->item.param;
    Diag *diag = elab_error(e, name->loc, "state '%s' is updated twice", b->item.param->name);
    diag_note(e->d, diag, first->loc, "first here");
    return NULL;
}

static bool fits_state(Elab *e, Loc loc, const State *state, Val v) {
    Item value = item_tensor(v), wanted = {.kind = ITEM_PARAM, .param = state};
    if (ir_dtype(e->f, v) == state->dtype && shape_equal(ir_shape(e->f, v), &state->shape)) return true;
    elab_error(e, loc, "state '%s' is %s; its next value is %s", state->name, item_describe(e, &wanted),
               item_describe(e, &value));
    return false;
}

/* A block that is applied again replaces the next value, which it made from the one before. */
static void set_next_value(Elab *e, const Stmt *s, const State *state, Val v) {
    Updated *updated = table_get(&e->updates, state->name);
    if (updated) {
        e->update_results.data[updated->result].value = v;
    } else {
        updated = arena_new(e->a, Updated);
        updated->result = e->update_results.len;
        Result result = {.name = amp_result_text(e->a, RESULT_UPDATE, NO_BLOCK, state->name), .value = v};
        vec_push(e->a, &e->update_results, result);
        table_set(e->a, &e->updates, state->name, updated);
    }
    updated->loc = elab_user_loc(e, s->loc);
    updated->sharing = elab_sharing_number(e);
}

/* The next value becomes a result of `forward`, after all others; only training uses it. */
static void elaborate_update(Elab *e, const Stmt *s) {
    const State *state = state_to_update(e, s->assign.name);
    e->updating = true;
    Item item = elab_eval(e, s->assign.value);
    Val v = item.kind == ITEM_ERROR ? NO_VAL : elab_as_tensor(e, s->assign.value->loc, &item);
    e->updating = false;
    if (state && v.id && fits_state(e, s->assign.value->loc, state, v)) set_next_value(e, s, state, v);
}

void elab_add_updates(Elab *e) {
    for (int i = 0; i < e->update_results.len; i++)
        ir_add_result(e->f, e->update_results.data[i].name, e->update_results.data[i].value);
}

/* ---- init ------------------------------------------------------------------------------------------------- */

/* init "h.*.weight" = normal(std = 0.02) */
void elab_param_init(Elab *e, const Stmt *s) {
    Call init = {0};
    if (!elab_signature(e, s->init.value, SIGNATURE_INITIALISER, &init)) return;
    int matched = 0;
    const char **names = arena_array(e->a, const char *, e->m->states.len + 1);
    int count = 0;
    for (int i = 0; i < e->m->states.len; i++) {
        State *param = e->m->states.data[i];
        if (param->role != STATE_PARAM) continue;
        names[count++] = param->name;
        if (!text_glob_match(s->init.glob->text, param->name)) continue;
        matched++;
        if (elab_check_initialiser(e, s->init.value->loc, &init, param)) param->init = init;
    }
    if (matched) return;
    Diag *diag = elab_error(e, s->init.glob->loc, "no parameter matches \"%s\"", s->init.glob->text);
    elab_help_choice(e, diag, s->init.glob->text, names, count);
}

/* ---- repeat ----------------------------------------------------------------------------------------------- */

static bool repeat_bound(Elab *e, const Expr *x, int64_t *out) {
    Item item = elab_eval_static(e, x, "the range of repeat", STATIC_INT);
    if (item.kind == ITEM_INT) *out = item.i.mul;
    return item.kind == ITEM_INT;
}

static void elaborate_iteration(Elab *e, const Stmt *s, int64_t index) {
    elab_begin_iteration(e);
    elab_bind(e, s->repeat.index, item_int(index));
    s->repeat.index->use.read = true; /* an index need not be read */
    elab_body(e, &s->repeat.body);
    elab_end_iteration(e);
}

static void elaborate_repeat(Elab *e, const Stmt *s) {
    int64_t from = 0, to = 0;
    bool good = repeat_bound(e, s->repeat.from, &from);
    good = repeat_bound(e, s->repeat.to, &to) && good;
    if (good && from > to) elab_error(e, s->loc, "the range %lld..%lld runs backwards", (long long)from, (long long)to);
    if (!good || from >= to) {
        elab_mark_read(e, &s->repeat.body);
        return;
    }
    int64_t iterations;
    if (__builtin_sub_overflow(to, from, &iterations)) iterations = INT64_MAX;
    for (int64_t i = from; i < to; i++) {
        int64_t work = e->work;
        if (!elab_charge(e, s->loc, 1)) return;
        elaborate_iteration(e, s, i);
        if (i == from && !elab_afford_iterations(e, s, iterations - 1, e->work - work)) return;
    }
}

/* ---- if --------------------------------------------------------------------------------------------------- */

/* After an error in the condition, names that the branches would bind become errors, so that reading them reports
 * nothing more. */
static void bind_errors(Elab *e, const StmtVec *body) {
    for (int i = 0; i < body->len; i++) {
        const Stmt *s = body->data[i];
        for (int k = 0; s->kind == STMT_BIND && k < s->bind.names.len; k++)
            elab_bind(e, s->bind.names.data[k], ERROR_ITEM);
        if (s->kind == STMT_PARAM || s->kind == STMT_STATE) elab_bind(e, s->declare.name, ERROR_ITEM);
        if (s->kind == STMT_IF) {
            bind_errors(e, &s->branch.then);
            bind_errors(e, &s->branch.otherwise);
        }
        if (s->kind == STMT_CHECKPOINT) bind_errors(e, &s->body);
    }
}

static void elaborate_if(Elab *e, const Stmt *s) {
    Item condition = elab_eval(e, s->branch.condition);
    bool known = condition.kind == ITEM_BOOL;
    if (!known && condition.kind != ITEM_ERROR)
        elab_error(e, s->branch.condition->loc, "`if` chooses at compile time and needs a condition; this is %s",
                   item_describe(e, &condition));
    bool take_then = known && condition.b, take_otherwise = known && !condition.b;
    if (!take_then) elab_mark_read(e, &s->branch.then);
    if (!take_otherwise) elab_mark_read(e, &s->branch.otherwise);
    if (!known) bind_errors(e, &s->branch.then);
    if (!known) bind_errors(e, &s->branch.otherwise);
    if (known) elab_body(e, take_then ? &s->branch.then : &s->branch.otherwise);
}

/* ---- require ---------------------------------------------------------------------------------------------- */

typedef struct Values { /* "x is f32[N, 4], hidden is the int 0": of the names in a condition */
    Elab *e;
    Text text;
    const char *seen[MAX_NESTING];
    int count;
    bool of_t;
} Values;

static bool depends_on_t(const Elab *e, const Item *item) {
    const Shape *s = item->kind == ITEM_TENSOR ? ir_shape(e->f, item->tensor) : NULL;
    for (int i = 0; s && i < s->rank; i++)
        if (s->d[i].t) return true;
    return item->kind == ITEM_INT && item->i.t;
}

static bool add_value(void *user, const Expr *x) {
    Values *v = user;
    if (x->kind != EXPR_NAME) return false;
    const Name *name = x->name;
    const Binding *b = elab_find(v->e, name->text);
    for (int i = 0; i < v->count; i++)
        if (!strcmp(v->seen[i], name->text)) return false;
    if (!b || b->item.kind == ITEM_ERROR || v->count == MAX_NESTING) return false;
    text_printf(&v->text, "%s%s is %s", v->count ? ", " : "; ", name->text, item_describe(v->e, &b->item));
    v->seen[v->count++] = name->text;
    v->of_t = v->of_t || depends_on_t(v->e, &b->item);
    return false;
}

static void refuse(Elab *e, const Stmt *s) {
    Values *values = arena_new(e->a, Values);
    values->e = e;
    text_init(&values->text, e->a);
    expr_any(s->require.condition, add_value, values);
    const char *layer = e->frame->layer ? e->frame->layer : e->frame->decl->name->text;
    Diag *diag =
        elab_error(e, s->require.condition->loc, "%s: %s%s", layer, s->require.message->text, text_str(&values->text));
    if (values->of_t) elab_help_one_length(e, diag);
    e->frame->refused = e->frame->decl->kind == DECL_BLOCK;
}

static void elaborate_require(Elab *e, const Stmt *s) {
    Item condition = elab_eval(e, s->require.condition);
    if (condition.kind == ITEM_BOOL && !condition.b) refuse(e, s);
    if (condition.kind == ITEM_BOOL || condition.kind == ITEM_ERROR) return;
    elab_error(e, s->require.condition->loc, "`require` holds at compile time and needs a condition; this is %s",
               item_describe(e, &condition));
}

/* ---- checkpoint ------------------------------------------------------------------------------------------- */

/* Its ops are marked with its number, after the numbers of the blocks around it: "2.5" is in "2". */
static void elaborate_checkpoint(Elab *e, const Stmt *s) {
    const char *around = e->checkpoint;
    e->checkpoints++;
    e->checkpoint =
        around ? arena_printf(e->a, "%s.%d", around, e->checkpoints) : arena_printf(e->a, "%d", e->checkpoints);
    int ops = e->f->body.len, errors = e->d->errors;
    elab_body(e, &s->body);
    e->checkpoint = around;
    if (e->f->body.len != ops || e->d->errors != errors) return;
    Diag *diag = elab_error(e, s->loc, "this checkpoint computes no tensor, so there is nothing to compute again");
    diag_help(e->d, diag, "put the calls whose values are not to be kept inside its braces");
}

/* ---- return ----------------------------------------------------------------------------------------------- */

static void elaborate_return(Elab *e, const Stmt *s) {
    const Decl *d = e->frame->decl;
    if (d->kind != DECL_BLOCK || d->results.len) {
        elab_error(e, s->loc,
                   d->kind == DECL_BLOCK ? "block %s names its results after '->'; it has no return"
                                         : "model %s names its results after '->'; it has no return",
                   d->name->text);
        return;
    }
    const StmtVec *body = &d->body;
    if (body->data[body->len - 1] != s) elab_error(e, s->loc, "return must be the last statement of its block");
    int made_from = e->f->values.len;
    e->frame->returned = elab_eval(e, s->value);
    e->frame->has_returned = true;
    if (e->frame->returned.kind == ITEM_TENSOR && (int)e->frame->returned.tensor.id >= made_from)
        elab_set_origin(e, e->frame->returned.tensor, NULL, s->value->loc);
}

/* ---- bodies ----------------------------------------------------------------------------------------------- */

static const char *const statement_names[] = {
    [STMT_BIND] = "a binding",
    [STMT_PARAM] = "param",
    [STMT_STATE] = "state",
    [STMT_UPDATE] = "update",
    [STMT_INIT] = "init",
    [STMT_REPEAT] = "repeat",
    [STMT_IF] = "if",
    [STMT_CHECKPOINT] = "checkpoint",
    [STMT_REQUIRE] = "require",
    [STMT_RETURN] = "return",
    [STMT_INPUT] = "input",
    [STMT_LOSS] = "loss",
    [STMT_METRIC] = "metric",
    [STMT_GROUP] = "group",
    [STMT_OVERRIDE] = "an override",
};

void elab_error_misplaced(Elab *e, const Stmt *s, const char *where) {
    elab_error(e, s->loc, "%s is not allowed in %s", statement_names[s->kind], where);
}

static void elaborate_statement(Elab *e, const Stmt *s) {
    bool in_model = e->frame->decl->kind == DECL_MODEL;
    switch (s->kind) {
    case STMT_BIND: elab_binding(e, s); break;
    case STMT_PARAM:
    case STMT_STATE: elaborate_param(e, s); break;
    case STMT_UPDATE: elaborate_update(e, s); break;
    case STMT_REPEAT: elaborate_repeat(e, s); break;
    case STMT_IF: elaborate_if(e, s); break;
    case STMT_CHECKPOINT: elaborate_checkpoint(e, s); break;
    case STMT_REQUIRE: elaborate_require(e, s); break;
    case STMT_RETURN: elaborate_return(e, s); break;
    case STMT_INIT:
        if (in_model) break; /* elab_model runs it when all params exist */
        elab_error_misplaced(e, s, "a block; a model's init sets the params of its blocks by path");
        break;
    default: elab_error_misplaced(e, s, in_model ? "a model" : "a block"); break;
    }
}

void elab_body(Elab *e, const StmtVec *body) {
    for (int i = 0; i < body->len && elab_enter(e, body->data[i]->loc); i++) {
        if (!e->frame->refused) elaborate_statement(e, body->data[i]);
        else elab_mark_read(e, &(StmtVec){.data = &body->data[i], .len = 1});
        elab_leave(e);
    }
}
