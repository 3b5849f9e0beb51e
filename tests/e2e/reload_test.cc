// A model that is edited and compiled again, to the same path, while the version before serves: each load gives what
// was compiled last.
#include "tests/e2e/harness.h"

namespace {

using namespace e2e;

int64_t Width(const amp_model *model) {
    amp_tensor_info info = {};
    amp_error err = {};
    EXPECT_EQ(amp_model_param_at(model, 0, &info, &err), AMP_OK) << err.message;
    return info.dims[0];
}

// AMP_RELOADS edits: reloads_test asks for 100.
TEST(Reload, EachEditIsTheModelThatIsLoaded) {
    const char *wanted = getenv("AMP_RELOADS");
    const int edits = wanted ? atoi(wanted) : 4;
    std::vector<float> x(2 * 5, 0.5f), y(2 * 3);
    const void *inputs[] = {x.data()};
    void *outputs[] = {y.data()};
    Training serving(compile_to_file(mlp("fp16", 5, 8, 3), "edited.so"), 2);
    ASSERT_TRUE(serving.ok());
    ASSERT_EQ(amp_infer(serving.session, inputs, {2, 0}, outputs, &serving.err), AMP_OK) << serving.err.message;
    const std::vector<float> first = y;
    for (int i = 0; i < edits; i++) {
        Training now(compile_to_file(mlp("fp16", 5, 9 + i, 3), "edited.so"), 2);
        ASSERT_TRUE(now.ok());
        ASSERT_EQ(Width(now.model), 9 + i);
        ASSERT_EQ(amp_infer(now.session, inputs, {2, 0}, outputs, &now.err), AMP_OK) << now.err.message;
        ASSERT_EQ(amp_infer(serving.session, inputs, {2, 0}, outputs, &serving.err), AMP_OK) << serving.err.message;
        ASSERT_EQ(y, first);
    }
    EXPECT_EQ(Width(serving.model), 8);
}

} // namespace
