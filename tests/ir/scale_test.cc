// Deep models: verifier, compaction, names, printer and reader take time in proportion to the module.
#include <algorithm>
#include <cstring>
#include <ctime>
#include <functional>

#include "tests/base/planted.h"
#include "tests/ir/ir_test.h"

namespace {

enum { SMALL = 1000, FACTOR = 8 };

Shape Square() {
    Dim d[] = {dim_n(1, 1), dim_const(8)};
    return shape_of(2, d);
}

// Layers of linear and relu, as a model of equal blocks gives them: every value wants one of two names, each weight is
// a state.
Module *Deep(Arena *a, int layers) {
    Dim sides[] = {dim_const(8), dim_const(8)};
    Module *m = ir_module_new(a, "deep");
    Func *f = ir_func_new(m, "forward");
    Val x = ir_add_input(f, "x", AMP_DT_F32, Square());
    for (int i = 0; i < layers; i++) {
        State *w = ir_state_new(m, arena_printf(a, "layer.%d.weight", i), STATE_PARAM, AMP_DT_F32, shape_of(2, sides));
        x = ir_emit(f, OP_linear, AMP_DT_F32, "y", 2, x, ir_use_state(f, w));
        x = ir_emit(f, OP_relu, AMP_DT_F32, "h", 1, x);
        ir_add_result(f, arena_printf(a, "h.%d", i), x);
    }
    return m;
}

// The same in kernels of one op, with a buffer each, states among them.
Module *DeepKernels(Arena *a, int layers) {
    Module *m = Deep(a, layers);
    m->stage = STAGE_PLAN;
    Func *f = m->funcs.data[0];
    for (int i = 0; i < f->body.len; i++) {
        Op *o = ir_op_at(f, i);
        bool product = o->code == OP_linear;
        o->code = product ? OP_contract : OP_neg;
        if (product) o->attr = arena_array(a, AttrValue, ir_attr_count(OP_contract));
        for (int j = 0; product && j < ir_attr_count(OP_contract); j++)
            o->attr[j] = ir_op_info[OP_contract].attrs[j].initial;
        Kernel *k = arena_new(a, Kernel);
        *k = Kernel{};
        k->name = arena_printf(a, "k%d", i);
        k->title = "";
        k->kind = product ? KERNEL_PRODUCT : KERNEL_TILE;
        k->first = i;
        k->count = 1;
        vec_push(a, &f->kernels, k);
    }
    uint32_t states = 0;
    for (int i = 1; i < f->values.len; i++) {
        Buffer *b = arena_new(a, Buffer);
        bool is_state = f->values.data[i]->kind == VAL_STATE;
        *b = Buffer{};
        b->name = arena_printf(a, "b%d", i);
        b->kind = is_state ? BUFFER_STATE : BUFFER_TEMP;
        b->value = Val{static_cast<uint32_t>(i)};
        b->storage = AMP_DT_F32;
        if (is_state) b->state = ++states;
        b->first = b->last = -1;
        vec_push(a, &f->buffers, b);
    }
    return m;
}

// Seconds of the processor, the least of three: other work on the machine counts little.
double Seconds(const std::function<void(Arena *)> &work) {
    double least = 1e9;
    for (int i = 0; i < 3; i++) {
        Arena a;
        arena_init(&a, nullptr);
        clock_t begin = clock();
        work(&a);
        least = std::min(least, static_cast<double>(clock() - begin) / CLOCKS_PER_SEC);
        arena_free(&a);
    }
    return least;
}

// Quadratic work would take FACTOR * FACTOR times as long; linear work FACTOR times, give or take caches and noise.
void ExpectLinear(const std::function<void(Arena *, int)> &work) {
    double small = Seconds([&](Arena *a) { work(a, SMALL); });
    double large = Seconds([&](Arena *a) { work(a, SMALL * FACTOR); });
    EXPECT_LT(large, std::max(small, 0.002) * FACTOR * 3) << "from " << small << " s";
}

void VerifyAndCompact(Module *m) {
    EXPECT_STREQ(ir_verify(m), nullptr);
    int ops = m->funcs.data[0]->body.len;
    ir_compact(m);
    EXPECT_EQ(m->funcs.data[0]->body.len, ops);
}

TEST(Scale, GraphsAreBuiltVerifiedAndCompactedInLinearTime) {
    ExpectLinear([](Arena *a, int layers) { VerifyAndCompact(Deep(a, layers)); });
}

// The state of a name, looked for from the first on.
TEST(Scale, PlantedQuadraticWalkIsFound) {
    ExpectFound("a walk for each state", "from ", [] {
        ExpectLinear([](Arena *a, int layers) {
            const Module *m = Deep(a, layers);
            for (int i = 0, at = 0; i < layers; i++, at = 0)
                while (strcmp(m->states.data[at]->name, m->states.data[i]->name)) at++;
        });
    });
}

TEST(Scale, KernelsAreVerifiedAndCompactedInLinearTime) {
    ExpectLinear([](Arena *a, int layers) { VerifyAndCompact(DeepKernels(a, layers)); });
}

TEST(Scale, TextIsPrintedAndReadInLinearTime) {
    ExpectLinear([](Arena *a, int layers) {
        Text t;
        text_init(&t, a);
        ir_print(&t, DeepKernels(a, layers));
        Source source = {"deep.ir", text_str(&t), static_cast<size_t>(t.len)};
        Diags diags;
        diags_init(&diags, a);
        Module *m = ir_read(a, &diags, &source);
        ASSERT_NE(m, nullptr);
        EXPECT_EQ(m->funcs.data[0]->kernels.len, 2 * layers);
    });
}

} // namespace
