// Every function of libamp with each of its pointers NULL, one at a time: AMP_INVALID_ARGUMENT with a message, or
// nothing happens.
#include <functional>
#include <set>

#include "amp/inspect.h"
#include "tests/runtime/files.h"
#include "tests/runtime/tiny.h"

namespace {

struct Fixture : Tiny {
    Fixture() : Tiny(TinyOptions(8)) {
        data.struct_size = sizeof data;
        data.fill = [](void *, int64_t, void *const *, amp_sizes, amp_sizes *sizes, amp_error *) {
            sizes->n = 0;
            return AMP_OK;
        };
        EXPECT_EQ(amp_dataset_create(model, &data, &dataset, &err), AMP_OK) << err.message;
    }
    ~Fixture() { amp_dataset_release(dataset); }
    TinyBatch batch{8};
    amp_error e = {};
    amp_model *made_model = nullptr;
    amp_params *made_params = nullptr;
    amp_session *made_session = nullptr;
    amp_dataset_options data = {};
    amp_dataset *dataset = nullptr, *made_dataset = nullptr;
    const void *const *arrays = nullptr;
    amp_tensor_info info = {};
    amp_param_training training = {};
    amp_group_info group = {};
    amp_decision decision = {};
    amp_cuda_image_info image = {};
    amp_model_info about = {};
    amp_memory_info memory = {};
    amp_scaler_state scaler = {};
    amp_step_report report = {};
    float numbers[TINY_CLASSES * TINY_FEATURES] = {};
    double doubles[8] = {};
    int64_t count = 0;
    amp_sizes sizes = {};
    int32_t there = 0;
    amp_number_bins bins = {};
    amp_tables tables = {};
    amp_rank_message message = {};
    amp_rank_state state = {};
    amp_product_choice choice{};
    amp_gpu_info gpu = {};
    amp_kernel_sources sources = {};
    void *outputs[1] = {numbers};
};

struct Row {
    const char *function, *argument;
    std::function<amp_status(Fixture &)> call;
};

#define CALL(function, argument, ...)                                                                                  \
    {                                                                                                                  \
#function, argument, [](Fixture &f) -> amp_status { (void)f; return function(__VA_ARGS__); }                           \
    }

const amp_sizes kOne = {1, 0}, kEight = {8, 0};

const Row kRefused[] = {
    CALL(amp_model_load, "path", nullptr, nullptr, &f.made_model, &f.e),
    CALL(amp_model_load, "out", "x.so", nullptr, nullptr, &f.e),
    CALL(amp_model_from_static, "model", nullptr, nullptr, &f.made_model, &f.e),
    CALL(amp_model_from_static, "out", amp_model_query, nullptr, nullptr, &f.e),
    CALL(amp_model_input_at, "model", nullptr, 0, kOne, &f.info, &f.e),
    CALL(amp_model_input_at, "out", f.model, 0, kOne, nullptr, &f.e),
    CALL(amp_model_get_index_range, "model", nullptr, 1, &f.count, nullptr, &f.e),
    CALL(amp_model_get_index_range, "count", f.model, 1, nullptr, nullptr, &f.e),
    CALL(amp_model_result_at, "model", nullptr, 0, kOne, &f.info, &f.e),
    CALL(amp_model_result_at, "out", f.model, 0, kOne, nullptr, &f.e),
    CALL(amp_model_expect, "model", nullptr, "x: f32[N, 3]", &f.e),
    CALL(amp_model_expect, "signature", f.model, nullptr, &f.e),
    CALL(amp_model_param_at, "model", nullptr, 0, &f.info, &f.e),
    CALL(amp_model_param_at, "out", f.model, 0, nullptr, &f.e),
    CALL(amp_model_cuda_image_at, "model", nullptr, 0, &f.image, &f.e),
    CALL(amp_model_cuda_image_at, "out", f.model, 0, nullptr, &f.e),
    CALL(amp_model_decision_at, "model", nullptr, 0, &f.decision, &f.e),
    CALL(amp_model_decision_at, "out", f.model, 0, nullptr, &f.e),
    CALL(amp_params_create, "model", nullptr, nullptr, &f.made_params, &f.e),
    CALL(amp_params_create, "out", f.model, nullptr, nullptr, &f.e),
    CALL(amp_model_param_training_at, "model", nullptr, 0, &f.training, &f.e),
    CALL(amp_model_param_training_at, "out", f.model, 0, nullptr, &f.e),
    CALL(amp_model_group_at, "model", nullptr, 0, &f.group, &f.e),
    CALL(amp_params_get, "params", nullptr, "fc.bias", f.numbers, TINY_CLASSES, &f.e),
    CALL(amp_params_get, "name", f.params, nullptr, f.numbers, TINY_CLASSES, &f.e),
    CALL(amp_params_get, "data", f.params, "fc.bias", nullptr, TINY_CLASSES, &f.e),
    CALL(amp_params_set, "params", nullptr, "fc.bias", f.numbers, TINY_CLASSES, &f.e),
    CALL(amp_params_set, "name", f.params, nullptr, f.numbers, TINY_CLASSES, &f.e),
    CALL(amp_params_set, "data", f.params, "fc.bias", nullptr, TINY_CLASSES, &f.e),
    CALL(amp_params_load, "params", nullptr, "x.st", nullptr, nullptr, &f.e),
    CALL(amp_params_load, "path", f.params, nullptr, nullptr, nullptr, &f.e),
    CALL(amp_params_save, "params", nullptr, "x.st", nullptr, &f.e),
    CALL(amp_params_save, "path", f.params, nullptr, nullptr, &f.e),
    CALL(amp_params_blend, "to", nullptr, f.params, 0.5, &f.e),
    CALL(amp_params_blend, "from", f.params, nullptr, 0.5, &f.e),
    CALL(amp_params_copy, "to", nullptr, f.params, &f.e),
    CALL(amp_params_copy, "from", f.params, nullptr, &f.e),
    CALL(amp_params_drop_masters, "params", nullptr, &f.e),
    CALL(amp_params_snapshot, "params", nullptr, &f.made_params, &f.e),
    CALL(amp_params_snapshot, "out", f.params, nullptr, &f.e),
    CALL(amp_params_publish, "params", nullptr, nullptr, &f.e),
    CALL(amp_params_count_nonfinite, "params", nullptr, &f.count, nullptr, &f.e),
    CALL(amp_params_count_nonfinite, "count", f.params, nullptr, nullptr, &f.e),
    CALL(amp_session_get_averages, "session", nullptr, f.params, &f.e),
    CALL(amp_session_get_averages, "to", f.session, nullptr, &f.e),
    CALL(amp_session_get_grad_norm, "session", nullptr, f.doubles, &f.e),
    CALL(amp_session_get_grad_norm, "norm", f.session, nullptr, &f.e),
    CALL(amp_session_create, "model", nullptr, f.params, nullptr, &f.made_session, &f.e),
    CALL(amp_session_create, "params", f.model, nullptr, nullptr, &f.made_session, &f.e),
    CALL(amp_session_create, "out", f.model, f.params, nullptr, nullptr, &f.e),
    CALL(amp_session_alloc_pinned, "session", nullptr, 8, &f.outputs[0], &f.e),
    CALL(amp_session_alloc_pinned, "out", f.session, 8, nullptr, &f.e),
    CALL(amp_session_observe, "session", nullptr, nullptr, &f.e),
    CALL(amp_session_tune, "session", nullptr, 8, &f.e),
    CALL(amp_session_save_choices, "session", nullptr, "x", &f.e),
    CALL(amp_session_choice_at, "session", nullptr, 0, &f.choice, &f.e),
    CALL(amp_session_choice_at, "out", f.session, 0, nullptr, &f.e),
    CALL(amp_session_count_param, "session", nullptr, "fc1.weight", &f.bins, &f.e),
    CALL(amp_session_count_param, "name", f.session, nullptr, &f.bins, &f.e),
    CALL(amp_session_count_param, "to", f.session, "fc1.weight", nullptr, &f.e),
    CALL(amp_session_plan, "model", nullptr, f.params, nullptr, &f.memory, &f.e),
    CALL(amp_session_plan, "out", f.model, f.params, nullptr, nullptr, &f.e),
    CALL(amp_session_plan_rank, "model", nullptr, nullptr, 0, 2, &f.memory, &f.e),
    CALL(amp_session_plan_rank, "out", f.model, nullptr, 0, 2, nullptr, &f.e),
    CALL(amp_model_get_tables, "model", nullptr, "cpu", &f.tables, &f.e),
    CALL(amp_model_get_tables, "out", f.model, "cpu", nullptr, &f.e),
    CALL(amp_program_plan, "program", nullptr, kOne, nullptr, nullptr, &f.e),
    CALL(amp_model_message_at, "model", nullptr, "cpu", 2, 0, &f.message, &f.e),
    CALL(amp_model_message_at, "out", f.model, "cpu", 2, 0, nullptr, &f.e),
    CALL(amp_model_rank_state, "model", nullptr, "cpu", 0, 0, 2, &f.state, &f.e),
    CALL(amp_model_rank_state, "out", f.model, "cpu", 0, 0, 2, nullptr, &f.e),
    CALL(amp_cpu_measure, "out", nullptr, nullptr, &f.e),
    CALL(amp_cuda_find, "out", AMP_CUDA_CACHE, nullptr, &f.e),
    CALL(amp_gpu_at, "out", 0, nullptr, &f.e),
    CALL(amp_model_check_gpu, "model", nullptr, &f.gpu, &f.e),
    CALL(amp_model_check_gpu, "gpu", f.model, nullptr, &f.e),
    CALL(amp_model_kernel_sources, "model", nullptr, &f.gpu, 0, &f.sources, &f.e),
    CALL(amp_model_kernel_sources, "gpu", f.model, nullptr, 0, &f.sources, &f.e),
    CALL(amp_model_kernel_sources, "out", f.model, &f.gpu, 0, nullptr, &f.e),
    CALL(amp_step, "session", nullptr, f.batch.inputs, kEight, &f.report, &f.e),
    CALL(amp_step, "inputs", f.session, nullptr, kEight, &f.report, &f.e),
    CALL(amp_eval, "session", nullptr, f.batch.inputs, kEight, f.doubles, f.doubles, &f.e),
    CALL(amp_eval, "inputs", f.session, nullptr, kEight, f.doubles, f.doubles, &f.e),
    CALL(amp_infer, "session", nullptr, f.batch.inputs, kEight, f.outputs, &f.e),
    CALL(amp_infer, "inputs", f.session, nullptr, kEight, f.outputs, &f.e),
    CALL(amp_infer, "outputs", f.session, f.batch.inputs, kEight, nullptr, &f.e),
    CALL(amp_session_get_metrics, "session", nullptr, f.doubles, &f.e),
    CALL(amp_session_get_metrics, "metrics", f.session, nullptr, &f.e),
    CALL(amp_session_get_losses, "session", nullptr, f.doubles, &f.e),
    CALL(amp_session_get_losses, "losses", f.session, nullptr, &f.e),
    CALL(amp_session_next_report, "session", nullptr, 0, &f.report, f.doubles, f.doubles, &f.there, &f.e),
    CALL(amp_session_next_report, "report", f.session, 0, nullptr, f.doubles, f.doubles, &f.there, &f.e),
    CALL(amp_session_next_report, "there", f.session, 0, &f.report, f.doubles, f.doubles, nullptr, &f.e),
    CALL(amp_eval_begin, "session", nullptr, &f.e),
    CALL(amp_eval_end, "session", nullptr, f.doubles, f.doubles, &f.e),
    CALL(amp_eval_get_sums, "session", nullptr, f.doubles, &f.e),
    CALL(amp_eval_get_sums, "sums", f.session, nullptr, &f.e),
    CALL(amp_eval_add, "session", nullptr, f.doubles, &f.e),
    CALL(amp_eval_add, "sums", f.session, nullptr, &f.e),
    CALL(amp_session_get_value, "session", nullptr, "logits", &f.info, f.numbers, 4, &f.e),
    CALL(amp_session_get_value, "name", f.session, nullptr, &f.info, f.numbers, 4, &f.e),
    CALL(amp_session_get_lr, "session", nullptr, 0, f.doubles, &f.e),
    CALL(amp_session_get_lr, "lr", f.session, 0, nullptr, &f.e),
    CALL(amp_session_set_lr, "session", nullptr, 0, 0.1, &f.e),
    CALL(amp_session_get_lr_scale, "session", nullptr, 0, f.doubles, &f.e),
    CALL(amp_session_get_lr_scale, "scale", f.session, 0, nullptr, &f.e),
    CALL(amp_session_set_lr_scale, "session", nullptr, 0, 0.1, &f.e),
    CALL(amp_session_get_scaler, "session", nullptr, &f.scaler, &f.e),
    CALL(amp_session_get_scaler, "out", f.session, nullptr, &f.e),
    CALL(amp_session_set_scaler, "session", nullptr, &f.scaler, &f.e),
    CALL(amp_session_set_scaler, "state", f.session, nullptr, &f.e),
    CALL(amp_session_get_moment, "session", nullptr, "fc.bias/momentum", f.numbers, TINY_CLASSES, &f.e),
    CALL(amp_session_get_moment, "name", f.session, nullptr, f.numbers, TINY_CLASSES, &f.e),
    CALL(amp_session_get_moment, "data", f.session, "fc.bias/momentum", nullptr, TINY_CLASSES, &f.e),
    CALL(amp_session_set_moment, "session", nullptr, "fc.bias/momentum", f.numbers, TINY_CLASSES, &f.e),
    CALL(amp_session_set_moment, "name", f.session, nullptr, f.numbers, TINY_CLASSES, &f.e),
    CALL(amp_session_set_moment, "data", f.session, "fc.bias/momentum", nullptr, TINY_CLASSES, &f.e),
    CALL(amp_dataset_create, "model", nullptr, &f.data, &f.made_dataset, &f.e),
    CALL(amp_dataset_create, "options", f.model, nullptr, &f.made_dataset, &f.e),
    CALL(amp_dataset_create, "out", f.model, &f.data, nullptr, &f.e),
    CALL(amp_dataset_next, "dataset", nullptr, &f.arrays, &f.sizes, &f.e),
    CALL(amp_dataset_next, "inputs", f.dataset, nullptr, &f.sizes, &f.e),
    CALL(amp_dataset_next, "sizes", f.dataset, &f.arrays, nullptr, &f.e),
    CALL(amp_dataset_seek, "dataset", nullptr, 0, &f.e),
    CALL(amp_checkpoint_save, "session", nullptr, "x.st", nullptr, &f.e),
    CALL(amp_checkpoint_save, "path", f.session, nullptr, nullptr, &f.e),
    CALL(amp_checkpoint_copy, "session", nullptr, f.session, &f.e),
    CALL(amp_checkpoint_copy, "session", f.session, nullptr, &f.e),
    CALL(amp_checkpoint_load, "session", nullptr, "x.st", nullptr, 0, &f.e),
    CALL(amp_checkpoint_load, "path", f.session, nullptr, nullptr, 0, &f.e),
};

TEST(Null, IsRefused) {
    Fixture f;
    for (const Row &r : kRefused) {
        f.e = {};
        EXPECT_EQ(r.call(f), AMP_INVALID_ARGUMENT) << r.function << ", " << r.argument;
        std::string message = f.e.message;
        EXPECT_NE(message.find("NULL"), std::string::npos) << r.function << ", " << r.argument << ": " << message;
    }
    EXPECT_EQ(f.made_model, nullptr);
    EXPECT_EQ(f.made_params, nullptr);
    EXPECT_EQ(f.made_session, nullptr);
    EXPECT_EQ(f.made_dataset, nullptr);
}

// An input array that is NULL itself.
TEST(Null, ArraysAreRefused) {
    Fixture f;
    const void *inputs[] = {f.batch.inputs[0], nullptr};
    EXPECT_EQ(amp_step(f.session, inputs, {8, 0}, nullptr, &f.e), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_eval(f.session, inputs, {8, 0}, f.doubles, nullptr, &f.e), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_infer(f.session, inputs + 1, {8, 0}, f.outputs, &f.e), AMP_INVALID_ARGUMENT);
}

// What answers nothing: no crash, and what there is to fill is zero.
TEST(Null, IsNothing) {
    Fixture f;
    amp_model_retain(nullptr), amp_model_release(nullptr);
    amp_params_retain(nullptr), amp_params_release(nullptr);
    amp_session_retain(nullptr), amp_session_release(nullptr);
    amp_dataset_retain(nullptr), amp_dataset_release(nullptr);
    amp_session_free_pinned(nullptr, nullptr), amp_session_free_pinned(f.session, nullptr);
    EXPECT_EQ(amp_dataset_position(nullptr), 0);
    f.about.input_count = 7;
    amp_model_get_info(nullptr, &f.about);
    EXPECT_EQ(f.about.input_count, 0);
    amp_model_get_info(f.model, nullptr);
    f.memory.total = 7;
    amp_session_get_memory(nullptr, &f.memory);
    EXPECT_EQ(f.memory.total, 0u);
    amp_session_get_memory(f.session, nullptr);
    EXPECT_EQ(amp_model_metric_name(nullptr, 0), nullptr);
    EXPECT_EQ(amp_model_loss_name(nullptr, 0), nullptr);
    EXPECT_EQ(amp_model_isa_name(nullptr, 0), nullptr);
    EXPECT_EQ(amp_session_value_name(nullptr, 0), nullptr);
    EXPECT_EQ(amp_session_version(nullptr), 0u);
    EXPECT_EQ(amp_session_has_shares(nullptr), 0);
    EXPECT_EQ(amp_cuda_launch_choose(nullptr, {1, 0}, 1, 1).choice, nullptr);
    EXPECT_EQ(amp_cuda_tile_share(nullptr, {1, 0}, AMP_INSTRUCTION_FMA), 0);
    EXPECT_EQ(amp_cuda_filled(0, 0), 1);
}

// Errors are for who wants them; reports, metrics and results too.
TEST(Null, MayBeLeftOut) {
    Fixture f;
    EXPECT_EQ(amp_step(f.session, f.batch.inputs, {8, 0}, nullptr, nullptr), AMP_OK);
    EXPECT_EQ(amp_eval(f.session, f.batch.inputs, {8, 0}, nullptr, nullptr, nullptr), AMP_OK);
    void *outputs[] = {nullptr};
    EXPECT_EQ(amp_infer(f.session, f.batch.inputs, {8, 0}, outputs, nullptr), AMP_OK);
    EXPECT_EQ(amp_checkpoint_save(f.session, TempPath("null.st").c_str(), nullptr, nullptr), AMP_OK);
    EXPECT_EQ(amp_checkpoint_load(f.session, TempPath("null.st").c_str(), nullptr, 9, nullptr), AMP_OK);
    EXPECT_EQ(amp_params_get(f.params, "none", f.numbers, 1, nullptr), AMP_NOT_FOUND);
    EXPECT_EQ(amp_step(nullptr, nullptr, {8, 0}, nullptr, nullptr), AMP_INVALID_ARGUMENT);
}

// Also on the device that computes nothing.
TEST(Null, ResultsOfTheNullDevice) {
    amp::SessionOptions o = TinyOptions(8);
    o.device = "null";
    Tiny tiny(o);
    TinyBatch batch{8};
    void *outputs[] = {nullptr};
    EXPECT_EQ(amp_infer(tiny.session, batch.inputs, {8, 0}, outputs, &tiny.err), AMP_OK) << tiny.err.message;
}

// The list of public functions is the same as in packaging/libamp.map: a new one gets its rows here.
TEST(Null, EveryFunctionIsHere) {
    std::set<std::string> here = {"amp_dtype_name",
                                  "amp_dtype_size",
                                  "amp_status_name",
                                  "amp_version",
                                  "amp_model_retain",
                                  "amp_model_release",
                                  "amp_params_retain",
                                  "amp_params_release",
                                  "amp_session_retain",
                                  "amp_session_release",
                                  "amp_model_get_info",
                                  "amp_session_get_memory",
                                  "amp_model_metric_name",
                                  "amp_model_loss_name",
                                  "amp_session_value_name",
                                  "amp_session_version",
                                  "amp_session_has_shares",
                                  "amp_model_isa_name",
                                  "amp_dataset_retain",
                                  "amp_dataset_release",
                                  "amp_dataset_position",
                                  "amp_scale_health_name",
                                  "amp_scale_monitor_start",
                                  "amp_scale_monitor_step",
                                  "amp_session_free_pinned",
                                  "amp_eval_sums_count",
                                  "amp_session_kept_state_name",
                                  "amp_cuda_launch_choose",
                                  "amp_cuda_tile_share",
                                  "amp_cuda_filled"};
    for (const Row &r : kRefused) here.insert(r.function);
    std::ifstream map("packaging/libamp.map");
    std::string line;
    int count = 0;
    while (std::getline(map, line)) {
        size_t at = line.find("amp_"), end = line.find(';');
        if (at == std::string::npos || end == std::string::npos || line[0] == '#') continue;
        count++;
        EXPECT_TRUE(here.count(line.substr(at, end - at))) << line.substr(at, end - at) << " has no row";
    }
    EXPECT_GT(count, 30);
}

} // namespace
