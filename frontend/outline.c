/* outline.c: from the trees of a model's files to the names that they declare, and to what each name means. */
#include "frontend/outline.h"

#include "frontend/elaborate.h"
#include "frontend/parse.h"

/* Numbers of symbols in tables: 1 more, so that no symbol is NULL. */
typedef struct Finder {
    Arena *a;
    Outline *out;
    const FrontendOptions *options;
    VEC(File *) files;     /* by out->sources */
    Table blocks, prelude; /* of all files; of prelude.amp */
    Table ops, functions;  /* graph_ops.c, signatures.c */
    Table consts;          /* of the file that is walked */
    Table model;           /* names of the model's body, which train sees */
    Table names;           /* of the declaration that is walked */
    const Source *source;  /* that is walked */
    bool sees_model;       /* it is train */
    int parent;            /* the declaration that is walked; -1 */
} Finder;

/* ---- symbols and references -------------------------------------------------------------------------------------- */

static int add_symbol(Finder *f, SymbolKind kind, const char *name, Loc loc, Loc whole) {
    Symbol s = {.kind = kind, .name = name, .loc = loc, .whole = whole, .parent = f->parent};
    vec_push(f->a, &f->out->symbols, s);
    return f->out->symbols.len - 1;
}

static void file_symbol(Finder *f, Table *t, const char *name, int symbol) {
    table_set(f->a, t, name, (void *)(intptr_t)(symbol + 1));
}

static int find_symbol(const Table *t, const char *name) { return (int)(intptr_t)table_get(t, name) - 1; }

static void declare(Finder *f, SymbolKind kind, const Name *name, Loc whole) {
    file_symbol(f, &f->names, name->text, add_symbol(f, kind, name->text, name->loc, whole));
}

static void refer(Finder *f, Loc loc, int symbol, Loc whole) {
    Reference r = {loc, symbol, whole};
    if (symbol >= 0) vec_push(f->a, &f->out->references, r);
}

static void refer_to_name(Finder *f, const Name *name) {
    int symbol = find_symbol(&f->names, name->text);
    if (symbol < 0 && f->sees_model) symbol = find_symbol(&f->model, name->text);
    if (symbol < 0) symbol = find_symbol(&f->consts, name->text);
    refer(f, name->loc, symbol, name->loc);
}

/* ---- expressions ------------------------------------------------------------------------------------------------- */

static void walk(Finder *f, const Expr *x);

static void walk_path(Finder *f, const Path *path) {
    for (int i = 0; path && i < path->parts.len; i++) walk(f, path->parts.data[i].index);
}

static bool takes_tensors(const Symbol *s, int count) {
    int least = s->least, most = s->most;
    if (s->kind != SYMBOL_BLOCK) return count >= least && count <= most;
    for (int i = 0; i < s->args.len; i++) {
        if (s->args.data[i].type) continue;
        most++;
        if (!s->args.data[i].initial) least++;
    }
    return count >= least && count <= most;
}

/* As a call finds what it runs: a block of the user, a layer or an op that takes that number of tensors. */
static int find_callee(const Finder *f, const CallExpr *call) {
    const Table *tables[] = {&f->blocks, &f->prelude};
    int named = -1;
    for (int i = 0; i < 2; i++) {
        const int block = find_symbol(tables[i], call->callee->text);
        if (block >= 0 && takes_tensors(&f->out->symbols.data[block], call->args.len)) return block;
        if (named < 0) named = block;
    }
    const int op = find_symbol(&f->ops, call->callee->text);
    if (op >= 0 && (named < 0 || takes_tensors(&f->out->symbols.data[op], call->args.len))) return op;
    return named >= 0 ? named : find_symbol(&f->functions, call->callee->text);
}

/* A setting's name means the argument of the block. */
static void refer_to_setting(Finder *f, const Name *name, int block) {
    for (int i = block + 1; block >= 0 && i < f->out->symbols.len; i++) {
        const Symbol *s = &f->out->symbols.data[i];
        if (s->parent != block) return;
        if (s->kind == SYMBOL_SETTING && !strcmp(s->name, name->text)) return refer(f, name->loc, i, name->loc);
    }
}

static void walk_args(Finder *f, const ArgVec *args, int block) {
    for (int i = 0; i < args->len; i++) {
        if (args->data[i].name) refer_to_setting(f, args->data[i].name, block);
        walk(f, args->data[i].value);
    }
}

