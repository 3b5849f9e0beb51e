/* scope.c: names: binding, reading, the turns of `repeat`, and what nobody read. */
#include "frontend/elaborate.h"

/* A place where a name is bound, remembered once however often it is elaborated. */
static void remember_bound(Elab *e, Name *name) {
    if (name->use.bound) return;
    name->use.bound = true;
    vec_push(e->a, &e->bound, name);
}

void bind(Elab *e, Name *name, Item item) {
    Frame *frame = e->frame;
    Binding *b = table_get(&frame->names, name->text);
    if (!b) {
        b = arena_new(e->a, Binding);
        table_set(e->a, &frame->names, name->text, b);
    }
    if (!b->live) {
        b->live = true;
        b->level = frame->level;
        vec_push(e->a, &frame->turn, b);
    }
    remember_bound(e, name);
    if (b->level < frame->level) name->use.read = true; /* carried to the next turn */
    b->name = name;
    b->item = item;
}

Binding *find_binding(const Elab *e, const char *text) {
    Binding *b = table_get(&e->frame->names, text);
    return b && b->live ? b : table_get(&e->frame->unit->consts, text);
}

/* ---- reading --------------------------------------------------------------------------------------------- */

static void report_unknown(Elab *e, const Name *name) {
    Diag *diag = report(e, name->loc, "there is no '%s' here", name->text);
    const Binding *dead = table_get(&e->frame->names, name->text);
    if (dead) {
        diag_note(e->d, diag, dead->name->loc, "this '%s' is local to a turn of its repeat", name->text);
        diag_help(e->d, diag, "bind '%s' before the repeat to carry it out", name->text);
        return;
    }
    const Table *names = &e->frame->names, *consts = &e->frame->unit->consts;
    const char **words = arena_array(e->a, const char *, names->entries.len + consts->entries.len + 1);
    int count = 0;
    for (int i = 0; i < names->entries.len; i++)
        if (((Binding *)names->entries.data[i].value)->live) words[count++] = names->entries.data[i].key;
    for (int i = 0; i < consts->entries.len; i++) words[count++] = consts->entries.data[i].key;
    help_nearest(e, diag, name->text, words, count);
    if (e->frame->decl && e->frame->decl->kind == DECL_TRAIN)
        diag_help(e->d, diag, "train sees the inputs, results and params of the model");
}

/* The first read makes the parameter an input of `forward`. */
static Item read_param(Elab *e, const Binding *b) {
    Val v = ir_use_state(e->f, b->item.param);
    set_origin(e, v, e->frame->layer ? b->item.param->name : b->name->text, b->name->loc);
    return item_tensor(v);
}

Item read_name(Elab *e, const Name *name) {
    Binding *b = find_binding(e, name->text);
    if (b) {
        b->name->use.read = true;
        if (b->item.kind == ITEM_PARAM) return read_param(e, b);
        if (b->item.kind != ITEM_AVERAGE) return b->item;
        report_not_built(e, name->loc, "a metric computed from the average of another or of the loss");
        return ERROR_ITEM;
    }
    if (!strcmp(name->text, "inf")) return (Item){.kind = ITEM_FLOAT, .f = __builtin_inf()};
    report_unknown(e, name);
    return ERROR_ITEM;
}

void bind_error(Elab *e, const Name *name) {
    const Binding *b = find_binding(e, name->text);
    Diag *diag = report(e, name->loc, "'%s' is declared twice", name->text);
    if (b) diag_note(e->d, diag, b->name->loc, "first here");
}

/* ---- turns of repeat ------------------------------------------------------------------------------------- */

void begin_turn(Elab *e) { e->frame->level++; }

void end_turn(Elab *e) {
    Frame *frame = e->frame;
    while (frame->turn.len && frame->turn.data[frame->turn.len - 1]->level == frame->level)
        frame->turn.data[--frame->turn.len]->live = false;
    frame->level--;
}

/* ---- names that nobody read ------------------------------------------------------------------------------ */

static void mark_expr(Elab *e, const Expr *x);

static void mark_args(Elab *e, const ArgVec *args) {
    for (int i = 0; i < args->len; i++) mark_expr(e, args->data[i].value);
}

static void mark_path(Elab *e, const Path *path) {
    for (int i = 0; path && i < path->parts.len; i++) mark_expr(e, path->parts.data[i].index);
}

static void mark_exprs(Elab *e, const ExprVec *items) {
    for (int i = 0; i < items->len; i++) mark_expr(e, items->data[i]);
}

static void mark_expr(Elab *e, const Expr *x) {
    if (!x) return;
    if (x->kind == EXPR_NAME) {
        Binding *b = find_binding(e, x->name->text);
        if (b) b->name->use.read = true;
    } else if (x->kind == EXPR_UNARY || x->kind == EXPR_BINARY) {
        mark_expr(e, x->operation.left);
        mark_expr(e, x->operation.right);
    } else if (x->kind == EXPR_CALL) {
        mark_args(e, &x->call.args);
        mark_args(e, &x->call.statics);
        mark_path(e, x->call.as);
    } else if (x->kind == EXPR_TUPLE || x->kind == EXPR_LIST) {
        mark_exprs(e, &x->items);
    }
}

static void mark_declaration(Elab *e, const Stmt *s) {
    mark_path(e, s->declare.as);
    mark_exprs(e, &s->declare.type->dims);
    mark_expr(e, s->declare.value);
}

void mark_read_in(Elab *e, const StmtVec *untaken) {
    for (int i = 0; i < untaken->len; i++) {
        const Stmt *s = untaken->data[i];
        switch (s->kind) {
        case STMT_BIND: mark_expr(e, s->bind.value); break;
        case STMT_PARAM:
        case STMT_STATE: mark_declaration(e, s); break;
        case STMT_UPDATE: mark_expr(e, s->assign.value); break;
        case STMT_INIT: mark_expr(e, s->init.value); break;
        case STMT_RETURN: mark_expr(e, s->value); break;
        case STMT_REPEAT:
            mark_expr(e, s->repeat.from);
            mark_expr(e, s->repeat.to);
            mark_read_in(e, &s->repeat.body);
            break;
        case STMT_IF:
            mark_expr(e, s->branch.condition);
            mark_read_in(e, &s->branch.then);
            mark_read_in(e, &s->branch.otherwise);
            break;
        default: break; /* stand in train and precision, where there is no `if` */
        }
    }
}

static bool is_in_prelude(const Elab *e, const Name *name) {
    return name->loc.source == e->units.data[e->units.len - 1]->file->source;
}

void report_unread(Elab *e) {
    for (int i = 0; i < e->bound.len; i++) {
        const Name *name = e->bound.data[i];
        if (!name->use.read && !is_in_prelude(e, name)) report(e, name->loc, "'%s' is never read", name->text);
    }
}
