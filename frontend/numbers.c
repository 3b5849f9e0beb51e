/* numbers.c: tensors of given numbers: tensor(0.5, 0.7), and lists of floats where a tensor is expected. */
#include "frontend/elaborate.h"

static bool is_number(const Item *item) {
    return item->kind == ITEM_FLOAT || (item->kind == ITEM_INT && !dim_varies(item->i));
}

bool elab_is_numbers(const Item *item) {
    bool any_float = false;
    if (item->kind != ITEM_LIST) return false;
    for (int i = 0; i < item->items.count; i++) {
        if (!is_number(&item->items.at[i])) return false;
        any_float = any_float || item->items.at[i].kind == ITEM_FLOAT;
    }
    return any_float; /* ints alone are a shape */
}

void elab_error_many_numbers(Elab *e, Loc loc, int count) {
    Diag *diag = elab_error(e, loc, "a tensor of given numbers has at most %d; these are %d", MOST_NUMBERS, count);
    diag_help(e->d, diag, "more come as an input, or as a state that is loaded: state w: f32[%d] = zeros()", count);
}

/* |locs|: of each item; NULL: all at |loc|. */
const Numbers *elab_numbers(Elab *e, Loc loc, const Item *items, const Loc *locs, int count) {
    Numbers *numbers = arena_new(e->a, Numbers);
    if (count > MOST_NUMBERS) {
        elab_error_many_numbers(e, loc, count);
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        if (items[i].kind == ITEM_ERROR) return NULL;
        if (!is_number(&items[i])) {
            elab_error(e, locs ? locs[i] : loc, "tensor takes numbers; this is %s", item_describe(e, &items[i]));
            return NULL;
        }
        numbers->at[numbers->count++] = items[i].kind == ITEM_INT ? (double)items[i].i.mul : items[i].f;
    }
    return numbers;
}

Val elab_list_tensor(Elab *e, Loc loc, const Item *list) {
    const Numbers *numbers = elab_numbers(e, loc, list->items.at, NULL, list->items.count);
    if (!numbers) return NO_VAL;
    const Dim count = dim_const(numbers->count);
    Op *o = ir_op_new(e->f, OP_tensor, NULL, 0);
    ir_attr(o, "values")->numbers = numbers;
    ir_result(e->f, o, NULL, AMP_DT_F32, shape_of(1, &count));
    const Item item = elab_emit(e, loc, o, NULL);
    return item.kind == ITEM_TENSOR ? item.tensor : NO_VAL;
}

bool elab_type_numbers(Elab *e, const Expr *call, Op *o, const Item *type, const Item *list, Loc loc) {
    const Numbers *numbers = ir_attr(o, "values")->numbers;
    const bool is_i32 = type->kind == ITEM_SYMBOL && !strcmp(type->s, "i32");
    const Dim count = dim_const(numbers->count);
    Shape shape = shape_of(1, &count);
    if (list->kind != ITEM_NONE && !elab_shape_of_list(e, loc, list, &shape)) return false;
    for (int i = 0; i < numbers->count && is_i32; i++)
        if (!elab_type_holds(AMP_DT_I32, numbers->at[i])) {
            elab_error(e, call->call.args.data[i].loc, "tensor: i32 does not hold %g", numbers->at[i]);
            return false;
        }
    ir_result(e->f, o, NULL, is_i32 ? AMP_DT_I32 : AMP_DT_F32, shape);
    return true;
}