static void walk_call(Finder *f, const Expr *x) {
    const int callee = find_callee(f, &x->call);
    refer(f, x->call.callee->loc, callee, x->loc);
    walk_args(f, &x->call.args, callee);
    walk_args(f, &x->call.statics, callee);
    walk_path(f, x->call.as);
    walk_path(f, x->call.sharing);
}

/* The parser bounds the depth. */
static void walk(Finder *f, const Expr *x) {
    if (!x) return;
    switch (x->kind) {
    case EXPR_NAME: refer_to_name(f, x->name); break;
    case EXPR_UNARY:
    case EXPR_BINARY:
        walk(f, x->operation.left);
        walk(f, x->operation.right);
        break;
    case EXPR_CALL: walk_call(f, x); break;
    case EXPR_TUPLE:
    case EXPR_LIST:
        for (int i = 0; i < x->items.len; i++) walk(f, x->items.data[i]);
        break;
    default: break;
    }
}

static void walk_type(Finder *f, const TypeExpr *type) {
    for (int i = 0; type && i < type->dims.len; i++) walk(f, type->dims.data[i]);
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

static void walk_body(Finder *f, const StmtVec *body);

static void walk_declaration(Finder *f, const Stmt *s, SymbolKind kind) {
    walk_path(f, s->declare.as);
    walk_type(f, s->declare.type);
    walk(f, s->declare.value);
    declare(f, kind, s->declare.name, s->loc);
}

static void walk_binding(Finder *f, const Stmt *s) {
    walk(f, s->bind.value);
    for (int i = 0; i < s->bind.names.len; i++) declare(f, SYMBOL_VALUE, s->bind.names.data[i], s->loc);
}

static void walk_repeat(Finder *f, const Stmt *s) {
    walk(f, s->repeat.from);
    walk(f, s->repeat.to);
    declare(f, SYMBOL_INDEX, s->repeat.index, s->repeat.index->loc);
    walk_body(f, &s->repeat.body);
}

static void walk_statement(Finder *f, const Stmt *s) {
    switch (s->kind) {
    case STMT_BIND: walk_binding(f, s); break;
    case STMT_PARAM: walk_declaration(f, s, SYMBOL_PARAMETER); break;
    case STMT_STATE: walk_declaration(f, s, SYMBOL_STATE); break;
    case STMT_INPUT: walk_declaration(f, s, SYMBOL_INPUT); break;
    case STMT_UPDATE:
        walk(f, s->assign.value);
        refer_to_name(f, s->assign.name);
        break;
    case STMT_LOSS:
    case STMT_METRIC:
        walk(f, s->assign.value);
        declare(f, SYMBOL_METRIC, s->assign.name, s->loc);
        break;
    case STMT_INIT: walk(f, s->init.value); break;
    case STMT_REPEAT: walk_repeat(f, s); break;
    case STMT_IF:
        walk(f, s->branch.condition);
        walk_body(f, &s->branch.then);
        walk_body(f, &s->branch.otherwise);
        break;
    case STMT_CHECKPOINT: walk_body(f, &s->body); break;
    case STMT_REQUIRE: walk(f, s->require.condition); break;
    case STMT_RETURN: walk(f, s->value); break;
    case STMT_GROUP: walk_args(f, &s->group.settings, -1); break;
    case STMT_OVERRIDE: break;
    }
}

static void walk_body(Finder *f, const StmtVec *body) {
    for (int i = 0; i < body->len; i++) walk_statement(f, body->data[i]);
}

/* ---- declarations ------------------------------------------------------------------------------------------------ */

/* From its first word to the last brace before the next declaration, or to the end of what is there. */
static Loc whole_of(const File *file, int index) {
    Loc whole = file->decls.data[index]->loc;
    const char *text = file->source->text;
    uint32_t end = (uint32_t)file->source->len;
    if (index + 1 < file->decls.len) end = file->decls.data[index + 1]->loc.begin;
    while (end > whole.end && text[end - 1] != '}') end--;
    if (end > whole.end) whole.end = end;
    return whole;
}

/* The lines of comment above a declaration, without their '#'; NULL: there are none. */
static const char *comment_above(Finder *f, Loc loc) {
    const char *text = loc.source->text;
    uint32_t begin = loc.begin;
    for (uint32_t line = begin; line > 0; begin = line) {
        for (line--; line > 0 && text[line - 1] != '\n'; line--) {
        }
        if (text[line] != '#') break;
    }
    Text t;
    text_init(&t, f->a);
    for (const char *at = text + begin; at < text + loc.begin && *at == '#';) {
        const char *end = strchr(at, '\n');
        for (at++; *at == ' '; at++) {
        }
        if (end > at) text_printf(&t, "%s%.*s", t.len ? "\n" : "", (int)(end - at), at);
        at = end + 1;
    }
    return t.len ? text_str(&t) : NULL;
}

static const char *source_text(Finder *f, Loc loc) {
    return arena_strndup(f->a, loc.source->text + loc.begin, loc.end - loc.begin);
}

static void add_args(Finder *f, Symbol *s, const ParameterVec *params) {
    for (int i = 0; i < params->len; i++) {
        const Parameter *p = &params->data[i];
        SymbolArg arg = {p->name->text, p->type ? source_text(f, p->type->loc) : NULL,
                         p->initial ? source_text(f, p->initial->loc) : NULL};
        vec_push(f->a, &s->args, arg);
    }
}

/* They follow their declaration. */
static void add_parameters(Finder *f, const ParameterVec *params, SymbolKind kind) {
    for (int i = 0; i < params->len; i++) {
        const Name *name = params->data[i].name;
        add_symbol(f, kind, name->text, name->loc, name->loc);
    }
}

/* The declaration, before its body is walked: blocks are called from anywhere. */
static int add_declaration(Finder *f, const File *file, int index) {
    static const SymbolKind kinds[] = {
        [DECL_VERSION] = SYMBOL_FILE,        [DECL_INCLUDE] = SYMBOL_FILE, [DECL_CONST] = SYMBOL_CONST,
        [DECL_BLOCK] = SYMBOL_BLOCK,         [DECL_MODEL] = SYMBOL_MODEL,  [DECL_TRAIN] = SYMBOL_TRAIN,
        [DECL_PRECISION] = SYMBOL_PRECISION, [DECL_SIZE] = SYMBOL_CONST};
    const Decl *d = file->decls.data[index];
    if (!d->name || d->kind == DECL_VERSION || d->kind == DECL_INCLUDE) return -1;
    f->parent = -1;
    const Loc whole = kinds[d->kind] == SYMBOL_CONST ? d->loc : whole_of(file, index);
    const int symbol = add_symbol(f, kinds[d->kind], d->name->text, d->name->loc, whole);
    Symbol *s = &f->out->symbols.data[symbol];
    s->about = comment_above(f, d->loc);
    if (d->kind == DECL_BLOCK) {
        add_args(f, s, &d->tensors);
        add_args(f, s, &d->statics);
    }
    f->parent = symbol;
    add_parameters(f, &d->tensors, d->kind == DECL_BLOCK ? SYMBOL_TENSOR : SYMBOL_INPUT);
    add_parameters(f, &d->statics, SYMBOL_SETTING);
    return symbol;
}

static void walk_parameters(Finder *f, const ParameterVec *params, int *symbol) {
    for (int i = 0; i < params->len; i++) {
        walk_type(f, params->data[i].type);
        walk(f, params->data[i].initial);
        file_symbol(f, &f->names, params->data[i].name->text, ++*symbol);
    }
}

static void walk_declared(Finder *f, const Decl *d, int symbol) {
    f->parent = symbol;
    f->names = (Table){0};
    f->sees_model = d->kind == DECL_TRAIN;
    walk(f, d->value);
    walk(f, d->unit);
    walk_parameters(f, &d->tensors, &symbol);
    walk_parameters(f, &d->statics, &symbol);
    walk_body(f, &d->body);
    for (int i = 0; i < d->results.len; i++) refer_to_name(f, d->results.data[i]);
    if (d->kind == DECL_MODEL) f->model = f->names;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void add_file(Finder *f, const Source *source) {
    Diags ignored;
    diags_init(&ignored, f->a);
    for (int i = 0; i < f->out->sources.len; i++)
        if (f->out->sources.data[i] == source) return;
    File *file = frontend_parse_part(f->a, &ignored, source);
    if (!file) {
        file = arena_new(f->a, File);
        file->source = source;
    }
    vec_push(f->a, &f->out->sources, source);
    vec_push(f->a, &f->files, file);
}

/* Files that are included are appended to the list that is walked. */
static void add_files(Finder *f, const Source *main) {
    add_file(f, main);
    for (int i = 0; i < f->files.len; i++)
        for (int k = 0; k < f->files.data[i]->decls.len; k++) {
            const Decl *d = f->files.data[i]->decls.data[k];
            if (d->kind != DECL_INCLUDE || !f->options->find_include || f->options->no_includes) continue;
            const Source *source =
                f->options->find_include(f->options->user, d->name->text, f->files.data[i]->source->name);
            if (source) add_file(f, source);
        }
    Source *prelude = arena_new(f->a, Source);
    *prelude = (Source){"prelude.amp", frontend_prelude_text, strlen(frontend_prelude_text)};
    add_file(f, prelude);
}

/* `include "NAME"` means the file. */
static void refer_to_file(Finder *f, const Decl *d, const int *symbols) {
    const Source *source = NULL;
    if (f->options->find_include && !f->options->no_includes)
        source = f->options->find_include(f->options->user, d->name->text, f->source->name);
    for (int i = 0; source && i < f->files.len; i++)
        if (f->out->sources.data[i] == source) refer(f, d->name->loc, symbols[i], d->name->loc);
}

static bool is_prelude(const Finder *f, int file) { return file == f->files.len - 1; }

static void declare_all(Finder *f, int **symbols) {
    for (int i = 0; i < f->files.len; i++) {
        const File *file = f->files.data[i];
        symbols[i] = arena_array(f->a, int, file->decls.len + 1);
        for (int k = 0; k < file->decls.len; k++) {
            const Decl *d = file->decls.data[k];
            const int symbol = symbols[i][k] = add_declaration(f, file, k);
            if (d->kind == DECL_BLOCK && symbol >= 0)
                file_symbol(f, is_prelude(f, i) ? &f->prelude : &f->blocks, d->name->text, symbol);
        }
    }
}

static void walk_file(Finder *f, int index, const int *symbols, const int *file_symbols) {
    const File *file = f->files.data[index];
    f->source = file->source;
    f->consts = f->model = (Table){0};
    for (int k = 0; k < file->decls.len; k++)
        if (file->decls.data[k]->kind == DECL_CONST || file->decls.data[k]->kind == DECL_SIZE)
            file_symbol(f, &f->consts, file->decls.data[k]->name->text, symbols[k]);
    for (int k = 0; k < file->decls.len; k++) {
        if (file->decls.data[k]->kind == DECL_INCLUDE) refer_to_file(f, file->decls.data[k], file_symbols);
        else if (symbols[k] >= 0) walk_declared(f, file->decls.data[k], symbols[k]);
    }
}

/* ---- what is built in -------------------------------------------------------------------------------------------- */

static void add_setting(Finder *f, Symbol *s, const CallSetting *setting) {
    SymbolArg arg = {setting->name, setting->type, setting->required ? NULL : ""};
    vec_push(f->a, &s->args, arg);
}

static void add_ops(Finder *f) {
    CallSetting setting;
    const GraphOp *op;
    for (int i = 0; (op = graph_op_at(i)); i++) {
        const int symbol = add_symbol(f, SYMBOL_OP, graph_op_name(op), (Loc){0}, (Loc){0});
        Symbol *s = &f->out->symbols.data[symbol];
        file_symbol(f, &f->ops, s->name, symbol);
        s->about = graph_op_about(op);
        graph_op_tensors(op, &s->least, &s->most);
        for (int k = 0; graph_op_argument(op, k, &setting); k++) add_setting(f, s, &setting);
    }
}

static void add_functions(Finder *f) {
    CallSetting setting;
    const char *name, *what;
    for (int i = 0; (name = elab_signature_name(i, &what)); i++) {
        const int symbol = add_symbol(f, SYMBOL_FUNCTION, name, (Loc){0}, (Loc){0});
        f->out->symbols.data[symbol].about = what;
        if (find_symbol(&f->functions, name) < 0) file_symbol(f, &f->functions, name, symbol);
        for (int k = 0; elab_signature_argument(i, k, &setting); k++)
            add_setting(f, &f->out->symbols.data[symbol], &setting);
    }
}

Outline *frontend_outline(Arena *a, const Source *main, const FrontendOptions *options) {
    Finder f = {.a = a, .out = arena_new(a, Outline), .options = options, .parent = -1};
    add_ops(&f);
    add_functions(&f);
    add_files(&f, main);
    int *file_symbols = arena_array(a, int, f.files.len), **symbols = arena_array(a, int *, f.files.len);
    for (int i = 0; i < f.files.len; i++) {
        const Loc start = {f.out->sources.data[i], 0, 0};
        file_symbols[i] = add_symbol(&f, SYMBOL_FILE, start.source->name, start, start);
    }
    declare_all(&f, symbols);
    for (int i = 0; i < f.files.len; i++) walk_file(&f, i, symbols[i], file_symbols);
    return f.out;
}
