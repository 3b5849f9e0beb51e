// The table of what ranks exchange: of a model and of its form for CUDA, which has buckets of its own.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <functional>
#include <set>

#include "amp/model_abi.h"
#include "tests/e2e/harness.h"
#include "tests/runtime/runtime_c.h"

namespace {

using testing::HasSubstr;

using States = std::multiset<std::string>;

States StatesOf(const amp_model *m) {
    States all;
    for (int32_t i = 0; i < m->collective_count; i++)
        for (uint32_t j = 0; j < m->collectives[i].state_count; j++)
            all.insert(m->states[m->collectives[i].states[j]].name);
    return all;
}

const amp_model_desc *Compiled() {
    static const amp_model_desc *desc = [] {
        const std::string text = "amp 1\nmodel net(x: f32[N, 19]) -> y {\n"
                                 "    h = relu(batch_norm(linear(x; out = 600) as fc1) as bn)\n"
                                 "    h = relu(linear(h; out = 700) as fc2)\n"
                                 "    y = linear(h; out = 5) as fc3\n}\n"
                                 "train net {\n    input targets: i32[N]\n    loss = cross_entropy(y, targets)\n"
                                 "    optimizer = sgd(lr = 0.1)\n    data_parallel = true\n}\n";
        const std::string path = e2e::compile_to_file(text, "exchange_table.so");
        void *handle = dlopen(path.c_str(), RTLD_NOW);
        auto query = handle ? (amp_model_query_fn)dlsym(handle, AMP_MODEL_SYMBOL) : nullptr;
        return query ? query() : nullptr;
    }();
    return desc;
}

struct Tables { // a copy of the model, whose table for CUDA a test may change
    amp_model_desc desc = *Compiled();
    amp_model_cuda cuda = *desc.cuda;
    std::vector<amp_model_collective> list;
    std::vector<std::vector<int32_t>> states;
    amp_model *model = nullptr;
    amp_error err = {};

    Tables() {
        const auto *from = static_cast<const amp_model_collective *>(cuda.collectives.data);
        list.assign(from, from + cuda.collectives.count);
        for (const amp_model_collective &c : list) states.emplace_back(c.states, c.states + c.state_count);
    }
    ~Tables() { amp_model_release(model); }
    amp_status Load() {
        for (size_t i = 0; i < list.size(); i++) {
            list[i].states = states[i].data();
            list[i].state_count = static_cast<uint32_t>(states[i].size());
        }
        cuda.collectives = {static_cast<uint32_t>(list.size()), sizeof list[0], list.data()};
        desc.cuda = &cuda;
        return amp_model_from_desc(&desc, "net.so", nullptr, &model, &err);
    }
};

TEST(ExchangeTable, CudaHasTheSameStatesInBucketsOfItsOwn) {
    ASSERT_NE(Compiled(), nullptr);
    Tables t;
    ASSERT_EQ(t.Load(), AMP_OK) << t.err.message;
    const amp_model *cuda = t.model->cuda;
    EXPECT_EQ(StatesOf(cuda), StatesOf(t.model));
    ASSERT_GT(cuda->collective_count, 2);
    for (int32_t i = 0, before = -1; i < cuda->collective_count; i++) {
        const amp_model_collective *c = &cuda->collectives[i];
        const amp_state_block first = cuda->blocks[c->states[0]];
        size_t at = 0;
        for (uint32_t j = 0; j < c->state_count; j++) { // one block, in the order of the message
            EXPECT_EQ(cuda->blocks[c->states[j]].first, first.first) << c->what;
            EXPECT_EQ(cuda->blocks[c->states[j]].at, at) << c->what;
            at += amp_state_bytes(&cuda->states[c->states[j]]);
        }
        const int32_t last = amp_collective_last_use(cuda, c);
        EXPECT_TRUE(last >= before || c->op != AMP_EXCHANGE_ALL_REDUCE) << c->what;
        before = last;
    }
}

TEST(ExchangeTable, OneThatIsNotTheModelsIsRefused) {
    const struct {
        const char *message;
        std::function<void(Tables *)> damage;
    } wrong[] = {
        {"leave out the state fc", [](Tables *t) { t->list.clear(); }},
        {"leave out the state fc",
         [](Tables *t) { t->states.erase(t->states.begin()), t->list.erase(t->list.begin()); }},
        {"collective 1 exchanges the state fc", [](Tables *t) { t->states[1].push_back(t->states[0][0]); }},
        {"or exchange it otherwise", [](Tables *t) { t->list[0].op = AMP_EXCHANGE_ALL_REDUCE_TREE; }},
        {"gathers what micro-batches leave, as another one does",
         [](Tables *t) { t->list[0].op = AMP_EXCHANGE_GATHER_BATCHES; }},
        {"collective 0 has the unknown op 77", [](Tables *t) { t->list[0].op = 77; }},
        {"collective 0 exchanges a state that does not exist", [](Tables *t) { t->states[0][0] = 1 << 20; }},
        {"no text that says what they are", [](Tables *t) { t->list[0].what = nullptr; }},
    };
    for (const auto &w : wrong) {
        Tables t;
        w.damage(&t);
        EXPECT_EQ(t.Load(), AMP_BAD_FILE) << w.message;
        EXPECT_THAT(t.err.message, HasSubstr(w.message));
        EXPECT_THAT(t.err.message, HasSubstr("net.so: CUDA: "));
    }
}

} // namespace
