// mean_calls.cc: mean_calls.c by amp/amp.hpp.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "amp/amp.hpp"

namespace {

struct All {
    All(char **argv, int inputs)
        : model(argv[1]), params(model), samples(std::atol(argv[3])), batch(std::atol(argv[4])) {
        for (int i = 0; i < inputs; i++) {
            std::ifstream file(argv[5 + i], std::ios::binary);
            data.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
        }
        params.load(argv[2]);
    }
    amp::Session Session() const {
        amp::SessionOptions options;
        options.capacity.n = samples;
        return amp::Session(model, params, options);
    }
    std::vector<amp::Input> From(int64_t sample) const {
        std::vector<amp::Input> out;
        for (const std::string &input : data) {
            const void *bytes =
                input.data() + input.size() / static_cast<size_t>(samples) * static_cast<size_t>(sample);
            out.emplace_back(bytes);
        }
        return out;
    }
    void Evaluate(amp::Session *session, int64_t begin, int64_t end) const {
        session->evaluate_begin();
        for (int64_t i = begin; i < end; i += batch)
            session->evaluate(From(i), end - i < batch ? end - i : batch, nullptr);
    }
    void Print(const char *call, double loss, const std::vector<double> &losses,
               const std::vector<double> &metrics) const {
        std::printf("{\"call\": \"%s\", \"loss\": %.17g", call, loss);
        for (size_t i = 0; i < losses.size(); i++)
            std::printf(", \"loss.%s\": %.17g", model.loss_names()[i].c_str(), losses[i]);
        for (size_t i = 0; i < metrics.size(); i++)
            std::printf(", \"%s\": %.17g", model.metric_names()[i].c_str(), metrics[i]);
        std::printf("}\n");
    }

    amp::Model model;
    amp::Params params;
    int64_t samples, batch;
    std::vector<std::string> data;
};

void Evaluations(const All &all, amp::Session *session) {
    const amp::Evaluation whole = session->evaluate(all.From(0), all.samples);
    all.Print("Session::evaluate", whole.loss, session->losses(), whole.metrics);
    all.Evaluate(session, 0, all.samples);
    const amp::Evaluation parts = session->evaluate_end();
    all.Print("Session::evaluate_end", parts.loss, session->losses(), parts.metrics);
    amp::Session other = all.Session();
    all.Evaluate(&other, 0, 7);
    all.Evaluate(session, 7, all.samples);
    session->add_evaluation(other.evaluation_sums());
    const amp::Evaluation two = session->evaluate_end();
    all.Print("Session::add_evaluation", two.loss, session->losses(), two.metrics);
}

void Steps(All *all, amp::Session *session, const char *weights) {
    const int64_t parts = all->model.info().accumulate, n = all->samples / parts;
    amp::StepReport report{};
    for (int64_t i = 0; i < parts; i++) report = session->step(all->From(i * n), n);
    all->Print("Session::step", report.loss, session->losses(), session->metrics());
    all->params.load(weights);
    amp::LateReport late;
    for (int64_t i = 0; i < parts; i++) {
        session->start_step(all->From(i * n), n);
        if (!session->next_report(late, true)) throw std::runtime_error("no report");
    }
    all->Print("Session::next_report", late.report.loss, late.losses, late.metrics);
}

} // namespace

int main(int argc, char **argv) try {
    All all(argv, argc - 5);
    amp::Session session = all.Session();
    Evaluations(all, &session);
    Steps(&all, &session, argv[2]);
} catch (const std::exception &error) {
    std::fprintf(stderr, "mean_calls: %s\n", error.what());
    return 1;
}
