// ranks.h: sessions of several ranks, which are threads of one process, and what joins them: an engine whose transfers
// take as long as a test says.
#ifndef AMP_TESTS_E2E_RANKS_H
#define AMP_TESTS_E2E_RANKS_H

#include <algorithm>
#include <condition_variable>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "amp/inspect.h"
#include "runtime/device/comm_calls.h"
#include "tests/e2e/harness.h"

namespace e2e {

// Adds from the first rank to the last.  Time is simulated: a rank's clock is the processor time of its thread outside
// the engine, and what it has waited; so that other work on the machine makes no transfer hidden or not.  The network
// carries one message at a time, from when all ranks have started it, and one after the other.
class Network {
  public:
    explicit Network(int32_t ranks);
    Network(const Network &) = delete;

    amp_comm *Comm(int32_t rank) { return &ranks_[static_cast<size_t>(rank)]->head; }
    int32_t size() const { return size_; }

    // From here on, which each rank calls, with nothing under way: clocks at 0.  0 bytes a second: transfers take none.
    void Begin(int32_t rank, double bytes_a_second);

    struct Transfer {
        double begins, ends;
        size_t bytes;
        std::string what;
    };
    // Since Begin: of all ranks; a rank's clock; for how much of the time in which messages were on their way it had
    // nothing else to do.
    const std::vector<Transfer> &transfers() const { return transfers_; }
    double Clock(int32_t rank) const { return ranks_[static_cast<size_t>(rank)]->Clock(); }
    double exposed(int32_t rank) const { return ranks_[static_cast<size_t>(rank)]->exposed; }

  private:
    struct Rank {
        amp_comm head;
        Network *network;
        uint64_t next = 0;    // number of a message
        uint64_t started = 0; // messages since Begin
        double elsewhere = 0, waited = 0, exposed = 0;
        Rank(Network *n, int32_t rank) : head{&Calls(), rank, n->size_, true}, network(n) {}
        double Clock() const { return ProcessorTime() - elsewhere + waited; }
    };
    struct Message {
        amp_collective_op op;
        amp_dtype dtype;
        size_t count;
        int32_t root;
        double begins = 0;
        std::vector<void *> data;
        bool done = false;
    };
    // Keeps what the engine itself computes out of the rank's clock.
    struct Aside {
        Rank *rank;
        double since = ProcessorTime();
        ~Aside() { rank->elsewhere += ProcessorTime() - since; }
    };

    static double ProcessorTime();
    static Rank *Of(amp_comm *comm) { return reinterpret_cast<Rank *>(comm); }
    static const amp_comm_calls &Calls() {
        static const amp_comm_calls calls = {Start, Wait, MeetOf, [](amp_comm *, amp_rank_does, int64_t) {}};
        return calls;
    }

    static amp_status Start(amp_comm *comm, amp_collective_op op, amp_dtype dtype, void *data, size_t count,
                            int32_t root, const char *what, uint64_t *number, amp_error *);

    static amp_status Wait(amp_comm *comm, uint64_t number, amp_error *);

    static amp_status MeetOf(amp_comm *comm, const void *mine, size_t size, void *all, const char *, amp_error *);

    void Meet(const void *mine, size_t size, char *all, int32_t rank = 0);

    template <typename T> void Add(const Message &m) {
        for (size_t i = 0; i < m.count; i++) {
            T sum = static_cast<T *>(m.data[0])[i];
            for (size_t r = 1; r < m.data.size(); r++) sum += static_cast<T *>(m.data[r])[i];
            if (m.op == AMP_COLLECTIVE_ALL_REDUCE_TREE || m.op == AMP_COLLECTIVE_REDUCE_SCATTER_TREE)
                sum = Tree<T>(m, i, 0, m.data.size());
            if (m.op != AMP_COLLECTIVE_REDUCE_SCATTER && m.op != AMP_COLLECTIVE_REDUCE_SCATTER_TREE) {
                for (void *to : m.data) static_cast<T *>(to)[i] = sum;
                continue;
            }
            // To the rank whose part it is; what the others have is not defined.
            const size_t part = m.count / m.data.size();
            for (size_t r = 0; r < m.data.size(); r++) static_cast<T *>(m.data[r])[i] = i / part == r ? sum : T(-77);
        }
    }

    template <typename T> static T Tree(const Message &m, size_t i, size_t first, size_t count) {
        if (count == 1) return static_cast<T *>(m.data[first])[i];
        size_t left = 1;
        while (2 * left < count) left *= 2;
        return Tree<T>(m, i, first, left) + Tree<T>(m, i, first + left, count - left);
    }

    void Move(const Message &m);

    const int32_t size_;
    std::vector<std::unique_ptr<Rank>> ranks_;
    std::mutex lock_;
    std::condition_variable arrived_;
    std::vector<Message> messages_; // by number
    std::vector<Transfer> transfers_;
    double bandwidth_ = 0, free_at_ = 0;
    std::vector<char> said_[2]; // in this meeting, and in the one before it, which some have not left yet
    uint64_t met_ = 0;
    int32_t there_ = 0;
};

// The tensors of a safetensors file without its header, which names the model's text.
std::string read_tensors(const std::string &path);

// What libamp says ahead of a model's ranks (amp/inspect.h), without any.
class Inspected {
  public:
    Inspected(const std::string &path, int64_t capacity, int32_t ranks);
    Inspected(const Inspected &) = delete;
    ~Inspected() { amp_model_release(model_); }

    amp_tables tables = {};
    std::vector<amp_rank_message> messages;
    amp_memory_info memory = {};   // of rank 0
    uint64_t total = 0;            // of it, with what it has for messages
    uint64_t all_moments = 0;      // bytes
    std::vector<uint64_t> moments; // by rank

  private:
    uint64_t Moments(int32_t rank, int32_t ranks);

    amp_model *model_ = nullptr;
};

// |body| on a thread of each rank.
void on_ranks(int32_t ranks, const std::function<void(int32_t rank)> &body);

} // namespace e2e
#endif
